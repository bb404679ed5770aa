//! Adapters of the benchmarks.
