//! Where the segments of a capture are saved: rows in one file, or graphs in a directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_capture::{Folder, Form, Observer, Rows, Xplot};

use crate::save::growing::Growing;

/// Room for rows before they are written, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// An export that is being made.
pub(super) enum Export {
    Rows {
        path: PathBuf,
        file: Growing,
        rows: Box<Rows<BufWriter<File>>>,
    },
    Graphs {
        path: PathBuf,
        xplot: Xplot<Directory>,
    },
}

/// A directory that graphs are written into.
pub(super) struct Directory(PathBuf);

impl Folder for Directory {
    fn append(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(self.0.join(name))?;
        file.write_all(text)
    }
}

impl Export {
    /// Begins it; what it is, the end of the name says.
    pub(super) fn begin(path: &Path) -> anyhow::Result<Self> {
        let form = match path.extension().and_then(|end| end.to_str()) {
            Some("csv") => Form::Csv,
            Some("jsonl") => Form::JsonLines,
            None => return Self::graphs(path),
            Some(_) if path.is_dir() => return Self::graphs(path),
            Some(end) => anyhow::bail!(
                "cannot export to {}: what ends in .{end} is not known; use FILE.csv or FILE.jsonl for rows, or a new directory for graphs of xplot",
                path.display()
            ),
        };
        let file = Growing::begin(path)?;
        let cannot = || format!("cannot write {}", path.display());
        let out = BufWriter::with_capacity(BUFFER_BYTES, file.file().with_context(cannot)?);
        Ok(Self::Rows {
            path: path.to_owned(),
            file,
            rows: Box::new(Rows::begin(out, form)),
        })
    }

    fn graphs(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    anyhow::bail!("cannot export to {name}: the directory is not empty");
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(path)
                    .with_context(|| format!("cannot make the directory {name}"))?;
            }
            Err(e) => return Err(e).with_context(|| format!("cannot export to {name}")),
        }
        Ok(Self::Graphs {
            path: path.to_owned(),
            xplot: Xplot::begin(Directory(path.to_owned())),
        })
    }

    /// Who is to learn of the segments.
    pub(super) fn observer(&mut self) -> &mut dyn Observer {
        match self {
            Self::Rows { rows, .. } => &mut **rows,
            Self::Graphs { xplot, .. } => xplot,
        }
    }

    /// Ends it; a remark on what is not in it.
    pub(super) fn finish(self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Rows { path, file, rows } => {
                let written = rows.finish().and_then(|()| file.keep());
                written.with_context(|| format!("cannot write {}", path.display()))?;
                Ok(None)
            }
            Self::Graphs { path, xplot } => {
                let left_out = xplot.finish();
                let left_out =
                    left_out.with_context(|| format!("cannot write into {}", path.display()))?;
                Ok((left_out > 0).then(|| {
                    format!("The graphs are of the first connections: {left_out} more have none.")
                }))
            }
        }
    }
}
