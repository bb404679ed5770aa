#![doc = include_str!("../README.md")]

mod builder;
mod chooser;
mod counters;
mod dispatched;
mod draws;
mod engine;
mod error;
mod executor;
pub mod fitness;
mod gate;
mod join;
mod lease;
mod line;
mod operations;
mod permit;
mod permits;
mod pool;
mod pool_builder;
mod pool_handle;
mod roster;
mod scope;
mod stats;
mod stripes;
mod sync;
mod task;
mod thread_index;
mod unrun;
mod waits;

pub use builder::{ExecutorBuilder, Inline};
pub use chooser::{Chooser, Load, Policy};
pub use dispatched::{Dispatched, DispatchedFuture};
pub use error::{ConfigError, JoinError, Panic, Reason, Rejected, Unfinished};
pub use executor::Executor;
pub use join::JoinHandle;
pub use operations::Operations;
pub use permit::{OwnedPermit, Permit};
pub use pool_builder::PoolBuilder;
pub use pool_handle::Pool;
pub use roster::Roster;
pub use scope::{Scope, ScopedDispatched, ScopedJoinHandle};
#[cfg(feature = "histogram")]
pub use stats::QueueWait;
pub use stats::{PoolStats, Refused, Stats};
pub use stripes::Stripes;
pub use unrun::Unrun;
