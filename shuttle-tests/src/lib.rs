//! Whole executors under shuttle: four to eight threads that call everything, scheduled at random.
//!
//! Loom goes through every schedule of two or three threads (`loom-tests`); here are models too large for that.
//! A run proves nothing, but it repeats: a failure prints its schedule. What shuttle does not know is weak
//! memory (every atomic is sequentially consistent) and time (a deadline never passes).
//!
//! ```text
//! cargo test --release --manifest-path shuttle-tests/Cargo.toml
//! SHUTTLE_SCHEDULES=100000 cargo test --release --manifest-path shuttle-tests/Cargo.toml
//! ```
//!
//! The crate compiles the modules of work-permit once more, but for `src/sync`, in whose place stands [`sync`].

mod sync;

#[cfg(test)]
mod models;

/// The modules of `src/lib.rs`, at the same place: `crate::gate` is the same module in both crates.
macro_rules! own {
    ($($path:tt $name:ident;)*) => { $(
        #[path = $path]
        #[allow(dead_code, unreachable_pub, unused_imports)]
        #[allow(clippy::absurd_extreme_comparisons)] // a count is 0 in a model
        mod $name;
    )* };
}

own! {
    "../../src/builder.rs" builder;
    "../../src/counters.rs" counters;
    "../../src/dispatched.rs" dispatched;
    "../../src/engine/mod.rs" engine;
    "../../src/error.rs" error;
    "../../src/executor/mod.rs" executor;
    "../../src/fitness.rs" fitness;
    "../../src/gate/mod.rs" gate;
    "../../src/join.rs" join;
    "../../src/lease.rs" lease;
    "../../src/line.rs" line;
    "../../src/operations.rs" operations;
    "../../src/permit.rs" permit;
    "../../src/permits/mod.rs" permits;
    "../../src/pool/mod.rs" pool;
    "../../src/pool_builder.rs" pool_builder;
    "../../src/pool_handle.rs" pool_handle;
    "../../src/scope/mod.rs" scope;
    "../../src/stats.rs" stats;
    "../../src/task/mod.rs" task;
    "../../src/thread_index.rs" thread_index;
    "../../src/unrun.rs" unrun;
    "../../src/waits.rs" waits;
}
