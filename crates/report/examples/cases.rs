//! The page and the table of an experiment whose Runs are saved in a folder for each case, before and after a change:
//! `cases FOLDER PAGE.html` writes the page and prints the table. Folders are named `NUMBER-CASE-before` and
//! `NUMBER-CASE-after`; what they hold, `bench/home-six.sh` knows.

use std::path::Path;

use plumb_model::run::Run;
use plumb_report::cases::{Case, Experiment};
use plumb_report::html;

/// Files of a folder, and the heads of what they hold.
const MEASURED: [(&str, &str); 6] = [
    ("ping", "Ping: median, 95 %, loss"),
    ("call", "200 kbit/s: loss, jitter"),
    ("small", "20 kB page"),
    ("large", "2 MB page"),
    ("many", "Page of 51 objects"),
    ("copy", "Copy: rate"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(page)) = (arguments.next(), arguments.next()) else {
        return Err("cases FOLDER PAGE.html".into());
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix("-before").map(str::to_owned));
    }
    names.sort();
    let of_case = |name: String| {
        let runs = |side: &str| runs(&Path::new(&folder).join(format!("{name}-{side}")));
        let runs = [runs("before")?, runs("after")?];
        let (_, words) = name.split_once('-').unwrap_or(("", &name));
        let name = words.replace('-', " ").replace("udp", "UDP");
        Ok::<Case, Box<dyn std::error::Error>>(Case { name, runs })
    };
    let experiment = Experiment {
        title: "Six cases in a home on DSL".to_owned(),
        sides: ["as it is", "managed"],
        heads: MEASURED.iter().map(|(_, head)| *head).collect(),
        cases: names.into_iter().map(of_case).collect::<Result<_, _>>()?,
    };
    std::fs::write(page, html::render_cases(&experiment))?;
    print!("{}", experiment.markdown());
    Ok(())
}

/// The Runs of a folder; none where a measurement came to no end and left nothing.
fn runs(folder: &Path) -> Result<Vec<Option<Run>>, Box<dyn std::error::Error>> {
    let read = |(file, _): &(&str, &str)| {
        let path = folder.join(format!("{file}.json"));
        match std::fs::read_to_string(&path) {
            Ok(text) if text.is_empty() => Ok(None),
            Ok(text) => Ok(Some(
                Run::from_json(&text).map_err(|e| format!("{}: {e}", path.display()))?,
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    MEASURED.iter().map(read).collect()
}
