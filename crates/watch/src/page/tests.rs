use super::http::Request;
use super::*;
use crate::alarm::record::Alarm;
use crate::sample::Sample;

const NOW_S: i64 = 1_700_000_000;

/// A target of a name that would like to be markup: answered, silent for 4 s in between, and again.
fn answered(path: &str, query: Option<&str>) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let text = "[store]\npath = \"w.db\"\n[[target]]\nname = \"<script>\\\"'\"\nhost = \"127.0.0.1\"\nprobe = \"icmp\"\nevery = \"1s\"\n";
    let mut config = Config::parse(text).unwrap();
    config.store = folder.path().join("w.db");
    let samples = (0..20).map(|at| {
        let sample = Sample {
            sent_us: (NOW_S - 20 + at) * 1_000_000,
            value: (!(8..12).contains(&at)).then_some(0.02),
        };
        ("<script>\"'".to_owned(), sample)
    });
    let mut store = Store::open(&config.store).unwrap();
    store.append(&samples.collect::<Vec<_>>()).unwrap();
    let alarm = |raised_s: i64, cleared_s: Option<i64>| Alarm {
        rule: "<b>".to_owned(),
        target: "<script>\"'".to_owned(),
        since_s: raised_s - 60,
        raised_s,
        cleared_s,
        words: "loss of 4.0 % (>0%)".to_owned(),
        behind: vec!["c".to_owned()],
    };
    store
        .write_alarms(
            &[
                alarm(NOW_S - 600, None),
                alarm(NOW_S - 90_000, Some(NOW_S - 86_000)),
            ],
            ("", 0),
            std::iter::empty(),
        )
        .unwrap();
    let request = Request::asking(path, query);
    answer((&config, &mesh_rows::Rows::new()), true, &request, NOW_S)
}

#[test]
fn the_overview_says_what_is_wrong_and_escapes_names() {
    let page = answered("/", None).body;
    assert!(page.contains("lost 20.0 % of its probes"), "{page}");
    assert!(
        page.contains("20.0 ms") && page.contains("&lt;script&gt;&quot;&#39;"),
        "{page}"
    );
    assert!(!page.contains("<script"), "{page}");
}

#[test]
fn a_target_has_its_graph_its_outages_and_its_ranges() {
    let path = "/target/<script>\"'";
    let page = answered(path, None).body;
    assert!(
        page.contains("2023-11-14T22:13:08.0Z</td><td>2023-11-14T22:13:12.0Z"),
        "{page}"
    );
    assert!(
        page.contains("<svg") && page.contains("var(--loss)\"><title>"),
        "{page}"
    );
    // Of 19 s that were watched 4 were an outage, which is no share yet; the state in the rest of the month is unknown.
    assert!(
        page.contains("<tr><td>2023-11</td><td>only 19.0 s watched</td><td>1</td><td>15.0 s</td><td>4.0 s</td><td>19.0 s</td><td>13 d 22 h</td></tr>"),
        "{page}"
    );
    assert!(page.contains("neither up nor down"), "{page}");
    assert!(!page.contains("<script"), "{page}");
    for range in ["1h", "24h", "30d", "1y"] {
        assert_eq!(
            answered(path, Some(&format!("range={range}"))).status,
            "200 OK"
        );
    }
    assert_eq!(answered(path, Some("range=1e")).status, "404 Not Found");
    assert_eq!(answered("/target/other", None).status, "404 Not Found");
}

#[test]
fn alarms_are_shown_in_words_and_escaped() {
    let words = "loss of 4.0 % (&gt;0%), with 1 target behind it since 22:02 (alarm &lt;b&gt;)";
    let overview = answered("/", None).body;
    let line = format!("&lt;script&gt;&quot;&#39;</a>: {words}</li>");
    assert!(
        overview.contains(&line) && !overview.contains("<b>"),
        "{overview}"
    );
    let target = answered("/target/<script>\"'", None).body;
    assert!(
        target.contains(&format!("<li class=\"bad\">{words}</li>")),
        "{target}"
    );
    let over = "since 2023-11-13 21:12, over at 2023-11-13 22:20 (alarm &lt;b&gt;)";
    assert!(target.contains(over) && !target.contains("<b>"), "{target}");
}

