//! A receiver of Prometheus Remote Write, by its specifications, to which `plumb watch` sends.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use plumb_watch::watching::{self, Asked};

/// Ten times what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The value that marks a series as gone.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// What the body of a request unpacks to: Snappy's block format (format_description.txt).
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut at = 0;
    let length = varint(packed, &mut at);
    let mut out = Vec::new();
    while at < packed.len() {
        let tag = usize::from(packed[at]);
        at += 1;
        // A number of so many bytes, the lowest first.
        let mut number = |bytes: usize| {
            at += bytes;
            let taken = packed[at - bytes..at].iter().rev();
            taken.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let (length, back) = match tag & 3 {
            0 => {
                let length = match tag >> 2 {
                    short @ ..60 => short + 1,
                    long => number(long - 59) + 1,
                };
                out.extend(&packed[at..at + length]);
                at += length;
                continue;
            }
            1 => ((tag >> 2 & 7) + 4, tag >> 5 << 8 | number(1)),
            kind => ((tag >> 2) + 1, number(2 * (kind - 1))),
        };
        for _ in 0..length {
            out.push(out[out.len() - back]);
        }
    }
    assert_eq!(out.len() as u64, length);
    out
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

/// A field of a message of Protobuf.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("a number"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("bytes"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn fields(message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < message.len() {
        let key = varint(message, &mut at);
        let field = match key & 7 {
            0 => Field::Number(varint(message, &mut at)),
            1 => {
                at += 8;
                Field::Number(u64::from_le_bytes(message[at - 8..at].try_into().unwrap()))
            }
            2 => {
                let length = varint(message, &mut at) as usize;
                at += length;
                Field::Bytes(&message[at - length..at])
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, field));
    }
    found
}

/// A sample: its labels, what kind of metric it is of, the bits of its value, and its time, ms since 1970.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    labels: BTreeMap<String, String>,
    kind: Option<u64>,
    bits: u64,
    at_ms: u64,
}

impl Sample {
    /// Reads a `TimeSeries`, of version 2.0 where there are symbols.
    fn read(series: &[u8], symbols: &[String]) -> Self {
        let (mut labels, mut kind, mut seen) = (Vec::new(), None, Vec::new());
        for (number, field) in fields(series) {
            match (number, symbols.is_empty()) {
                (1, true) => {
                    let pair = fields(field.bytes());
                    let [(1, name), (2, value)] = pair.as_slice() else {
                        panic!("no label");
                    };
                    labels.push((name.text(), value.text()));
                }
                (1, false) => {
                    let (packed, mut at, mut all) = (field.bytes(), 0, Vec::new());
                    while at < packed.len() {
                        all.push(symbols[varint(packed, &mut at) as usize].clone());
                    }
                    labels.extend(all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
                }
                (2, _) => seen.extend(fields(field.bytes()).iter().map(|(_, f)| f.number())),
                (5, false) => {
                    let metadata = fields(field.bytes());
                    kind = Some(metadata[0].1.number());
                    assert!((metadata[1].1.number() as usize) < symbols.len());
                }
                (other, _) => panic!("field {other}"),
            }
        }
        let [bits, at_ms] = seen[..] else {
            panic!("{seen:?}");
        };
        // "MUST have label names sorted in lexicographical order", and none twice or empty.
        let names: Vec<&String> = labels.iter().map(|(name, _)| name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(labels.iter().all(|(_, value)| !value.is_empty()));
        Self {
            labels: labels.into_iter().collect(),
            kind,
            bits,
            at_ms,
        }
    }

    fn is(&self, name: &str, target: &str) -> bool {
        self.labels["__name__"] == name && self.labels.get("target").is_some_and(|t| t == target)
    }
}

/// A request as it came: the fields of its head by their names in lower case, and its samples.
#[derive(Debug, Clone)]
struct Request {
    head: BTreeMap<String, String>,
    body: Vec<u8>,
    samples: Vec<Sample>,
}

fn request(stream: &mut TcpStream) -> Request {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let mut body = None;
    loop {
        if body.is_none() {
            let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
            body = end.map(|end| end + 4);
        }
        if let Some(body) = body {
            let text = String::from_utf8(bytes[..body].to_vec()).unwrap();
            let mut lines = text.lines();
            assert_eq!(lines.next(), Some("POST /api/v1/write HTTP/1.1"));
            let head: BTreeMap<String, String> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let length: usize = head["content-length"].parse().unwrap();
            if bytes.len() >= body + length {
                let body = bytes[body..body + length].to_vec();
                let samples = samples(&body);
                return Request {
                    head,
                    body,
                    samples,
                };
            }
        }
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the request ends early");
        bytes.extend(&buffer[..count]);
    }
}

fn samples(body: &[u8]) -> Vec<Sample> {
    let message = unpacked(body);
    let all = fields(&message);
    let symbols: Vec<String> = all
        .iter()
        .filter(|(number, _)| *number == 4)
        .map(|(_, field)| field.text())
        .collect();
    assert!(symbols.first().is_none_or(String::is_empty));
    let number = if symbols.is_empty() { 1 } else { 5 };
    all.iter()
        .filter(|(found, _)| *found == number)
        .map(|(_, series)| Sample::read(series.bytes(), &symbols))
        .collect()
}

/// A receiver that answers by what it was told last.
struct Receiver {
    port: u16,
    says: Arc<Mutex<&'static str>>,
    /// What came, with what was answered.
    came: mpsc::Receiver<(Request, &'static str)>,
}

impl Receiver {
    fn saying(first: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, came) = mpsc::channel();
        let says = Arc::new(Mutex::new(first));
        let answers = Arc::clone(&says);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = request(&mut stream);
                let said = *answers.lock().unwrap();
                let written = request.samples.len();
                let head = format!(
                    "HTTP/1.1 {said}\r\nX-Prometheus-Remote-Write-Samples-Written: {written}\r\n"
                );
                // The test may be over.
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(b"Content-Length: 0\r\n\r\n");
                if to.send((request, said)).is_err() {
                    break;
                }
            }
        });
        Self { port, says, came }
    }

    fn say(&self, words: &'static str) {
        *self.says.lock().unwrap() = words;
    }

    fn next(&self) -> (Request, &'static str) {
        self.came.recv_timeout(PATIENCE).unwrap()
    }
}

