//! The files of graphs: what is drawn is gathered and appended, so that no file stays open and memory is bounded.

use std::io;

/// Text of one file that is gathered at most, in bytes.
const MOST_OF_ONE: usize = 64 << 10;
/// Text of all files that is gathered at most, in bytes.
const MOST_OF_ALL: usize = 32 << 20;

/// Where files are written to.
pub trait Folder {
    /// Appends to a file, which is made where there is none.
    ///
    /// # Errors
    /// When that cannot be done.
    fn append(&mut self, name: &str, text: &[u8]) -> io::Result<()>;
}

/// A file, and what is gathered for it.
struct Sheet {
    name: String,
    text: String,
}

/// Place of a file among all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(usize);

/// All files of an export.
pub(super) struct Sheets<F> {
    folder: F,
    sheets: Vec<Sheet>,
    gathered: usize,
    failed: Option<io::Error>,
}

impl<F: Folder> Sheets<F> {
    pub(super) fn new(folder: F) -> Self {
        Self {
            folder,
            sheets: Vec::new(),
            gathered: 0,
            failed: None,
        }
    }

    /// Begins a file with its head.
    pub(super) fn begin(&mut self, name: String, head: String) -> Place {
        self.gathered += head.len();
        self.sheets.push(Sheet { name, text: head });
        Place(self.sheets.len() - 1)
    }

    /// Draws in a file.
    pub(super) fn draw(&mut self, Place(place): Place, draw: impl FnOnce(&mut String)) {
        let Some(sheet) = self.sheets.get_mut(place) else {
            return;
        };
        let before = sheet.text.len();
        draw(&mut sheet.text);
        self.gathered += sheet.text.len() - before;
        if sheet.text.len() > MOST_OF_ONE {
            self.put(place);
        } else if self.gathered > MOST_OF_ALL {
            self.put_all();
        }
    }

    fn put(&mut self, place: usize) {
        let Some(sheet) = self.sheets.get_mut(place) else {
            return;
        };
        let text = std::mem::take(&mut sheet.text);
        self.gathered -= text.len();
        if self.failed.is_none() && !text.is_empty() {
            self.failed = self.folder.append(&sheet.name, text.as_bytes()).err();
        }
    }

    fn put_all(&mut self) {
        for place in 0..self.sheets.len() {
            self.put(place);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends every file, and writes what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        for sheet in &mut self.sheets {
            sheet.text.push_str("go\n");
            self.gathered += "go\n".len();
        }
        self.put_all();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
