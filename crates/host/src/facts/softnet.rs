//! How each processor fared with received packets.

use plumb_model::results::host::SoftnetCpu;

use super::Source;

/// /proc/net/softnet_stat; of the whole machine, whatever the namespace.
pub fn softnet(source: &mut Source) -> Vec<SoftnetCpu> {
    let text = source.text("/proc/thread-self/net/softnet_stat");
    parse(&text.unwrap_or_default())
}

/// A line a processor, hexadecimal (`softnet_seq_show`, `net/core/net-procfs.c`).
fn parse(text: &str) -> Vec<SoftnetCpu> {
    let line = |(place, line): (usize, &str)| {
        let words: Vec<u32> = line
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16).ok())
            .collect::<Option<_>>()?;
        let at = |place: usize| words.get(place).copied();
        Some(SoftnetCpu {
            // The number of the processor is the 13th, since Linux 5.10; before, lines are in order.
            cpu: at(12).unwrap_or(place as u32),
            processed: at(0)?,
            dropped: at(1)?,
            squeezed: at(2)?,
            steered: at(9).unwrap_or_default(),
            flow_limited: at(10).unwrap_or_default(),
            backlog_packets: at(11).unwrap_or_default(),
        })
    };
    text.lines().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn old_and_new_lines_are_read() {
        let new =
            "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 00000005 00000007 0 0\n";
        let read = parse(new);
        let expected = SoftnetCpu {
            cpu: 7,
            processed: 10,
            dropped: 1,
            squeezed: 2,
            steered: 3,
            flow_limited: 4,
            backlog_packets: 5,
        };
        assert_eq!(read, [expected]);
        let old = parse("0000000a 00000001 00000002\n0000000b 00000000 00000000\n");
        assert_eq!(
            old.iter().map(|c| (c.cpu, c.processed)).collect::<Vec<_>>(),
            [(0, 10), (1, 11)]
        );
        assert!(parse("zz yy xx\n").is_empty());
    }

    proptest! {
        #[test]
        fn never_panics(text in "([0-9a-f]{0,9} ?){0,20}\n?\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
