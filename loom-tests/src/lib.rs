//! Harness of the loom models.
//!
//! A model is a closure that loom runs once for every interleaving of its threads (and for every
//! value that a weak load may return). [`model`] explores one, prints how many executions that
//! took, and fails when the number is not the expected one: a model that stops exploring (a thread
//! that no longer races, a branch that is never reached) passes every assertion in it, and only
//! its count shows it.
//!
//! | size | preemptions | use |
//! |---|---|---|
//! | [`Size::Proof`] | any number | the proof: two threads, one or two operations each |
//! | [`Size::Wide`] | at most 3 | the second line: three threads |
//! | [`Size::Huge`] | at most 1 | four threads; mark the test `#[ignore]` when it is slow |
//!
//! Run the models with `.ci/test`, or alone, from the top of the repository:
//!
//! ```text
//! RUSTFLAGS="--cfg work_permit_loom" CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
//!     CARGO_TARGET_DIR=target/loom cargo test --release -p loom-tests -- --nocapture
//! ```
//!
//! `LOOM_COUNTS=1` in the environment prints the counts and does not judge them. Use it to find
//! the range of a new model, or after a change that adds or removes an atomic operation; write a
//! range around what it prints, and be able to say why the count moved.
//!
//! The bounds come from [`Size`] alone. The harness overrides loom's variables for the length of an
//! exploration (`LOOM_MAX_PREEMPTIONS`, `LOOM_MAX_PERMUTATIONS`, `LOOM_MAX_DURATION`,
//! `LOOM_MAX_BRANCHES`), because loom reports an exploration that was cut short as a success.
//! `LOOM_LOG`, `LOOM_LOCATION` and the `LOOM_CHECKPOINT_…` variables work as usual.
//!
//! The models reach what is private in work-permit because this crate compiles the same files once
//! more: see `own`. Each floor has its file of models in `loom-tests/src/models`; the README says
//! what is modelled, what is not and why.
//!
//! Without `--cfg work_permit_loom` this crate is empty.

#[cfg(work_permit_loom)]
mod harness;
#[cfg(work_permit_loom)]
pub use harness::{Size, model};

#[cfg(all(test, work_permit_loom))]
mod models;

/// The modules of `src/lib.rs`, at the same place: `crate::gate` is the same module in both crates.
/// What is public there is not used here, and what only the standard library's build uses neither.
macro_rules! own {
    ($($path:tt $name:ident;)*) => { $(
        #[cfg(work_permit_loom)]
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
    "../../src/sync/mod.rs" sync;
    "../../src/task/mod.rs" task;
    "../../src/thread_index.rs" thread_index;
    "../../src/unrun.rs" unrun;
    "../../src/waits.rs" waits;
}
