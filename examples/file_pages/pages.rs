//! The pages of a file, read through an executor.

use super::cache;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use work_permit::{Dispatched, Executor, Reason};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// A read that is done, or queued.
pub(crate) type Read = Dispatched<io::Result<Vec<u8>>>;

/// See the module's text.
pub(crate) struct Pages {
    file: Arc<File>,
    count: u64,
    reads: Executor,
}

impl Pages {
    pub(crate) fn open(path: &Path, reads: Executor) -> io::Result<Self> {
        let file = File::open(path)?;
        cache::expect_no_order(&file);
        let count = file.metadata()?.len().div_ceil(PAGE as u64);
        Ok(Self { file: Arc::new(file), count, reads })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The page of this number; shorter at the end of the file, empty beyond it.
    pub(crate) fn read(&self, page: u64) -> Result<Read, Reason> {
        // No file is as long; and the largest number of all would mean something else to the system.
        let start = page.saturating_mul(PAGE as u64).min(i64::MAX as u64);
        let attempt = || match cache::read(&self.file, start) {
            Some(done) => Ok(done),
            None => {
                let file = Arc::clone(&self.file);
                Err(move || read_waiting(&file, start))
            }
        };
        self.reads.speculate(attempt).map_err(|refused| refused.into_reason())
    }

    /// Asks the system to forget what it has cached of the file; it may not.
    pub(crate) fn forget_cached(&self) -> io::Result<()> {
        cache::forget(&self.file)
    }
}

/// Reads a page, however long it takes.
fn read_waiting(file: &File, start: u64) -> io::Result<Vec<u8>> {
    let mut page = vec![0; PAGE];
    let mut length = 0;
    while length < PAGE {
        match read_at(file, &mut page[length..], start.saturating_add(length as u64)) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    page.truncate(length);
    Ok(page)
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], start: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, start)
}

#[cfg(windows)]
fn read_at(file: &File, into: &mut [u8], start: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, start)
}
