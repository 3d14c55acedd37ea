//! Many small files, each made, written and on the disk before the next.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use plumb_model::results::host::{DiskPass, FileAccess, FileWork, PageCache};
use plumb_net::file::{forget_cached, sync_data};

use super::pass::{DiskError, Pass, Plan, noise};

pub(super) fn passes(
    plan: &Plan,
    step: &dyn Fn(&str),
    passes: &mut Vec<DiskPass>,
) -> Result<(), DiskError> {
    if plan.small_files == 0 {
        return Ok(());
    }
    let failed = |what| {
        move |source| DiskError::Failed {
            what,
            folder: plan.folder.display().to_string(),
            source,
        }
    };
    // It and all in it go away when it is dropped.
    let folder = tempfile::tempdir_in(&plan.folder).map_err(failed("make a folder"))?;
    let path = |number: u64| folder.path().join(format!("{number}"));
    let all = plan.small_files.saturating_mul(plan.small_file_bytes);
    // Whether memory answers was found out with the large file.
    let in_memory = passes.iter().any(|pass| pass.cache == PageCache::Memory);

    step(FileWork::WriteSmall.shown());
    let content = noise(usize::try_from(plan.small_file_bytes).unwrap_or(usize::MAX));
    let mut pass = Pass::begin(
        FileWork::WriteSmall,
        FileAccess::ReadWrite,
        plan.pass_within,
    );
    let mut written = 0;
    while written < plan.small_files {
        let write = || -> io::Result<()> {
            let mut file = File::create_new(path(written))?;
            file.write_all(&content)?;
            sync_data(&file)
        };
        write().map_err(failed("write small files"))?;
        written += 1;
        if !pass.done(content.len()) {
            break;
        }
    }
    passes.push(pass.end(
        all,
        Some(written),
        if in_memory {
            PageCache::Memory
        } else {
            PageCache::Synced
        },
    ));

    for number in 0..written {
        if let Ok(file) = File::open(path(number)) {
            forget_cached(&file);
        }
    }
    step(FileWork::ReadSmall.shown());
    let mut buffer = Vec::with_capacity(content.len() + 1);
    let mut pass = Pass::begin(FileWork::ReadSmall, FileAccess::ReadWrite, plan.pass_within);
    let mut read = 0;
    while read < written {
        buffer.clear();
        let count = File::open(path(read)).and_then(|mut file| file.read_to_end(&mut buffer));
        let count = count.map_err(failed("read small files"))?;
        read += 1;
        if !pass.done(count) {
            break;
        }
    }
    passes.push(pass.end(
        all,
        Some(read),
        if in_memory {
            PageCache::Memory
        } else {
            PageCache::Forgotten
        },
    ));
    Ok(())
}
