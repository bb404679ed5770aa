//! What databases measured when they changed who runs the work, done again: `--help` tells more.

use std::process::ExitCode;

fn main() -> ExitCode {
    work_permit_benches::experiments::main(std::env::args().skip(1))
}
