//! Regressions of `choose`: one of 500 at random, by eight threads at once.
//!
//! Compared: the time a choice takes, with its own past, of work-permit's `Chooser`, of a generator in each thread and
//! of one that all share. Not compared: policies that look at the load, and subjects with each other (use the report).

fn main() {
    work_permit_benches::criterion_bench::main(&["choose"]);
}
