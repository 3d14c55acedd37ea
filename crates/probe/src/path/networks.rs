//! Whose the addresses of a path are, asked by DNS of Team Cymru's service: the network's number by
//! `origin.asn.cymru.com`, its name by `asn.cymru.com`. <https://www.team-cymru.com/ip-asn-mapping>

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_model::addresses::is_public;
use plumb_wire::dns::{Query, RecordKind};

use super::atlas::Entry;

/// How long answers to one round of questions are waited for: the service is anycast, and resolvers answer in far less.
const ROUND: Duration = Duration::from_millis(1500);

/// Rounds: what is lost is asked again once.
const ROUNDS: usize = 2;

/// Questions of one kind at most: a path has 30 hops, in each direction.
const MOST: usize = 64;

/// Longest answer that is read: what a resolver sends without EDNS is 512 bytes (RFC 1035, section 2.3.4).
const ANSWER_BYTES: usize = 1500;

/// What the service knows of the public addresses among these, asked of a resolver. Others are not asked for; what is
/// not answered in time is missing.
///
/// # Errors
/// When the resolver cannot be asked.
pub fn look_up(resolver: SocketAddr, addresses: &[IpAddr]) -> io::Result<BTreeMap<IpAddr, Entry>> {
    let public: BTreeSet<IpAddr> = addresses
        .iter()
        .copied()
        .filter(|a| is_public(*a))
        .collect();
    let public: Vec<IpAddr> = public.into_iter().take(MOST).collect();
    let origins = ask(resolver, public.iter().copied().map(origin_name))?;
    let mut known: BTreeMap<IpAddr, Entry> = BTreeMap::new();
    for (address, text) in public.into_iter().zip(origins) {
        if let Some(asn) = text.as_deref().and_then(origin) {
            let entry = Entry {
                asn: Some(asn),
                ..Entry::default()
            };
            known.insert(address, entry);
        }
    }
    let numbers: BTreeSet<u32> = known.values().filter_map(|entry| entry.asn).collect();
    let numbers: Vec<u32> = numbers.into_iter().collect();
    let names = ask(
        resolver,
        numbers.iter().map(|asn| format!("AS{asn}.asn.cymru.com")),
    )?;
    let names: BTreeMap<u32, String> = numbers
        .into_iter()
        .zip(names)
        .filter_map(|(asn, text)| Some((asn, network_name(&text?)?)))
        .collect();
    for entry in known.values_mut() {
        entry.name = entry.asn.and_then(|asn| names.get(&asn).cloned());
    }
    Ok(known)
}

/// The name under which the network of an address stands.
fn origin_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => reversed_v4(v4) + "origin.asn.cymru.com",
        IpAddr::V6(v6) => reversed_v6(v6) + "origin6.asn.cymru.com",
    }
}

fn reversed_v4(address: Ipv4Addr) -> String {
    let octets = address.octets();
    octets
        .iter()
        .rev()
        .map(|octet| format!("{octet}."))
        .collect()
}

/// By halves of bytes, as in ip6.arpa (RFC 3596, section 2.5).
fn reversed_v6(address: Ipv6Addr) -> String {
    let octets = address.octets();
    let halves = octets
        .iter()
        .rev()
        .flat_map(|octet| [octet & 15, octet >> 4]);
    halves.map(|half| format!("{half:x}.")).collect()
}

