//! What an answer of a receiver means (Remote-Write 1.0 and 2.0, "Retries & Backoff"), and when is asked again. Pure.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use plumb_probe::post::Answer;
use plumb_wire::remote_write::Version;

/// The pause after the first try that failed. It doubles with each.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause: a receiver that is back after a night is found within a minute.
const MOST: Duration = Duration::from_secs(60);

/// The longest pause that a receiver may ask for.
const MOST_ASKED: Duration = Duration::from_secs(3600);

/// Says how many samples were written (Remote-Write 2.0).
const WRITTEN: &str = "x-prometheus-remote-write-samples-written";

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is done with: so many of its samples are written, and why no more.
    Done { written: u32, why: Option<String> },
    /// It is sent again.
    Again {
        why: String,
        /// The pause that the receiver asks for.
        after: Option<Duration>,
    },
}

/// What the answer to a request of so many samples means at that time of day, s since 1970.
pub(super) fn outcome(version: Version, samples: u32, answer: &Answer, now_s: i64) -> Outcome {
    let status = answer.head.status;
    let said = match answer.words.as_str() {
        "" => format!("it answers {status}"),
        words => format!("it answers {status}: {words}"),
    };
    let written = answer.head.field(WRITTEN);
    let written = written.and_then(|text| text.trim().parse::<u32>().ok());
    let written = written.map(|count| count.min(samples));
    match (status, version) {
        (200..=299, Version::One) => Outcome::Done {
            written: samples,
            why: None,
        },
        (200..=299, Version::Two) => Outcome::Done {
            written: written.unwrap_or_default(),
            // A receiver of 1.0 finds nothing in a message of 2.0, and is content.
            why: match written {
                None => Some(format!(
                    "it answers {status}, and not how many samples it wrote: with version = \"1.0\" it may understand them"
                )),
                Some(count) if count < samples => {
                    Some(format!("{said}, and wrote {count} of {samples}"))
                }
                Some(_) => None,
            },
        },
        (415, Version::Two) => Outcome::Done {
            written: 0,
            why: Some(format!(
                "{said}; with version = \"1.0\" it may understand them"
            )),
        },
        (429 | 500..=599, _) => Outcome::Again {
            why: said,
            after: answer
                .head
                .field("retry-after")
                .and_then(|text| asked_for(text, now_s)),
        },
        (400..=499, _) => Outcome::Done {
            written: match version {
                Version::One => 0,
                Version::Two => written.unwrap_or_default(),
            },
            why: Some(said),
        },
        // A receiver that moved is not followed, and nothing is lost before the file says where it is.
        (300..=399, _) => Outcome::Again {
            why: match answer.head.field("location") {
                Some(_) => format!("{said}, that it is elsewhere: give its new address as url"),
                None => said,
            },
            after: None,
        },
        _ => Outcome::Again {
            why: said,
            after: None,
        },
    }
}

/// `Retry-After` (RFC 9110, section 10.2.3): seconds, or a time.
fn asked_for(text: &str, now_s: i64) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    let left_s = at.as_second().saturating_sub(now_s);
    Some(Duration::from_secs(
        u64::try_from(left_s).unwrap_or_default(),
    ))
}

/// The pause after so many tries that failed.
pub(super) fn pause(tries: u32, after: Option<Duration>) -> Duration {
    let doubled = FIRST.saturating_mul(
        1_u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX),
    );
    doubled
        .min(MOST)
        .max(after.unwrap_or_default().min(MOST_ASKED))
}

#[cfg(test)]
mod tests {
    use plumb_wire::http_head::Head;

    use super::*;

    fn answered(version: Version, status: u16, fields: &[(&str, &str)]) -> Outcome {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let head = Head {
            status,
            fields: fields.collect(),
        };
        let words = "out of bounds".to_owned();
        outcome(version, 10, &Answer { head, words }, 784_111_777)
    }

    #[test]
    fn the_rules_of_1_are_kept() {
        let answered = |status, fields: &[_]| answered(Version::One, status, fields);
        let done = Outcome::Done {
            written: 10,
            why: None,
        };
        assert_eq!(
            [200, 204].map(|status| answered(status, &[])),
            [done.clone(), done]
        );
        for status in [400, 401, 404, 409, 413, 415, 499] {
            let refused = Outcome::Done {
                written: 0,
                why: Some(format!("it answers {status}: out of bounds")),
            };
            // What a receiver of 1.0 says of samples that were written is not believed.
            assert_eq!(answered(status, &[(WRITTEN, "3")]), refused);
        }
        for status in [429, 500, 503, 599] {
            let of = |fields| match answered(status, fields) {
                Outcome::Again { after, .. } => after,
                done => panic!("{done:?}"),
            };
            assert_eq!(of(&[]), None);
            assert_eq!(
                of(&[("retry-after", "120")]),
                Some(Duration::from_secs(120))
            );
            // The example of RFC 9110, section 5.6.7, twenty seconds later.
            let time = [("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT")];
            assert_eq!(of(&time), Some(Duration::from_secs(20)));
            let past = [("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")];
            assert_eq!(of(&past), Some(Duration::ZERO));
            assert_eq!(of(&[("retry-after", "soon")]), None);
        }
        for status in [100, 301, 308, 999] {
            assert!(
                matches!(answered(status, &[]), Outcome::Again { .. }),
                "{status}"
            );
        }
    }

    #[test]
    fn a_receiver_of_2_says_how_much_it_wrote() {
        let of = |status, fields: &[_]| match answered(Version::Two, status, fields) {
            Outcome::Done { written, why } => (written, why.unwrap_or_default()),
            again @ Outcome::Again { .. } => panic!("{again:?}"),
        };
        assert_eq!(of(204, &[(WRITTEN, "10")]), (10, String::new()));
        let (written, why) = of(204, &[]);
        assert!(written == 0 && why.contains("version = \"1.0\""), "{why}");
        assert_eq!(of(400, &[(WRITTEN, "7")]).0, 7);
        assert_eq!(of(400, &[(WRITTEN, "99")]).0, 10);
        let (written, why) = of(415, &[]);
        assert!(written == 0 && why.contains("version = \"1.0\""), "{why}");
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_what_a_receiver_asks_for_is_bounded() {
        let seconds: Vec<u64> = (0..9).map(|tries| pause(tries, None).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX, None), MOST);
        let asked = |seconds| pause(2, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([0, 90, u64::MAX].map(asked), [2, 90, 3600]);
    }
}
