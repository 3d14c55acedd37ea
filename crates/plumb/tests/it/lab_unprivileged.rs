//! Laboratories of users who are not root.

use std::process::{Command, Output};

use crate::common::live::{Lab, alone, refused, running, says};
use crate::common::{PLUMB, stderr, stdout};

/// A program run by somebody who is not root, where /dev/net/tun is what `tun` makes of it.
fn as_nobody(tun: &str, arguments: &[&str]) -> Output {
    // A copy that somebody else may execute.
    let folder = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let copy = folder.path().join("plumb");
    // By another process: while this one had it open for writing, whatever the other tests start would inherit that, and
    // nobody may execute a file that somebody can write.
    let copied = Command::new("cp").arg(PLUMB).arg(&copy).status().unwrap();
    assert!(copied.success());
    // In mounts of its own, so that nothing of this reaches the machine.
    let script = format!(
        "mount -t tmpfs none /mnt && {tun} && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\""
    );
    Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(&copy)
        .args(arguments)
        .current_dir("/")
        .output()
        .unwrap()
}

/// The device with a mode of its own.
fn tun(mode: &str) -> String {
    format!(
        "mknod /mnt/tun c 10 200 && chmod {mode} /mnt/tun && mount --bind /mnt/tun /dev/net/tun"
    )
}

#[test]
fn without_root_it_works_in_a_user_namespace() {
    alone(|| {
        let output = as_nobody(
            &tun("666"),
            &[
                "lab", "run", "fibre", "--", "plumb", "ping", "server", "-c", "20", "-i", "0.1",
                "--json",
            ],
        );
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("ordinary priority"),
            "{}",
            stderr(&output)
        );
        let run: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let result = &run["measurements"][0]["result"];
        assert_eq!(result["received"], 20, "{result}");
        let notes = run["local"]["lab"]["notes"].to_string();
        assert!(notes.contains("ordinary priority"), "{notes}");

        // In the background, steered and entered by its owner, and by nobody else.
        let output = as_nobody(&tun("666"), &["lab", "up", "home-cable"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let inside = as_nobody(
            &tun("666"),
            &[
                "lab",
                "shell",
                "server",
                "--",
                "sh",
                "-c",
                "hostname; id -u; plumb lab set line.up.delay delay=1ms; exit 7",
            ],
        );
        assert_eq!(
            stdout(&inside),
            "server\n0\nline.up.delay set: delay 9ms → 1ms\n",
            "{}",
            stderr(&inside)
        );
        assert_eq!(inside.status.code(), Some(7));
        assert!(running().is_empty(), "root sees its own");
        refused(
            &["lab", "stats", "--lab", "home-cable"],
            &["belongs to user 65534", "sudo -u"],
        );
        refused(&["lab", "up", "home-cable"], &["already"]);
        let end = as_nobody(&tun("666"), &["lab", "down"]);
        assert!(end.status.success(), "{}", stderr(&end));

        let lab = Lab::up(&["fibre"]);
        says(
            &as_nobody("true", &["lab", "down", "fibre"]),
            &["belongs to another user"],
        );
        lab.down(&[]);
    });
}

#[test]
fn what_stands_in_the_way_of_others_than_root_is_named() {
    alone(|| {
        for action in ["run", "up"] {
            let arguments = ["lab", action, "fibre", "--", "true"];
            let arguments = if action == "up" {
                &arguments[..3]
            } else {
                &arguments
            };
            says(
                &as_nobody(&tun("600"), arguments),
                &[
                    "this user may not open /dev/net/tun",
                    "as root",
                    "chmod 0666",
                ],
            );
            says(
                &as_nobody("mount -t tmpfs none /dev/net", arguments),
                &["there is no /dev/net/tun", "modprobe tun"],
            );
        }
        // Root of a user namespace in which there can be no other, without any power.
        let script = format!(
            "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all {PLUMB} lab run fibre -- true"
        );
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c", &script])
            .output()
            .unwrap();
        says(
            &output,
            &["user.max_user_namespaces is 0", "sudo sysctl -w"],
        );
    });
}
