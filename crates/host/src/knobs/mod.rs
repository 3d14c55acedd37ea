//! The catalogue of knobs: what can be set on a host for the sake of its network, on every system that
//! the guides speak of. The knobs themselves are data, in `catalogue.toml`.

pub mod available;
pub mod formula;
pub mod page;
pub mod situation;

use plumb_model::json;
use plumb_model::tune::{Kind, Os, Role, Scope};
use serde::Deserialize;

use formula::Formula;

const CATALOGUE: &str = include_str!(concat!(env!("OUT_DIR"), "/catalogue.json"));

/// Where a knob may matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Round trips below a few milliseconds.
    Lan,
    /// Many bytes in flight.
    LongPath,
    Server,
    /// A machine that passes packets on.
    Router,
}

impl Place {
    pub fn words(self) -> &'static str {
        match self {
            Self::Lan => "a LAN",
            Self::LongPath => "a long path",
            Self::Server => "a busy server",
            Self::Router => "a router",
        }
    }
}

/// Values that are never good advice: one, or all below a number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Never {
    /// The value, as guides write it.
    pub value: Option<String>,
    /// The least that is sound.
    pub below: Option<i128>,
    /// The kernel since which it is bad; always when absent.
    pub since: Option<String>,
    pub because: String,
}

impl Never {
    /// Whether a value is one of them.
    fn is(&self, value: &str) -> bool {
        let mut words = value.split_whitespace();
        let named = self
            .value
            .as_ref()
            .is_some_and(|never| never.split_whitespace().eq_by_ignoring_case(words.clone()));
        named
            || self
                .below
                .is_some_and(|least| words.any(|word| word.parse().is_ok_and(|n: i128| n < least)))
    }

    /// Which values they are.
    pub fn words(&self) -> String {
        match (&self.value, self.below) {
            (Some(value), _) => value.clone(),
            (None, Some(least)) => format!("below {least}"),
            (None, None) => String::new(),
        }
    }
}

/// Something that can be set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name, as the system has it.
    pub name: String,
    pub os: Os,
    /// What else people call it, and what it is a switch of.
    #[serde(default)]
    pub also: Vec<String>,
    /// How it is set.
    #[serde(default)]
    pub kind: Kind,
    pub does: String,
    /// The first version that has it.
    pub since: Option<String>,
    /// The first version that no longer has it.
    pub until: Option<String>,
    /// The kernel module that brings it, where it is not always there.
    pub module: Option<String>,
    /// What it is unless set, in words.
    pub default: String,
    /// The least that the system takes, of each number in it.
    pub least: Option<i128>,
    /// The most that the system takes, of each number in it.
    pub most: Option<i128>,
    /// How many numbers it takes, where those are several.
    pub numbers: Option<usize>,
    /// What a change reaches.
    pub scope: Scope,
    /// Where it may matter.
    pub matters: Vec<Place>,
    pub when: String,
    /// When it does not.
    pub not: String,
    /// How its value follows from the path and the host.
    #[serde(default)]
    pub value: Formula,
    /// The value that formulas with a fixed one want.
    pub wanted: Option<String>,
    /// The kernel's name of an offload (`net/ethtool/common.c`).
    pub feature: Option<String>,
    /// The roles that such a value is for; every one when empty.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Values that are never good advice.
    #[serde(default)]
    pub never: Vec<Never>,
    /// Why nothing should be done with it any more.
    pub obsolete: Option<String>,
    /// What may go wrong.
    pub risk: String,
    /// Where this is from.
    pub source: String,
    /// The page of the knowledge base that says more.
    pub page: Option<String>,
}

/// A value that the system would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A number outside of the range.
    #[error("{name} takes numbers from {least} to {most}, and {value} is not one of them")]
    Outside {
        name: String,
        value: i128,
        least: i128,
        most: i128,
    },
    /// Too many numbers, or too few.
    #[error("{name} takes {numbers} numbers, and '{value}' is not as many")]
    Count {
        name: String,
        /// How many it takes.
        numbers: usize,
        value: String,
    },
    /// No number at all.
    #[error("{name} takes whole numbers, and '{value}' is none")]
    NoNumber { name: String, value: String },
}

