//! Restoring a configured queueing discipline exactly. The listed values are not always the values to write (CoDel
//! keeps its times in steps of 1.024 us and rounds down each time), so the restoring is tried before it is relied on.

use plumb_net::namespace::Namespaces;
use plumb_net::netlink::queue::listed::{Listed, disciplines};
use plumb_net::netlink::queue::options::Discipline;
use plumb_net::netlink::queue::{Handle, How};
use plumb_net::netlink::{Netlink, NetlinkError};
use serde::{Deserialize, Serialize};

/// How a discipline is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub kind: String,
    pub handle: Handle,
    /// What the kernel listed of it.
    pub listed: Vec<u8>,
    /// What makes the kernel list that again.
    pub written: Vec<u8>,
}

/// Disciplines without classes of their own, all of which the kernel lists as it takes it. Others (htb, prio, netem, red
/// with its tables) have parts that are not in one list.
const WHOLE: [&str; 11] = [
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "codel",
    "fq_codel",
    "fq",
    "pie",
    "fq_pie",
    "sfq",
    "cake",
    "tbf",
];

/// Rounds of trying: each comes closer by what the last one was too small.
const ROUNDS: usize = 4;

/// The loopback of a network namespace, which is always there.
const LOOPBACK: u32 = 1;

impl Recorded {
    pub(super) fn discipline(&self) -> Discipline {
        Discipline::Recorded {
            kind: self.kind.clone(),
            options: self.written.clone(),
        }
    }

    /// Whether that is what stands there.
    pub(super) fn is(&self, listed: &Listed) -> bool {
        listed.kind == self.kind
            && listed.handle == self.handle
            && listed.options == self.listed
            && listed.beside.is_none()
    }
}

/// Finds out how a discipline is made again, in a network namespace that goes with the try.
///
/// # Errors
/// When it cannot be made again exactly: why.
pub(super) fn record(listed: &Listed) -> Result<Recorded, String> {
    if let Some(beside) = listed.beside {
        return Err(format!("it has {beside}"));
    }
    if !WHOLE.contains(&listed.kind.as_str()) {
        return Err("it has parts that are not listed with it".to_owned());
    }
    let place = Namespaces::create("trial", || Ok::<_, std::io::Error>(()))
        .map_err(|e| format!("a trial of it needs a network namespace: {e}"))?;
    place
        .in_network(|| {
            search(listed, |written| {
                let mut recorded = Recorded {
                    kind: listed.kind.clone(),
                    handle: listed.handle,
                    listed: Vec::new(),
                    written: written.to_vec(),
                };
                recorded.listed = trial(&recorded).map_err(|e| Refused(e.to_string()))?;
                Ok(recorded)
            })
        })
        .map_err(|Refused(why)| why)
}

/// Why a trial came to nothing.
#[derive(Debug)]
struct Refused(String);

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

fn trial(recorded: &Recorded) -> Result<Vec<u8>, NetlinkError> {
    let mut netlink = Netlink::open()?;
    let (root, handle) = (Handle::ROOT, recorded.handle);
    // One that stands there from the last try would be changed, which not all of its settings can be; there may be none.
    let _ = netlink.remove_discipline(LOOPBACK, root, handle);
    netlink.put_discipline(LOOPBACK, root, handle, &recorded.discipline(), How::InPlace)?;
    let all = disciplines()?;
    let there = all
        .into_iter()
        .find(|discipline| discipline.index == LOOPBACK && discipline.parent == root);
    Ok(there.map(|there| there.options).unwrap_or_default())
}

/// Tries, and corrects each number by how far off the kernel listed it, until it lists what was wanted.
fn search(
    wanted: &Listed,
    mut trial: impl FnMut(&[u8]) -> Result<Recorded, Refused>,
) -> Result<Recorded, Refused> {
    let mut written = wanted.options.clone();
    for _ in 0..ROUNDS {
        let tried = trial(&written)?;
        if tried.listed == wanted.options {
            return Ok(tried);
        }
        let Some(better) = corrected(&written, &wanted.options, &tried.listed) else {
            break;
        };
        written = better;
    }
    Err(Refused(
        "the kernel makes something else of what it lists".to_owned(),
    ))
}

/// The same numbers of 32 bits, each corrected by what it is off: steps may make the first correction too large. Attributes
/// and structures are both made of such numbers; `None` where something else differs.
fn corrected(written: &[u8], wanted: &[u8], got: &[u8]) -> Option<Vec<u8>> {
    if written.len() != wanted.len() || got.len() != wanted.len() {
        return None;
    }
    let words = |bytes: &[u8]| -> Vec<u32> {
        let chunks = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            u32::from_ne_bytes(word)
        });
        chunks.collect()
    };
    let (was, want, have) = (words(written), words(wanted), words(got));
    let mut better = Vec::with_capacity(written.len());
    for ((was, want), have) in was.into_iter().zip(want).zip(have) {
        // Rounding changes a little; anything else is no rounding.
        if want.abs_diff(have) > want / 2 + 1 {
            return None;
        }
        let off = i64::from(want) - i64::from(have);
        let number = u32::try_from(i64::from(was) + off).ok()?;
        better.extend(number.to_ne_bytes());
    }
    better.truncate(written.len());
    Some(better)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// As CoDel keeps a time of microseconds, and lists it (`codel_change`, `codel_dump`).
    fn codel(us: u32) -> u32 {
        let ticks = (u64::from(us) * 1000) >> 10;
        ((ticks << 10) / 1000) as u32
    }

    fn kernel(written: &[u8]) -> Result<Recorded, Refused> {
        let words = written.chunks(4).flat_map(|word| {
            let us = u32::from_ne_bytes(word.try_into().unwrap());
            codel(us).to_ne_bytes()
        });
        Ok(Recorded {
            kind: "codel".into(),
            handle: Handle::new(1, 0),
            listed: words.collect(),
            written: written.to_vec(),
        })
    }

    #[test]
    fn a_correction_that_goes_too_far_is_taken_back() {
        // 798891 is listed as 798889, and 798893 as 798892.
        let wanted = codel(798_892);
        let found = search(
            &Listed {
                options: wanted.to_ne_bytes().into(),
                ..Listed::default()
            },
            kernel,
        );
        assert_eq!(found.unwrap().written, 798_892_u32.to_ne_bytes());
    }

    proptest! {
        #[test]
        fn what_codel_rounds_is_made_again(us in 1..2_000_000_u32, other in 1..2_000_000_u32) {
            let listed: Vec<u8> = [codel(us), codel(other)].iter().flat_map(|v| v.to_ne_bytes()).collect();
            let wanted = Listed { options: listed.clone(), ..Listed::default() };
            let found = search(&wanted, kernel).unwrap();
            prop_assert_eq!(kernel(&found.written).unwrap().listed, listed);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60), other in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = corrected(&bytes, &bytes, &other);
            let wanted = Listed { options: bytes, ..Listed::default() };
            let _ = search(&wanted, |_| Ok(Recorded {
                kind: String::new(),
                handle: Handle::NONE,
                listed: other.clone(),
                written: Vec::new(),
            }));
        }
    }

    #[test]
    fn what_has_parts_elsewhere_is_not_tried() {
        let listed = |kind: &str, beside| Listed {
            kind: kind.into(),
            beside,
            ..Listed::default()
        };
        assert!(record(&listed("htb", None)).is_err());
        let stab = record(&listed("fq_codel", Some("a table of sizes (stab)")));
        assert!(stab.unwrap_err().contains("stab"));
    }
}
