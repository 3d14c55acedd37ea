use super::super::entered;
use super::*;
use crate::alarm::record::Alarm;
use crate::config::Config;
use crate::mesh::fetching as mesh_rows;
use crate::store::Store;

const NOW_S: i64 = 1_700_000_000;

const FULL: &str = "0123456789abcdef0123";
const GUEST: &str = "guest-guest-guest-guest";

/// A page of two groups, with a key that sees all and one that sees the group `Home`.
struct Page {
    config: Config,
    gate: Gate,
    folder: tempfile::TempDir,
}

impl Page {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = "[store]\npath = \"w.db\"\n[page]\nkeys_file = \"keys\"\nproxy_header = \"X-User\"\nproxies = [\"192.0.2.1\"]\n\
                    [[target]]\nname = \"mine\"\nhost = \"127.0.0.1\"\nprobe = \"icmp\"\ngroup = \"Home\"\n\
                    [[target]]\nname = \"theirs\"\nhost = \"127.0.0.2\"\nprobe = \"icmp\"\ngroup = \"Office\"\n\
                    [[flows]]\nname = \"core\"\nlisten = \"127.0.0.1:9\"\nexporters = [\"192.0.2.1\"]\n";
        let file = folder.path().join("w.toml");
        std::fs::write(&file, text).unwrap();
        // A file of keys that is not there is wrong from the beginning.
        let why = Config::read(&file).unwrap_err().to_string();
        assert!(why.contains("cannot read"), "{why}");
        let page = Self {
            config: {
                let [full, guest] = [FULL, GUEST].map(|key| HEXLOWER.encode(&hash(key).unwrap()));
                let lines = format!("me {full}\nguest {guest} Home\n");
                std::fs::write(folder.path().join("keys"), lines).unwrap();
                Config::read(&file).unwrap()
            },
            gate: Gate::new().unwrap(),
            folder,
        };
        let mut store = Store::open(&page.config.store).unwrap();
        let alarms = ["mine", "theirs"].map(|target| Alarm {
            rule: "loss".to_owned(),
            target: target.to_owned(),
            since_s: NOW_S - 600,
            raised_s: NOW_S - 500,
            cleared_s: None,
            words: format!("loss of {target}"),
            behind: Vec::new(),
        });
        store
            .write_alarms(&alarms, ("", 0), std::iter::empty())
            .unwrap();
        page
    }

    fn asked(&self, request: &Request, now_s: i64) -> Answer {
        entered(
            (&self.config, &mesh_rows::Rows::new()),
            &self.gate,
            request,
            now_s,
        )
    }

    /// The answer to a request with these fields.
    fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.asked(&with(path, fields), NOW_S)
    }

    /// The cookie and the token of a form.
    fn form(&self) -> (String, String) {
        let form = self.get("/login", &[]);
        assert!(form.has_form && form.status == "200 OK");
        let (_, token) = form.body.split_once("name=\"token\" value=\"").unwrap();
        let token = token.split('"').next().unwrap().to_owned();
        (cookie(&form), token)
    }

    fn log_in(&self, cookie: &str, body: &str, more: &[(&str, &str)]) -> Answer {
        let fields = [&[("cookie", cookie)], more].concat();
        let request = Request {
            method: Method::Post,
            body: body.as_bytes().to_vec(),
            ..with("/login", &fields)
        };
        self.asked(&request, NOW_S)
    }

    /// The cookie of a session of the key that sees all.
    fn session(&self) -> String {
        let (cookie_of_form, token) = self.form();
        let body = format!("token={token}&key={FULL}");
        cookie(&self.log_in(&cookie_of_form, &body, &[]))
    }
}

fn with(path: &str, fields: &[(&str, &str)]) -> Request {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Request {
        fields: fields.collect(),
        ..Request::asking(path, None)
    }
}

