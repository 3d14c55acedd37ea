//! `--pattern trace=FILE`: departures from a file, a line each: seconds since the one before, and bytes.

use std::path::Path;

use anyhow::{Context as _, bail};
use plumb_wire::native::control::flow::udp::{MAX_PAYLOAD_BYTES, MAX_TRACE_PACKETS, Pattern};
use plumb_wire::native::datagram::HEADER_BYTES;

pub(super) fn read(file: &Path) -> anyhow::Result<Pattern> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the trace {}", file.display()))?;
    let mut packets = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        let packet = packet(line);
        packets.push(packet.with_context(|| format!("{}, line {number}", file.display()))?);
    }
    if packets.is_empty() {
        bail!("{} has no departures", file.display());
    }
    if packets.len() > MAX_TRACE_PACKETS {
        bail!(
            "{} has {} departures, where {MAX_TRACE_PACKETS} are possible: a trace is repeated, so a part of it may do",
            file.display(),
            packets.len()
        );
    }
    if packets.iter().all(|(interval_s, _)| *interval_s == 0.0) {
        bail!(
            "{} takes no time: one departure must come some time after the one before",
            file.display()
        );
    }
    Ok(Pattern::Trace { packets })
}

fn packet(line: &str) -> anyhow::Result<(f64, u16)> {
    let mut words = line.split_whitespace();
    let (Some(interval), Some(size), None) = (words.next(), words.next(), words.next()) else {
        bail!("two numbers are needed, seconds since the departure before and bytes");
    };
    let interval_s = interval
        .parse()
        .ok()
        .filter(|s: &f64| s.is_finite() && *s >= 0.0);
    let interval_s = interval_s.with_context(|| {
        format!("'{interval}' are not seconds since the departure before, 0 or more")
    })?;
    let possible = HEADER_BYTES as u16..=MAX_PAYLOAD_BYTES;
    let size = size
        .parse()
        .ok()
        .filter(|size| possible.contains(size))
        .with_context(|| {
            format!(
                "'{size}' are not bytes from {} (what plumb writes into each datagram) to {}",
                possible.start(),
                possible.end()
            )
        })?;
    Ok((interval_s, size))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What is said of a trace, the name of its file left out.
    fn fault(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let error = format!("{:#}", read(file.path()).unwrap_err());
        let name = file.path().display().to_string();
        assert!(error.contains(&name), "{error}");
        error.replace(&name, "FILE")
    }

    #[test]
    fn a_fault_is_told_with_its_file_and_line() {
        for (text, words) in [
            ("", "FILE has no departures"),
            ("# nothing\n", "FILE has no departures"),
            ("0 100\n", "FILE takes no time"),
            (
                "0.1 100\n\n-0.1 100\n",
                "FILE, line 3: '-0.1' are not seconds",
            ),
            ("nan 100\n", "FILE, line 1: 'nan' are not seconds"),
            ("0.1 31\n", "FILE, line 1: '31' are not bytes from 32"),
            ("0.1 65508\n", "to 65507"),
            ("0.1 100 3\n", "FILE, line 1: two numbers"),
            ("0.1 a\n", "FILE, line 1: 'a' are not bytes"),
        ] {
            let error = fault(text);
            assert!(error.contains(words), "{text:?}: {error}");
        }
        let long = fault(&"0.1 100\n".repeat(9000));
        assert!(long.contains("9000 departures, where 8192"), "{long}");
    }
}
