//! One probe of one target, in a thread of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use plumb_probe::Trust;

use crate::config::Target;
use crate::mesh::slots;
use crate::sample::Sample;
use crate::target::kind::{FarEnd, Seen};

/// How long an address is used before its name is looked up again.
const LOOK_UP_EVERY: Duration = Duration::from_secs(300);

/// It holds a name, a socket and one sample; TLS needs more than the rest.
const STACK_BYTES: usize = 256 * 1024;

/// The same of what measures more than one round trip, as threads have it by themselves.
const LARGE_STACK_BYTES: usize = 2 * 1024 * 1024;

/// What a probe has to say.
#[derive(Debug)]
pub(crate) enum News {
    /// What became of it; where nothing came back that counts, why, as far as that is known.
    Seen(Sample, Option<String>),
    /// What was seen then that is kept when it changes, µs since 1970.
    State(i64, String),
    /// What was seen then of a series of the target, µs since 1970.
    Series(i64, Seen),
    /// Why this machine could not probe, which says nothing of the path.
    NotProbed(String),
    /// The name leads to another address now.
    Moved {
        from: IpAddr,
        to: IpAddr,
    },
    Ended,
}

/// The address of a name.
#[derive(Debug, Clone, Copy)]
struct Known {
    address: IpAddr,
    looked_up: Instant,
}

/// Probes in threads of their own, which share the addresses that they found.
#[derive(Debug)]
pub(crate) struct Prober {
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    /// Whose certificates HTTPS believes; without it HTTPS is not probed.
    trust: Option<Trust>,
    /// Held while the path is loaded: no two loads run together.
    load: Arc<Mutex<()>>,
    /// News, with the name of the target.
    to: mpsc::Sender<(String, News)>,
}

impl Prober {
    pub(crate) fn new(trust: Option<Trust>, to: mpsc::Sender<(String, News)>) -> Self {
        Self {
            known: Arc::default(),
            trust,
            load: Arc::default(),
            to,
        }
    }

    /// Has HTTPS believe those whom the system believes, which takes reading their certificates.
    pub(crate) fn trust(&mut self, trust: Trust) {
        self.trust = Some(trust);
    }

    /// Whether HTTPS can be probed.
    pub(crate) fn has_trust(&self) -> bool {
        self.trust.is_some()
    }

    /// Probes once, and sends what became of it. What loads the path waits for another load to end, and where it has a slot of
    /// its own does not load it then.
    pub(crate) fn begin(&self, target: &Target, in_slot: bool) -> std::io::Result<()> {
        let (to, known) = (self.to.clone(), Arc::clone(&self.known));
        let (target, trust) = (target.clone(), self.trust.clone());
        let load = Arc::clone(&self.load);
        let stack_bytes = match target.kind.overlaps() {
            true => STACK_BYTES,
            false => LARGE_STACK_BYTES,
        };
        let work = move || {
            // It is no error if the receiver is gone.
            let say = |news| drop(to.send((target.name.clone(), news)));
            let begun = Instant::now();
            let loading = target.kind.is_load().then(|| match in_slot {
                true => tried(&load),
                false => Some(locked(&load)),
            });
            match loading {
                Some(None) => say(News::NotProbed(
                    "another load was under way in its slot".to_owned(),
                )),
                loading => {
                    let latest = in_slot.then(|| begun + slots::LATEST);
                    probe(&target, &known, (trust.as_ref(), latest), &say);
                    drop(loading);
                }
            }
            say(News::Ended);
        };
        let thread = thread::Builder::new().name("watch".into());
        thread.stack_size(stack_bytes).spawn(work).map(drop)
    }
}

/// Measures once, where that begins before `latest`.
fn probe(
    target: &Target,
    known: &Mutex<BTreeMap<String, Known>>,
    (trust, latest): (Option<&Trust>, Option<Instant>),
    say: &dyn Fn(News),
) {
    let found = match target.kind.is_remote() {
        true => address(known, target),
        false => Ok(Ipv4Addr::UNSPECIFIED.into()),
    };
    let address = match found {
        Ok(address) => address,
        Err(why) => return say(News::NotProbed(why)),
    };
    if latest.is_some_and(|latest| Instant::now() > latest) {
        let why = "its slot was over before the name was found";
        return say(News::NotProbed(why.to_owned()));
    }
    let far = FarEnd {
        host: &target.host,
        address,
        trust,
        every: target.every,
    };
    match target.kind.probe(&far) {
        Ok(probed) => {
            let sample = Sample {
                sent_us: probed.sent_us,
                value: probed.value,
            };
            say(News::Seen(sample, probed.why));
            if let Some(state) = probed.state {
                say(News::State(probed.sent_us, state));
            }
            for seen in probed.series {
                say(News::Series(probed.sent_us, seen));
            }
        }
        Err(why) => say(News::NotProbed(why)),
    }
    // After the probe, which a resolver that is not reached must not hold up.
    if let Some(new) = look_up_again(known, target) {
        say(News::Moved {
            from: address,
            to: new,
        });
    }
}

