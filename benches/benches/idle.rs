//! Regressions of `start_after_idle` and `trickle_cpu`: a pool with next to nothing to do.
//!
//! Compared: with its own past, the time from submit to start after 5 ms without a task, and the CPU time (not the
//! time) that 5 ms with nothing, or with one empty task, cost the process. Criterion asks for more repetitions than
//! there is time to sleep through: at most ten are measured in a sample, the rest is extrapolated. Not compared: what
//! the submit costs its caller and wake-ups, which the report has, and subjects with each other.

fn main() {
    work_permit_benches::criterion_bench::main(&["start_after_idle", "trickle_cpu"]);
}
