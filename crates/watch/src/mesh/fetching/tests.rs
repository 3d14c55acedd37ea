use std::io::Write as _;
use std::net::TcpListener;

use super::*;

/// A member that answers each question so; where it is silent, it says nothing until the other end goes away.
fn page_of(answer: Option<String>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut seen = [0; 512];
            let _ = stream.read(&mut seen);
            match &answer {
                // The reader may have read enough.
                Some(answer) => drop(stream.write_all(answer.as_bytes())),
                None => drop(stream.read(&mut seen)),
            }
        }
    });
    port
}

fn ok(body: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

#[test]
fn each_member_has_a_clear_word_and_none_stops_the_others() {
    let row = |schema: &str, member: &str| {
        serde_json::json!({
            "schema": schema, "mesh": "m", "member": member, "digest": "d", "at_s": 1,
            "cells": [{"to": "own", "probe": "icmp", "count": 2, "lost": 0, "median": 0.5}],
        })
        .to_string()
    };
    let cases = [
        ("good", page_of(ok(&row("plumb.mesh/1", "good"))), ""),
        ("silent", page_of(None), "silent: "),
        (
            "garbage",
            page_of(ok("\u{1}<html>")),
            "something else than a row",
        ),
        (
            "nested",
            page_of(ok(&"[".repeat(200_000))),
            "something else than a row",
        ),
        (
            "huge",
            page_of(ok(&"x".repeat(MOST_BYTES + 1))),
            "more than 262144 bytes",
        ),
        (
            "endless",
            page_of(Some(
                "HTTP/1.1 200 OK\r\n".to_owned() + &"a: b\r\n".repeat(9000),
            )),
            "silent: ",
        ),
        (
            "refuses",
            page_of(Some(
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".into(),
            )),
            "asks for a key",
        ),
        (
            "older",
            page_of(Some(
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
            )),
            "shows no mesh",
        ),
        (
            "newer",
            page_of(ok(&row("plumb.mesh/2", "newer"))),
            "another version",
        ),
        (
            "liar",
            page_of(ok(&row("plumb.mesh/1", "good"))),
            "another member",
        ),
    ];
    let mut text = "[store]\npath = \"w.db\"\n[mesh]\nname = \"m\"\nself = \"own\"\n[[mesh.probe]]\nprobe = \"icmp\"\n[[mesh.member]]\nname = \"own\"\nhost = \"h\"\n".to_owned();
    for (name, port, _) in &cases {
        text += &format!(
            "[[mesh.member]]\nname = \"{name}\"\nhost = \"{name}.invalid\"\npage = \"http://127.0.0.1:{port}\"\n"
        );
    }
    let config = Config::parse(&text).unwrap();
    let rows = Mutex::new(Rows::new());
    let stale = ("m".to_owned(), "left".to_owned());
    let heard = Heard {
        at_s: 0,
        row: Err(String::new()),
    };
    rows.lock().unwrap().insert(stale.clone(), Arc::new(heard));
    round(
        config.mesh.as_ref().unwrap(),
        &rows,
        &AtomicBool::new(false),
    );
    let rows = rows.into_inner().unwrap();
    assert_eq!(rows.len(), cases.len());
    assert!(!rows.contains_key(&stale));
    for (name, _, words) in cases {
        let heard = &rows[&("m".to_owned(), name.to_owned())];
        match &heard.row {
            Ok(row) => assert_eq!((name, row.cells.len()), ("good", 1)),
            Err(why) => assert!(!words.is_empty() && why.contains(words), "{name}: {why}"),
        }
    }
}
