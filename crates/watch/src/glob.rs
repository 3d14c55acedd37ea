//! Names with `*` for any characters and `?` for one.

/// Whether a name is of this pattern.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and up to where of the name it reaches.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || name.get(n) == Some(c) => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, reach)) => {
                    star = Some((at, reach + 1));
                    (p, n) = (at + 1, reach + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (pattern, name, is) in [
            ("eth0", "eth0", true),
            ("eth*", "eth0", true),
            ("eth?", "eth10", false),
            ("*/1/*", "Gi1/1/24", true),
            ("*0", "eth00", true),
            ("*a*b", "xaxbxb", true),
            ("*", "", true),
            ("", "x", false),
            ("eth*", "xeth0", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
