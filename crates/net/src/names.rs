//! The name of an address, as the system's resolver knows it (getnameinfo(3)): hosts files, DNS.

use std::net::{IpAddr, SocketAddr};

use socket2::SockAddr;

/// NI_MAXHOST of netdb.h: longer than any name.
const MAX_NAME_BYTES: usize = 1025;

/// The name of an address; `None` where it has none. It asks the network, and may take as long as
/// the resolver's time limits are.
pub fn name_of(address: IpAddr) -> Option<String> {
    let address = SockAddr::from(SocketAddr::new(address, 0));
    let mut name = [0u8; MAX_NAME_BYTES];
    // SAFETY: the address and its length are of one live SockAddr, which is read; `name` is written
    // within the length given and outlives the call; no service is asked for.
    let failed = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr().cast(),
            MAX_NAME_BYTES as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return None;
    }
    let text = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    // Whoever owns an address writes its name: nothing that a terminal would obey.
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let text = text.to_str().ok()?;
    (!text.is_empty() && text.chars().all(is_name)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn names_are_plain_words() {
        // What this host calls itself is its own affair; that nothing else comes of it is ours.
        let name = name_of(Ipv4Addr::LOCALHOST.into());
        assert!(name.is_none_or(|name| name.is_ascii() && !name.contains(' ')));
    }
}
