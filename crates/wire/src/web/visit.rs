//! What a browser measured with the page of a responder, as the page sends it.

use serde::Deserialize;

/// Echoes each message of a WebSocket; the first letter of a message names the part of the test (`i`, `d`, `u`).
pub const ECHO: &str = "/__echo";

/// Takes a [`Visit`], and answers with the Run and its report.
pub const CHECK: &str = "/__check";

/// The field of a query that says to which visit a body belongs, and which of its streams it is.
pub const VISIT: &str = "visit";
pub const STREAM: &str = "stream";

/// The longest message that is echoed, in bytes: a letter and a number.
pub const ECHO_BYTES: usize = 32;

/// The most bytes of a [`Visit`]: three parts of half a minute, with 20 echoes and 10 counts of 8 streams a second, take a
/// fifth.
pub const MOST_BYTES: usize = 512 * 1024;

/// Values of each kind that are taken, and the largest of a time, in seconds.
const MOST_VALUES: usize = 4096;
const LONGEST_S: f64 = 600.0;
/// How far beyond the end of a part its times may lie, in seconds: a browser that is busy hears of the end late.
const LATE_S: f64 = 2.0;
/// The most characters of the names of a browser and of a server.
const MOST_NAME: usize = 300;

/// Names a visit: 16 to 64 letters and digits, which the page draws.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct VisitId(String);

impl TryFrom<String> for VisitId {
    type Error = Wrong;

    fn try_from(text: String) -> Result<Self, Wrong> {
        let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match is_word && (16..=64).contains(&text.len()) {
            true => Ok(Self(text)),
            false => Err(Wrong("the name of the visit is none")),
        }
    }
}

/// The visit and the stream that a query names.
pub fn of_query(query: &str) -> Option<(VisitId, u32)> {
    let field = |name: &str| {
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        fields.find_map(|(key, value)| (key == name).then_some(value))
    };
    let id = VisitId::try_from(field(VISIT)?.to_owned()).ok()?;
    Some((id, field(STREAM)?.parse().ok()?))
}

/// What is wrong with a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(&'static str);

/// What the page measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Visit {
    pub id: VisitId,
    /// Host and port of the server, as the browser has them.
    pub server: String,
    /// The browser's name of itself.
    pub agent: String,
    /// The smallest step of its clock.
    pub resolution_s: f64,
    pub idle: Part,
    pub down: Option<Part>,
    pub up: Option<Part>,
}

/// One part of the test; times count from its beginning.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Part {
    /// When it began, from the beginning of the test.
    pub began_s: f64,
    pub duration_s: f64,
    /// When each echo that came back was sent, and how long it took.
    pub sent_s: Vec<f64>,
    pub rtt_s: Vec<f64>,
    /// Echoes that had not come back at the end.
    #[serde(default)]
    pub missing: u64,
    /// When bytes were counted, and how many each stream had brought by then; none where nothing comes.
    #[serde(default)]
    pub counted_s: Vec<f64>,
    #[serde(default)]
    pub streams: Vec<Vec<u64>>,
}

/// Reads what a page sent.
///
/// # Errors
/// When it is no visit, or has values that none can have.
pub fn parse(json: &[u8]) -> Result<Visit, ParseError> {
    let visit: Visit = serde_json::from_slice(json)?;
    visit.check()?;
    Ok(visit)
}

/// Why a text is no visit.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    #[error("it is no visit: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is no visit: {0}")]
    Values(#[from] Wrong),
}

impl Visit {
    /// How long the test is said to have taken.
    pub fn took_s(&self) -> f64 {
        let parts = [Some(&self.idle), self.down.as_ref(), self.up.as_ref()];
        let ends = parts
            .into_iter()
            .flatten()
            .map(|part| part.began_s + part.duration_s);
        ends.fold(0.0, f64::max)
    }