/// The number in `23028 | 216.90.108.0/24 | US | arin | 1998-09-25`; the first, where several networks announce it.
fn origin(text: &str) -> Option<u32> {
    text.split('|')
        .next()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The name in `23028 | US | arin | 2002-01-04 | TEAM-CYMRU - Team Cymru Inc., US`.
fn network_name(text: &str) -> Option<String> {
    let name = text.split('|').nth(4)?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The first text of each name, in their order.
fn ask(
    resolver: SocketAddr,
    names: impl Iterator<Item = String>,
) -> io::Result<Vec<Option<String>>> {
    let queries: Vec<Option<Query>> = names
        .map(|name| Query::new(&name, RecordKind::Txt).ok())
        .collect();
    let mut texts = vec![None; queries.len()];
    if queries.is_empty() {
        return Ok(texts);
    }
    let any: IpAddr = match resolver {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(resolver)?;
    // An answer has to name the id and the question, and to come to this port from that address.
    let first_id: u16 = rand::random();
    let id_of = |place: usize| first_id.wrapping_add(u16::try_from(place).unwrap_or_default());
    for _ in 0..ROUNDS {
        let open = |texts: &[Option<String>]| -> Vec<usize> {
            let missing = texts.iter().zip(&queries).enumerate();
            let missing = missing.filter(|(_, (text, query))| text.is_none() && query.is_some());
            missing.map(|(place, _)| place).collect()
        };
        for place in open(&texts) {
            if let Some(Some(query)) = queries.get(place) {
                socket.send(&query.write(id_of(place)))?;
            }
        }
        let until = Instant::now() + ROUND;
        let mut buffer = [0; ANSWER_BYTES];
        while !open(&texts).is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            let Ok(length) = socket.recv(&mut buffer) else {
                break;
            };
            let answer = buffer.get(..length).unwrap_or_default();
            for (place, query) in queries.iter().enumerate() {
                let Some(query) = query else { continue };
                let ours = query
                    .answer(answer)
                    .is_some_and(|head| head.id == id_of(place));
                if let Some(text) = texts.get_mut(place).filter(|text| ours && text.is_none()) {
                    // A name without a text is answered too, by an empty one.
                    *text = Some(query.texts(answer).into_iter().next().unwrap_or_default());
                }
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A resolver on the loopback that knows some texts, and the names that it was asked for. It ends when it is silent.
    fn resolver(
        texts: &'static [(&'static str, &'static str)],
    ) -> (SocketAddr, mpsc::Receiver<String>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let (asked, heard) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 512];
            let mut dropped = false;
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                // The first question is lost, and asked again.
                if !std::mem::replace(&mut dropped, true) {
                    continue;
                }
                let mut answer = buffer[..length].to_vec();
                let mut name = String::new();
                let mut at = 12;
                while answer[at] != 0 {
                    let end = at + 1 + usize::from(answer[at]);
                    name += std::str::from_utf8(&answer[at + 1..end]).unwrap();
                    name.push('.');
                    at = end;
                }
                let _ = asked.send(name.clone());
                answer[2] |= 0x80;
                if let Some((_, text)) = texts.iter().find(|(known, _)| *known == name) {
                    answer[7] = 1;
                    answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
                    let length = u16::try_from(text.len() + 1).unwrap();
                    answer.extend(length.to_be_bytes());
                    answer.push(u8::try_from(text.len()).unwrap());
                    answer.extend(text.as_bytes());
                } else {
                    answer[3] |= 3;
                }
                // A stranger's answer with another id comes first.
                let mut forged = answer.clone();
                forged[0] ^= 1;
                let _ = socket.send_to(&forged, from);
                let _ = socket.send_to(&answer, from);
            }
        });
        (address, heard)
    }

    #[test]
    fn networks_are_asked_for_by_address_and_by_number() {
        let (address, asked) = resolver(&[
            (
                "8.8.8.8.origin.asn.cymru.com.",
                "15169 | 8.8.8.0/24 | US | arin |",
            ),
            (
                "AS15169.asn.cymru.com.",
                "15169 | US | arin | 2000-03-30 | GOOGLE - Google LLC, US",
            ),
            ("1.1.1.1.origin.asn.cymru.com.", "nonsense"),
        ]);
        let path = [
            "192.168.1.1",
            "8.8.8.8",
            "1.1.1.1",
            "9.9.9.9",
            "8.8.8.8",
            "fe80::1",
        ];
        let path: Vec<IpAddr> = path.iter().map(|a| a.parse().unwrap()).collect();
        let known = look_up(address, &path).unwrap();
        assert_eq!(known.len(), 1, "{known:?}");
        let google = &known[&IpAddr::from([8, 8, 8, 8])];
        assert_eq!(google.asn, Some(15169));
        assert_eq!(google.name.as_deref(), Some("GOOGLE - Google LLC, US"));
        // No resolver is asked for addresses of private networks.
        let asked: BTreeSet<String> = asked.try_iter().collect();
        assert!(
            asked.iter().all(|name| !name.contains("168.192")),
            "{asked:?}"
        );
        assert_eq!(asked.len(), 4, "{asked:?}");
    }

    #[test]
    fn names_of_addresses_are_those_of_the_service() {
        let v6 = origin_name("2001:db8::1".parse().unwrap());
        assert!(
            v6.starts_with("1.0.0.0.") && v6.ends_with(".8.b.d.0.1.0.0.2.origin6.asn.cymru.com")
        );
        assert_eq!(origin("23028 701 | 216.90.108.0/24"), Some(23028));
        assert_eq!((origin(""), network_name("1 | 2")), (None, None));
    }

    #[test]
    fn nothing_to_ask_asks_nobody() {
        let (address, asked) = resolver(&[]);
        assert!(
            look_up(address, &[[10, 0, 0, 1].into()])
                .unwrap()
                .is_empty()
        );
        assert_eq!(asked.try_iter().count(), 0);
    }
}
