//! Latencies, to a thousandth.

use crate::groups::{Metric, Sample};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Durations in nanoseconds.
#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Self {
        let minute = 60_000_000_000;
        Self(Histogram::new_with_bounds(1, minute, 3).expect("the bounds make sense"))
    }

    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    pub(crate) fn median(&self) -> f64 {
        self.0.value_at_quantile(0.5) as f64
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.mean()
    }

    pub(crate) fn at(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64
    }

    pub(crate) fn into_sample(self) -> Sample {
        let at = |quantile| self.at(quantile);
        vec![(Metric::P50, at(0.5)), (Metric::P99, at(0.99)), (Metric::P999, at(0.999))]
    }
}
