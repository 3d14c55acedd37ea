//! The rules that the catalogue names.

use serde::Deserialize;

/// A rule for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// No path calls for a value of its own.
    #[default]
    Leave,
    /// Of the third of three numbers, 0.65 hold what is in flight; the others stay.
    ReceiveBuffer,
    /// As [`Formula::ReceiveBuffer`], of the send buffer.
    SendBuffer,
    /// One number, of which 0.65 hold what is in flight.
    BufferLimit,
    /// One number above every [`Formula::BufferLimit`].
    SocketCeiling,
    /// The algorithm that stands the path's loss.
    CongestionControl,
    /// The same on Windows.
    WindowsCongestionControl,
    /// fq, where BBR paces.
    FairQueue,
    /// The same, of an interface that exists.
    FairQueueDevice,
    /// No restart after a pause, on long paths.
    NoSlowStartAfterIdle,
    /// The level whose window is enough.
    WindowsAutotuning,
    /// Probing behind packets that may be too large.
    MtuProbing,
    /// What the catalogue wants, whatever the path.
    MustBe,
    /// No less than the catalogue wants.
    AtLeast,
    /// As many packets as the receive ring can hold, where it was full.
    ReceiveRing,
    /// The kernel's own length of a plain queue, where it is far from it.
    QueueLength,
    /// An offload as the catalogue wants it.
    Offload,
    /// Adaptive, where a fixed wait does not suit.
    Coalescing,
    /// No configured limit that starves a fast link.
    DriverQueue,
}

impl Formula {
    /// Whether it looks at an interface, its counters and its driver.
    pub fn is_of_an_interface(self) -> bool {
        matches!(
            self,
            Self::ReceiveRing
                | Self::QueueLength
                | Self::Offload
                | Self::Coalescing
                | Self::DriverQueue
        )
    }

    /// The rule in words.
    pub fn words(self, wanted: Option<&str>) -> String {
        let text = match self {
            Self::Leave => "left alone",
            Self::ReceiveBuffer | Self::SendBuffer => {
                "the third number becomes rate times round trip over 0.65, in the next power of two, where it is smaller"
            }
            Self::BufferLimit => {
                "rate times round trip over 0.65, in the next power of two, where it is smaller"
            }
            Self::SocketCeiling => "as large as the buffers below it, where it is smaller",
            Self::CongestionControl | Self::WindowsCongestionControl => {
                "BBR where the path loses more than CUBIC can stand at that rate, else unchanged"
            }
            Self::FairQueue | Self::FairQueueDevice => "fq where BBR is chosen, except on routers",
            Self::NoSlowStartAfterIdle => "0 on long paths, where the algorithm is not BBR",
            Self::WindowsAutotuning => "normal, or experimental above 16 MB in flight",
            Self::MtuProbing => "1 where the interface's MTU is above 1500",
            Self::ReceiveRing => "the most that it can hold, where packets found it full",
            Self::QueueLength => {
                "1000 with pfifo_fast, where it is shorter at 1 Gbit/s and above, or is over 50 ms"
            }
            Self::Offload => {
                return format!(
                    "{}, from 1 Gbit/s on, where the driver lets it be changed",
                    wanted.unwrap_or_default()
                );
            }
            Self::Coalescing => {
                "adaptive, where the driver can and interrupts for every packet, or waits over 0.25 ms"
            }
            Self::DriverQueue => {
                "1879048192, the kernel's own, where it was made less than 128 KiB at 1 Gbit/s and above"
            }
            Self::MustBe => return format!("always {}", wanted.unwrap_or_default()),
            Self::AtLeast => return format!("at least {}", wanted.unwrap_or_default()),
        };
        text.to_owned()
    }
}
