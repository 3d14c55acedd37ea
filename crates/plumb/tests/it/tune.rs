//! `plumb tune` in a laboratory's node: it plans, changes, keeps a journal, respects what others change, and
//! puts everything back.

use std::process::{Command, Output};

use crate::common::live::alone;
use crate::common::measured::even_disturbed;
use crate::common::network::scenario;
use crate::common::{PLUMB, in_lab, plumb, stderr, stdout};
use plumb_lab::disturbance::Disturbance;
use plumb_lab::scenario::Scenario;
use plumb_model::finding::{Actor, Cause, Finding, Place, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::tune::TuneDecision;
use plumb_model::run::Run;
use plumb_model::tune::{TunePlan, Worth};

/// Runs a script on the client of the long, fat path, whose send buffer is pinned small.
fn on_client(script: &str) -> Output {
    in_network("long-fat-sndbuf", script)
}

fn in_network(network: &str, script: &str) -> Output {
    let script = format!("set -eu\n{script}");
    in_lab(network, &[], &["sh", "-c", &script])
}

fn says(script: &str) -> String {
    said(&on_client(script))
}

/// The same with a line of a tenth of the rate, for loads of which only that they go on matters.
fn says_on_a_slow_line(script: &str) -> String {
    let text = Scenario::text("long-fat-sndbuf").unwrap();
    let file = scenario(&text.replace("1gbit", "100mbit"));
    said(&in_network(file.path().to_str().unwrap(), script))
}

fn said(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}{}",
        stdout(output),
        stderr(output)
    );
    stdout(output)
}

/// What every script begins with: all that a plan may change, and where it is kept.
const HEAD: &str = r#"
    # A number of a process is not unique here: every laboratory counts its own.
    before=$(mktemp -p /dev/shm) said=$(mktemp -p /dev/shm)
    trap 'rm -f "$before" "$said"' EXIT
    state() { sysctl -a -r '^net\.(ipv4|core)' 2>/dev/null | grep -v -e secret -e key -e '^net.ipv4.conf' -e '^net.ipv4.neigh'; find /etc/sysctl.d /var/lib/plumb -type f ! -name lock -exec md5sum {} +; }
    path='--rate 1gbit --rtt 150ms'
    # A command after `!` never ends a script, whatever becomes of it.
    refused() { if "$@" > /dev/null 2> $said < /dev/null; then echo "NOT REFUSED: $*"; exit 9; fi; cat $said; }
"#;

#[test]
fn applied_seen_and_undone_byte_for_byte() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            state > $before
            echo 'net/ipv4/tcp_wmem = 1 2 3' > /etc/sysctl.d/99-other.conf
            plumb tune apply $path --yes
            rm /etc/sysctl.d/99-other.conf
            sysctl -n net.ipv4.tcp_wmem
            cat /etc/sysctl.d/90-plumb-tune.conf
            plumb tune status --json
            plumb tune apply $path --yes
            refused plumb tune verify server --yes
            # It belongs to the machine, and is refused by name.
            plumb tune plan --rate 10gbit --rtt 100ms --loss 1%
            plumb tune undo
            state | diff $before - && echo restored
            plumb tune undo
            plumb tune status
            "#
        ));
        for words in [
            "4096\t16384\t33554432",
            "net.ipv4.tcp_wmem = 4096 16384 33554432",
            "99-other.conf sets net.ipv4.tcp_wmem after it, and wins",
            r#""complete":true"#,
            r#""standing":"as-set""#,
            "restored\n",
            "are in force: plumb tune status.\n",
            "would be part of every measurement",
            "There is nothing to undo.",
            "Nothing is applied.",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    });
}

