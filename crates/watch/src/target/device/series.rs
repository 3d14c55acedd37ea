//! The series that a device has, by their names: `port NAME in` of a port, one word of the node, and of a sensor what it
//! measures and its name.

use crate::unit::Unit;

/// What a sensor measures, of what is kept (RFC 3433, EntitySensorDataType).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SensorKind {
    Temperature,
    /// Optical power, of the light that a port receives or sends.
    Optical,
    Watts,
}

impl SensorKind {
    const ALL: [Self; 3] = [Self::Temperature, Self::Optical, Self::Watts];

    /// By its number; `None` of those that are not kept.
    pub(super) fn of(number: i64) -> Option<Self> {
        match number {
            6 => Some(Self::Watts),
            8 => Some(Self::Temperature),
            14 => Some(Self::Optical),
            _ => None,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::Optical => "optical",
            Self::Watts => "power",
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Temperature => Unit::Celsius,
            Self::Optical => Unit::DecibelMilliwatts,
            Self::Watts => Unit::Watts,
        }
    }
}

/// What is kept of each direction of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Rate,
    Use,
    Errors,
    Discards,
}

impl What {
    const ALL: [Self; 4] = [Self::Rate, Self::Use, Self::Errors, Self::Discards];

    /// The end of its name, behind the direction.
    fn end(self) -> &'static str {
        match self {
            Self::Rate => "",
            Self::Use => " use",
            Self::Errors => " errors",
            Self::Discards => " discards",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Rate => Unit::BitsPerSecond,
            Self::Use => Unit::Percent,
            Self::Errors | Self::Discards => Unit::PerSecond,
        }
    }
}

/// The directions, as seen from the device.
pub(super) const DIRECTIONS: [&str; 2] = ["in", "out"];

pub(super) const UPTIME: &str = "uptime";
pub(super) const PROCESSOR: &str = "processor";
pub(super) const MEMORY: &str = "memory";
/// 1 while a port is up, 0 while it is not; its word is kept when it changes.
const STATE: &str = " state";

/// What the values of the series of that name are measured in; `None` where a device has none of that name.
pub(super) fn unit(name: &str) -> Option<Unit> {
    match name {
        UPTIME => return Some(Unit::Uptime),
        PROCESSOR | MEMORY => return Some(Unit::Percent),
        _ => {}
    }
    let (first, rest) = name.split_once(' ')?;
    if first != "port" {
        let kind = SensorKind::ALL
            .into_iter()
            .find(|kind| kind.word() == first)?;
        return (!rest.is_empty()).then(|| kind.unit());
    }
    let ends = |end: &str| rest.strip_suffix(end).is_some_and(|port| !port.is_empty());
    if ends(STATE) {
        return Some(Unit::Number);
    }
    let known = What::ALL.into_iter().find(|what| {
        DIRECTIONS
            .iter()
            .any(|direction| ends(&format!(" {direction}{}", what.end())))
    });
    known.map(What::unit)
}

/// The name of a series of a port.
pub(super) fn of_port(port: &str, direction: &str, what: What) -> String {
    format!("port {port} {direction}{}", what.end())
}

pub(super) fn state_of(port: &str) -> String {
    format!("port {port}{STATE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_measured() {
        for (name, expected) in [
            (
                of_port("Gi1/1 up", "in", What::Rate),
                Some(Unit::BitsPerSecond),
            ),
            (of_port("eth0", "out", What::Use), Some(Unit::Percent)),
            (of_port("eth0", "in", What::Errors), Some(Unit::PerSecond)),
            (of_port("eth0", "in", What::Discards), Some(Unit::PerSecond)),
            (state_of("eth0"), Some(Unit::Number)),
            ("uptime".to_owned(), Some(Unit::Uptime)),
            (
                "optical Xcvr 1 rx".to_owned(),
                Some(Unit::DecibelMilliwatts),
            ),
            ("port * in".to_owned(), Some(Unit::BitsPerSecond)),
            ("port in".to_owned(), None),
            ("port eth0".to_owned(), None),
            ("temperature".to_owned(), None),
            ("weather x".to_owned(), None),
        ] {
            assert_eq!(unit(&name), expected, "{name}");
        }
    }
}
