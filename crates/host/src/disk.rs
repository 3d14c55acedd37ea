//! How fast the files of a folder can feed a transfer, and take one.
//!
//! A large nameless file is written and read by read and write, mmap and sendfile, and many small ones are written and
//! read. Memory must not stand in for the disk: either the page cache is bypassed (O_DIRECT), or the kernel is asked to
//! drop the file from it and mincore shows whether it did. Where neither is possible, as on tmpfs, the result says that
//! it is the speed of memory. Sizes and times are bounded, and nothing is left behind.

mod large;
mod pass;
mod small;

use std::path::Path;

use plumb_model::results::host::DiskResult;

pub use pass::{BLOCK_BYTES, DiskError, Plan};

/// Share of the free space that may be used.
const FREE_RATIO: f64 = 0.5;

/// Does all passes; `step` is called with a description before each of them.
///
/// # Errors
/// When the folder cannot be written to, has no room, or the disk fails.
pub fn measure(plan: &Plan, step: &dyn Fn(&str)) -> Result<DiskResult, DiskError> {
    let folder = plan.folder.display().to_string();
    let in_folder = |source| DiskError::Folder {
        folder: folder.clone(),
        source,
    };
    let Some(free_bytes) = plumb_net::file::free_bytes(&plan.folder).map_err(in_folder)? else {
        return Err(DiskError::NoDisk {
            kind: file_system(&plan.folder).unwrap_or_else(|| "of an unknown kind".to_owned()),
            folder,
        });
    };
    let file_bytes = plan
        .file_bytes
        .next_multiple_of(BLOCK_BYTES as u64)
        .max(BLOCK_BYTES as u64);
    let small = plan.small_files.saturating_mul(plan.small_file_bytes);
    let needed_bytes = file_bytes.saturating_add(small);
    if needed_bytes as f64 > free_bytes as f64 * FREE_RATIO {
        return Err(DiskError::Full {
            folder,
            free_bytes,
            needed_bytes,
        });
    }
    let mut passes = Vec::new();
    large::passes(plan, file_bytes, step, &mut passes)?;
    small::passes(plan, step, &mut passes)?;
    Ok(DiskResult {
        file_system: file_system(&plan.folder),
        folder,
        file_bytes,
        small_files: plan.small_files,
        small_file_bytes: plan.small_file_bytes,
        passes,
        rate_bps: plan.rate_bps,
    })
}

/// The kind of the file system that a folder is in.
fn file_system(folder: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(folder).ok()?;
    let text = std::fs::read_to_string("/proc/thread-self/mountinfo").ok()?;
    file_system_of(&text, &folder)
}

/// proc_pid_mountinfo(5): the fifth field is the mount point, the first after a lone dash the kind.
/// The last of the longest prefixes lies on top.
fn file_system_of(mountinfo: &str, folder: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, device) = line.split_once(" - ")?;
        let point = Path::new(mount.split(' ').nth(4)?);
        let kind = device.split(' ').next()?;
        folder
            .starts_with(point)
            .then(|| (point.as_os_str().len(), kind.to_owned()))
    });
    mounts
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::host::{DiskPass, FileAccess, FileWork};
    use proptest::prelude::*;
    use std::time::Duration;

    /// Faster than one processor copies on any machine: 250 GB/s.
    const MEMORY_BPS: f64 = 2e12;

    fn plan(folder: &Path) -> Plan {
        Plan {
            folder: folder.to_owned(),
            file_bytes: 3 << 20,
            small_files: 5,
            small_file_bytes: 1000,
            pass_within: Duration::from_secs(20),
            rate_bps: None,
        }
    }

    #[test]
    fn every_way_moves_every_byte_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let result = measure(&plan(folder.path()), &|_| {}).unwrap();
        let of = |work, access| {
            let found = result
                .passes
                .iter()
                .find(|p| p.work == work && p.access == access);
            found.map(|p| p.bytes)
        };
        for (work, access) in [
            (FileWork::WriteLarge, FileAccess::ReadWrite),
            (FileWork::ReadLarge, FileAccess::ReadWrite),
            (FileWork::WriteLarge, FileAccess::Mmap),
            (FileWork::ReadLarge, FileAccess::Mmap),
            (FileWork::ReadLarge, FileAccess::Sendfile),
        ] {
            assert_eq!(of(work, access), Some(3 << 20), "{work:?} {access:?}");
        }
        assert_eq!(of(FileWork::WriteSmall, FileAccess::ReadWrite), Some(5000));
        assert_eq!(of(FileWork::ReadSmall, FileAccess::ReadWrite), Some(5000));
        assert!(result.passes.iter().all(|p| p.bps > 0.0 && !p.cut_short));
        // A copy that the compiler left out takes no time. It is an optimised build that would show it.
        let too_fast = |p: &&DiskPass| p.bps > MEMORY_BPS;
        assert_eq!(result.passes.iter().find(too_fast), None);
        assert!(result.file_system.is_some());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn time_ends_a_pass() {
        let folder = tempfile::tempdir().unwrap();
        let short = Plan {
            pass_within: Duration::ZERO,
            ..plan(folder.path())
        };
        let result = measure(&short, &|_| {}).unwrap();
        assert!(result.passes.iter().all(|p| p.cut_short), "{result:?}");
    }

    #[test]
    fn no_room_and_no_folder_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let huge = Plan {
            file_bytes: 1 << 60,
            ..plan(folder.path())
        };
        let full = measure(&huge, &|_| {}).unwrap_err();
        assert!(matches!(full, DiskError::Full { .. }));
        assert!(full.to_string().contains("1152922 TB are needed"), "{full}");
        let gone = measure(&plan(Path::new("/no/such/folder")), &|_| {});
        assert!(gone.unwrap_err().to_string().contains("may write"));
        let kernels = measure(&plan(Path::new("/proc")), &|_| {}).unwrap_err();
        assert_eq!(
            kernels.to_string(),
            "/proc has no room for files at all (proc): name a folder on a disk"
        );
    }

    #[test]
    fn the_mount_on_top_counts() {
        let text = "1 0 8:1 / / rw - ext4 /dev/vda rw\n2 1 0:5 / /dev/shm rw - tmpfs tmpfs rw\n3 1 8:2 / /srv rw shared:1 - xfs /dev/vdb rw\n";
        let of = |path: &str| file_system_of(text, Path::new(path));
        assert_eq!(of("/dev/shm/x").as_deref(), Some("tmpfs"));
        assert_eq!(of("/srv").as_deref(), Some("xfs"));
        assert_eq!(of("/srvx").as_deref(), Some("ext4"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "([ /a-z0-9:-]{0,40}\n){0,5}") {
            let _ = file_system_of(&text, Path::new("/a/b"));
        }
    }
}
