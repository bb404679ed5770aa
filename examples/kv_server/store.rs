//! Keys and values: in memory under a bound, or in an embedded engine on disk.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::{config::Config, disk::Disk};

const SHARDS: usize = 64;
/// What an entry costs beside its key and value: table slots, two allocations, counts.
const ENTRY_OVERHEAD: usize = 128;

pub(crate) type Value = Arc<[u8]>;

#[derive(Debug)]
pub(crate) enum StoreError {
    OutOfMemory,
    /// The engine's own words.
    Engine(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::OutOfMemory => f.write_str("OOM the values would exceed --max-memory"),
            StoreError::Engine(text) => write!(f, "ERR the storage engine failed: {text}"),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Store {
    Memory(Memory),
    Disk(Disk),
}

impl Store {
    pub(crate) fn open(config: &Config) -> Result<Self, StoreError> {
        Ok(match &config.data {
            Some(directory) => Store::Disk(Disk::open(directory, config.max_memory)?),
            None => Store::Memory(Memory::new(config.max_memory)),
        })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>, StoreError> {
        match self {
            Store::Memory(memory) => Ok(memory.get(key)),
            Store::Disk(disk) => disk.get(key),
        }
    }

    /// As `get`; `None`: that would wait, for a disk or for somebody who is at the same part of the memory.
    pub(crate) fn try_get(&self, key: &[u8]) -> Option<Option<Value>> {
        match self {
            Store::Memory(memory) => memory.try_get(key),
            Store::Disk(_) => None,
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Store::Memory(_))
    }

    pub(crate) fn set(&self, key: Box<[u8]>, value: Value) -> Result<(), StoreError> {
        match self {
            Store::Memory(memory) => memory.set(key, value),
            Store::Disk(disk) => disk.set(&key, &value),
        }
    }

    /// How many of `keys` there were.
    pub(crate) fn delete(&self, keys: &[Box<[u8]>]) -> Result<usize, StoreError> {
        match self {
            Store::Memory(memory) => Ok(keys.iter().filter(|key| memory.delete(key)).count()),
            Store::Disk(disk) => disk.delete(keys),
        }
    }

    /// How many of `keys` there are; a key that is named twice counts twice.
    pub(crate) fn count(&self, keys: &[Box<[u8]>]) -> Result<usize, StoreError> {
        match self {
            Store::Memory(memory) => Ok(keys.iter().filter(|key| memory.contains(key)).count()),
            Store::Disk(disk) => disk.count(keys),
        }
    }

    pub(crate) fn keys(&self) -> Result<u64, StoreError> {
        match self {
            Store::Memory(memory) => Ok(memory.keys()),
            Store::Disk(disk) => disk.keys(),
        }
    }

    /// Bytes that count against `--max-memory`; on disk that bounds the engine's cache instead.
    pub(crate) fn used_memory(&self) -> usize {
        match self {
            Store::Memory(memory) => memory.used.load(Relaxed),
            Store::Disk(_) => 0,
        }
    }

    pub(crate) fn engine(&self) -> &'static str {
        match self {
            Store::Memory(_) => "memory",
            Store::Disk(_) => "redb",
        }
    }
}

type Shard = HashMap<Box<[u8]>, Value>;

#[derive(Debug)]
pub(crate) struct Memory {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    used: AtomicUsize,
    max: usize,
}

impl Memory {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            used: AtomicUsize::new(0),
            max,
        }
    }

    fn lock_of(&self, key: &[u8]) -> &Mutex<Shard> {
        let index = self.hasher.hash_one(key) % SHARDS as u64;
        &self.shards[index as usize]
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        // A map is whole between its calls: a panic elsewhere does not spoil it.
        self.lock_of(key).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_get(&self, key: &[u8]) -> Option<Option<Value>> {
        match self.lock_of(key).try_lock() {
            Ok(shard) => Some(shard.get(key).map(Arc::clone)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(poisoned.into_inner().get(key).map(Arc::clone))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn get(&self, key: &[u8]) -> Option<Value> {
        self.shard(key).get(key).map(Arc::clone)
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.shard(key).contains_key(key)
    }

    fn set(&self, key: Box<[u8]>, value: Value) -> Result<(), StoreError> {
        let key_len = key.len();
        // What was there before is freed after the lock.
        let _before = match self.shard(&key).entry(key) {
            Entry::Occupied(mut entry) => {
                let before = entry.get().len();
                self.reserve(value.len().saturating_sub(before))?;
                self.used.fetch_sub(before.saturating_sub(value.len()), Relaxed);
                Some(entry.insert(value))
            }
            Entry::Vacant(entry) => {
                self.reserve(key_len + value.len() + ENTRY_OVERHEAD)?;
                entry.insert(value);
                None
            }
        };
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> bool {
        let Some(value) = self.shard(key).remove(key) else {
            return false;
        };
        self.used.fetch_sub(key.len() + value.len() + ENTRY_OVERHEAD, Relaxed);
        true
    }

    fn keys(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len() as u64)
            .sum()
    }

    /// Counts `bytes` more, unless that is too many.
    fn reserve(&self, bytes: usize) -> Result<(), StoreError> {
        self.used
            .fetch_update(Relaxed, Relaxed, |used| {
                used.checked_add(bytes).filter(|&total| total <= self.max)
            })
            .map(drop)
            .map_err(|_| StoreError::OutOfMemory)
    }
}
