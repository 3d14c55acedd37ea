//! Which queueing disciplines, classifiers and congestion controls the kernel has, or could load: where one is set by
//! its name, the kernel loads the module by itself (`request_module("sch_%s")` in `net/sched/sch_api.c`,
//! `request_module("tcp_%s")` in `net/ipv4/tcp_cong.c`), so the list of loaded modules does not decide it.

use std::collections::BTreeSet;

use super::Source;

/// Files of /lib/modules/RELEASE that name modules: those in files of their own, and those in the kernel itself.
const LISTS: [&str; 2] = ["modules.dep", "modules.builtin"];

/// Disciplines of `net/sched` that take packets by a function of their own (`codel_enqueue`, `pie_qdisc_enqueue`):
/// other parts of the kernel name functions so too (`balloon_page_enqueue`).
const DISCIPLINES: [&str; 34] = [
    "bfifo",
    "blackhole",
    "cake",
    "cbs",
    "choke",
    "codel",
    "drr",
    "dualpi2",
    "etf",
    "ets",
    "fq",
    "fq_codel",
    "fq_pie",
    "gred",
    "hfsc",
    "hhf",
    "htb",
    "mqprio",
    "multiq",
    "netem",
    "pfifo",
    "pfifo_fast",
    "pie",
    "plug",
    "prio",
    "qfq",
    "red",
    "sfb",
    "sfq",
    "skbprio",
    "taprio",
    "tbf",
    "teql",
    "cake_mq",
];

/// What shapers need besides, by a function that each has (`net/sched`, `drivers/net/ifb.c`).
const PARTS: [(&str, &str); 6] = [
    ("ingress_init", "sch_ingress"),
    ("flow_classify", "cls_flow"),
    ("u32_classify", "cls_u32"),
    ("mall_classify", "cls_matchall"),
    ("tcf_mirred_act", "act_mirred"),
    ("ifb_xmit", "ifb"),
];

/// Disciplines that every kernel with packet scheduling has in itself (`pktsched_init`).
const ALWAYS: [&str; 6] = [
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "mq",
    "noqueue",
];

/// Modules of queueing disciplines (`sch_fq`), classifiers and actions (`cls_flow`, `act_mirred`), congestion controls
/// (`tcp_bbr`), and `ifb`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    names: BTreeSet<String>,
    /// Whether what is not among them is not to be had.
    complete: bool,
}

impl Modules {
    /// These and no others.
    pub fn only(names: &[&str]) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            complete: true,
        }
    }

    /// The modules of the running kernel.
    pub(crate) fn here(source: &Source) -> Self {
        let release = source
            .silent("/proc/sys/kernel/osrelease")
            .unwrap_or_default();
        let lists: Vec<_> = LISTS
            .iter()
            .filter_map(|list| source.silent(&format!("/lib/modules/{}/{list}", release.trim())))
            .collect();
        let mut names: BTreeSet<_> = lists.iter().flat_map(|list| listed(list)).collect();
        let mut complete = !lists.is_empty();
        // Those that were loaded from elsewhere.
        let loaded = source.silent("/proc/modules").unwrap_or_default();
        let loaded = loaded
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        names.extend(loaded.filter(|name| is_known(name)).map(str::to_owned));
        // The lists have what is in the kernel itself as well. Its symbols are ten megabytes, which a small router makes in a second.
        if !complete {
            let compiled = compiled(&source.silent("/proc/kallsyms").unwrap_or_default());
            // A container shows no files of modules, though the kernel may load them from where it was started.
            complete = !source.exists("/proc/modules") && compiled.contains("sch_pfifo");
            names.extend(compiled);
        }
        if complete {
            names.extend(ALWAYS.iter().map(|kind| format!("sch_{kind}")));
        }
        Self { names, complete }
    }

    /// Whether that one is there or could be loaded; `None` where it is not known.
    pub fn has(&self, module: &str) -> Option<bool> {
        if self.names.contains(module) {
            Some(true)
        } else {
            self.complete.then_some(false)
        }
    }

    /// Names of the queueing disciplines among them; `None` where there may be others.
    pub(crate) fn queues(&self) -> Option<Vec<String>> {
        let names = self.names.iter();
        let kinds = names.filter_map(|name| name.strip_prefix("sch_").map(str::to_owned));
        self.complete.then(|| kinds.collect())
    }
}

