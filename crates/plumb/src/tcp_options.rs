//! The options of the TCP connections that carry the load.

use std::ops::RangeInclusive;

use clap::Args;
use plumb_model::units::{BitRate, ByteCount, ParseUnitError};
use plumb_wire::native::control::flow::{
    DSCP, MSS_BYTES, PACING_BPS, TcpFlow, WINDOW_BYTES, WRITE_BYTES,
};

use crate::quantity::{self, rate};

/// What the connections are to be; what is not given is left to the kernels.
#[derive(Args)]
#[command(next_help_heading = "TCP")]
pub(crate) struct TcpOptions {
    /// Send and receive buffers of both ends (SO_SNDBUF, SO_RCVBUF); 64k is 65,536 bytes [default: the kernel lets them grow]
    #[arg(long, value_name = "SIZE", value_parser = window)]
    window: Option<u32>,
    /// Largest segment, both directions (TCP_MAXSEG): 88 to 32767 bytes
    #[arg(long, alias = "set-mss", value_name = "BYTES", value_parser = clap::value_parser!(u16).range(*MSS_BYTES.start() as i64..=*MSS_BYTES.end() as i64))]
    mss: Option<u16>,
    /// The most that each stream sends, such as 50mbit, spread evenly by the kernel (SO_MAX_PACING_RATE)
    #[arg(long, value_name = "RATE", value_parser = pacing, conflicts_with_all = ["mptcp", "background"])]
    pacing: Option<u64>,
    /// DSCP of every packet of the load: 0 to 63, or a name such as CS1, AF41, EF, LE
    #[arg(long, value_name = "DSCP", value_parser = dscp)]
    dscp: Option<u8>,
    /// Bytes handed to the kernel at once [default: what goes out in a millisecond, 128 KiB to 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = write_size)]
    write_size: Option<u32>,
    /// Send from memory without a copy (sendfile), where the device can gather; no application does so
    #[arg(long, alias = "zerocopy")]
    zero_copy: bool,
    /// Discard what is received without a copy (MSG_TRUNC); no application does so
    #[arg(long)]
    discard: bool,
    /// Send small segments at once (TCP_NODELAY)
    #[arg(long)]
    no_delay: bool,
    /// Send the first data in the SYN (RFC 7413); the result shows whether it was
    #[arg(long)]
    fast_open: bool,
    /// Multipath TCP (RFC 8684); the result shows whether it fell back
    ///
    /// Rates are of all subflows; what TCP reports of itself is of the first.
    #[arg(long)]
    mptcp: bool,
    /// Expect ECN: the kernels decide (net.ipv4.tcp_ecn), the result shows whether they agreed on it
    #[arg(long)]
    ecn: bool,
    /// Encrypt the streams (TLS 1.3)
    ///
    /// What is counted is payload, and the cost of the cipher shows as processor use. The programs encrypt, not their
    /// kernels (no kTLS).
    #[arg(long, conflicts_with_all = ["zero_copy", "discard"])]
    tls: bool,
}

impl TcpOptions {
    /// A stream with these options.
    pub(crate) fn flow(&self) -> TcpFlow {
        TcpFlow {
            cc: None,
            dscp: self.dscp,
            window_bytes: self.window,
            mss_bytes: self.mss,
            pacing_bps: self.pacing,
            write_bytes: self.write_size,
            zero_copy: self.zero_copy,
            discard: self.discard,
            far_disk: false,
            no_delay: self.no_delay,
            fast_open: self.fast_open,
            background: false,
            mptcp: self.mptcp,
            ecn: self.ecn,
            tls: self.tls,
            probed: None,
        }
    }
}

fn window(text: &str) -> Result<u32, String> {
    within(quantity::window(text)?, &WINDOW_BYTES)
}

fn write_size(text: &str) -> Result<u32, String> {
    let size = text
        .parse()
        .map_err(|error: ParseUnitError| error.to_string())?;
    within(size, &WRITE_BYTES)
}

fn within(size: ByteCount, allowed: &RangeInclusive<u64>) -> Result<u32, String> {
    let bytes = size.bytes();
    u32::try_from(bytes)
        .ok()
        .filter(|_| allowed.contains(&bytes))
        .ok_or_else(|| format!("it can be {} to {} bytes", allowed.start(), allowed.end()))
}

fn pacing(text: &str) -> Result<u64, String> {
    pacing_bps(rate(text)?)
}

/// A rate at which the kernel can pace, in bits a second.
pub(crate) fn pacing_bps(rate: BitRate) -> Result<u64, String> {
    let rate = rate.bps();
    match PACING_BPS.contains(&rate) {
        true => Ok(rate),
        false if rate < *PACING_BPS.start() => Err(format!(
            "{rate} bit/s is less than the kernel paces: write 1kbit or more, such as 50mbit"
        )),
        false => Err("no interface is that fast: it can be 1600gbit at most".to_owned()),
    }
}

/// A DSCP by number or by its name at IANA (dscp-registry): class selectors CS0 to CS7 (RFC 2474),
/// assured forwarding AFxy (RFC 2597), EF (RFC 3246), VA (RFC 5865), LE (RFC 8622).
fn dscp(text: &str) -> Result<u8, String> {
    let digit = |byte: u8, allowed: RangeInclusive<u8>| {
        let digit = byte.wrapping_sub(b'0');
        allowed.contains(&digit).then_some(digit)
    };
    let named = match text.to_ascii_uppercase().as_bytes() {
        b"EF" => Some(46),
        b"VA" => Some(44),
        b"LE" => Some(1),
        b"DF" => Some(0),
        [b'C', b'S', class] => digit(*class, 0..=7).map(|class| class << 3),
        [b'A', b'F', class, drop] => digit(*class, 1..=4)
            .zip(digit(*drop, 1..=3))
            .map(|(class, drop)| class << 3 | drop << 1),
        _ => text
            .parse()
            .ok()
            .filter(|value| DSCP.contains(&u64::from(*value))),
    };
    named.ok_or_else(|| {
        "it is a number from 0 to 63, or CS0 to CS7, AF11 to AF43, EF, VA, LE".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscps_by_number_and_name() {
        for (text, value) in [
            ("0", 0),
            ("63", 63),
            ("cs1", 8),
            ("CS7", 56),
            ("AF11", 10),
            ("af41", 34),
            ("AF43", 38),
            ("EF", 46),
            ("VA", 44),
            ("le", 1),
        ] {
            assert_eq!(dscp(text), Ok(value), "{text}");
        }
        for text in ["64", "-1", "CS8", "AF51", "AF14", "AF4", "", "EFF"] {
            assert!(dscp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_out_of_range_say_the_range() {
        assert_eq!((window("2MiB"), window("64k")), (Ok(2 << 20), Ok(65_536)));
        assert!(window("2GB").is_err_and(|e| e.contains("1073741824")));
        assert_eq!(write_size("1B"), Ok(1));
        assert!(write_size("5MiB").is_err());
        assert_eq!(pacing("50mbit"), Ok(50_000_000));
        assert!(pacing("2000gbit").is_err_and(|e| e.contains("no interface")));
        assert!(pacing("10bit").is_err());
    }
}
