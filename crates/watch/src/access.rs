//! Who sees the page: who has a key, of which a file has the hash, and whom a web server before it names.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use plumb_model::prefix::Prefix;
use ring::digest::{SHA256, digest};

/// The shortest key, in characters: 80 bits where each is one of 16. Keys are random, so that one hash of SHA-256 is enough; what a
/// person thinks of is shorter, and refused.
const LEAST_KEY: usize = 20;

/// A SHA-256 in bytes.
pub(crate) type Hash = [u8; 32];

/// What `[page]` says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    keys_file: Option<PathBuf>,
    proxy: Option<Proxy>,
}

/// A web server before the page, which lets in whom it knows.
#[derive(Debug, Clone, PartialEq)]
struct Proxy {
    /// The field with the user, in lower case.
    header: String,
    /// Its addresses: what others send in that field counts for nothing.
    from: Vec<Prefix>,
}

/// Who sees the page, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) name: String,
    /// The groups of targets; all where there are none.
    pub(crate) groups: Vec<String>,
}

/// A line of the file of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) who: Who,
    pub(crate) hash: Hash,
}

impl Access {
    /// Of settings of the file; `None` where there are none of them.
    ///
    /// # Errors
    /// Which setting is wrong, and why.
    pub(crate) fn read(
        keys_file: Option<PathBuf>,
        header: Option<String>,
        proxies: Option<&[String]>,
    ) -> Result<Option<Self>, String> {
        let proxy = match (header, proxies) {
            (None, None) => None,
            (Some(header), Some(proxies)) if !proxies.is_empty() => {
                let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                if header.is_empty() || !header.chars().all(is_token) {
                    return Err(
                        "proxy_header is the name of a header, such as \"X-Remote-User\""
                            .to_owned(),
                    );
                }
                let from = proxies.iter().map(|text| {
                    let parsed = text.parse::<Prefix>();
                    parsed.map_err(|error| format!("proxies: '{text}': {error}"))
                });
                Some(Proxy {
                    header: header.to_ascii_lowercase(),
                    from: from.collect::<Result<_, _>>()?,
                })
            }
            _ => {
                return Err(
                    "proxy_header and proxies belong together: whose header is believed, as in proxies = [\"127.0.0.1\"]"
                        .to_owned(),
                );
            }
        };
        Ok((keys_file.is_some() || proxy.is_some()).then_some(Self { keys_file, proxy }))
    }

    /// The same, with a path that counts from this folder.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.keys_file = self.keys_file.map(|file| folder.join(file));
        self
    }

    /// All keys. The file is read each time, so that a key that was removed opens nothing from then on.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is wrong: then no key counts.
    pub(crate) fn keys(&self) -> Result<Vec<Key>, String> {
        let Some(file) = &self.keys_file else {
            return Ok(Vec::new());
        };
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        lines
            .map(|(at, line)| {
                Key::read(line).ok_or_else(|| {
                    format!(
                        "{name}, line {}: a line is NAME, the SHA-256 of a key in 64 hexadecimal digits, and groups with commas between, or none",
                        at + 1
                    )
                })
            })
            .collect()
    }

    /// Whether that is an address of the web server before the page.
    pub(crate) fn is_proxy(&self, from: IpAddr) -> bool {
        let proxy = self.proxy.iter();
        proxy
            .flat_map(|proxy| &proxy.from)
            .any(|one| one.contains(from))
    }

    /// Whom the web server before the page names. A field that is there twice may have come with the request, and counts for nothing.
    pub(crate) fn named(&self, from: IpAddr, fields: &[(String, String)]) -> Option<Who> {
        let proxy = self.proxy.as_ref().filter(|_| self.is_proxy(from))?;
        let mut named = fields.iter().filter(|(name, _)| *name == proxy.header);
        match (named.next(), named.next()) {
            (Some((_, user)), None) if !user.is_empty() => Some(Who {
                name: user.clone(),
                groups: Vec::new(),
            }),
            _ => None,
        }
    }
}

