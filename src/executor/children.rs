//! Executors below an executor.
#![forbid(unsafe_code)]

use super::Executor;
use crate::builder::ExecutorBuilder;

impl Executor {
    /// Begins an executor below this one.
    pub fn child(&self, name: impl Into<String>) -> ExecutorBuilder {
        ExecutorBuilder::child(self, name.into())
    }

    /// Begins a strand.
    pub fn strand(&self, name: impl Into<String>) -> ExecutorBuilder {
        ExecutorBuilder::strand(self, name.into())
    }
}
