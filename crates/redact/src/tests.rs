#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use plumb_diagnose::{Case, Scope, diagnose};
use proptest::prelude::*;

use super::*;

const EVERY_KIND: &str = include_str!("../../report/tests/it/runs/every-kind.json");
const SCHEMA_TEXT: &str = include_str!("../../../schemas/run.schema.json");

/// In every string that came from outside; no word of plumb has it.
const MARK: &str = "zxqv";

/// Maps whose keys came from outside.
const MAPS: &[&str] = &[
    "series",
    "settings",
    "options",
    "answers",
    "icmp_errors",
    "drawn",
    "counters",
    "driver_counters",
    "cache_fields",
    "tcp_states",
    "per_s",
    "grown",
    "codes",
    "classes",
];

fn corpus() -> BTreeMap<String, Run> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let runs = files.map(|path| {
        let packed = GzDecoder::new(File::open(&path).unwrap());
        let record: Value = serde_json::from_reader(packed).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, Run::from_json(&record["run"].to_string()).unwrap())
    });
    runs.collect()
}

fn judged(mut run: Run) -> Run {
    let (findings, verdict) = diagnose(&Case::of(&run), Scope::Path);
    (run.findings, run.verdict) = (findings, Some(verdict));
    run
}

/// Strings that say who and where in some spelling, all of which hold the number.
fn marked(form: u8, number: u8) -> (String, Vec<String>) {
    let n = number;
    match form % 12 {
        0 => (format!("{MARK}{n}"), vec![]),
        1 => (format!("{MARK}-{n}.example.org"), vec![]),
        2 => (format!("the {MARK} family {n}"), vec![]),
        3 => (format!("/home/{MARK}{n}/run.json"), vec![]),
        4 => (
            format!("seen from 198.51.100.{n} today"),
            vec![
                format!("198.51.100.{n}"),
                format!("198-51-100-{n}"),
                format!("{n}.100.51.198"),
            ],
        ),
        5 => (
            format!("towards 2001:db8:1::21b:21ff:fe7a:{n:02x}ff, silent"),
            vec![format!("21b:21ff:fe7a:{n:02x}ff"), "2001:db8:1".to_owned()],
        ),
        6 => (
            format!("neighbour 00:1b:21:7a:{n:02X}:ff answers"),
            vec![format!("00:1b:21:7a:{n:02x}"), format!("001b217a{n:02x}")],
        ),
        7 => (
            format!("at 0198c0de-1234-7abc-8def-0123456789{n:02x}."),
            vec![format!("0123456789{n:02x}"), "0198c0de".to_owned()],
        ),
        8 => (
            format!("https://{MARK}{n}:secret@{MARK}.example.org:8443/{MARK}?q={MARK}"),
            vec!["secret@".to_owned()],
        ),
        9 => (
            format!("001b.217a.{n:02x}ff and 198-51-100-{n} and {n}.100.51.198.in-addr.arpa"),
            vec![
                format!("217a.{n:02x}"),
                format!("198-51-100-{n}"),
                format!("{n}.100.51.198"),
            ],
        ),
        10 => (
            format!(
                "serial {MARK}0815{n} (5CD9{n}11XYZ), AS645{:02}",
                n % 90 + 10
            ),
            vec![format!("5cd9{n}11xyz")],
        ),
        _ => (
            format!(
                "[2001:DB8:1:0:21B:21FF:FE7A:{n:X}FF]:443 or ::ffff:198.51.100.{n} by fe80::21b:21ff:fe7a:1%{MARK}0"
            ),
            vec![format!("198.51.100.{n}"), "21ff:fe7a".to_owned()],
        ),
    }
}

/// The Run with every string marked that is no word of a vocabulary, and every key of a map; and what must not be found.
fn mark_all(document: &mut Value, forms: &mut dyn FnMut() -> (u8, u8)) -> Vec<String> {
    let mut pointers = Vec::new();
    strings(document, String::new(), &mut pointers);
    let mut hidden = Vec::new();
    for pointer in pointers.iter().filter(|at| *at != "/schema") {
        let (form, number) = forms();
        let (text, spelled) = marked(form, number);
        let before = document.pointer(pointer).cloned().unwrap();
        *document.pointer_mut(pointer).unwrap() = text.into();
        match json::from_value::<Run>(document) {
            Ok(_) => hidden.extend(spelled),
            Err(_) => *document.pointer_mut(pointer).unwrap() = before,
        }
    }
    let mut maps = Vec::new();
    find_maps(document, String::new(), &mut maps);
    for pointer in maps {
        let before = document.pointer(&pointer).cloned().unwrap();
        rename(document.pointer_mut(&pointer).unwrap());
        if json::from_value::<Run>(document).is_err() {
            *document.pointer_mut(&pointer).unwrap() = before;
        }
    }
    hidden
}

