//! The stores of the experiments: partitions of keys and values.

use redb::{Database, Durability, TableDefinition};
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a value.
pub(super) const VALUE: usize = 100;

/// Stores by partition; a partition is used by one thread at a time.
pub(super) trait Store: Send + Sync + Sized + 'static {
    fn new(partitions: usize) -> Self;
    fn put(&self, partition: usize, key: u64, value: &[u8; VALUE]);
    fn get(&self, partition: usize, key: u64) -> Option<[u8; VALUE]>;
}

type Partition = HashMap<u64, [u8; VALUE]>;

/// A map for each partition.
pub(super) struct InMemory(Vec<Mutex<Partition>>);

impl InMemory {
    fn lock(&self, partition: usize) -> MutexGuard<'_, Partition> {
        self.0[partition].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for InMemory {
    fn new(partitions: usize) -> Self {
        Self((0..partitions).map(|_| Mutex::default()).collect())
    }

    fn put(&self, partition: usize, key: u64, value: &[u8; VALUE]) {
        self.lock(partition).insert(key, *value);
    }

    fn get(&self, partition: usize, key: u64) -> Option<[u8; VALUE]> {
        self.lock(partition).get(&key).copied()
    }
}

type Outcome<T> = Result<T, Box<dyn Error>>;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("values");

/// Puts between two that are made durable: redb frees pages only then.
const DURABLE_EVERY: u64 = 1024;

/// redb, an embedded engine: one file, a transaction a call.
pub(super) struct Redb {
    database: Option<Database>,
    file: PathBuf,
    puts: AtomicU64,
}

impl Redb {
    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is open until the drop")
    }

    fn try_put(&self, key: u64, value: &[u8]) -> Outcome<()> {
        let mut transaction = self.database().begin_write()?;
        let durable = self.puts.fetch_add(1, Relaxed) % DURABLE_EVERY == 0;
        transaction.set_durability(if durable { Durability::Eventual } else { Durability::None });
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn try_get(&self, key: u64) -> Outcome<Option<[u8; VALUE]>> {
        let table = self.database().begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.and_then(|found| found.value().try_into().ok()))
    }
}

impl Store for Redb {
    fn new(_partitions: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let name = format!("work-permit-bench-{}-{number}.redb", std::process::id());
        let file = std::env::temp_dir().join(name);
        let database = Database::create(&file).expect("the folder for temporary files is there");
        Self { database: Some(database), file, puts: AtomicU64::new(0) }
    }

    fn put(&self, _partition: usize, key: u64, value: &[u8; VALUE]) {
        self.try_put(key, value).expect("the engine writes");
    }

    fn get(&self, _partition: usize, key: u64) -> Option<[u8; VALUE]> {
        self.try_get(key).expect("the engine reads")
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        drop(self.database.take());
        // A file that is gone already is as good.
        let _gone = std::fs::remove_file(&self.file);
    }
}
