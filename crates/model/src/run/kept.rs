//! What of a command line and of a URL a Run keeps. People publish Runs, and a responder gives them to the visitors of its page.

/// Parts of the names of options whose values are secrets, as in `--key` and `--irtt-key-file`.
const SECRETS: [&str; 5] = ["key", "passphrase", "password", "secret", "token"];

/// The verb whose options say where things are on a host and which clients it serves, while its Runs go to visitors.
const SERVE: &str = "serve";

/// What a Run keeps of a verb and its arguments: all, but a word in capitals for each secret (`--key KEY`), no user,
/// password or query of a URL, and of `serve` the verb alone. Words that were kept once are kept unchanged.
pub fn command(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut stands_for_value = None;
    for word in words {
        // The value of such an option is what follows it, whatever that looks like.
        if let Some(stand_in) = stands_for_value.take() {
            kept.push(stand_in);
            continue;
        }
        if !word.starts_with('-') {
            kept.push(url(&word));
            continue;
        }
        match word.split_once('=') {
            Some((option, value)) => {
                let value = stand_in(option).unwrap_or_else(|| url(value));
                kept.push(format!("{option}={value}"));
            }
            None => {
                stands_for_value = stand_in(&word);
                kept.push(word);
            }
        }
    }
    match kept.iter().find(|word| !word.starts_with('-')) {
        Some(verb) if verb == SERVE => vec![SERVE.to_owned()],
        _ => kept,
    }
}

/// The word that replaces the value of an option that takes a secret.
fn stand_in(option: &str) -> Option<String> {
    let mut parts = option.strip_prefix("--")?.split('-');
    parts
        .find(|part| SECRETS.contains(part))
        .map(str::to_ascii_uppercase)
}

/// Whether the value of that option, `--NAME`, is left out.
pub fn is_secret(option: &str) -> bool {
    stand_in(option).is_some()
}

/// What a Run keeps of a URL: not the user and password (RFC 3986, section 3.2.1), and neither query nor fragment, in
/// which tokens stand. Text that is no URL stays unchanged, but for a query after a path, since some options take URLs
/// without a scheme.
pub fn url(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let has_path = scheme.is_some() || rest.find('/').is_some_and(|at| rest.find('?') > Some(at));
    let end = match has_path {
        true => rest.find(['?', '#']).unwrap_or(rest.len()),
        false => rest.len(),
    };
    let rest = rest.get(..end).unwrap_or(rest);
    let Some(scheme) = scheme else {
        return rest.to_owned();
    };
    let authority = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(line: &str) -> String {
        command(line.split(' ').map(str::to_owned)).join(" ")
    }

    #[test]
    fn no_secret_of_a_command_is_kept() {
        for (typed, expected) in [
            (
                "rate box --key correct-horse --json",
                "rate box --key KEY --json",
            ),
            ("rate box --key=correct-horse", "rate box --key=KEY"),
            ("rate box --key --json", "rate box --key KEY"),
            ("rate box --key", "rate box --key"),
            (
                "ping box --irtt-key-file /etc/k",
                "ping box --irtt-key-file KEY",
            ),
            (
                "x --smtp-password p --api-token=t",
                "x --smtp-password PASSWORD --api-token=TOKEN",
            ),
            (
                "serve --port 7700 --key s3cret --runs /srv/runs --deny 10.6.0.0/16",
                "serve",
            ),
            ("--quiet serve --allow 192.0.2.1", "serve"),
            (
                "page https://me:pw@box:8443/a/b?token=t#part",
                "page https://box:8443/a/b",
            ),
            ("page box/a?token=t", "page box/a"),
            (
                "check --page=https://me@box/?t=1 box",
                "check --page=https://box/ box",
            ),
            (
                "check box --sla rtt<50ms --keep -t 5",
                "check box --sla rtt<50ms --keep -t 5",
            ),
            (
                "capture -i any host and port?",
                "capture -i any host and port?",
            ),
        ] {
            assert_eq!(kept(typed), expected, "{typed}");
        }
    }

    proptest! {
        #[test]
        fn what_was_kept_stays(words in proptest::collection::vec("(--key|--key=|https?://|[a-z@/?#:=-]{0,12})[a-z@/?#=-]{0,9}", 0..8)) {
            let once = command(words);
            prop_assert_eq!(command(once.clone()), once);
        }

        #[test]
        fn the_value_of_a_key_is_nowhere(before in "[a-z:/@?-]{0,12}", value in "[0-9]{12}", glued: bool) {
            let key = match glued {
                true => vec![format!("--key={value}")],
                false => vec!["--key".to_owned(), value.clone()],
            };
            let words = [vec!["rate".to_owned(), format!("x{before}")], key].concat();
            prop_assert!(!command(words).concat().contains(&value));
        }
    }
}