/// `plumb watch` of targets that print 7, until the test says so.
struct Watching {
    asked: Asked,
    said: Arc<Mutex<Vec<String>>>,
    thread: thread::JoinHandle<()>,
}

impl Watching {
    fn begin(folder: &Path, targets: &[&str], remote_write: &str) -> Self {
        let mut text = format!(
            "[store]\npath = \"w.db\"\n[page]\nlisten = \"127.0.0.1:0\"\n[remote_write]\ninterval = \"1s\"\n{remote_write}\n"
        );
        for target in targets {
            text += &format!(
                "[[target]]\nname = \"{target}\"\nprobe = \"command\"\ncommand = [\"/bin/echo\", \"7\", \"{target}\"]\nevery = \"1s\"\n"
            );
        }
        let file: PathBuf = folder.join("w.toml");
        std::fs::write(&file, text).unwrap();
        let asked = Asked {
            stop: Arc::new(AtomicBool::new(false)),
            reload: Arc::new(AtomicBool::new(false)),
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let (stop, reload) = (Arc::clone(&asked.stop), Arc::clone(&asked.reload));
        let words = Arc::clone(&said);
        let thread = thread::spawn(move || {
            let say = |line: &str| words.lock().unwrap().push(line.to_owned());
            watching::run(&file, &Asked { stop, reload }, &say).unwrap();
        });
        Self {
            asked,
            said,
            thread,
        }
    }

    fn has_said(&self, words: &str) -> bool {
        let said = self.said.lock().unwrap();
        said.iter().any(|line| line.contains(words))
    }

    fn until_said(&self, words: &str) {
        let begun = Instant::now();
        while !self.has_said(words) {
            assert!(begun.elapsed() < PATIENCE, "{words}: {:?}", self.said);
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn end(self) {
        self.asked.stop.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        self.thread.join().unwrap();
        assert!(begun.elapsed() < PATIENCE);
    }
}

/// Nothing is taken before plumb is begun again; then all comes, in order, and nothing twice but what was not taken.
fn everything_arrives(version: &str, content_type: &str, header: &str, kinds: &[Option<u64>]) {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "open sesame\n").unwrap();
    let receiver = Receiver::saying("503 Busy\r\nRetry-After: 1");
    let remote_write = format!(
        "url = \"http://127.0.0.1:{}/api/v1/write\"\nversion = \"{version}\"\nbearer_file = \"{}\"\n\
         headers = {{ X-Scope-OrgID = \"tenant\" }}\nlabels = {{ site = \"home\", instance = \"here\" }}",
        receiver.port,
        token.display()
    );
    let watching = Watching::begin(folder.path(), &["a", "gone"], &remote_write);
    let (first, _) = receiver.next();
    for (name, value) in [
        ("content-encoding", "snappy"),
        ("content-type", content_type),
        ("x-prometheus-remote-write-version", header),
        ("authorization", "Bearer open sesame"),
        ("x-scope-orgid", "tenant"),
    ] {
        assert_eq!(first.head[name], value);
    }
    assert!(first.head["user-agent"].starts_with("plumb/"));
    // The same comes again, and not the next one, until it is taken.
    for _ in 0..3 {
        let (again, _) = receiver.next();
        assert_eq!(again.body, first.body);
    }
    watching.until_said("nothing is sent yet: http://127.0.0.1:");
    watching.end();
    receiver.say("204 No Content");

    let watching = Watching::begin(folder.path(), &["a"], &remote_write);
    let mut taken = Vec::new();
    let is_gone = |sample: &Sample| sample.is("plumb_watch_up", "gone") && sample.bits == STALE;
    while !taken.iter().any(is_gone) {
        let (request, said) = receiver.next();
        if said == "204 No Content" {
            taken.extend(request.samples);
        } else {
            assert_eq!(request.body, first.body);
        }
    }
    watching.end();
    let mut times: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for sample in &taken {
        let of = times.entry(sample.labels.clone()).or_default();
        of.push(sample.at_ms);
    }
    assert!(times.values().all(|times| times.is_sorted_by(|a, b| a < b)));
    // Nothing was lost: what was refused first came first.
    assert_eq!(taken[..first.samples.len()], first.samples);
    let of = |name, target| taken.iter().filter(move |sample| sample.is(name, target));
    // Tries are a second apart at least, as rounds are.
    assert!(of("plumb_watch_up", "gone").count() >= 3, "{taken:?}");
    let seven = of("plumb_watch_value", "a").next().unwrap();
    assert_eq!(f64::from_bits(seven.bits), 7.0);
    let labels = ["instance", "job", "probe", "quantile", "site"];
    let labels = labels.map(|name| seven.labels[name].as_str());
    assert_eq!(labels, ["here", "plumb-watch", "command", "0.05", "home"]);
    let found: BTreeSet<Option<u64>> = taken.iter().map(|sample| sample.kind).collect();
    assert_eq!(found, kinds.iter().copied().collect());
}

#[test]
fn everything_arrives_by_version_1() {
    everything_arrives("1.0", "application/x-protobuf", "0.1.0", &[None]);
}

/// Gauges, counters, and what is gone.
#[test]
fn everything_arrives_by_version_2() {
    let content_type = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    everything_arrives("2.0", content_type, "2.0.0", &[Some(0), Some(1), Some(2)]);
}

#[test]
fn what_is_refused_is_dropped_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::saying("400 Bad Request");
    let url = format!("url = \"http://127.0.0.1:{}/api/v1/write\"", receiver.port);
    let watching = Watching::begin(folder.path(), &["a"], &url);
    let bodies: BTreeSet<Vec<u8>> = (0..3).map(|_| receiver.next().0.body).collect();
    assert_eq!(bodies.len(), 3);
    watching.until_said("refused, and dropped: http://127.0.0.1:");
    // What was refused is counted, and the count arrives.
    receiver.say("200 OK");
    let refused = loop {
        let (request, said) = receiver.next();
        let counts = request.samples.into_iter().find(|sample| {
            sample.labels["__name__"] == "plumb_watch_remote_write_samples_total"
                && sample.labels["result"] == "refused"
        });
        if let (Some(count), "200 OK") = (counts, said) {
            break f64::from_bits(count.bits);
        }
    };
    assert!(refused >= 1.0, "{refused}");
    assert!(!watching.has_said("nothing is sent yet"));
    watching.end();
}

/// A queue that cannot be had is said, and everything else goes on.
#[test]
fn a_damaged_queue_harms_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.db.remote-write"), "no queue").unwrap();
    let receiver = Receiver::saying("204 No Content");
    let url = format!("url = \"http://127.0.0.1:{}/api/v1/write\"", receiver.port);
    let watching = Watching::begin(folder.path(), &["a"], &url);
    watching.until_said("w.db.remote-write is damaged");
    watching.end();
    let store = plumb_watch::store::Store::open_to_read(&folder.path().join("w.db")).unwrap();
    assert_eq!(store.targets().unwrap(), ["a"]);
}