/// What was to end by itself or at the next boot stays when it is applied for good; what no transfer shows is added
/// to what was proved; undoing puts back what was before all of it.
#[test]
fn applied_on_top_of_what_is_applied() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            state > $before
            file=/etc/sysctl.d/90-plumb-tune.conf
            plumb tune apply $path --for 12s --except tcp_slow_start_after_idle --yes > /dev/null
            refused plumb tune apply $path --for 1m --yes
            plumb tune apply $path --yes
            grep ' = ' $file
            sleep 13
            plumb tune status
            plumb tune undo > /dev/null
            state | diff $before - && echo restored
            plumb tune apply $path --runtime --yes > /dev/null
            ls /etc/sysctl.d
            plumb tune apply $path --yes
            grep ' = ' $file
            echo 'net.ipv4.tcp_sack = 1' >> $file
            plumb tune status
            plumb tune undo
            rm $file
            state | diff $before - && echo restored
            "#
        ));
        for words in [
            "applied, and would be undone with these: nothing was changed; undo them first",
            "they stay, and the variables among them come back at boot",
            "would be undone by themselves at",
            "would last until the next boot",
            "tcp_wmem: 4096 16384 524288 -> 4096 16384 33554432: as set",
            "90-plumb-tune.conf: as set",
            "changed by another program or user since; of plumb's it still sets at boot: net.ipv4.tcp_wmem = 4096 16384 33554432; net",
            "take these lines away, or the file:\n  net.ipv4.tcp_wmem = 4096 16384 33554432\n  net",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let line = "\nnet.ipv4.tcp_wmem = 4096 16384 33554432\n";
        assert_eq!(text.matches(line).count(), 2, "{text}");
        assert_eq!(text.matches("restored\n").count(), 2, "{text}");
    });
}

#[test]
fn what_others_change_is_theirs() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            plumb tune apply $path --runtime --yes > /dev/null
            ls /etc/sysctl.d
            sysctl -qw net.ipv4.tcp_wmem='4096 16384 999999'
            plumb tune status
            plumb tune undo
            sysctl -n net.ipv4.tcp_wmem
            "#
        ));
        for words in [
            "changed by another program or user since",
            "Left alone",
            "4096\t16384\t999999\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("90-plumb"), "{text}");
    });
}

#[test]
fn it_reverts_by_itself_though_plumb_is_killed() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            # The whole group that a terminal would hang up, and whoever asked for it.
            setsid sh -c "plumb tune apply $path --for 2s --yes > /dev/null; kill -HUP 0; kill -KILL 0" || true
            sysctl -n net.ipv4.tcp_wmem
            for i in $(seq 100); do plumb tune status | grep -q 'Nothing is applied' && break; sleep 0.1; done
            sysctl -n net.ipv4.tcp_wmem
            plumb tune status
            "#
        ));
        let values: Vec<_> = text.lines().filter(|l| l.starts_with("4096")).collect();
        assert_eq!(
            values,
            ["4096\t16384\t33554432", "4096\t16384\t524288"],
            "{text}"
        );
        assert!(text.ends_with("Nothing is applied.\n"), "{text}");
    });
}

