//! The system's page cache.

pub(crate) use imp::{expect_no_order, forget, read};

#[cfg(target_os = "linux")]
mod imp {
    use super::super::pages::PAGE;
    use rustix::fs::{Advice, fadvise};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use std::fs::File;
    use std::io::{self, IoSliceMut};

    /// A page that is in memory. `None`: somebody would have to wait for the disk, or cannot tell.
    pub(crate) fn read(file: &File, start: u64) -> Option<io::Result<Vec<u8>>> {
        let mut page = vec![0; PAGE];
        let mut length = 0;
        while length < PAGE {
            let into = &mut [IoSliceMut::new(&mut page[length..])];
            let at = start.saturating_add(length as u64);
            match preadv2(file, into, at, ReadWriteFlags::NOWAIT) {
                Ok(0) => break,
                // The first part may be there and the second not.
                Ok(more) => length += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
        page.truncate(length);
        Some(Ok(page))
    }

    /// Pages will be read in no order: the system need not read others on the off chance.
    pub(crate) fn expect_no_order(file: &File) {
        let _only_slower = fadvise(file, 0, None, Advice::Random);
    }

    /// Drops what is cached of the file and is on the disk already.
    pub(crate) fn forget(file: &File) -> io::Result<()> {
        Ok(fadvise(file, 0, None, Advice::DontNeed)?)
    }
}

/// Elsewhere nobody can ask: every read may wait.
#[cfg(not(target_os = "linux"))]
mod imp {
    use std::fs::File;
    use std::io;

    pub(crate) fn read(_file: &File, _start: u64) -> Option<io::Result<Vec<u8>>> {
        None
    }

    pub(crate) fn expect_no_order(_file: &File) {}

    pub(crate) fn forget(_file: &File) -> io::Result<()> {
        Ok(())
    }
}
