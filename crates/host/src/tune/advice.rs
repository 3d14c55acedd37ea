//! Settings from advice: the 10 Gbit/s article, or a sysctl.conf(5) of one's own. What they are worth is judged in
//! `judge.rs`.

/// The complete set of the article "Saturating 10 Gigabit on Linux".
pub const ARTICLE: &str = include_str!("article.conf");

/// A line that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is '{text}', which is no setting: write NAME = VALUE, as in sysctl.conf(5)")]
pub struct AdviceError {
    line: usize,
    text: String,
}

/// Reads settings as sysctl.conf(5) has them.
///
/// # Errors
/// When a line is neither a setting nor a comment.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, AdviceError> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let pair = line.split_once('=').map(|(key, value)| {
            let key = key.trim().trim_start_matches('-').replace('/', ".");
            (key, value.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        match pair {
            Some((key, value)) if !key.is_empty() && !key.contains(char::is_whitespace) => {
                settings.push((key, value));
            }
            _ => {
                return Err(AdviceError {
                    line: number + 1,
                    text: line.chars().take(60).collect(),
                });
            }
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::knobs::Catalogue;

    #[test]
    fn the_article_is_23_settings_of_the_catalogue() {
        let catalogue = Catalogue::built_in().unwrap();
        let settings = parse(ARTICLE).unwrap();
        assert_eq!(settings.len(), 23);
        for (name, _) in &settings {
            assert!(
                catalogue.find(plumb_model::tune::Os::Linux, name).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn slashes_comments_and_nonsense() {
        let read = parse("# x\n; y\n\n-net/ipv4/tcp_rmem=4096\t1 2\n").unwrap();
        assert_eq!(
            read,
            [("net.ipv4.tcp_rmem".to_owned(), "4096 1 2".to_owned())]
        );
        assert_eq!(parse("sysctl -p\n").unwrap_err().line, 1);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC|\n|=){0,200}") {
            let _ = parse(&text);
        }
    }
}
