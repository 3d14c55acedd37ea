//! How fast one core encrypts: the ciphers of TLS that plumb itself uses, and of those that ssh offers
//! the ones that the same library (ring) has.
//!
//! What ssh itself uses is OpenSSL, which is not timed: its AES-GCM is as fast, its ChaCha20-Poly1305 up to
//! three times as fast where the processor has AVX-512 (seen with OpenSSL 3.0).

use std::process::{Command, Stdio};
use std::time::Duration;

use plumb_model::results::host::{CipherResult, CipherSpeed, CipherUse};
use plumb_net::clock::ThreadClock;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, chacha20_poly1305_openssh as openssh};

/// The largest record of TLS (RFC 8446 section 5.1): what a bulk transfer is made of.
const BLOCK_BYTES: usize = 16 * 1024;

/// Processor time for which each direction of each cipher is timed; the best of as many slices counts,
/// because in others something else had a share of the core.
const SLICE: Duration = Duration::from_millis(8);
const SLICES: usize = 5;

/// Blocks between two looks at the clock, which takes a good part of the time of one.
const BATCH: u64 = 16;

/// A cipher's name as its program has it, and the algorithm.
type Named = (&'static str, &'static str, Algorithm);

#[derive(Clone, Copy)]
enum Algorithm {
    Aead(&'static aead::Algorithm),
    OpenSsh,
}

/// The suites of TLS 1.3 that plumb offers, in its order.
fn tls() -> Vec<(String, Option<(&'static str, Algorithm)>)> {
    rustls::crypto::ring::default_provider()
        .cipher_suites
        .iter()
        .filter_map(|suite| suite.tls13())
        .map(|suite| format!("{:?}", suite.common.suite))
        .map(|name| {
            let algorithm = known(&TLS, &name);
            (name, algorithm)
        })
        .collect()
}

const TLS: [Named; 3] = [
    (
        "TLS13_AES_256_GCM_SHA384",
        "AES-256-GCM",
        Algorithm::Aead(&aead::AES_256_GCM),
    ),
    (
        "TLS13_AES_128_GCM_SHA256",
        "AES-128-GCM",
        Algorithm::Aead(&aead::AES_128_GCM),
    ),
    (
        "TLS13_CHACHA20_POLY1305_SHA256",
        "ChaCha20-Poly1305",
        Algorithm::Aead(&aead::CHACHA20_POLY1305),
    ),
];

const SSH: [Named; 3] = [
    (
        "chacha20-poly1305@openssh.com",
        "ChaCha20-Poly1305, OpenSSH's",
        Algorithm::OpenSsh,
    ),
    (
        "aes128-gcm@openssh.com",
        "AES-128-GCM",
        Algorithm::Aead(&aead::AES_128_GCM),
    ),
    (
        "aes256-gcm@openssh.com",
        "AES-256-GCM",
        Algorithm::Aead(&aead::AES_256_GCM),
    ),
];

fn known(table: &[Named], name: &str) -> Option<(&'static str, Algorithm)> {
    let found = table.iter().find(|(own, _, _)| *own == name);
    found.map(|(_, words, algorithm)| (*words, *algorithm))
}

/// Times everything; `step` is called with the name of each cipher before it is timed. Takes less than a second.
pub fn measure(rate_bps: Option<f64>, step: &dyn Fn(&str)) -> CipherResult {
    let offered = ssh_offers();
    let ssh = offered.as_ref().map(|(version, _)| version.clone());
    let ssh_ciphers = offered.map_or_else(Vec::new, |(_, ciphers)| ciphers);
    let ssh_ciphers = ssh_ciphers.into_iter().map(|name| {
        let algorithm = known(&SSH, &name);
        (name, algorithm)
    });
    let all = tls()
        .into_iter()
        .map(|(name, algorithm)| (CipherUse::Tls, name, algorithm))
        .chain(ssh_ciphers.map(|(name, algorithm)| (CipherUse::Ssh, name, algorithm)));
    let ciphers = all
        .map(|(used_by, name, algorithm)| {
            step(&name);
            let speeds = algorithm.and_then(|(_, algorithm)| speeds(algorithm));
            CipherSpeed {
                used_by,
                algorithm: algorithm.map(|(words, _)| words.to_owned()),
                seal_bps: speeds.map(|(seal, _)| seal),
                open_bps: speeds.map(|(_, open)| open),
                note: speeds
                    .is_none()
                    .then(|| "not timed: the library has authenticated ciphers only".to_owned()),
                name,
            }
        })
        .collect();
    CipherResult {
        block_bytes: BLOCK_BYTES as u64,
        ciphers,
        ssh,
        aes_instructions: aes_instructions(),
        rate_bps,
    }
}

/// Bits a second of encrypting, and of decrypting; `None` when the library refuses its own output.
fn speeds(algorithm: Algorithm) -> Option<(f64, f64)> {
    match algorithm {
        Algorithm::Aead(algorithm) => {
            let key = vec![7; algorithm.key_len()];
            let key = LessSafeKey::new(UnboundKey::new(algorithm, &key).ok()?);
            // A nonce must never be used twice with a key; this key encrypts nothing that matters.
            let nonce = || Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
            let mut block = vec![0; BLOCK_BYTES];
            let seal = fastest(&mut || {
                key.seal_in_place_separate_tag(nonce(), Aad::empty(), &mut block)
                    .is_ok()
            })?;
            let mut sealed = vec![0; BLOCK_BYTES];
            let tag = key
                .seal_in_place_separate_tag(nonce(), Aad::empty(), &mut sealed)
                .ok()?;
            sealed.extend(tag.as_ref());
            let mut work = sealed.clone();
            let open = fastest(&mut || {
                // It is decrypted in place, so each time begins with a copy, as each packet does.
                work.copy_from_slice(&sealed);
                key.open_in_place(nonce(), Aad::empty(), &mut work).is_ok()
            })?;
            Some((seal, open))
        }
        Algorithm::OpenSsh => {
            let key = [7; openssh::KEY_LEN];
            let sealing = openssh::SealingKey::new(&key);
            let opening = openssh::OpeningKey::new(&key);
            let mut block = vec![0; BLOCK_BYTES];
            let mut tag = [0; openssh::TAG_LEN];
            let seal = fastest(&mut || {
                sealing.seal_in_place(3, &mut block, &mut tag);
                true
            })?;
            let mut sealed = vec![0; BLOCK_BYTES];
            sealing.seal_in_place(3, &mut sealed, &mut tag);
            let mut work = sealed.clone();
            let open = fastest(&mut || {
                work.copy_from_slice(&sealed);
                opening.open_in_place(3, &mut work, &tag).is_ok()
            })?;
            Some((seal, open))
        }
    }
}

/// The best rate of several slices, in bits a second of processor time, so that other programs on
/// this machine do not count; `None` when the work fails, or there is no such clock.
fn fastest(work: &mut dyn FnMut() -> bool) -> Option<f64> {
    let clock = ThreadClock::of_this_thread().ok()?;
    let mut best: f64 = 0.0;
    for _ in 0..SLICES {
        let begun = clock.read()?;
        let mut blocks = 0_u64;
        let used = loop {
            for _ in 0..BATCH {
                if !work() {
                    return None;
                }
            }
            blocks += BATCH;
            let used = clock.read()?.saturating_sub(begun);
            if used >= SLICE {
                break used;
            }
        };
        let bits = blocks as f64 * BLOCK_BYTES as f64 * 8.0;
        best = best.max(bits / used.as_secs_f64());
    }
    Some(best)
}

/// The version of ssh, and the ciphers that it would offer to a host of which it knows nothing. It opens no connection:
/// `-G` only prints its settings.
fn ssh_offers() -> Option<(String, Vec<String>)> {
    let run = |arguments: &[&str]| {
        Command::new("ssh")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()
    };
    // The version goes to standard error.
    let version = String::from_utf8_lossy(&run(&["-V"])?.stderr)
        .trim()
        .to_owned();
    let settings = run(&["-T", "-G", "plumb.invalid"])?;
    let ciphers = offered(&String::from_utf8_lossy(&settings.stdout))?;
    Some((version, ciphers))
}

/// The list in `ciphers a,b,c`.
fn offered(settings: &str) -> Option<Vec<String>> {
    let list = settings
        .lines()
        .find_map(|line| line.strip_prefix("ciphers "))?;
    Some(list.trim().split(',').map(str::to_owned).collect())
}

/// Whether the processor has instructions for AES, as /proc/cpuinfo says.
fn aes_instructions() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"))?;
    Some(line.split_whitespace().any(|flag| flag == "aes"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_suite_of_tls_has_a_speed() {
        let result = measure(None, &|_| {});
        let tls: Vec<_> = result
            .ciphers
            .iter()
            .filter(|c| c.used_by == CipherUse::Tls)
            .collect();
        assert_eq!(tls.len(), 3);
        for cipher in &tls {
            assert!(cipher.seal_bps.is_some_and(|bps| bps > 1e6), "{cipher:?}");
            assert!(cipher.open_bps.is_some_and(|bps| bps > 1e6), "{cipher:?}");
        }
    }

    #[test]
    fn openssh_s_cipher_opens_what_it_sealed() {
        let (seal, open) = speeds(Algorithm::OpenSsh).unwrap();
        assert!(seal > 1e6 && open > 1e6);
    }

    #[test]
    fn the_offer_of_ssh_is_read() {
        let text = "user root\nciphers chacha20-poly1305@openssh.com,aes128-ctr\nmacs x\n";
        assert_eq!(
            offered(text).unwrap(),
            ["chacha20-poly1305@openssh.com", "aes128-ctr"]
        );
        assert_eq!(offered("user root\n"), None);
        assert!(known(&SSH, "aes128-ctr").is_none());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = offered(&text);
        }
    }
}
