//! What the hypervisor took of this machine's processors.

/// Ticks that it takes to say something: half a second of one processor (USER_HZ is 100 on every Linux).
const LEAST_TICKS: u64 = 50;

/// A machine that hardly ran has lost too little to be measured by: the kernel rounds to ticks.
const LEAST_OF_ALL_RATIO: f64 = 0.02;

/// Time of all processors together since the machine started, in USER_HZ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    all: u64,
    /// Of them, in which no program wanted to run.
    idle: u64,
    /// Of them, in which a program wanted to run and the hypervisor gave the processor to others.
    stolen: u64,
}

impl ProcessorTime {
    /// Until now; nothing where the kernel does not say.
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").ok();
        stat.and_then(|stat| Self::parse(&stat)).unwrap_or_default()
    }

    /// The first line: `cpu  user nice system idle iowait irq softirq steal …` (proc_stat(5)); guests are in `user` already.
    fn parse(stat: &str) -> Option<Self> {
        let words = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks = words.split_whitespace().take(8);
        let ticks: Vec<u64> = ticks.map_while(|word| word.parse().ok()).collect();
        let [_, _, _, idle, waits_for_disk, _, _, stolen] = ticks[..] else {
            return None;
        };
        Some(Self {
            all: ticks
                .iter()
                .fold(0, |all, ticks| all.saturating_add(*ticks)),
            idle: idle.saturating_add(waits_for_disk),
            stolen,
        })
    }

    /// Share of the time since `earlier`, in which programs wanted to run, that the hypervisor gave to others; zero where
    /// that was too short, or too little, to be counted.
    pub(crate) fn stolen_ratio_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        let wanted = all.saturating_sub(self.idle.saturating_sub(earlier.idle));
        let stolen = self.stolen.saturating_sub(earlier.stolen) as f64;
        let counts = all >= LEAST_TICKS && wanted > 0 && stolen >= LEAST_OF_ALL_RATIO * all as f64;
        if counts { stolen / wanted as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_stolen_is_a_share_of_what_was_wanted() {
        let stat = "cpu  100 20 30 800 40 1 9 50 7 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let begun = ProcessorTime::parse(stat).unwrap();
        let expected = ProcessorTime {
            all: 1050,
            idle: 840,
            stolen: 50,
        };
        assert_eq!(begun, expected);
        let after = |all: u64, idle: u64, stolen: u64| {
            let now = ProcessorTime {
                all: begun.all + all,
                idle: begun.idle + idle,
                stolen: begun.stolen + stolen,
            };
            now.stolen_ratio_since(begun)
        };
        assert_eq!(after(1000, 600, 100), 0.25);
        assert_eq!(after(1000, 600, 0), 0.0);
        assert_eq!(after(1000, 980, 15), 0.0, "a machine that hardly ran");
        assert_eq!(after(40, 0, 40), 0.0, "too short");
        assert_eq!(begun.stolen_ratio_since(begun), 0.0);
        for other in ["", "intr 1 2 3", "cpu  1 2 3", "cpu  a b c d e f g h"] {
            assert_eq!(ProcessorTime::parse(other), None, "{other}");
        }
    }
}
