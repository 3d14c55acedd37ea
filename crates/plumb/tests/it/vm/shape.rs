//! `plumb shape` on a stock kernel: two hosts, a router whose line is shaped, and a server.

mod bad_input;
mod core;
mod effect;
mod existing;
mod fix;
mod killed;
mod standing;

use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use plumb_net::namespace::Namespaces;
use plumb_net::netlink::Netlink;
use plumb_net::process::start_in;
use serde_json::Value;

use crate::common::{PLUMB, stderr, stdout};

/// The router's interface to the line.
const LINE: &str = "wan";

type Node = Arc<Namespaces>;

/// Two hosts behind a router, and a server at the other end of its line.
struct Home {
    hosts: [Node; 2],
    router: Node,
    server: Node,
}

/// The address of the server behind the line.
const SERVER: &str = "192.0.2.2";
const SERVER_V6: &str = "2001:db8:ffff::2";

impl Home {
    fn new() -> Self {
        let node = |name| Arc::new(Namespaces::create(name, || Ok::<_, io::Error>(())).unwrap());
        let home = Self {
            hosts: [node("one"), node("two")],
            router: node("router"),
            server: node("server"),
        };
        let [one, two] = &home.hosts;
        for (name, peer, other) in [
            ("lan1", "eth0", one),
            ("lan2", "eth0", two),
            (LINE, "eth0", &home.server),
        ] {
            let made = home.router.in_network(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink.add_veth(name, peer, other.net().as_fd()).unwrap();
                Ok::<_, io::Error>(())
            });
            made.unwrap();
        }
        for (number, host) in (1..).zip(&home.hosts) {
            let lan = format!("lan{number}");
            let own = (
                format!("10.0.{number}.1/24"),
                format!("2001:db8:{number}::1/64"),
            );
            up(&home.router, &lan, &own.0, &own.1);
            // Neighbours by their last bits, as in a home.
            let last = number + 1;
            let its = (
                format!("10.0.{number}.{last}/24"),
                format!("2001:db8:{number}::{last}/64"),
            );
            up(host, "eth0", &its.0, &its.1);
            run(
                host,
                "ip",
                &[
                    "route",
                    "add",
                    "default",
                    "via",
                    &format!("10.0.{number}.1"),
                ],
            );
            let gateway = format!("2001:db8:{number}::1");
            run(
                host,
                "ip",
                &["-6", "route", "add", "default", "via", &gateway],
            );
        }
        up(&home.router, LINE, "192.0.2.1/24", "2001:db8:ffff::1/64");
        up(&home.server, "eth0", "192.0.2.2/24", "2001:db8:ffff::2/64");
        run(
            &home.server,
            "ip",
            &["route", "add", "10.0.0.0/8", "via", "192.0.2.1"],
        );
        let back = [
            "-6",
            "route",
            "add",
            "2001:db8::/32",
            "via",
            "2001:db8:ffff::1",
        ];
        run(&home.server, "ip", &back);
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let write = format!("echo 1 > /proc/sys/net/{key}");
            run(&home.router, "sh", &["-c", &write]);
        }
        home
    }

    /// plumb on the router.
    fn plumb(&self, arguments: &[&str]) -> Output {
        command(&self.router, PLUMB, arguments).output().unwrap()
    }

    /// Shapes the line both ways, for good.
    fn shape(&self, options: &[&str]) {
        let apply = ["shape", "apply", LINE, "--yes", "--keep"];
        let output = self.plumb(&[&apply, options].concat());
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
    }

    fn undo(&self) -> String {
        let output = self.plumb(&["shape", "undo", LINE]);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    /// Everything that a shaper may touch of the router, as iproute2 lists it.
    fn state(&self) -> Vec<String> {
        let links = stdout(&run(&self.router, "ip", &["-o", "link", "show"]));
        let names = links.lines().filter_map(|line| line.split(": ").nth(1));
        let mut state: Vec<_> = names.map(str::to_owned).collect();
        for words in [
            &["qdisc", "show"][..],
            &["class", "show", "dev", LINE],
            &["filter", "show", "dev", LINE],
            &["filter", "show", "dev", LINE, "ingress"],
        ] {
            state.push(stdout(&run(&self.router, "tc", words)));
        }
        state
    }

    /// The disciplines of a device of the router.
    fn qdiscs(&self, device: &str) -> Vec<Value> {
        let listed = run(&self.router, "tc", &["-j", "qdisc", "show", "dev", device]);
        serde_json::from_str(&stdout(&listed)).unwrap()
    }

    fn root(&self) -> Value {
        let qdiscs = self.qdiscs(LINE);
        let root = qdiscs.iter().find(|q| q["root"] == true);
        root.cloned().unwrap_or_default()
    }

    /// The device for what is received.
    fn ifb(&self) -> String {
        let links = stdout(&run(
            &self.router,
            "ip",
            &["-o", "link", "show", "type", "ifb"],
        ));
        let name = links
            .split(": ")
            .nth(1)
            .unwrap_or_else(|| panic!("{links}"));
        name.to_owned()
    }
}

fn up(node: &Node, device: &str, v4: &str, v6: &str) {
    run(node, "ip", &["addr", "add", v4, "dev", device]);
    run(node, "ip", &["addr", "add", v6, "dev", device, "nodad"]);
    run(node, "ip", &["link", "set", device, "up"]);
    run(node, "ip", &["link", "set", "lo", "up"]);
}

/// What a shell does with the lines of a plan. busybox has a tc and an ip of its own, which its shell prefers.
fn shell(node: &Node, line: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let functions = ["tc", "ip"].map(|tool| {
        let mut places = std::env::split_paths(&path).map(|place| place.join(tool));
        let place = places.find(|place| place.exists()).unwrap();
        format!("{tool}() {{ {} \"$@\"; }}; ", place.display())
    });
    run(node, "sh", &["-c", &(functions.concat() + line)]);
}

fn command(node: &Node, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    start_in(&mut command, node).unwrap();
    command
}

fn run(node: &Node, program: &str, arguments: &[&str]) -> Output {
    let output = command(node, program, arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        stderr(&output)
    );
    output
}

fn refused(output: &Output, says: &[&str]) {
    let text = stderr(output);
    assert!(!output.status.success(), "{}", stdout(output));
    assert!(
        says.iter().all(|word| text.contains(word)),
        "{says:?} in: {text}"
    );
}

const BOTH: [&str; 4] = ["--up", "20mbit", "--down", "30mbit"];
