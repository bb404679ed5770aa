//! The modules of work-permit are compiled as a model checker wants them: with a run queue under a lock, and with
//! numbers for those threads alone that a model gives one, which may keep leases then.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo::rustc-cfg=work_permit_loom");
    println!("cargo::rerun-if-changed=build.rs");
}