fn strings(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(i, each)| strings(each, format!("{at}/{i}"), found));
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.for_each(|(name, each)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                strings(each, format!("{at}/{name}"), found);
            });
        }
        _ => {}
    }
}

/// Where objects stand that go by the name of a map; some are structures of fields.
fn find_maps(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(i, each)| find_maps(each, format!("{at}/{i}"), found));
        }
        Value::Object(fields) => {
            for (name, each) in fields {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                if each.is_object() && MAPS.contains(&name.as_str()) {
                    found.push(at);
                } else {
                    find_maps(each, at, found);
                }
            }
        }
        _ => {}
    }
}

fn rename(value: &mut Value) {
    if let Value::Object(map) = value {
        let all = std::mem::take(map).into_iter().enumerate();
        map.extend(all.map(|(i, (_, value))| (format!("{MARK}.{i}"), value)));
    }
}

fn redacted(run: &Run) -> Run {
    Redactor::new(b"a key of sixteen").run(run).unwrap()
}

fn assert_hidden(text: &str, hidden: &[String]) {
    let text = text.to_lowercase();
    for part in hidden.iter().map(String::as_str).chain([MARK]) {
        let found = text.find(part);
        let around = found.map(|at| &text[at.saturating_sub(60)..(at + 60).min(text.len())]);
        assert_eq!(around, None, "{part}");
    }
}

/// Where numbers and the words of vocabularies stand, without those that are of systems and places.
fn typed(run: &Run) -> Vec<(String, Value)> {
    fn walk(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
        match value {
            Value::Array(all) => {
                let all = all.iter().enumerate();
                all.for_each(|(i, each)| walk(each, &format!("{at}/{i}"), found));
            }
            Value::Object(fields) => {
                for (name, each) in fields {
                    let is_taken = ["asn", "place"].contains(&name.as_str());
                    let of_map = MAPS.iter().any(|map| at.ends_with(&format!("/{map}")));
                    let name = if of_map { "*" } else { name };
                    if !is_taken {
                        walk(each, &format!("{at}/{name}"), found);
                    }
                }
            }
            Value::String(_) => {}
            other => found.push((at.to_owned(), other.clone())),
        }
    }
    let mut found = Vec::new();
    walk(&json::to_value(run).unwrap(), "", &mut found);
    // Keys of maps are others, and so is their order.
    found.sort_by_key(|(at, value)| (at.clone(), value.to_string()));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn no_marked_string_is_found_again(seed in prop::collection::vec((any::<u8>(), any::<u8>()), 40..60)) {
        let mut document: Value = serde_json::from_str(EVERY_KIND).unwrap();
        document = json::to_value(&Run::from_json(&document.to_string()).unwrap()).unwrap();
        let mut next = 0;
        let mut forms = || {
            next += 1;
            let (form, number) = seed[next % seed.len()];
            (form.wrapping_add((next / seed.len()) as u8), number)
        };
        let hidden = mark_all(&mut document, &mut forms);
        prop_assert!(next > 300, "{}", next);
        let run: Run = json::from_value(&document).unwrap();
        prop_assert!(document.to_string().matches(MARK).count() > 100);
        let other = redacted(&run);
        let text = json::to_value(&other).unwrap().to_string();
        assert_hidden(&text, &hidden);
        let (before, after) = (typed(&run), typed(&other));
        let differs = before.iter().zip(&after).find(|(was, is)| was != is);
        prop_assert_eq!((before.len(), None), (after.len(), differs));
    }

    #[test]
    fn any_text_is_redacted_without_a_panic(text in "\\PC{0,60}|[-:./0-9a-fA-F%\\[\\]@= ]{0,40}") {
        let mut of = Redactor::new(b"a key");
        let once = of.prose(&text);
        prop_assert_eq!(of.prose(&once).matches("name-").count(), once.matches("name-").count());
        let _ = (of.name(&text), of.compound(&text));
    }
}

