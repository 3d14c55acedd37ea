//! How many files may be open; every socket is one.

use plumb_model::results::host::FileLimits;

use super::Source;

pub(super) fn limits(source: &mut Source) -> FileLimits {
    // fs.file-nr: open, free (always 0 since Linux 2.6), most.
    let text = source.text("/proc/sys/fs/file-nr").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    let open = numbers.next().flatten();
    let process = plumb_net::file::descriptor_limits();
    FileLimits {
        open,
        open_max: numbers.nth(1).flatten(),
        per_process: process.map(|(soft, _)| soft),
        per_process_max: process.map(|(_, hard)| hard),
    }
}
