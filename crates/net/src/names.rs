//! The name of an address, and the canonical name of a name, from the system's resolver (getnameinfo(3),
//! getaddrinfo(3)): hosts files, DNS.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

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
            ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return None;
    }
    plain(CStr::from_bytes_until_nul(&name).ok()?)
}

/// What this host calls itself (gethostname(2)); empty where that is no text.
pub fn host_name() -> String {
    let name = nix::unistd::gethostname().ok();
    name.and_then(|name| name.into_string().ok())
        .unwrap_or_default()
}

/// The TCP port of a service by the name that /etc/services has for it (services(5)), or one of its
/// aliases; `None` where it has none.
///
/// # Errors
/// When there is no such file.
pub fn tcp_port(service: &str) -> io::Result<Option<u16>> {
    let text = std::fs::read_to_string("/etc/services")?;
    Ok(port_in(&text, service))
}

fn port_in(services: &str, service: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let (line, _) = line.split_once('#').unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let (name, port) = (words.next()?, words.next()?);
        let named = name == service || words.any(|alias| alias == service);
        let (port, protocol) = port.split_once('/')?;
        port.parse().ok().filter(|_| named && protocol == "tcp")
    })
}

/// The canonical name of a name: the end of its chain of aliases (CNAME, RFC 1034 section 3.6.2; hosts files), or the
/// name with the search domain. `None` where that is the name itself, or not known. It asks the network as [`name_of`]
/// does.
pub fn canonical_name(name: &str) -> Option<String> {
    let asked = CString::new(name).ok()?;
    // SAFETY: an addrinfo is integers and pointers, of which all may be zero: no wishes.
    let mut wishes: libc::addrinfo = unsafe { std::mem::zeroed() };
    wishes.ai_flags = libc::AI_CANONNAME;
    // One answer for each address is enough.
    wishes.ai_socktype = libc::SOCK_STREAM;
    let mut found: *mut libc::addrinfo = ptr::null_mut();
    // SAFETY: `asked` ends with a zero, `wishes` and `found` outlive the call, and nothing else is read or
    // written.
    let failed = unsafe { libc::getaddrinfo(asked.as_ptr(), ptr::null(), &wishes, &mut found) };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: without an error `found` is a list of answers, not empty, that is ours until it is freed.
    let name_at = unsafe { (*found).ai_canonname };
    let canonical = if name_at.is_null() {
        None
    } else {
        // SAFETY: where it is not null, it is a string that ends with a zero and lives as long as the list.
        plain(unsafe { CStr::from_ptr(name_at) })
    };
    // SAFETY: the list came from getaddrinfo, is freed once, and nothing of it is used afterwards.
    unsafe { libc::freeaddrinfo(found) };
    let bare = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    canonical.filter(|canonical| bare(canonical) != bare(name))
}

/// A name, which the owner of an address or a domain writes: nothing that a terminal would obey.
fn plain(name: &CStr) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name = name.to_str().ok()?;
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_ports() {
        let services = "# x\nhttp 80/tcp www # web\nhttp 80/udp\nntp\t123/udp\nodd 99999/tcp\n";
        let port = |name| port_in(services, name);
        assert_eq!((port("http"), port("www")), (Some(80), Some(80)));
        assert_eq!((port("ntp"), port("odd"), port("web")), (None, None, None));
    }

    use std::net::Ipv4Addr;

    #[test]
    fn names_are_plain_words() {
        // What this host calls itself is its own affair; that nothing else comes of it is ours.
        let name = name_of(Ipv4Addr::LOCALHOST.into());
        assert!(name.is_none_or(|name| name.is_ascii() && !name.contains(' ')));
        assert_eq!(plain(c"a-1.example_x"), Some("a-1.example_x".to_owned()));
        assert_eq!((plain(c"\x1b[2Jexample"), plain(c"")), (None, None));
    }

    #[test]
    fn what_stands_for_itself_is_no_alias() {
        assert_eq!(canonical_name("192.0.2.1"), None);
        assert_eq!(canonical_name("no.such.name.invalid"), None);
        assert_eq!(canonical_name("a\0b"), None);
    }
}