/// What was being tried ends with the process that tried it, though nothing can be heeded any more.
#[test]
fn verify_that_is_killed_leaves_nothing() {
    alone(|| {
        let text = says_on_a_slow_line(&format!(
            r#"{HEAD}
            state > $before
            plumb tune verify server $path --duration 2s --yes > /dev/null 2> $said & verify=$!
            for i in $(seq 200); do plumb tune status | grep -q 'Applied ' && break; sleep 0.1; done
            plumb tune status | head -n 2
            kill -KILL $verify
            for i in $(seq 50); do plumb tune status | grep -q 'Nothing is applied' && break; sleep 0.1; done
            plumb tune status
            state | diff $before - && echo restored
            cat $said
            "#
        ));
        for words in [
            "To be undone by itself at",
            "Nothing is applied.\n",
            "restored\n",
            "it ends at 300 GB (--budget)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    });
}

/// Somebody undoes what is being tried, or has a plan come on top of it: the runs mean nothing then, and what is
/// theirs stays.
#[test]
fn verify_leaves_alone_what_somebody_else_did_meanwhile() {
    alone(|| {
        for (theirs, left) in [
            ("plumb tune undo", "Nothing is applied."),
            ("plumb tune apply $path --yes", "Applied "),
        ] {
            let text = says_on_a_slow_line(&format!(
                r#"{HEAD}
                plumb tune verify server $path --duration 2s --yes > /dev/null 2> $said & verify=$!
                for i in $(seq 200); do plumb tune status | grep -q 'Applied ' && break; sleep 0.1; done
                {theirs} > /dev/null 2>&1 && echo did
                if wait $verify; then echo verified; fi
                cat $said
                plumb tune status | head -n 1
                plumb tune undo > /dev/null 2>&1 || true
                "#
            ));
            let says = "another program changed this machine's settings meanwhile";
            for words in ["did\n", says, left] {
                assert!(text.contains(words), "{theirs}: {words}: {text}");
            }
            assert!(!text.contains("verified"), "{text}");
        }
    });
}

#[test]
fn bad_input_changes_nothing() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            state > $before
            refused plumb tune apply $path
            refused plumb tune apply --yes
            mkdir -p /var/lib/plumb/tune
            refused flock /var/lib/plumb/tune/lock plumb tune apply $path --yes
            state | diff $before - && echo untouched
            echo '{{"schema": "plumb.tune-journal/1", "id' > /var/lib/plumb/tune/journal.json
            refused plumb tune apply $path --yes
            refused plumb tune undo
            refused plumb tune status
            rm /var/lib/plumb/tune/journal.json
            state | diff $before - && echo untouched
            # Nobody may write it: nothing is begun.
            mount -o bind,ro /proc/sys /proc/sys
            refused plumb tune apply $path --yes
            umount /proc/sys
            state | diff $before - && echo untouched
            "#
        ));
        for words in [
            "add --yes",
            "which path?",
            "another plumb",
            "is damaged",
            "could not be put back afterwards",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(text.matches("untouched\n").count(), 3, "{text}");
        assert!(!text.contains("panicked"), "{text}");
    });
}

/// An interface of the node itself, with a plain queue that is too short for the path.
const FAR: &str = r#"
    ip link add far type veth peer name raf
    ip addr add 198.51.100.1/24 dev far
    ip link set far txqueuelen 100
    ip link set raf up; ip link set far up
    ip route add default dev far
    tc qdisc add dev far root handle 1: pfifo_fast
    qlen() { cat /sys/class/net/far/tx_queue_len; }
"#;

#[test]
fn an_interface_is_set_and_put_back_and_may_vanish() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}{FAR}
            state > $before
            plumb tune apply $path --yes
            echo "now $(qlen)"
            plumb tune status
            plumb tune undo
            echo "then $(qlen)"
            plumb tune apply $path --except txqueuelen --except tcp_wmem --except tcp_slow_start_after_idle --yes
            refused plumb tune apply $path --except tcp_wmen --yes
            plumb tune apply $path --runtime --yes > /dev/null
            ip link del far
            plumb tune status
            plumb tune undo
            state | diff $before - && echo restored
            "#
        ));
        for words in [
            "txqueuelen: 100 -> 1000",
            "    At boot: gone, for plumb's drop-in file has kernel variables alone.",
            "not brought back at boot: txqueuelen. A file such as /etc/udev/rules.d/90-plumb-tune.rules",
            r#"KERNEL=="far", RUN+="/bin/sh -c 'ip link set dev far txqueuelen 1000'""#,
            "now 1000\n",
            "the length of the transmit queue of far: 100 -> 1000: as set, until the next boot\n",
            "then 100\n",
            "Nothing needs to change",
            "no change of 'tcp_wmen' to leave out; it has: txqueuelen, net.ipv4.tcp_wmem,",
            "far: 100 -> 1000: gone with its interface",
            "Gone with its interface: the length of the transmit queue of far",
            "restored\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    });
}