#[test]
fn metrics_are_what_was_seen() {
    let text = answered("/metrics", None).body;
    let labels = "target=\"<script>\\\"'\",probe=\"icmp\"";
    for line in [
        format!("plumb_watch_rtt_seconds{{{labels},quantile=\"0.5\"}} 0.02\n"),
        format!("plumb_watch_loss_ratio{{{labels}}} 0.2\n"),
        format!("plumb_watch_up{{{labels}}} 1\n"),
        format!("plumb_watch_last_success_timestamp_seconds{{{labels}}} 1699999999\n"),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}

/// What is sent to others is counted where the file says that it is sent.
#[test]
fn what_waits_to_be_sent_is_among_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[store]\npath = \"w.db\"\n[remote_write]\nurl = \"http://127.0.0.1:9/\"\n[[target]]\nname = \"a\"\nhost = \"127.0.0.1\"\nprobe = \"icmp\"\n";
    let mut config = Config::parse(text).unwrap();
    config.store = folder.path().join("w.db");
    drop(Store::open(&config.store).unwrap());
    let metrics = |config: &Config| {
        let answer = answer(
            (config, &mesh_rows::Rows::new()),
            true,
            &Request::asking("/metrics", None),
            NOW_S,
        );
        assert_eq!(answer.status, "200 OK");
        answer.body
    };
    let queue = folder.path().join("w.db.remote-write");
    // Before the first round, and where it cannot be read, the others are there all the same.
    assert!(!metrics(&config).contains("remote_write"));
    std::fs::write(&queue, "no queue").unwrap();
    assert!(metrics(&config).contains("plumb_watch_up"));
    std::fs::remove_file(&queue).unwrap();
    drop(crate::remote_write::queue::Queue::open(&queue).unwrap());
    let text = metrics(&config);
    for line in [
        "# TYPE plumb_watch_remote_write_samples_total counter\n",
        "plumb_watch_remote_write_samples_total{result=\"given_up\"} 0\n",
        "plumb_watch_remote_write_waiting_bytes 0\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    config.remote_write = None;
    assert!(!metrics(&config).contains("remote_write"));
}

#[test]
fn a_device_lists_its_series_by_names_that_it_chose() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[store]\npath = \"w.db\"\n[[device]]\nname = \"sw1\"\nhost = \"127.0.0.1\"\ncommunity = \"public\"\n";
    let mut config = Config::parse(text).unwrap();
    config.store = folder.path().join("w.db");
    let mut store = Store::open(&config.store).unwrap();
    let seen = [
        "sw1 port <i>/1 in",
        "sw1 port <i>/1 state",
        "sw1 of something else",
    ];
    let samples = seen.map(|name| {
        let sample = Sample {
            sent_us: (NOW_S - 30) * 1_000_000,
            value: Some(1e6),
        };
        (name.to_owned(), sample)
    });
    store.append(&samples).unwrap();
    store
        .note_state("sw1 port <i>/1 state", (NOW_S - 30) * 1_000_000, "up")
        .unwrap();
    let asked = |path: &str| {
        answer(
            (&config, &mesh_rows::Rows::new()),
            true,
            &Request::asking(path, None),
            NOW_S,
        )
        .body
    };
    let page = asked("/target/sw1");
    let row = "<a href=\"/target/sw1%20port%20%3Ci%3E%2F1%20in\">port &lt;i&gt;/1 in</a></td><td>1.00 Mbit/s</td>";
    assert!(page.contains(row) && page.contains("<td>up</td>"), "{page}");
    assert!(
        !page.contains("something else") && !page.contains("<i>"),
        "{page}"
    );
    let page = asked("/target/sw1 port <i>/1 state");
    assert!(page.contains("<h2>Changes</h2>"), "{page}");
    let metrics = asked("/metrics");
    let line = "plumb_watch_rate_bits_per_second{target=\"sw1 port <i>/1 in\",probe=\"device\",quantile=\"0.5\"} 1000000\n";
    assert!(metrics.contains(line), "{metrics}");
    assert!(
        !metrics.contains("plumb_watch_up{target=\"sw1 port"),
        "{metrics}"
    );
}

/// What is answered of flows that one exporter sent in the last minutes, under a name that would like to be markup.
fn of_flows(path: &str, query: Option<&str>) -> Answer {
    use crate::flows::collector::Collector;
    use crate::flows::listening::Heard;
    use crate::flows::settings::FlowSource;
    let folder = tempfile::tempdir().unwrap();
    let text = "[store]\npath = \"w.db\"\n[[flows]]\nname = \"<b>\"\nlisten = \"127.0.0.1:2055\"\nexporters = [\"::/0\"]\n";
    let mut config = Config::parse(text).unwrap();
    config.store = folder.path().join("w.db");
    let mut store = Store::open(&config.store).unwrap();
    let mut collector = Collector::new(FlowSource::at(config.flows[0].listen), NOW_S * 1000);
    for minute in 1..20u32 {
        let sources = [[192, 0, 2, 1], [198, 51, 100, 7]].map(std::net::Ipv4Addr::from);
        let message = crate::flows::collector::tests::netflow5(minute * 2, 100, &sources);
        collector.hear("10.0.0.1".parse().unwrap(), &message, NOW_S * 1000);
        let heard = Heard {
            source: "<b>".to_owned(),
            start_s: (NOW_S - i64::from(minute) * 60).div_euclid(60) * 60,
            tops: collector.take_tops(),
            state: collector.state(),
        };
        store.append_flows(&[heard]).unwrap();
    }
    answer(
        (&config, &mesh_rows::Rows::new()),
        true,
        &Request::asking(path, query),
        NOW_S,
    )
}