#[test]
fn redacted_runs_come_to_the_same_findings_and_keep_their_schema() {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut found = 0;
    for (name, run) in corpus() {
        let run = judged(run);
        let other = redacted(&run);
        let short = |run: &Run| -> Vec<_> {
            let findings = run.findings.iter();
            findings
                .map(|f| (f.cause, f.place, f.severity, f.confidence.to_bits()))
                .collect()
        };
        assert_eq!(short(&judged(other.clone())), short(&run), "{name}");
        found += run.findings.len();
        if found % 5 == 0 {
            let document = json::to_value(&other).unwrap();
            assert!(schema.is_valid(&document), "{name}");
        }
        let addresses = run
            .target
            .as_ref()
            .and_then(|target| target.address.clone());
        let text = json::to_value(&other).unwrap().to_string();
        if let Some(address) = addresses {
            assert!(!text.contains(&address), "{name}: {address}");
        }
    }
    assert!(found > 50);
}

/// What plumb says of what it found is still said.
#[test]
fn what_plumb_itself_writes_stays() {
    for (name, run) in corpus() {
        let run = judged(run);
        let other = redacted(&run);
        for (finding, was) in other.findings.iter().zip(&run.findings) {
            let mut texts = vec![(&finding.summary, &was.summary), (&finding.kb, &was.kb)];
            texts.extend(
                finding
                    .evidence
                    .iter()
                    .zip(&was.evidence)
                    .flat_map(|(is, was)| [(&is.rule, &was.rule), (&is.field, &was.field)]),
            );
            texts.extend(finding.fixes.iter().zip(&was.fixes).flat_map(|(is, was)| {
                let commands = is.commands.iter().zip(&was.commands);
                [(&is.summary, &was.summary), (&is.expect, &was.expect)]
                    .into_iter()
                    .chain(commands)
            }));
            for (is, was) in texts {
                assert!(!is.contains("name-"), "{name}: {is}\n{was}");
            }
        }
    }
}

#[test]
fn the_same_key_replaces_the_same_over_several_files() {
    let runs: Vec<Run> = corpus().into_values().take(2).collect();
    let [one, two] = [redacted(&runs[0]), redacted(&runs[1])];
    let address = |run: &Run| run.target.as_ref().unwrap().address.clone();
    assert_eq!(
        address(&runs[0]) == address(&runs[1]),
        address(&one) == address(&two)
    );
    assert_eq!(redacted(&runs[0]), one);
    let other = Redactor::new(b"another").run(&runs[0]).unwrap();
    assert_ne!(address(&other), address(&one));
    assert_ne!(other.id, one.id);
    assert!(uuid_like(&one.id), "{}", one.id);
}

fn uuid_like(id: &str) -> bool {
    id.len() == 36 && id.as_bytes()[14] == b'7' && b"89ab".contains(&id.as_bytes()[19])
}

#[test]
fn texts_lose_who_and_keep_what() {
    let mut of = Redactor::new(b"a key");
    of.phrases.insert("Smith Family".to_owned());
    let text = of.prose("The upload of 18.9 Mbit/s towards nas.smith.example (192.168.7.20) lost 2.1 % over Smith Family.");
    assert!(
        text.starts_with("The upload of 18.9 Mbit/s towards name-"),
        "{text}"
    );
    assert!(
        text.contains("(192.168.") && !text.contains("192.168.7.20"),
        "{text}"
    );
    assert!(
        text.contains(") lost 2.1 % over name-") && text.ends_with('.'),
        "{text}"
    );
    assert_eq!(
        of.prose("net.ipv4.tcp_rmem = 4096 131072 67108864"),
        "net.ipv4.tcp_rmem = 4096 131072 67108864"
    );
    assert_eq!(of.prose("Linux 6.18.44-smith-laptop"), "Linux 6.18.44");
    assert_eq!(of.name("eth0"), "eth0");
    assert!(of.name("enx001b217a0001").starts_with("name-"));
    assert!(of.name("gateway").starts_with("name-"));
    assert_eq!(of.name("plumb lab"), "plumb lab");
    let same = [of.name("NAS.smith.example."), of.name("nas.smith.example")];
    assert_eq!(same[0], same[1]);
    let port = of.name("192.168.7.20:4043");
    assert!(
        port.starts_with("192.168.") && port.ends_with(":4043"),
        "{port}"
    );
    assert!(of.summary().contains("1 address"), "{}", of.summary());
}
