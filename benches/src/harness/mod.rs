//! How things are measured: the same for every subject.

pub(crate) mod closed_loop;
pub(crate) mod cpu;
pub(crate) mod done;
pub(crate) mod percentiles;
pub(crate) mod work;
