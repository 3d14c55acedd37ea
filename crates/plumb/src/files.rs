//! `--from`, `--to`, `--far-disk`: files at the ends of a transfer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use plumb_load::file::StreamFile;
use plumb_model::results::Direction;

#[derive(Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct Files {
    /// Upload this file, a pipe, or - for standard input
    ///
    /// The phase ends with it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["down", "both", "streams", "flows", "zero_copy"])]
    from: Option<PathBuf>,
    /// Write what is downloaded to this file, from its beginning; its old content is lost
    #[arg(long, value_name = "FILE", conflicts_with_all = ["up", "both", "streams", "flows", "discard"])]
    to: Option<PathBuf>,
    /// Let the far end read and write a temporary file of its own (plumb serve --disk lends it)
    #[arg(long, conflicts_with_all = ["zero_copy", "discard"])]
    pub(crate) far_disk: bool,
}

/// Those at this end, open.
#[derive(Default)]
pub(crate) struct OpenFiles {
    pub(crate) from: Option<StreamFile>,
    pub(crate) to: Option<StreamFile>,
}

impl Files {
    /// The directions that the files mean; none when there are no files here.
    pub(crate) fn directions(&self) -> Vec<Direction> {
        let up = self.from.as_ref().map(|_| Direction::Up);
        let down = self.to.as_ref().map(|_| Direction::Down);
        up.into_iter().chain(down).collect()
    }

    /// Opens those at this end; nothing is overwritten yet.
    pub(crate) fn open(&self) -> anyhow::Result<OpenFiles> {
        Ok(OpenFiles {
            from: self.from.as_deref().map(source).transpose()?,
            to: self.to.as_deref().map(destination).transpose()?,
        })
    }
}

fn source(path: &Path) -> anyhow::Result<StreamFile> {
    let standard_input = path == Path::new("-");
    // Its own path opens it anew, whatever it is.
    let real = if standard_input {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let file = File::open(real).with_context(|| format!("cannot read {}", path.display()))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        anyhow::bail!("cannot read {}: it is a directory", path.display());
    }
    let name = match standard_input {
        true => plumb_diagnose::STANDARD_INPUT.to_owned(),
        false => path.display().to_string(),
    };
    Ok(stream_file(name, file))
}

fn destination(path: &Path) -> anyhow::Result<StreamFile> {
    use std::os::unix::fs::FileTypeExt;
    let cannot = || format!("cannot write {}", path.display());
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let file = options.open(path).with_context(cannot)?;
    let kind = file.metadata().with_context(cannot)?.file_type();
    if !kind.is_file() && !kind.is_char_device() && !kind.is_block_device() {
        anyhow::bail!(
            "cannot write {}: it is neither a file nor a device",
            path.display()
        );
    }
    Ok(stream_file(path.display().to_string(), file))
}

fn stream_file(name: String, file: File) -> StreamFile {
    StreamFile {
        name,
        file: Arc::new(file),
        endless: false,
    }
}
