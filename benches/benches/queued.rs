//! Regressions of `execute_throughput` and `spawn_join`: queued tasks in a stream without handles, and one at a time
//! with its result.
//!
//! Compared: the time a task takes, with its own past. Not compared: percentiles of the round trip, which the report
//! has, and subjects with each other.

fn main() {
    work_permit_benches::criterion_bench::main(&["execute_throughput", "spawn_join"]);
}
