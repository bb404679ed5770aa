//! The soak's own locks. `.ci/sanitize` puts others here, which ThreadSanitizer can see into.
#![forbid(unsafe_code)]

pub(crate) use std::sync::Mutex;
