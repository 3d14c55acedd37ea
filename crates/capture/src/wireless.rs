//! Frames of wireless LANs in sums.

use plumb_model::results::capture::WirelessSums;

use crate::packet::Wireless;

/// Frames of IEEE 802.11.
#[derive(Debug, Default)]
pub(crate) struct WirelessCounts(WirelessSums);

impl WirelessCounts {
    #[inline]
    pub(crate) fn add(&mut self, frame: Wireless) {
        let sums = &mut self.0;
        sums.frames += 1;
        let Some(control) = frame.control else {
            sums.bad += 1;
            return;
        };
        sums.management += u64::from(control.is_management());
        sums.control += u64::from(control.is_control());
        sums.data += u64::from(control.is_data());
        if !control.is_control() {
            sums.retries += u64::from(control.is_retry());
        }
        sums.encrypted += u64::from(control.is_data() && control.is_protected());
        sums.aggregated += u64::from(frame.is_aggregated);
    }

    /// `None` where the capture is of other links.
    pub(crate) fn finish(self) -> Option<WirelessSums> {
        (self.0.frames > 0).then_some(self.0)
    }
}