/// What an answer sets, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    let set = answer.more.iter().find(|(name, _)| *name == "Set-Cookie");
    let (_, set) = set.unwrap_or_else(|| panic!("{answer:?}"));
    assert!(set.contains("; HttpOnly; SameSite=Strict"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

fn goes_to(answer: &Answer) -> Option<&str> {
    let found = answer.more.iter().find(|(name, _)| *name == "Location");
    found.map(|(_, to)| to.as_str())
}

#[test]
fn strangers_see_the_form_and_nothing_else() {
    let page = Page::new();
    for path in [
        "/",
        "/target/mine",
        "/target/nothing",
        "/flows/core",
        "/favicon.ico",
    ] {
        let answer = page.get(path, &[]);
        assert_eq!(
            (answer.status, goes_to(&answer)),
            ("303 See Other", Some("/login"))
        );
        assert!(answer.body.is_empty());
    }
    for path in ["/metrics", "/json/flows/core"] {
        assert_eq!(page.get(path, &[]).status, "401 Unauthorized");
    }
    let forged = ("cookie", "plumb-session=00000000000000000000000000000000");
    assert_eq!(page.get("/", &[forged]).status, "303 See Other");
    // A client that is not the proxy names no user.
    assert_eq!(page.get("/", &[("x-user", "me")]).status, "303 See Other");
    let mut of_proxy = with("/", &[("x-user", "me")]);
    of_proxy.from = "192.0.2.1".parse().unwrap();
    assert_eq!(page.asked(&of_proxy, NOW_S).status, "200 OK");
}

#[test]
fn a_key_opens_a_session_that_ends() {
    let page = Page::new();
    let session = page.session();
    let fields = [("cookie", session.as_str())];
    let at = |now_s| page.asked(&with("/", &fields), now_s).status;
    assert_eq!([at(NOW_S), at(NOW_S + LASTS_S)], ["200 OK"; 2]);
    assert_eq!(at(NOW_S + LASTS_S + 1), "303 See Other");
    // A clock that was set back makes no session longer.
    assert_eq!(at(NOW_S - 10), "303 See Other");
    let body = page.get("/", &fields).body;
    assert!(body.contains("loss of mine") && body.contains("loss of theirs"));
    let post = Request {
        method: Method::Post,
        ..with("/", &fields)
    };
    assert_eq!(page.asked(&post, NOW_S).status, "405 Method Not Allowed");
    let out = Request {
        method: Method::Post,
        ..with("/logout", &fields)
    };
    assert_eq!(goes_to(&page.asked(&out, NOW_S)), Some("/login"));
    assert_eq!(at(NOW_S), "303 See Other");
}

#[test]
fn a_form_without_its_token_opens_nothing() {
    let page = Page::new();
    let (cookie, token) = page.form();
    let (other, _) = page.form();
    let right = format!("token={token}&key={FULL}");
    let of_another = [("sec-fetch-site", "cross-site")];
    for (cookie, body, more) in [
        (cookie.as_str(), format!("key={FULL}"), [].as_slice()),
        (&cookie, format!("token=00&key={FULL}"), &[]),
        (&other, right.clone(), &[]),
        ("", right.clone(), &[]),
        (&cookie, right.clone(), &of_another),
        (&cookie, format!("token={token}&key=short"), &[]),
        (&cookie, format!("token={token}&key={FULL}4"), &[]),
        (&cookie, format!("token={token}"), &[]),
    ] {
        let answer = page.log_in(cookie, &body, more);
        assert_eq!(answer.status, "403 Forbidden", "{body}");
        let opens = |(_, value): &(&str, String)| value.starts_with(SESSION);
        assert!(!answer.more.iter().any(opens), "{answer:?}");
    }
    let answer = page.log_in(&cookie, &right, &[("sec-fetch-site", "same-origin")]);
    assert_eq!(goes_to(&answer), Some("/"));
}

#[test]
fn a_link_shows_its_groups_alone() {
    let page = Page::new();
    // What sees all is no link.
    for key in [FULL, "short", "nothing-nothing-nothing"] {
        let answer = page.get(&format!("/link/{key}"), &[]);
        assert_eq!(answer.status, "404 Not Found");
    }
    let link = cookie(&page.get(&format!("/link/{GUEST}"), &[]));
    let see = |path: &str| page.get(path, &[("cookie", &link)]);
    let overview = see("/").body;
    assert!(overview.contains("loss of mine"), "{overview}");
    for hidden in ["theirs", "Office", "/flows/"] {
        assert!(!overview.contains(hidden), "{hidden}: {overview}");
    }
    assert_eq!(see("/target/mine").status, "200 OK");
    for path in ["/target/theirs", "/flows/core", "/json/flows/core"] {
        assert_eq!(see(path).status, "404 Not Found", "{path}");
    }
    let bearer = format!("Bearer {GUEST}");
    let metrics = page.get("/metrics", &[("authorization", &bearer)]);
    assert_eq!(metrics.status, "200 OK");
    assert!(!metrics.body.contains("theirs"));
    // It takes nothing from who sees all.
    let both = format!("{}; {link}", page.session());
    assert!(page.get("/", &[("cookie", &both)]).body.contains("theirs"));
    // A key that is removed opens nothing from then on, and a file that cannot be read opens nothing at all.
    let keys = page.folder.path().join("keys");
    std::fs::write(&keys, "").unwrap();
    assert_eq!(see("/").status, "303 See Other");
    std::fs::remove_file(&keys).unwrap();
    assert_eq!(see("/").status, "500 Internal Server Error");
}

#[test]
fn cookies_are_for_tls_alone_where_the_proxy_speaks_it() {
    let page = Page::new();
    let set = |from: &str| {
        let mut request = with("/login", &[("x-forwarded-proto", "https")]);
        request.from = from.parse().unwrap();
        let answer = page.asked(&request, NOW_S);
        answer.more[0].1.ends_with("; Secure")
    };
    assert_eq!([set("192.0.2.1"), set("127.0.0.1")], [true, false]);
}
