//! Regressions of `spawn_many`, `ping_pong` and `chained_spawn`: the shared vocabulary of schedulers' benchmarks.
//!
//! Compared: the time of a round (10,000 tasks from outside; 1,000 pings with two more tasks each; a chain of 1,000),
//! with its own past. Not compared: futures that await each other, which is what the originals of these names do, and
//! subjects with each other (use the report).

fn main() {
    work_permit_benches::criterion_bench::main(&["spawn_many", "ping_pong", "chained_spawn"]);
}
