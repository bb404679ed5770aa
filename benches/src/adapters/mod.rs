//! The adapters, one file for each kind of peer.

pub(crate) mod bare;
pub(crate) mod channels;
pub(crate) mod generators;
pub(crate) mod ours;
pub(crate) mod pools;
pub(crate) mod semaphores;
pub(crate) mod tokio_recipes;
pub(crate) mod tower_limit;
