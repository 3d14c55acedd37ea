//! How fast files of this machine feed a transfer and take one.

use plumb_model::results::host::DiskResult;
use plumb_model::run::Run;

use crate::number;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for DiskResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Files, [table(&all)]);
    }
}

fn table(all: &[&DiskResult]) -> Table {
    let title = all.last().map(|disk| {
        let system = disk.file_system.as_deref();
        format!(
            "Files in {} ({})",
            disk.folder,
            system.unwrap_or("unknown file system")
        )
    });
    Table::of(
        title.unwrap_or_default(),
        all.iter().flat_map(|disk| &disk.passes),
    )
    .text("", |pass| pass.work.shown())
    .text("by", |pass| pass.access.shown())
    .text("page cache", |pass| pass.cache.shown())
    .num("rate", |pass| number::rate(pass.bps))
    .num("bytes/s", |pass| number::bytes(pass.bps / 8.0))
    .num("files/s", |pass| {
        blank(pass.files_per_s.map(|v| number::plain(v.round())))
    })
    .num("moved", |pass| number::bytes(pass.bytes as f64))
    .text("", |pass| if pass.cut_short { "cut short" } else { "" })
    .done()
}