    fn check(&self) -> Result<(), Wrong> {
        let Self { idle, down, up, .. } = self;
        if [&self.agent, &self.server]
            .iter()
            .any(|name| name.chars().count() > MOST_NAME)
        {
            return Err(Wrong("a name is too long"));
        }
        if !is_time(self.resolution_s) {
            return Err(Wrong("the step of the clock is no time"));
        }
        [Some(idle), down.as_ref(), up.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(Part::check)
    }
}

impl Part {
    fn check(&self) -> Result<(), Wrong> {
        let times = [&self.sent_s, &self.rtt_s, &self.counted_s];
        let single = [self.began_s, self.duration_s];
        if !times
            .into_iter()
            .flatten()
            .chain(&single)
            .all(|s| is_time(*s))
        {
            return Err(Wrong("a time is none"));
        }
        let came = self.sent_s.iter().zip(&self.rtt_s);
        let mut ends = came
            .map(|(sent, rtt)| sent + rtt)
            .chain(self.counted_s.iter().copied());
        if ends.any(|end| end > self.duration_s + LATE_S) {
            return Err(Wrong(
                "something is said to have come after the part of the test was over",
            ));
        }
        let is_many = |count: usize| count > MOST_VALUES;
        if is_many(self.sent_s.len()) || is_many(self.counted_s.len()) || self.streams.len() > 64 {
            return Err(Wrong("there are too many values"));
        }
        let fits = self
            .streams
            .iter()
            .all(|bytes| bytes.len() == self.counted_s.len());
        if self.sent_s.len() != self.rtt_s.len() || !fits {
            return Err(Wrong("values are missing"));
        }
        let rises =
            self.counted_s.is_sorted() && self.streams.iter().all(|bytes| bytes.is_sorted());
        match rises {
            true => Ok(()),
            false => Err(Wrong("what was counted went down")),
        }
    }
}

fn is_time(s: f64) -> bool {
    (0.0..=LONGEST_S).contains(&s)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ID: &str = "0123456789abcdef";

    fn visit(down: &str) -> String {
        let idle = r#"{"began_s":0,"duration_s":3,"sent_s":[0.1],"rtt_s":[0.02]}"#;
        format!(
            r#"{{"id":"{ID}","server":"s:4043","agent":"B","resolution_s":1e-4,"idle":{idle},"down":{down},"up":null}}"#
        )
    }

    #[test]
    fn a_visit_is_read_and_what_none_can_have_is_refused() {
        let part = |rtt: &str, counted: &str, bytes: &str| {
            format!(
                r#"{{"began_s":3,"duration_s":10,"sent_s":[0.5],"rtt_s":{rtt},"missing":2,"counted_s":{counted},"streams":[{bytes}]}}"#
            )
        };
        let good = parse(visit(&part("[0.1]", "[1,2]", "[5,9]")).as_bytes()).unwrap();
        assert_eq!(good.down.unwrap().streams, [[5, 9]]);
        for (rtt, counted, bytes) in [
            ("[]", "[1,2]", "[5,9]"),
            ("[-1]", "[1,2]", "[5,9]"),
            ("[1e300]", "[1,2]", "[5,9]"),
            ("[null]", "[1,2]", "[5,9]"),
            ("[0.1]", "[2,1]", "[5,9]"),
            ("[0.1]", "[1,2]", "[9,5]"),
            ("[0.1]", "[1,2]", "[9]"),
            ("[0.1]", "[1,2]", "[-9,5]"),
        ] {
            let text = visit(&part(rtt, counted, bytes));
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(visit("null").replace(ID, "short").as_bytes()).is_err());
        assert!(parse(b"[]").is_err());
    }

    #[test]
    fn a_query_names_a_visit() {
        let (id, stream) = of_query(&format!("bytes=9&visit={ID}&stream=3")).unwrap();
        assert_eq!((id, stream), (VisitId(ID.to_owned()), 3));
        for none in [
            "",
            "visit=x&stream=1",
            "visit=0123456789abcdef",
            "visit=0123456789abcde%&stream=1",
        ] {
            assert_eq!(of_query(none), None, "{none}");
        }
    }
}
