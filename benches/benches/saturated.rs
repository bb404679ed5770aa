//! Regressions of `saturated_run` and `saturated_dispatch_join`: more callers than permits, each waits for its own work.
//!
//! Compared: the time that all calls together take, with its own past. Not compared: latency and fairness, which the
//! report measures in loops of their own, and subjects with each other.

fn main() {
    work_permit_benches::criterion_bench::main(&["saturated_run", "saturated_dispatch_join"]);
}