#[test]
fn a_terminal_is_asked() {
    alone(|| {
        let text = says(&format!(
            r#"{HEAD}
            on_a_terminal() {{ script --quiet --return --command "plumb tune apply $path --runtime" /dev/null; }}
            wmem() {{ sysctl -n net.ipv4.tcp_wmem; }}
            for answer in n '' yes,please; do echo "$answer" | on_a_terminal; wmem; done
            echo y | on_a_terminal
            wmem
            plumb tune undo > /dev/null
            "#
        ));
        assert_eq!(
            text.matches("Change this machine so? [y/N]").count(),
            4,
            "{text}"
        );
        assert_eq!(text.matches("Nothing was changed.").count(), 3, "{text}");
        assert_eq!(text.matches("\n4096\t16384\t524288").count(), 3, "{text}");
        assert!(
            text.contains("Done: 2 changes.") && text.contains("4096\t16384\t33554432"),
            "{text}"
        );
    });
}

/// On a machine that never had plumb, a laboratory's node has a place for the journal, and the machine has none
/// afterwards.
#[test]
fn a_lab_makes_nothing_on_the_machine() {
    alone(|| {
        let script = format!(
            r#"mount -t tmpfs none /var/lib; echo theirs > /var/lib/other
            {PLUMB} lab run long-fat-sndbuf -- sh -c 'plumb tune apply --rate 1gbit --rtt 150ms --runtime --yes | grep Done
                ls /var/lib/plumb/tune; cat /var/lib/other'
            echo "left: $(ls -A /var/lib | tr '\n' ' ')""#
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-euc", &script])
            .output()
            .unwrap();
        let text = stdout(&output);
        assert!(output.status.success(), "{text}{}", stderr(&output));
        for words in ["Done: ", "journal.json", "theirs", "left: other \n"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    });
}

#[test]
fn plans_are_documents() {
    let planned = |options: &[&str]| -> TunePlan {
        let base = [
            "tune", "plan", "--rate", "10gbit", "--rtt", "50ms", "--json",
        ];
        let output = plumb(&[&base, options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let here = planned(&["--judge", "article"]);
    let judged = &here.hosts[0].judged;
    assert_eq!(judged.len(), 23);
    let optmem = judged.iter().find(|j| j.knob == "net.core.optmem_max");
    assert_eq!(optmem.unwrap().worth, Worth::Harmful);
    let windows = planned(&["--os", "windows"]);
    assert_eq!(windows.path.bdp_bytes, 62.5e6);
    assert!(
        windows.hosts[0]
            .changes
            .iter()
            .any(|c| c.knob == "autotuninglevel")
    );
    for (os, format, words) in [
        (
            "windows",
            "powershell",
            "netsh int tcp set global autotuninglevel=experimental",
        ),
        ("macos", "sysctl", "kern.ipc.maxsockbuf = 134217728"),
        (
            "freebsd",
            "shell",
            "sysctl net.inet.tcp.sendbuf_max=\"134217728\"",
        ),
        (
            "solaris",
            "shell",
            "ipadm set-prop -p max_buf=134217728 tcp",
        ),
    ] {
        let output = plumb(&[
            "tune", "plan", "--rate", "10gbit", "--rtt", "50ms", "--os", os, "--format", format,
        ]);
        assert!(stdout(&output).contains(words), "{os}: {}", stdout(&output));
    }
}

#[test]
fn pasted_facts_and_the_wrong_kind() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut with = |text: &str| {
        use std::io::{Seek as _, Write as _};
        file.as_file().set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        plumb(&[
            "tune", "plan", "--rate", "1gbit", "--rtt", "150ms", "--facts", &path,
        ])
    };
    let text = stdout(&with(
        "kernel.osrelease = 5.10.0-28-amd64\nnet.ipv4.tcp_wmem = 4096\t16384\t4194304\nnet.ipv4.tcp_sack = 0\n",
    ));
    assert!(
        text.contains("4096 16384 4194304 -> 4096 16384 33554432")
            && text.contains("net.ipv4.tcp_sack: 0 -> 1"),
        "{text}"
    );
    let wrong = with("eth0: flags=4163<UP,BROADCAST>  mtu 1500\n");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("paste the whole output"),
        "{}",
        stderr(&wrong)
    );
}

/// A line of 1 Gbit/s carries this of payload: 1448 of 1538 bytes.
const PAYLOAD_BPS: f64 = 1e9 * 1448.0 / 1538.0;

#[test]
fn verify_keeps_what_fills_the_path() {
    alone(|| {
        let script = "plumb tune verify server --rate 1gbit --rtt 150ms --duration 6s --yes --json; sysctl -n net.ipv4.tcp_wmem >&2; plumb tune undo >&2; sysctl -n net.ipv4.tcp_wmem >&2";
        // What it keeps follows from far more than what a machine loses.
        let output = even_disturbed(|| on_client(script));
        assert!(output.status.success(), "{}", stderr(&output));
        let run = Run::from_json(&stdout(&output)).unwrap();
        let tuned = run.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::Tune(result) => Some(result),
            _ => None,
        });
        let tuned = tuned.unwrap();
        assert_eq!(tuned.decision, TuneDecision::Kept, "{tuned:?}");
        let without = tuned.without_bps.unwrap();
        assert!(without.max < 0.1 * PAYLOAD_BPS, "{without:?}");
        // A machine that could not carry the line is marked as such.
        let mark = run.local.lab.as_ref().expect("made in a lab");
        let disturbed = !Disturbance::of_run(mark).is_empty();
        let with = tuned.with_bps.unwrap();
        assert!(disturbed || with.p50 >= 0.9 * PAYLOAD_BPS, "{with:?}");
        let said = stderr(&output);
        let values: Vec<_> = said.lines().filter(|l| l.starts_with("4096")).collect();
        assert_eq!(values, ["4096\t16384\t33554432", "4096\t16384\t524288"]);
        // What was kept is advised no more, and what was not tried has a command that works.
        let small = |f: &&Finding| f.cause == Cause::SendBufferSmall;
        let finding = run.findings.iter().find(small).unwrap();
        assert_eq!(
            (finding.severity, finding.fixes.len()),
            (Severity::Info, 0),
            "{finding:?}"
        );
        let adds = "to have it as well: plumb tune apply --rate 1000mbit --rtt 150ms";
        assert!(
            run.notes.iter().any(|note| note.contains(adds)),
            "{:?}",
            run.notes
        );
        plans_for_the_end_that_limits(run);
    });
}

/// The same Run, had the far end been the one whose buffer is small.
fn plans_for_the_end_that_limits(mut run: Run) {
    let plan = |run: &Run| -> TunePlan {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), serde_json::to_string(run).unwrap()).unwrap();
        let path = file.path().to_str().unwrap();
        let output = plumb(&["tune", "plan", "--from", path, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let here = plan(&run);
    assert_eq!(here.hosts.len(), 1);
    assert_eq!(here.hosts[0].on, Actor::ThisHost);
    assert!((0.15..0.17).contains(&here.path.rtt_s), "{:?}", here.path);
    for finding in &mut run.findings {
        finding.place = Place::FarHost;
    }
    run.target
        .as_mut()
        .unwrap()
        .host
        .as_mut()
        .unwrap()
        .tcp_wmem_bytes = Some([4096, 16384, 524_288]);
    let far = plan(&run);
    assert_eq!(far.hosts[0].on, Actor::FarHost);
    let wmem = far.hosts[0]
        .changes
        .iter()
        .find(|c| c.knob.ends_with("tcp_wmem"));
    assert_eq!(wmem.unwrap().from.as_deref(), Some("4096 16384 524288"));
}
