//! Static multicast routes (`linux/mroute.h`, `linux/mroute6.h`): which packets to a group leave by
//! which links. The kernel keeps them for as long as the socket that set them is open.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Links that a multicast router can have (MAXVIFS, MAXMIFS).
pub const MAX_INTERFACES: usize = 32;

// MRT_BASE and MRT6_BASE are both 200, and the requests have the same order.
const INIT: libc::c_int = 200;
const ADD_INTERFACE: libc::c_int = 202;
const ADD_ROUTE: libc::c_int = 204;

/// Name the interface by its number (VIFF_USE_IFINDEX).
const BY_INDEX: u8 = 8;

/// Packets need at least this much time to live to leave (the usual 1: every one that may).
const THRESHOLD: u8 = 1;

/// `struct vifctl`.
#[repr(C)]
struct Interface4 {
    number: u16,
    flags: u8,
    threshold: u8,
    rate_limit: libc::c_uint,
    index: libc::c_int,
    remote: u32,
}

/// `struct mfcctl`.
#[repr(C)]
struct Route4 {
    origin: libc::in_addr,
    group: libc::in_addr,
    from: u16,
    thresholds: [u8; MAX_INTERFACES],
    counters: [libc::c_uint; 3],
    expire: libc::c_int,
}

/// `struct mif6ctl`.
#[repr(C)]
struct Interface6 {
    number: u16,
    flags: u8,
    threshold: u8,
    index: u16,
    rate_limit: u32,
}

/// `struct mf6cctl`; the last field is a `struct if_set` of 256 bits.
#[repr(C)]
struct Route6 {
    origin: libc::sockaddr_in6,
    group: libc::sockaddr_in6,
    from: u16,
    to: [u32; 8],
}

/// The multicast routing of one address family in one network namespace. The routes go when it is
/// dropped.
#[derive(Debug)]
pub struct MulticastRouter {
    socket: Socket,
    ipv6: bool,
    /// Interfaces by the order in which they were announced.
    interfaces: Vec<u32>,
}

impl MulticastRouter {
    /// Becomes the multicast router of the calling thread's network namespace.
    ///
    /// # Errors
    /// Without the privilege, where there is one already, and in a kernel without multicast
    /// routing (`ENOPROTOOPT`).
    pub fn new(ipv6: bool) -> io::Result<Self> {
        let (domain, protocol) = if ipv6 {
            (Domain::IPV6, Protocol::ICMPV6)
        } else {
            // IPPROTO_IGMP, without which the kernel does not let a socket route (ip_mroute_setsockopt).
            (Domain::IPV4, Protocol::from(libc::IPPROTO_IGMP))
        };
        let router = Self {
            socket: Socket::new(domain, Type::RAW, Some(protocol))?,
            ipv6,
            interfaces: Vec::new(),
        };
        let on: libc::c_int = 1;
        router.set(INIT, &on)?;
        Ok(router)
    }

    /// Sends what comes from `source` to `group` in by the interface `from` out by all of `to`.
    ///
    /// # Errors
    /// When the addresses are not of this router's family, there are more than
    /// [`MAX_INTERFACES`], or the kernel refuses.
    pub fn add_route(
        &mut self,
        source: IpAddr,
        group: IpAddr,
        from: u32,
        to: &[u32],
    ) -> io::Result<()> {
        let from = self.interface(from)?;
        let to = to
            .iter()
            .map(|&index| self.interface(index))
            .collect::<io::Result<Vec<_>>>()?;
        match (self.ipv6, source, group) {
            (false, IpAddr::V4(source), IpAddr::V4(group)) => {
                self.set(ADD_ROUTE, &route4(source, group, from, &to))
            }
            (true, IpAddr::V6(source), IpAddr::V6(group)) => {
                self.set(ADD_ROUTE, &route6(source, group, from, &to))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The router's number for an interface, which is added to the router at its first use.
    fn interface(&mut self, index: u32) -> io::Result<u16> {
        if let Some(known) = self.interfaces.iter().position(|i| *i == index) {
            return Ok(known as u16);
        }
        let number = self.interfaces.len() as u16;
        if usize::from(number) >= MAX_INTERFACES {
            return Err(io::Error::other(format!(
                "a multicast router has at most {MAX_INTERFACES} links"
            )));
        }
        if self.ipv6 {
            let index = u16::try_from(index).map_err(io::Error::other)?;
            self.set(
                ADD_INTERFACE,
                &Interface6 {
                    number,
                    flags: 0,
                    threshold: THRESHOLD,
                    index,
                    rate_limit: 0,
                },
            )?;
        } else {
            let index = libc::c_int::try_from(index).map_err(io::Error::other)?;
            self.set(
                ADD_INTERFACE,
                &Interface4 {
                    number,
                    flags: BY_INDEX,
                    threshold: THRESHOLD,
                    rate_limit: 0,
                    index,
                    remote: 0,
                },
            )?;
        }
        self.interfaces.push(index);
        Ok(number)
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let level = if self.ipv6 {
            libc::IPPROTO_IPV6
        } else {
            libc::IPPROTO_IP
        };
        // SAFETY: the kernel reads `size_of_val(value)` bytes from a reference to that many,
        // during the call. Every T here is plain data laid out as the kernel's headers have it.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(value).cast(),
                size_of_val(value) as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn route4(source: Ipv4Addr, group: Ipv4Addr, from: u16, to: &[u16]) -> Route4 {
    let address = |ip: Ipv4Addr| libc::in_addr {
        s_addr: u32::from_ne_bytes(ip.octets()),
    };
    let mut thresholds = [0; MAX_INTERFACES];
    for number in to {
        if let Some(threshold) = thresholds.get_mut(usize::from(*number)) {
            *threshold = THRESHOLD;
        }
    }
    Route4 {
        origin: address(source),
        group: address(group),
        from,
        thresholds,
        counters: [0; 3],
        expire: 0,
    }
}

fn route6(source: Ipv6Addr, group: Ipv6Addr, from: u16, to: &[u16]) -> Route6 {
    let address = |ip: Ipv6Addr| {
        // SAFETY: sockaddr_in6 is plain data, for which all zeroes is a valid value.
        let mut address: libc::sockaddr_in6 = unsafe { zeroed() };
        address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        address.sin6_addr.s6_addr = ip.octets();
        address
    };
    let mut set = [0u32; 8];
    for number in to {
        if let Some(word) = set.get_mut(usize::from(*number) / 32) {
            *word |= 1 << (number % 32);
        }
    }
    Route6 {
        origin: address(source),
        group: address(group),
        from,
        to: set,
    }
}

// What the kernel checks first is the length (`ip_mroute_setsockopt`, `ip6_mroute_setsockopt`).
const _: () = assert!(size_of::<Interface4>() == 16 && size_of::<Route4>() == 60);
const _: () = assert!(size_of::<Interface6>() == 12 && size_of::<Route6>() == 92);
