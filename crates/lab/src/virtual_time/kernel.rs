//! Which file is the kernel of laboratories in virtual time.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Names it where no option does.
pub const KERNEL_VARIABLE: &str = "PLUMB_LAB_KERNEL";

/// What it is called, wherever it is.
const FILE: &str = "plumb-lab-kernel";

/// Where a package puts it.
const INSTALLED: &str = "/usr/lib/plumb";

/// What to do where there is none.
const HOW_TO_GET_ONE: &str = "install the package plumb-lab-kernel, or build one in plumb's source with \
    lab-kernel/build.sh, and name it with --kernel FILE; a lab in real time needs none (leave --virtual out)";

/// The kernel that was named, or else the first that is there: in the environment, beside the program, in `target/`,
/// in the user's cache, installed.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, LabError> {
    if !cfg!(target_arch = "x86_64") {
        let why = "virtual time needs an x86-64 machine (User Mode Linux): leave --virtual out";
        return Err(LabError::Virtual(why.into()));
    }
    let from_environment = std::env::var_os(KERNEL_VARIABLE).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or(from_environment) {
        return usable(&path).map_err(|why| {
            LabError::Virtual(format!(
                "the lab's kernel {} {why}: {HOW_TO_GET_ONE}",
                path.display()
            ))
        });
    }
    let program = std::env::current_exe()?;
    let places = places(
        &program,
        std::env::var_os("XDG_CACHE_HOME").as_deref(),
        std::env::var_os("HOME").as_deref(),
    );
    let mut found = places.iter().filter_map(|path| usable(path).ok());
    found.next().ok_or_else(|| {
        LabError::Virtual(format!(
            "there is no kernel for labs in virtual time: {HOW_TO_GET_ONE}"
        ))
    })
}

/// Where it is looked for without a name, in order.
fn places(program: &Path, cache: Option<&OsStr>, home: Option<&OsStr>) -> Vec<PathBuf> {
    let folder = program.parent();
    // Beside the program; and in target/ for target/debug/plumb, for a test's target/debug/deps/…, and for a target's own
    // folder.
    let near = folder
        .into_iter()
        .flat_map(|folder| folder.ancestors().take(4));
    let cache = cache
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(home?).join(".cache")));
    let mut places: Vec<PathBuf> = near.map(|folder| folder.join(FILE)).collect();
    places.extend(cache.map(|cache| cache.join("plumb").join(FILE)));
    places.push(Path::new(INSTALLED).join(FILE));
    places
}

/// The absolute path of a file that can be run, or what is wrong with it.
fn usable(path: &Path) -> Result<PathBuf, String> {
    let path = fs::canonicalize(path).map_err(|e| format!("cannot be read ({e})"))?;
    let data = fs::metadata(&path).map_err(|e| format!("cannot be read ({e})"))?;
    match data.is_file() && data.permissions().mode() & 0o111 != 0 {
        true => Ok(path),
        false => Err("is no program".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_is_looked_for_near_the_program_first_and_installed_last() {
        let places = places(
            Path::new("/w/target/debug/plumb"),
            None,
            Some(OsStr::new("/home/a")),
        );
        let first = places.first().unwrap();
        assert_eq!(first, Path::new("/w/target/debug/plumb-lab-kernel"));
        assert!(places.contains(&PathBuf::from("/w/target/plumb-lab-kernel")));
        assert!(places.contains(&PathBuf::from("/home/a/.cache/plumb/plumb-lab-kernel")));
        assert_eq!(
            places.last().unwrap(),
            Path::new("/usr/lib/plumb/plumb-lab-kernel")
        );
    }

    #[test]
    fn what_is_no_program_is_refused_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        for (path, why) in [
            (folder.path().to_owned(), "no program"),
            (folder.path().join("none"), "cannot be read"),
        ] {
            let error = find(Some(&path)).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("--kernel"), "{error}");
        }
    }
}