impl Key {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, hex) = (words.next()?, words.next()?);
        let hash = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
        // Names of groups have blanks.
        let groups = words.collect::<Vec<_>>().join(" ");
        let groups = groups.split(',').map(|group| group.trim().to_owned());
        Some(Self {
            who: Who {
                name: name.to_owned(),
                groups: groups.filter(|group| !group.is_empty()).collect(),
            },
            hash: hash.try_into().ok()?,
        })
    }
}

/// The hash of a key that was typed; `None` where it is too short to be one.
pub(crate) fn hash(typed: &str) -> Option<Hash> {
    let typed = typed.trim();
    let long = typed.chars().count() >= LEAST_KEY;
    long.then(|| digest(&SHA256, typed.as_bytes()).as_ref().try_into().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123";

    /// What `printf %s 0123456789abcdef0123 | sha256sum` prints.
    const HEX: &str = "1bd8fd47297046f993e608e398d5905b00a33e163c6b1172dd38887fed05ed6a";

    #[test]
    fn keys_are_read_with_their_groups() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::read(Some("keys".into()), None, None)
            .unwrap()
            .unwrap();
        let access = access.in_folder(folder.path());
        assert!(access.keys().unwrap_err().contains("cannot read"));
        let text = format!("# who\nme {HEX}\n\nguest {HEX} Home , To the office\n");
        std::fs::write(folder.path().join("keys"), text).unwrap();
        let keys = access.keys().unwrap();
        let groups: Vec<_> = keys.iter().map(|key| key.who.groups.join("|")).collect();
        assert_eq!(groups, ["", "Home|To the office"]);
        assert_eq!(keys[0].who.name, "me");
        assert_eq!(Some(keys[0].hash), hash(KEY));
        for wrong in ["me", "me 00ff", "me secret"] {
            std::fs::write(folder.path().join("keys"), wrong).unwrap();
            assert!(access.keys().unwrap_err().contains("line 1"), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_long_and_its_hash_is_sha_256() {
        // FIPS 180-2, appendix B.2.
        let known = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let hex = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(HEXLOWER_PERMISSIVE.encode(&hash(known).unwrap()), hex);
        assert_eq!(hash(&format!(" {KEY}\n")), hash(KEY));
        assert_eq!(hash("letmein"), None);
    }

    #[test]
    fn a_header_counts_from_the_proxy_alone_and_once() {
        let proxies = ["127.0.0.1".to_owned(), "192.0.2.0/24".to_owned()];
        let access = Access::read(None, Some("X-Remote-User".into()), Some(&proxies));
        let access = access.unwrap().unwrap();
        let user = ("x-remote-user".to_owned(), "me".to_owned());
        let named = |from: &str, fields: &[_]| access.named(from.parse().unwrap(), fields);
        let me = named("127.0.0.1", std::slice::from_ref(&user)).unwrap();
        assert_eq!((me.name.as_str(), me.groups.len()), ("me", 0));
        assert!(named("192.0.2.9", std::slice::from_ref(&user)).is_some());
        assert!(named("192.0.3.9", std::slice::from_ref(&user)).is_none());
        assert!(named("127.0.0.1", &[user.clone(), user.clone()]).is_none());
        assert!(named("127.0.0.1", &[(user.0, String::new())]).is_none());
        assert!(named("127.0.0.1", &[]).is_none());
    }

    #[test]
    fn settings_that_are_wrong_are_refused_in_words() {
        let read = |header: Option<&str>, proxies: Option<&[&str]>| {
            let proxies = proxies.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
            let proxies: Option<Vec<String>> = proxies;
            Access::read(None, header.map(str::to_owned), proxies.as_deref())
        };
        assert_eq!(read(None, None), Ok(None));
        for (header, proxies, words) in [
            (Some("A"), None, "belong together"),
            (None, Some(["::1"].as_slice()), "belong together"),
            (Some("A"), Some([].as_slice()), "belong together"),
            (
                Some("A: b"),
                Some(["::1"].as_slice()),
                "the name of a header",
            ),
            (Some("A"), Some(["proxy"].as_slice()), "'proxy'"),
        ] {
            let why = read(header, proxies).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