/// The address of a target, which is looked up the first time.
fn address(known: &Mutex<BTreeMap<String, Known>>, target: &Target) -> Result<IpAddr, String> {
    if let Some(known) = locked(known).get(&target.host) {
        return Ok(known.address);
    }
    let found = look_up(target)?;
    let address = found
        .first()
        .copied()
        .ok_or_else(|| format!("the name {} has no address", target.host))?;
    let looked_up = Instant::now();
    locked(known).insert(target.host.clone(), Known { address, looked_up });
    Ok(address)
}

/// Looks a name up where that was long ago; the address that it has now in place of the one that was known, which stays in
/// use where the name still has it, or no answer comes.
fn look_up_again(known: &Mutex<BTreeMap<String, Known>>, target: &Target) -> Option<IpAddr> {
    let before = {
        let mut known = locked(known);
        let known = known.get_mut(&target.host)?;
        if known.looked_up.elapsed() < LOOK_UP_EVERY {
            return None;
        }
        known.looked_up = Instant::now();
        known.address
    };
    let found = look_up(target).ok()?;
    let address = *found.first()?;
    if found.contains(&before) {
        return None;
    }
    locked(known).get_mut(&target.host)?.address = address;
    Some(address)
}

fn look_up(target: &Target) -> Result<Vec<IpAddr>, String> {
    let found = (target.host.as_str(), 0)
        .to_socket_addrs()
        .map_err(|error| format!("the name {} was not found: {error}", target.host))?;
    Ok(found.map(|found| found.ip()).collect())
}

/// The same where no other thread holds it.
fn tried<T>(shared: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match shared.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::config::Config;

    fn target(host: &str, port: u16) -> Target {
        let text = format!(
            "[store]\npath = \"w.db\"\n[[target]]\nname = \"a\"\nhost = \"{host}\"\nprobe = \"tcp\"\nport = {port}\n"
        );
        let mut config = Config::parse(&text).unwrap();
        config.targets.pop().unwrap()
    }

    /// All that one probe has to say.
    fn probed(target: &Target) -> Vec<News> {
        let (to, news) = mpsc::channel();
        Prober::new(None, to).begin(target, false).unwrap();
        news.into_iter().map(|(_, news)| news).collect()
    }

    #[test]
    fn a_connection_is_an_answer_and_a_refusal_is_none() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let open = target("127.0.0.1", listener.local_addr().unwrap().port());
        let news = probed(&open);
        assert!(
            matches!(
                news[..],
                [News::Seen(Sample { value: Some(_), .. }, None), News::Ended]
            ),
            "{news:?}"
        );
        drop(listener);
        let news = probed(&open);
        let [
            News::Seen(Sample { value: None, .. }, Some(why)),
            News::Ended,
        ] = &news[..]
        else {
            panic!("{news:?}");
        };
        assert_eq!(why, "the connection is refused");
    }

    #[test]
    fn a_name_is_looked_up_again_when_that_is_long_ago() {
        let target = target("localhost", 9);
        let own = look_up(&target).unwrap();
        let old = IpAddr::from([127, 9, 9, 9]);
        let known = |address, looked_up| {
            Mutex::new(BTreeMap::from([(
                "localhost".to_owned(),
                Known { address, looked_up },
            )]))
        };
        let long_ago = Instant::now().checked_sub(LOOK_UP_EVERY).unwrap();
        let moved = known(old, long_ago);
        assert_eq!(look_up_again(&moved, &target), own.first().copied());
        assert_eq!(address(&moved, &target).ok(), own.first().copied());
        // It was looked up just now.
        assert_eq!(look_up_again(&moved, &target), None);
        assert_eq!(look_up_again(&known(old, Instant::now()), &target), None);
        // An address that the name still has stays in use, whatever comes first.
        let last = *own.last().unwrap();
        assert_eq!(look_up_again(&known(last, long_ago), &target), None);
    }
}