#[test]
fn flows_have_a_page_by_range_and_dimension_and_a_document() {
    let page = of_flows("/flows/<b>", None).body;
    for words in [
        "192.0.2.0/24",
        "50.0 %",
        "± ",
        "<svg",
        "NetFlow v5",
        "1 of 100",
        "?range=24h&amp;by=source",
        "?range=1h&amp;by=dscp",
        "/json/flows/%3Cb%3E?range=1h",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<b>"), "{page}");
    assert!(of_flows("/", None).body.contains("/flows/%3Cb%3E"));
    let page = of_flows("/flows/<b>", Some("range=24h&by=application")).body;
    assert!(
        page.contains("tcp/443") && page.contains("100.0 %"),
        "{page}"
    );
    for wrong in ["range=2h", "by=colour", "x"] {
        assert_eq!(of_flows("/flows/<b>", Some(wrong)).status, "404 Not Found");
    }
    assert_eq!(of_flows("/flows/other", None).status, "404 Not Found");
    let document = of_flows("/json/flows/<b>", None).body;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "plumb.flows/1");
    assert_eq!(document["exporters"][0]["address"], "10.0.0.1");
    let all = &document["tops"][0]["rows"][0];
    assert_eq!(
        (&document["tops"][0]["by"], &all["key"]),
        (&"total".into(), &"all".into())
    );
    assert_eq!(all["bytes"], 19.0 * 2.0 * 1000.0 * 100.0);
    assert!(all["bytes_low"].as_f64().unwrap() < all["bytes"].as_f64().unwrap());
}

/// The rules and the dashboard of `contrib`; a slow test runs them in a real Prometheus.
#[test]
fn contrib_asks_for_metrics_that_exist() {
    let here = concat!(include_str!("../metrics.rs"), include_str!("../unit.rs"));
    let files = [
        include_str!("../../../../contrib/prometheus/plumb-watch.rules.yml"),
        include_str!("../../../../contrib/grafana/plumb-watch.json"),
    ];
    for file in files {
        let asked = file.split("plumb_watch_").skip(1).map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
            &rest[..end.unwrap_or(rest.len())]
        });
        let names: std::collections::BTreeSet<&str> = asked.collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(here.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

/// What is answered by member `<b>` of a mesh of three, which lost one of four probes to `it's`, and all to `c`.
fn of_mesh(path: &str, groups: Option<&[String]>) -> Answer {
    heard_of_mesh(path, groups, &|_| mesh_rows::Rows::new())
}

/// The same where these rows of others were heard.
fn heard_of_mesh(
    path: &str,
    groups: Option<&[String]>,
    heard: &dyn Fn(&crate::mesh::Mesh) -> mesh_rows::Rows,
) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let member = |name: &str, host: &str, page: &str| {
        format!("[[mesh.member]]\nname = \"{name}\"\nhost = \"{host}\"\npage = \"{page}\"\n")
    };
    let text = "[store]\npath = \"w.db\"\n[mesh]\nname = \"<i>\"\nself = \"<b>\"\n[[mesh.probe]]\nprobe = \"icmp\"\nname = \"<u>\"\n[[mesh.probe]]\nprobe = \"rate\"\n".to_owned()
        + &member("<b>", "192.0.2.1", "http://192.0.2.1:7590")
        + &member("it's", "192.0.2.2", "http://192.0.2.2:7590")
        + &member("c", "192.0.2.3", "https://c.example/");
    let mut config = Config::parse(&text).unwrap();
    config.store = folder.path().join("w.db");
    let mut store = Store::open(&config.store).unwrap();
    let sample = |to: &str, ago_s: i64, value: Option<f64>| {
        let sample = Sample {
            sent_us: (NOW_S - ago_s) * 1_000_000,
            value,
        };
        (format!("<b> → {to} <u>"), sample)
    };
    let lossy = (0..4).map(|at| sample("it's", 10 * (at + 1), (at != 2).then_some(0.02)));
    let dead = (0..4).map(|at| sample("c", 10 * (at + 1), None));
    store
        .append(&lossy.chain(dead).collect::<Vec<_>>())
        .unwrap();
    let heard = &heard(config.mesh.as_ref().unwrap());
    let (part, is_all) = match groups {
        Some(groups) => (config.of_groups(groups), false),
        None => (config, true),
    };
    answer((&part, heard), is_all, &Request::asking(path, None), NOW_S)
}

