//! The modules of work-permit are compiled as a model checker wants them: with a run queue under a lock, without
//! numbers of threads of the system, and without leases, which need those.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo::rustc-cfg=work_permit_loom");
    println!("cargo::rerun-if-changed=build.rs");
}