impl Knob {
    /// The last part of its name, which is what people call it.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// Every name that it goes by.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let own = [self.name.as_str(), self.short_name()].into_iter();
        own.chain(self.also.iter().map(String::as_str))
    }

    /// Whether a value is one that the system takes: its numbers are in the range, where the knob has
    /// one. A word such as `cubic` is judged by the system alone.
    ///
    /// # Errors
    /// When it is outside of the range, or no number where numbers are wanted.
    pub fn check(&self, value: &str) -> Result<(), RangeError> {
        let (Some(least), Some(most)) = (self.least, self.most) else {
            return Ok(());
        };
        let mut words = value.split_whitespace().peekable();
        if words.peek().is_none() {
            return Err(RangeError::NoNumber {
                name: self.name.clone(),
                value: value.to_owned(),
            });
        }
        for word in words {
            let number: i128 = word.parse().map_err(|_| RangeError::NoNumber {
                name: self.name.clone(),
                value: word.chars().take(80).collect(),
            })?;
            if !(least..=most).contains(&number) {
                return Err(RangeError::Outside {
                    name: self.name.clone(),
                    value: number,
                    least,
                    most,
                });
            }
        }
        match self.numbers {
            Some(numbers) if value.split_whitespace().count() != numbers => {
                Err(RangeError::Count {
                    name: self.name.clone(),
                    numbers,
                    value: value.chars().take(80).collect(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Why a value is never good advice on a kernel of that release, where it is not.
    pub fn never(&self, value: &str, release: Option<&str>) -> Option<&Never> {
        self.never.iter().find(|never| {
            never.is(value)
                && match (&never.since, release) {
                    (Some(since), Some(release)) => version(release) >= version(since),
                    _ => true,
                }
        })
    }
}

/// Comparing words without regard to case.
trait EqIgnoringCase<'a>: Iterator<Item = &'a str> + Sized {
    fn eq_by_ignoring_case(mut self, mut other: impl Iterator<Item = &'a str>) -> bool {
        loop {
            match (self.next(), other.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
                _ => return false,
            }
        }
    }
}

impl<'a, I: Iterator<Item = &'a str>> EqIgnoringCase<'a> for I {}

/// The numbers that a version begins with: 6.18.44-debian is 6, 18, 44.
pub fn version(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse().ok())
        .collect()
}

/// The built-in catalogue is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("the built-in catalogue of knobs cannot be read: {0}")]
pub struct CatalogueError(#[from] serde_json::Error);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// In the order of the file: by system and subject.
    #[serde(rename = "knob")]
    pub knobs: Vec<Knob>,
}

impl Catalogue {
    /// The one that is built in.
    ///
    /// # Errors
    /// When it does not have the shape that [`Knob`] says.
    pub fn built_in() -> Result<Self, CatalogueError> {
        Ok(json::from_slice(CATALOGUE.as_bytes())?)
    }

    /// The knobs of a system.
    pub fn of(&self, os: Os) -> impl Iterator<Item = &Knob> {
        self.knobs.iter().filter(move |knob| knob.os == os)
    }

    /// The knob of a system by its whole name; slashes do as well as dots, as sysctl(8) takes them.
    pub fn find(&self, os: Os, name: &str) -> Option<&Knob> {
        let dotted = name.replace('/', ".");
        self.of(os)
            .find(|knob| knob.name.eq_ignore_ascii_case(name) || knob.name == dotted)
    }

    /// Every knob that goes by a name on any system: whole, its last part, or another that people have for it.
    pub fn named(&self, name: &str) -> Vec<&Knob> {
        // Words are parted by whatever their writer is used to.
        let plain = |name: &str| name.to_lowercase().replace(['_', '-'], " ");
        let asked = plain(&name.replace('/', "."));
        let goes_by = |knob: &&Knob| knob.names().any(|own| plain(own) == asked);
        self.knobs.iter().filter(goes_by).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use plumb_model::vocabulary::Vocabulary as _;

    use super::*;

    #[test]
    fn reads_and_names_each_knob_once() {
        let catalogue = Catalogue::built_in().unwrap();
        let mut seen = BTreeSet::new();
        for knob in &catalogue.knobs {
            assert!(seen.insert((knob.os, &knob.name)), "{} twice", knob.name);
            assert!(
                knob.least.is_some() == knob.most.is_some(),
                "{}: half a range",
                knob.name
            );
            for never in &knob.never {
                assert!(
                    never.value.is_some() != never.below.is_some(),
                    "{}",
                    knob.name
                );
            }
            let offload = knob.value == Formula::Offload;
            let needs = offload || matches!(knob.value, Formula::MustBe | Formula::AtLeast);
            assert_eq!(needs, knob.wanted.is_some(), "{}", knob.name);
            assert_eq!(offload, knob.feature.is_some(), "{}", knob.name);
            if let Some(wanted) = &knob.wanted {
                knob.check(wanted).unwrap();
                assert!(knob.never(wanted, None).is_none(), "{}", knob.name);
            }
            for also in &knob.also {
                assert_eq!(*also, also.to_lowercase(), "{}", knob.name);
                assert_ne!(also, knob.short_name());
            }
            assert!(
                knob.obsolete.is_none() || knob.value == Formula::Leave,
                "{}: obsolete and advised",
                knob.name
            );
        }
        for os in Os::WORDS.iter().map(|(os, _)| *os) {
            assert!(catalogue.of(os).next().is_some(), "{os}");
            assert_eq!(os.name().parse(), Ok(os));
        }
        assert!(catalogue.find(Os::Linux, "net/ipv4/tcp_rmem").is_some());
        assert!(catalogue.named("tcp_rmem").len() == 1 && catalogue.named("nothing").is_empty());
        let names = |name| -> Vec<_> {
            let knobs = catalogue.named(name);
            knobs
                .iter()
                .map(|knob| (knob.os, knob.name.as_str()))
                .collect()
        };
        assert_eq!(names("fq"), [(Os::Linux, "qdisc fq")]);
        assert_eq!(names("GRO"), [(Os::Linux, "offload gro")]);
        assert_eq!(names("ring rx"), [(Os::Linux, "ring rx")]);
        assert_eq!(names("Ring-RX"), names("ring rx"));
        assert_eq!(
            names("bbr"),
            [(Os::Linux, "net.ipv4.tcp_congestion_control")]
        );
        // What the record of 2004 was tuned with.
        for name in [
            "kern.sbmax",
            "kern.somaxkva",
            "net.inet.ip.ifq.maxlen",
            "net.inet.tcp.init_win",
            "net.inet.tcp.recvspace",
            "net.inet.tcp.sendspace",
        ] {
            assert!(catalogue.find(Os::Netbsd, name).is_some(), "{name}");
        }
        // One of each system that has such a thing.
        assert_eq!(
            names("timestamps"),
            [
                (Os::Linux, "net.ipv4.tcp_timestamps"),
                (Os::Windows, "timestamps")
            ]
        );
    }

    /// The catalogue against the kernel that runs: what it names is there, or the catalogue says
    /// since or until when it is, or of which module; and what is said to be gone is gone.
    #[test]
    fn agrees_with_the_running_kernel() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let running = version(&release);
        let catalogue = Catalogue::built_in().unwrap();
        let mut seen = 0;
        for knob in catalogue.of(Os::Linux).filter(|k| k.kind == Kind::Sysctl) {
            let path = PathBuf::from("/proc/sys").join(knob.name.replace('.', "/"));
            let gone = knob.until.as_ref().is_some_and(|v| version(v) <= running);
            let to_come = knob.since.as_ref().is_some_and(|v| version(v) > running);
            if gone || to_come {
                assert!(!path.exists(), "{} is there", knob.name);
            } else {
                assert!(
                    path.exists() || knob.module.is_some(),
                    "{} is not there",
                    knob.name
                );
                seen += usize::from(path.exists());
                let value = std::fs::read_to_string(&path).unwrap_or_default();
                if !value.trim().is_empty() {
                    knob.check(value.trim()).unwrap();
                }
            }
        }
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(version("6.18.44-fc") > version("6.6"));
        assert!(version("4.12") < version("4.13"));
        assert!(version("Vista").is_empty());
    }

    #[test]
    fn values_outside_of_the_range_are_refused() {
        let catalogue = Catalogue::built_in().unwrap();
        let rmem = catalogue.find(Os::Linux, "net.ipv4.tcp_rmem").unwrap();
        assert!(rmem.check("4096 131072 2147483647").is_ok());
        assert!(matches!(
            rmem.check("4096 131072 2147483648"),
            Err(RangeError::Outside { .. })
        ));
        assert!(matches!(
            rmem.check("a lot"),
            Err(RangeError::NoNumber { .. })
        ));
        assert!(rmem.check(" ").is_err());
        assert!(matches!(
            rmem.check("67108864"),
            Err(RangeError::Count { numbers: 3, .. })
        ));
    }

    #[test]
    fn bad_advice_is_recognised() {
        let catalogue = Catalogue::built_in().unwrap();
        let knob = |name| catalogue.find(Os::Linux, name).unwrap();
        for (name, value) in [
            ("net.ipv4.tcp_sack", "0"),
            ("net.ipv4.tcp_timestamps", "0"),
            ("vm.swappiness", "200"),
            ("net.core.somaxconn", "16"),
            ("net.core.optmem_max", "1000"),
        ] {
            assert!(knob(name).never(value, Some("6.1")).is_some(), "{name}");
        }
        assert!(knob("net.core.somaxconn").never("128", None).is_none());
        assert!(knob("net.ipv4.tcp_tw_recycle").obsolete.is_some());
        // It was an improvement when the default was 20480.
        let optmem = knob("net.core.optmem_max");
        assert!(optmem.never("65536", Some("6.18.44")).is_some());
        assert!(optmem.never("65536", Some("6.1.0-18-amd64")).is_none());
    }
}
