//! work-permit beside what a user would otherwise pick, on the same work.
//!
//! | module | what it has |
//! |---|---|
//! | [`groups`] | the questions: settings, subjects, what is measured, and what is to be reached |
//! | `adapters` | one adapter for each peer, behind the small traits of `adapter` |
//! | `harness` | closed loops, calibrated work, CPU time, percentiles |
//! | [`criterion_bench`] | a group as criterion benchmarks, for regressions |
//! | [`report`] | all groups in interleaved rounds: one table of ratios, and plots |
//! | [`allocations`] | allocations a call |
//! | [`experiments`] | what databases measured when they changed who runs the work, done again |
//!
//! Criterion runs one subject after the other, so its figures compare a subject with its own past. Only the
//! report, which interleaves, compares subjects with each other.

mod adapter;
mod adapters;
pub mod allocations;
pub mod criterion_bench;
pub mod experiments;
pub mod groups;
mod harness;
pub mod report;
