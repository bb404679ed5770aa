//! Regressions of `inline_free` and `inline_contended`: a free permit is taken, an empty closure runs here, the permit
//! goes back; from one thread, and from several that all find a permit.
//!
//! Compared: the time a call takes, with its own past. Not compared: subjects with each other (use the report,
//! which interleaves), and what happens without a free permit (the bench `saturated`).

fn main() {
    work_permit_benches::criterion_bench::main(&["inline_free", "inline_contended"]);
}
