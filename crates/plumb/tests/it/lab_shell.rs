//! Programs in the nodes of a laboratory in the background, without and with a terminal.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::common::live::{Lab, Terminal, alone, refused};
use crate::common::machine::{all_end, descendants, says_ready, signal};
use crate::common::{PLUMB, plumb, stderr, stdout};

#[test]
fn a_shell_is_in_the_node() {
    alone(|| {
        let lab = Lab::up(&["home-cable"]);
        for (command, status) in [
            (&["true"][..], 0),
            (&["sh", "-c", "exit 7"], 7),
            (&["sh", "-c", "kill -TERM $$"], 128 + 15),
            (&["no-such-program"], 127),
            (&["/etc/hosts"], 126),
        ] {
            let output = plumb(&[&["lab", "shell", "router", "--"], command].concat());
            assert_eq!(
                output.status.code(),
                Some(status),
                "{command:?}: {}",
                stderr(&output)
            );
        }
        let script = "hostname; ls /sys/class/net | tr '\\n' ' '; echo; cat /proc/1/comm; pwd; echo $PLUMB_LAB; cat
            plumb lab stats > /dev/null && plumb lab shell server -- hostname";
        let mut child = Command::new(PLUMB)
            .args(["lab", "shell", "client", "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let here = std::env::current_dir().unwrap();
        let wanted = format!(
            "client\nlan lo \nplumb\n{}\n@plumb-lab\ntyped\nserver\n",
            here.display()
        );
        assert_eq!(stdout(&output), wanted);
        refused(
            &["lab", "shell", "clint"],
            &["'clint'", "did you mean 'client'", "modem"],
        );

        // What runs in it ends with whoever asked for it, and with the laboratory.
        for end in [true, false] {
            let mut shell = sleeping_shell();
            let processes = descendants(shell.id());
            assert_eq!(processes.len(), 1, "the command");
            let ended = if end {
                signal(shell.id() as i32, "KILL");
                Vec::new()
            } else {
                let laboratory = lab.processes();
                signal(lab.pid as i32, "KILL");
                laboratory
            };
            all_end(&[processes, ended].concat());
            shell.wait().unwrap();
        }
    });
}

/// A command in the client that has said that it runs.
fn sleeping_shell() -> Child {
    let mut child = Command::new(PLUMB)
        .args([
            "lab",
            "shell",
            "client",
            "--",
            "sh",
            "-c",
            "echo ready; exec sleep 1000",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    says_ready(&mut child);
    child
}

#[test]
fn a_shell_on_a_terminal_controls_its_jobs() {
    alone(|| {
        let lab = Lab::up(&["fibre"]);
        let mut terminal = Terminal::open(&format!(
            "PS1='more> ' {PLUMB} lab shell client -- bash --norc -i; read answer; echo the answer is $answer"
        ));
        // What is typed is shown too, so what is waited for is not what was typed.
        let shown = terminal.shows("more> ");
        assert!(!shown.contains("no job control"), "{shown}");
        terminal.types("sleep 1000 & jobs; echo one$((40 + 2))\n");
        assert!(terminal.shows("one42").contains("Running"));
        terminal.shows("more> ");
        terminal.types("sh -c 'echo two$((40 + 2)); exec sleep 1000'\n");
        terminal.shows("two42");
        terminal.types("\x03");
        terminal.shows("more> ");
        terminal.types("echo three$((40 + 2)) $?\n");
        terminal.shows("three42 130");
        terminal.shows("more> ");
        terminal.types("sh -c 'echo four$((40 + 2)); read line; echo $line is read'\n");
        terminal.shows("four42");
        terminal.types("\x1a");
        terminal.shows("more> ");
        terminal.types("jobs; echo five$((40 + 2))\n");
        assert!(terminal.shows("five42").contains("Stopped"));
        terminal.shows("more> ");
        terminal.types("fg %2\nthis\n");
        terminal.shows("this is read");
        terminal.shows("more> ");
        terminal.types("kill %1; wait; exit 5\nback\n");
        // The terminal listens to whoever was there before.
        terminal.shows("the answer is back");
        assert!(terminal.child.wait().unwrap().success());

        // A key ends a command that is no shell, and not the laboratory.
        let mut terminal = Terminal::open(&format!(
            "{PLUMB} lab shell client -- sh -c 'echo six$((40 + 2)); exec sleep 1000'"
        ));
        terminal.shows("six42");
        terminal.types("\x03");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(130));
        lab.down(&[]);
    });
}
