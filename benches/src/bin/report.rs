//! Measures every group in interleaved rounds, prints the table of ratios and writes plots. `--help` tells more.

use std::process::ExitCode;

fn main() -> ExitCode {
    work_permit_benches::report::main()
}
