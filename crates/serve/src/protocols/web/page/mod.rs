//! The page that measures from a browser: its files, as they are embedded.

/// A file of the page: its path, its type and its text.
pub(super) struct PageFile {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Every file, by the path at which it is served.
const FILES: [PageFile; 5] = [
    PageFile {
        path: "/",
        kind: HTML,
        text: include_str!("page.html"),
    },
    PageFile {
        path: "/page.js",
        kind: SCRIPT,
        text: include_str!("page.js"),
    },
    PageFile {
        path: "/echoes.js",
        kind: SCRIPT,
        text: include_str!("echoes.js"),
    },
    PageFile {
        path: "/key.js",
        kind: SCRIPT,
        text: include_str!("key.js"),
    },
    PageFile {
        path: "/page.css",
        kind: STYLE,
        text: include_str!("page.css"),
    },
];

/// What is served at `/` to those who have to prove first that they have the key.
pub(super) const KEY: PageFile = PageFile {
    path: "/",
    kind: HTML,
    text: include_str!("key.html"),
};

/// What the page may load and reach: itself alone. Isolation from other origins is what lets its clock be fine
/// (W3C High Resolution Time, section 7.2).
pub(super) const FIELDS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("referrer-policy", "no-referrer"),
];

/// The file at a path.
pub(super) fn file(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes of the idle path that bound its loss at 2.5 %, as an all-clear needs.
    const ENOUGH_PROBES: u64 = 188;

    /// The number that a constant of a script has.
    fn constant(path: &str, name: &str) -> u64 {
        let text = file(path).unwrap().text;
        let (_, after) = text.split_once(&format!("{name} = ")).unwrap();
        let digits = after.chars().take_while(char::is_ascii_digit);
        digits.collect::<String>().parse().unwrap()
    }

    #[test]
    fn the_idle_line_is_probed_long_enough_for_a_verdict() {
        let probes = constant("/page.js", "IDLE_MS") / constant("/echoes.js", "EVERY_MS");
        assert!(probes >= ENOUGH_PROBES, "{probes}");
    }
}
