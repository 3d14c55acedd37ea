//! Logging in to the page, as OWASP recommends it: sessions by random cookies that scripts do not see and other sites do not send, a
//! token in the form, and links that show some groups alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::http::{Answer, Method, Request};
use super::words::{escaped, page};
use crate::access::{Access, Hash, Key, Who, hash};

/// The cookie of who typed a key.
const SESSION: &str = "plumb-session";

/// The cookie of who followed a link, beside the other, so that a link takes nothing away.
const LINK: &str = "plumb-link";

/// The cookie that the form's token belongs to.
const FORM: &str = "plumb-form";

/// A session ends after so long, in seconds: a working day.
const LASTS_S: i64 = 12 * 3600;

/// Sessions at once; then the oldest ends.
const MOST_SESSIONS: usize = 1000;

/// What is kept of sessions while plumb runs.
pub(super) struct Gate {
    /// Makes the tokens of forms.
    secret: hmac::Key,
    /// By the hash of the cookie, so that memory has no cookies.
    sessions: Mutex<HashMap<Hash, Session>>,
}

/// Which key opened it, and until when it lasts, s since 1970.
#[derive(Clone, Copy)]
struct Session {
    key: Hash,
    until_s: i64,
}

/// What becomes of a request.
pub(super) enum Entry {
    Seen(Who),
    Answered(Answer),
}

