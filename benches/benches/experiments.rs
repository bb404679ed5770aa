//! What databases measured when they changed who runs the work, done again.
//!
//! Compared, in interleaved rounds: reads on the thread of their request and reads handed to a stage (Cassandra), an
//! embedded store with stripes that always switch and stripes that run inline when the thread is fit (Ignite), a choice
//! with one generator for all and with one a thread (Ozone). Not compared: their hardware with ours.
//!
//! With `--test` each runs once, small, to see that it runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let args: &[&str] = if is_test { &["--quick", "--rounds", "1"] } else { &[] };
    work_permit_benches::experiments::main(args.iter().map(|arg| (*arg).to_owned()))
}
