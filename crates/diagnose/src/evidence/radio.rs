//! The radio that a path begins with.

use plumb_model::results::host::{Interface, Wifi};

use crate::Case;

/// The mode in which a radio is connected to an access point, as facts name it.
const STATION: &str = "station";

/// A radio between this machine and its access point, as it was when the machine's facts were read.
#[derive(Clone, Copy)]
pub(crate) struct Radio<'a> {
    /// The name of the measurement that the facts are of.
    measurement: &'a str,
    /// Where the interface is in its list.
    place: usize,
    pub(crate) interface: &'a Interface,
    pub(crate) wifi: &'a Wifi,
}

impl<'a> Radio<'a> {
    pub(crate) fn measurement(self) -> &'a str {
        self.measurement
    }

    /// A field of it, as evidence names it.
    pub(crate) fn field(self, name: &str) -> String {
        format!("result.interfaces[{}].wifi.{name}", self.place)
    }

    /// Its signal in dBm, averaged where the driver does that.
    pub(crate) fn signal_dbm(self) -> Option<i32> {
        self.wifi.average_signal_dbm.or(self.wifi.signal_dbm)
    }
}

impl<'a> Case<'a> {
    /// The radio that carried what was measured: the only one that counted a part of it, or, where nothing was counted, the
    /// only interface of this machine that is in use.
    pub(crate) fn radio(&self) -> Option<Radio<'a>> {
        let (measurement, host) = self.hosts().next()?;
        let counted: Vec<&str> = self.counted().flat_map(|c| c.interfaces()).collect();
        let carried = |interface: &Interface| {
            interface.is_in_use()
                && match counted.is_empty() {
                    true => interface.is_physical() || interface.wifi.is_some(),
                    false => counted.contains(&interface.name.as_str()),
                }
        };
        let all = host.interfaces.iter().enumerate();
        let mut carried = all.filter(|(_, interface)| carried(interface));
        let (place, interface) = carried.next()?;
        let alone = carried.next().is_none();
        let wifi = interface.wifi.as_ref();
        let wifi = wifi.filter(|wifi| alone && wifi.mode == STATION)?;
        Some(Radio {
            measurement,
            place,
            interface,
            wifi,
        })
    }
}
