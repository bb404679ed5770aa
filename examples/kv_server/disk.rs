//! Values in redb. A SET is a transaction of its own; what was written is made durable once a
//! second, and when much has piled up, as Redis does with `appendfsync everysec`. A server that
//! is killed may lose that last second, never more, and never a part of a transaction.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use redb::{Database, Durability, ReadableTable, ReadableTableMetadata, Table, TableDefinition};

use super::store::{StoreError, Value};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("values");
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// The engine frees pages only in a durable commit, so the file would grow without this bound.
const FLUSH_AFTER: usize = 16 << 20;
/// About what one transaction rewrites besides its value: a path of 4 KiB pages.
const PATH_BYTES: usize = 16 << 10;

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        StoreError::Engine(error.into().to_string())
    }
}

#[derive(Debug)]
struct Engine {
    database: Database,
    /// Bytes written since the last durable commit.
    dirty: AtomicUsize,
}

impl Engine {
    /// Runs `change` in a transaction; `bytes` is about what it writes.
    fn write<R>(
        &self,
        bytes: usize,
        change: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut transaction = self.database.begin_write()?;
        let dirty = self.dirty.fetch_add(bytes, Relaxed) + bytes;
        let durable = dirty >= FLUSH_AFTER;
        transaction.set_durability(if durable { Durability::Immediate } else { Durability::None });
        let result = {
            let mut table = transaction.open_table(TABLE)?;
            change(&mut table)?
        };
        transaction.commit()?;
        // Not a store of zero: the next writer may have counted already.
        if durable {
            self.dirty.fetch_sub(dirty, Relaxed);
        }
        Ok(result)
    }

    /// Makes durable whatever was written.
    fn flush(&self) -> Result<(), StoreError> {
        if self.dirty.load(Relaxed) == 0 {
            return Ok(());
        }
        self.write(FLUSH_AFTER, |_| Ok(()))
    }
}

#[derive(Debug)]
pub(crate) struct Disk {
    engine: Arc<Engine>,
    /// Dropping the sender ends the flusher.
    flusher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Disk {
    pub(crate) fn open(directory: &Path, cache: usize) -> Result<Self, StoreError> {
        let failed =
            |error: std::io::Error| StoreError::Engine(format!("{}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        let database =
            Database::builder().set_cache_size(cache).create(directory.join("values.redb"))?;
        let engine = Arc::new(Engine { database, dirty: AtomicUsize::new(0) });
        // The first write makes the table, so that every read finds one.
        engine.write(FLUSH_AFTER, |_| Ok(()))?;
        let (sender, stop) = mpsc::channel();
        let flushed = Arc::clone(&engine);
        let thread = thread::Builder::new()
            .name("kv-flush".into())
            .spawn(move || {
                while stop.recv_timeout(FLUSH_EVERY) == Err(RecvTimeoutError::Timeout) {
                    report(flushed.flush());
                }
                report(flushed.flush());
            })
            .map_err(failed)?;
        Ok(Self { engine, flusher: Some((sender, thread)) })
    }

    fn read(&self) -> Result<impl ReadableTable<&'static [u8], &'static [u8]>, StoreError> {
        Ok(self.engine.database.begin_read()?.open_table(TABLE)?)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>, StoreError> {
        Ok(self.read()?.get(key)?.map(|found| Arc::from(found.value())))
    }

    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.engine.write(PATH_BYTES + key.len() + value.len(), |table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    pub(crate) fn delete(&self, keys: &[Box<[u8]>]) -> Result<usize, StoreError> {
        self.engine.write(PATH_BYTES.saturating_mul(keys.len()), |table| {
            let mut deleted = 0;
            for key in keys {
                deleted += usize::from(table.remove(&**key)?.is_some());
            }
            Ok(deleted)
        })
    }

    pub(crate) fn count(&self, keys: &[Box<[u8]>]) -> Result<usize, StoreError> {
        let table = self.read()?;
        let mut count = 0;
        for key in keys {
            count += usize::from(table.get(&**key)?.is_some());
        }
        Ok(count)
    }

    pub(crate) fn keys(&self) -> Result<u64, StoreError> {
        Ok(self.engine.database.begin_read()?.open_table(TABLE)?.len()?)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.flusher.take() {
            drop(sender);
            if thread.join().is_err() {
                eprintln!("the flusher panicked");
            }
        }
    }
}

/// There is no caller to tell: a failed flush goes to the log, and the next one tries again.
fn report(flushed: Result<(), StoreError>) {
    if let Err(error) = flushed {
        eprintln!("flush: {error}");
    }
}
