//! Sending without a copy: what to do where the kernel does not, so that a result that is called so
//! is so.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::interface_name;
use plumb_net::route::next_hop;
use plumb_net::tcp::copyless::{memory_file, send_from};

/// The device takes a packet that lies in several places (NETIF_F_SG).
const GATHERS: &str = "tx-scatter-gather";

/// The same bytes again and again, sent from where they lie.
#[derive(Debug)]
pub(super) struct InPlace {
    file: File,
    length: usize,
    /// Why they are copied after all.
    refused: Arc<Refused>,
}

/// Whether sendfile was refused, which the thread that sends leaves for the report.
#[derive(Debug, Default)]
pub(super) struct Refused(AtomicBool);

impl Refused {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl InPlace {
    /// Keeps `bytes` where they can be sent from.
    ///
    /// # Errors
    /// When the machine gives no descriptor or no memory.
    pub(super) fn new(bytes: &[u8], refused: Arc<Refused>) -> io::Result<Self> {
        Ok(Self {
            file: memory_file(bytes)?,
            length: bytes.len(),
            refused,
        })
    }

    /// How many there are.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Sends at most `count` of them; `None` where the kernel does not do so without a copy.
    pub(super) fn send(&self, stream: &TcpStream, count: usize) -> io::Result<Option<usize>> {
        match send_from(stream, &self.file, count) {
            Ok(sent) => Ok(Some(sent)),
            Err(error) if is_refusal(&error) => {
                self.refused.0.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether sendfile(2) does not do it at all: neither from such a file nor to such a socket, or a
/// filter of system calls is in the way.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::InvalidInput | Kind::Unsupported | Kind::NotSeekable | Kind::PermissionDenied
    )
}

/// What to say of a stream that copied.
pub(super) const REFUSED: &str = "the kernel refused sendfile, so what was sent was copied all the same: rate and processor use are as with ordinary writes";

/// Says so where the device by which a stream leaves does not gather: the kernel then copies each
/// packet together itself. Nothing where it does, or does not say.
pub(super) fn copied_for_device(stream: &TcpStream) -> Option<String> {
    let hop = next_hop(stream.peer_addr().ok()?.ip()).ok()??;
    let name = interface_name(hop.interface).ok()?;
    let mut device = Ethtool::open().ok()?;
    let names = device.offload_names(&name).ok()?;
    let offloads = device.offloads(&name, &names).ok()?;
    let gathers = offloads.iter().find(|offload| offload.name == GATHERS)?.on;
    (!gathers).then(|| {
        format!(
            "{name} takes no packet that lies in several places ({GATHERS} is off), so the kernel copied what was to be sent without a copy: ethtool -K {name} sg on"
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_the_kernel_refuses_is_noticed_and_what_it_takes_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let refused = Arc::new(Refused::default());
        let taken = InPlace::new(b"plumb", Arc::clone(&refused)).unwrap();
        assert_eq!(taken.send(&stream, 5).unwrap(), Some(5));
        assert!(!refused.is_set());
        // Nothing can be sent out of a directory, nor out of a pipe from a place in it.
        let (pipe, _writer) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        for file in [File::open(".").unwrap(), pipe] {
            let refused = Arc::new(Refused::default());
            let refuses = InPlace {
                file,
                length: 5,
                refused: Arc::clone(&refused),
            };
            assert_eq!(refuses.send(&stream, 5).unwrap(), None);
            assert!(refused.is_set());
        }
    }

    #[test]
    fn the_loopback_gathers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(copied_for_device(&stream), None);
    }
}