#[test]
fn a_mesh_is_a_matrix_of_words_that_lead_to_histories() {
    let page = of_mesh("/mesh", None).body;
    for words in [
        "<h1>Mesh: &lt;i&gt;</h1>",
        "<h2>&lt;u&gt;</h2>",
        "<th scope=\"row\">&lt;b&gt;</th><td></td><td class=\"part\"><a href=\"/target/%3Cb%3E%20%E2%86%92%20it%27s%20%3Cu%3E\">▲ 25.0 % lost, 20.0 ms</a></td>",
        "\">✖ no answer</a></td><td>this member</td></tr>",
        // Their rows are not known here, and nothing was loaded yet.
        "<th scope=\"row\">it&#39;s</th><td>?</td><td></td><td>?</td><td>not asked yet</td>",
        "\">·</a></td>",
        "has a slot of 14400.0 s for each",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    for markup in ["<b>", "<i>", "<u>", "it's"] {
        assert!(!page.contains(markup), "{markup}: {page}");
    }
    assert!(of_mesh("/", None).body.contains("<a href=\"/mesh\">"));
    assert_eq!(answered("/mesh", None).status, "404 Not Found");
    assert_eq!(answered("/mesh.json", None).status, "404 Not Found");
}

#[test]
fn a_row_is_a_document_for_those_who_see_its_group() {
    let group = ["mesh <i>".to_owned()];
    let document = of_mesh("/mesh.json", Some(&group)).body;
    let row: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        (&row["schema"], &row["member"]),
        (&"plumb.mesh/1".into(), &"<b>".into())
    );
    let cell = &row["cells"][0];
    assert_eq!(
        (&cell["to"], &cell["count"], &cell["lost"], &cell["median"]),
        (&"it's".into(), &4.into(), &1.into(), &0.02.into())
    );
    let other = ["other".to_owned()];
    assert_eq!(of_mesh("/mesh.json", Some(&other)).status, "404 Not Found");
}

#[test]
fn rows_of_others_are_shown_as_far_as_they_can_be_believed() {
    use crate::mesh::row::Row;
    let heard = |mesh: &crate::mesh::Mesh| {
        let cell = |to: &str, probe: &str, lost: u64, median: Option<f64>| serde_json::json!({"to": to, "probe": probe, "count": 4, "lost": lost, "median": median});
        let row = serde_json::json!({
            "schema": "plumb.mesh/1", "mesh": mesh.name, "member": "it's", "digest": "<s>", "at_s": NOW_S - 100,
            "cells": [
                cell("<b>", "<u>", 0, Some(0.03)),
                // A second one of the same, a stranger, itself, and numbers that cannot be.
                cell("<b>", "<u>", 4, None),
                cell("<script>", "<u>", 0, Some(0.03)),
                cell("it's", "<u>", 0, Some(0.03)),
                cell("c", "<u>", 5, None),
                cell("c", "rate", 4, Some(1e6)),
            ],
        });
        let row = Row::read(mesh, "it's", row.to_string().as_bytes()).unwrap();
        assert_eq!(row.cells.len(), 1);
        let rows = [("it's", Ok(row)), ("c", Err("silent: <script>".to_owned()))];
        let rows = rows.map(|(name, row)| {
            let heard = mesh_rows::Heard {
                at_s: NOW_S - 30,
                row,
            };
            (
                (mesh.name.clone(), name.to_owned()),
                std::sync::Arc::new(heard),
            )
        });
        rows.into()
    };
    let page = heard_of_mesh("/mesh", None, &heard).body;
    for words in [
        "<td class=\"fine\"><a href=\"http://192.0.2.2:7590/target/it%27s%20%E2%86%92%20%3Cb%3E%20%3Cu%3E\">● 30.0 ms</a></td>",
        "it has another file: slots differ; its clock is 70 s behind",
        "silent: &lt;script&gt;",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("<s>"), "{page}");
    // What was heard long ago is not known any more.
    let old = |mesh: &crate::mesh::Mesh| {
        let mut rows = heard(mesh);
        for heard in rows.values_mut() {
            std::sync::Arc::make_mut(heard).at_s -= 600;
        }
        rows
    };
    let page = heard_of_mesh("/mesh", None, &old).body;
    assert!(
        !page.contains("30.0 ms") && page.contains("not asked since 22:02"),
        "{page}"
    );
}