/// `kernel/net/sched/sch_fq.ko.xz: …`; the kernel's own name of a module has underscores.
fn listed(list: &str) -> impl Iterator<Item = String> {
    list.lines().filter_map(|line| {
        let file = line.split(':').next()?.rsplit('/').next()?;
        let name = file.split(".ko").next()?.replace('-', "_");
        is_known(&name).then_some(name)
    })
}

fn is_known(module: &str) -> bool {
    let known = ["sch_", "cls_", "act_", "tcp_"];
    module == "ifb" || known.iter().any(|kind| module.starts_with(kind))
}

/// What is in the kernel itself or loaded: disciplines by the function that takes a packet, other parts by one of theirs.
/// Congestion controls need no such search: the kernel lists those that it has.
fn compiled(symbols: &str) -> BTreeSet<String> {
    let functions = symbols.lines().filter_map(|line| {
        let name = line.split_whitespace().nth(2)?;
        if let Some((_, module)) = PARTS.iter().find(|(function, _)| *function == name) {
            return Some((*module).to_owned());
        }
        let kind = name.strip_suffix("_enqueue")?;
        let kind = kind.strip_suffix("_qdisc").unwrap_or(kind);
        DISCIPLINES.contains(&kind).then(|| format!("sch_{kind}"))
    });
    functions.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn below(files: &[(&str, &str)]) -> Modules {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Modules::here(&Source::below(root.path()))
    }

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.12.0-amd64\n");
    const SYMBOLS: (&str, &str) = (
        "/proc/kallsyms",
        "0000000000000000 t pfifo_enqueue\n0000000000000000 t codel_qdisc_enqueue\t[sch_codel]\n\
         0000000000000000 t __pfx_pfifo_enqueue\n0000000000000000 T balloon_page_enqueue\n\
         0000000000000000 t ifb_xmit\n0000000000000000 T u32_classify\n",
    );

    #[test]
    fn a_stock_kernel_could_load_what_its_lists_name() {
        let modules = below(&[
            RELEASE,
            (
                "/proc/modules",
                "sch_own 16384 1 - Live 0x0 (OE)\next4 1 1 - Live 0x0\n",
            ),
            (
                "/lib/modules/6.12.0-amd64/modules.dep",
                "kernel/net/ipv4/tcp_bbr.ko.xz:\nkernel/net/sched/sch_fq-x.ko.xz: kernel/lib/a.ko.xz\n\
                 kernel/drivers/net/ifb.ko.xz:\nkernel/net/sched/cls_flow.ko.xz:\n",
            ),
            (
                "/lib/modules/6.12.0-amd64/modules.builtin",
                "kernel/net/sched/sch_fq_codel.ko\n",
            ),
        ]);
        for there in [
            "tcp_bbr",
            "sch_fq_x",
            "sch_fq_codel",
            "ifb",
            "cls_flow",
            "sch_own",
        ] {
            assert_eq!(modules.has(there), Some(true), "{there}");
        }
        assert_eq!(modules.has("tcp_nonesuch"), Some(false));
        // Those that no list names, for they are in every kernel.
        assert_eq!(modules.has("sch_pfifo_fast"), Some(true));
        let kinds = modules.queues().unwrap();
        let named = kinds.iter().filter(|kind| !ALWAYS.contains(&kind.as_str()));
        assert_eq!(named.collect::<Vec<_>>(), ["fq_codel", "fq_x", "own"]);
    }

    #[test]
    fn a_kernel_without_modules_is_known_by_its_symbols_and_a_container_is_not() {
        let fixed = below(&[RELEASE, SYMBOLS]);
        assert_eq!(fixed.has("sch_codel"), Some(true));
        assert_eq!(fixed.has("sch_mq"), Some(true));
        assert_eq!(fixed.has("sch_fq"), Some(false));
        let parts = ["ifb", "cls_u32", "cls_flow"].map(|part| fixed.has(part));
        assert_eq!(parts, [Some(true), Some(true), Some(false)]);
        // What else is called so is no queue.
        assert_eq!(
            fixed.queues().unwrap(),
            [
                "bfifo",
                "codel",
                "mq",
                "noqueue",
                "pfifo",
                "pfifo_fast",
                "pfifo_head_drop"
            ]
        );
        let container = below(&[RELEASE, SYMBOLS, ("/proc/modules", "")]);
        assert_eq!(container.has("sch_codel"), Some(true));
        assert_eq!(container.has("sch_fq"), None);
        assert_eq!(container.queues(), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC|\n|/|:|\\.ko|_enqueue){0,200}") {
            let _ = (listed(&text).count(), compiled(&text));
        }
    }
}
