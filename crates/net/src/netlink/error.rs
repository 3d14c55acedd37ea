//! What the kernel said to a request.

use std::io;

/// What the kernel said to a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct NetlinkError {
    pub(crate) what: String,
    pub(crate) source: io::Error,
}

impl NetlinkError {
    /// Makes an error of one of the kernel's, met when asked to do `what`.
    pub(crate) fn when<W: Into<String>>(
        what: impl FnOnce() -> W,
    ) -> impl FnOnce(io::Error) -> Self {
        |source| Self {
            what: what().into(),
            source,
        }
    }

    /// Whether it may not be done by this user.
    pub fn is_privilege(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether this kernel does not have the part that was asked.
    pub fn is_absent(&self) -> bool {
        // EPROTONOSUPPORT: no such protocol of netlink; EOPNOTSUPP: no such question.
        self.source.kind() == io::ErrorKind::NotFound
            || matches!(
                self.source.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP)
            )
    }
}