impl Gate {
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn new() -> std::io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        Ok(Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            sessions: Mutex::default(),
        })
    }

    /// Lets a request in at that time, s since 1970, or answers it.
    ///
    /// # Errors
    /// When it is not known who may see the page: why, in words.
    pub(super) fn enter(
        &self,
        access: &Access,
        request: &Request,
        now_s: i64,
    ) -> Result<Entry, String> {
        let keys = access.keys()?;
        let who = self.who(access, &keys, request, now_s);
        let answer = match (request.method, request.path.as_str()) {
            (Method::Post, "/login") => self.log_in(access, &keys, request, now_s)?,
            (Method::Post, "/logout") => self.log_out(request),
            (_, "/login") => self.form(access, request, who.as_ref(), None)?,
            (_, path) => match (path.strip_prefix("/link/"), who) {
                (Some(key), _) => self.follow(access, &keys, request, (key, now_s))?,
                (None, Some(who)) => return Ok(Entry::Seen(who)),
                (None, None) => unknown(path),
            },
        };
        Ok(Entry::Answered(answer))
    }

    fn who(&self, access: &Access, keys: &[Key], request: &Request, now_s: i64) -> Option<Who> {
        if let Some(who) = access.named(request.from, &request.fields) {
            return Some(who);
        }
        if let Some(typed) = request.field("authorization") {
            let key = typed.strip_prefix("Bearer ").and_then(hash)?;
            return found(keys, &key).cloned();
        }
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        [SESSION, LINK].iter().find_map(|name| {
            let session = sessions.get(&kept_as(request.cookie(name)?))?;
            let lasts = (now_s..=now_s + LASTS_S).contains(&session.until_s);
            found(keys, &session.key).filter(|_| lasts).cloned()
        })
    }

    fn log_in(
        &self,
        access: &Access,
        keys: &[Key],
        request: &Request,
        now_s: i64,
    ) -> Result<Answer, String> {
        let token = request.form("token").unwrap_or_default();
        let token = HEXLOWER.decode(token.as_bytes()).unwrap_or_default();
        let form = request.cookie(FORM).unwrap_or_default();
        let is_ours = hmac::verify(&self.secret, form.as_bytes(), &token).is_ok();
        // A browser that says so is believed.
        if !is_ours || request.field("sec-fetch-site") == Some("cross-site") {
            let why = "The form was too old, or not of this page: try once more.";
            return self.form(access, request, None, Some(why));
        }
        let typed = request.form("key").and_then(|typed| hash(&typed));
        let Some(key) = typed.filter(|key| found(keys, key).is_some()) else {
            return self.form(access, request, None, Some("That key is not known."));
        };
        let mut answer = Answer::elsewhere("/");
        answer
            .more
            .push(self.open(SESSION, access, request, (key, now_s))?);
        Ok(answer)
    }

    /// Opens a link. Only keys of groups are links: what sees all is never in an address.
    fn follow(
        &self,
        access: &Access,
        keys: &[Key],
        request: &Request,
        (key, now_s): (&str, i64),
    ) -> Result<Answer, String> {
        let key = hash(key);
        let key = key.filter(|key| found(keys, key).is_some_and(|who| !who.groups.is_empty()));
        let Some(key) = key else {
            return Ok(Answer::not_found());
        };
        // Who comes from elsewhere has no cookies of this page before it loads another one by itself.
        let body = "<meta http-equiv=\"refresh\" content=\"0;url=/\"><p><a href=\"/\">On</a></p>\n";
        let mut answer = Answer::html(page("plumb watch", None, body));
        answer
            .more
            .push(self.open(LINK, access, request, (key, now_s))?);
        Ok(answer)
    }

    fn log_out(&self, request: &Request) -> Answer {
        let mut answer = Answer::elsewhere("/login");
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for name in [SESSION, LINK] {
            if let Some(cookie) = request.cookie(name) {
                sessions.remove(&kept_as(cookie));
            }
            let over = format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
            answer.more.push(("Set-Cookie", over));
        }
        answer
    }

    /// Begins a session by that key: the field that sets its cookie.
    fn open(
        &self,
        name: &str,
        access: &Access,
        request: &Request,
        (key, now_s): (Hash, i64),
    ) -> Result<(&'static str, String), String> {
        let cookie = random()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.until_s >= now_s);
        if sessions.len() >= MOST_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.until_s);
            if let Some(oldest) = oldest.map(|(kept, _)| *kept) {
                sessions.remove(&oldest);
            }
        }
        let until_s = now_s + LASTS_S;
        sessions.insert(kept_as(&cookie), Session { key, until_s });
        let secure = secure(access, request);
        Ok((
            "Set-Cookie",
            format!(
                "{name}={cookie}; Path=/; Max-Age={LASTS_S}; HttpOnly; SameSite=Strict{secure}"
            ),
        ))
    }

    /// The form, or who is logged in; after a try that failed with the reason.
    fn form(
        &self,
        access: &Access,
        request: &Request,
        who: Option<&Who>,
        why: Option<&str>,
    ) -> Result<Answer, String> {
        let cookie = random()?;
        let token = HEXLOWER.encode(hmac::sign(&self.secret, cookie.as_bytes()).as_ref());
        let mut body = "<h1>plumb watch</h1>\n".to_owned();
        if let Some(who) = who {
            body += &format!(
                "<p>Logged in as {}. <a href=\"/\">Now</a></p>\n<form method=\"post\" action=\"/logout\"><button>Log out</button></form>\n",
                escaped(&who.name)
            );
        }
        if let Some(why) = why {
            body += &format!("<p class=\"bad\" role=\"alert\">{}</p>\n", escaped(why));
        }
        body += &format!(
            "<form method=\"post\" action=\"/login\"><input type=\"hidden\" name=\"token\" value=\"{token}\">\
             <p><label>Key <input type=\"password\" name=\"key\" autocomplete=\"current-password\" required></label> \
             <button>Log in</button></p></form>\n"
        );
        let mut answer = Answer::html(page("plumb watch", None, &body));
        answer.has_form = true;
        if why.is_some() {
            answer.status = "403 Forbidden";
        }
        let secure = secure(access, request);
        answer.more.push((
            "Set-Cookie",
            format!("{FORM}={cookie}; Path=/login; HttpOnly; SameSite=Strict{secure}"),
        ));
        Ok(answer)
    }
}

/// What is answered to a request of which it is not known who sends it.
fn unknown(path: &str) -> Answer {
    if path == "/metrics" || path.starts_with("/json/") {
        let mut answer = Answer::text("a key is needed: Authorization: Bearer KEY\n".to_owned());
        answer.status = "401 Unauthorized";
        answer.more.push(("WWW-Authenticate", "Bearer".to_owned()));
        return answer;
    }
    Answer::elsewhere("/login")
}

/// Where the web server before the page speaks TLS, cookies are for TLS alone.
fn secure(access: &Access, request: &Request) -> &'static str {
    let by_tls = request.field("x-forwarded-proto") == Some("https");
    match by_tls && access.is_proxy(request.from) {
        true => "; Secure",
        false => "",
    }
}

/// Whose key has that hash.
fn found<'k>(keys: &'k [Key], hash: &Hash) -> Option<&'k Who> {
    let key = keys.iter().find(|key| key.hash == *hash);
    key.map(|key| &key.who)
}

fn kept_as(cookie: &str) -> Hash {
    let hash = digest(&SHA256, cookie.as_bytes());
    hash.as_ref().try_into().unwrap_or_default()
}

/// 128 bits, as OWASP asks at least for.
fn random() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests;
