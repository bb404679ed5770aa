//! How long work waits in the queue, for executors that were asked to record it: the only clock that a queued
//! task reads, and none without the feature `histogram`.
#![forbid(unsafe_code)]

#[cfg(feature = "histogram")]
pub(crate) use recorded::Waits;
#[cfg(not(feature = "histogram"))]
pub(crate) use unrecorded::Waits;

#[cfg(not(feature = "histogram"))]
mod unrecorded {
    #[derive(Debug)]
    pub(crate) struct Waits;

    impl Waits {
        pub(crate) fn new(_record: bool) -> Self {
            Self
        }

        pub(crate) fn now_ns(&self) -> u64 {
            0
        }

        pub(crate) fn record(&self, _came_ns: u64) {}
    }
}

#[cfg(feature = "histogram")]
mod recorded {
    use crate::stats::QueueWait;
    use crate::sync::plain::PlainMutex;
    use hdrhistogram::Histogram;
    use std::sync::PoisonError;
    use std::time::Instant;

    /// Significant digits of what is recorded.
    const DIGITS: u8 = 3;

    #[derive(Debug)]
    struct Record {
        epoch: Instant,
        histogram: PlainMutex<Histogram<u64>>,
    }

    #[derive(Debug)]
    pub(crate) struct Waits(Option<Box<Record>>);

    impl Waits {
        pub(crate) fn new(record: bool) -> Self {
            let histogram = Histogram::new(DIGITS).ok().filter(|_| record);
            Self(histogram.map(|histogram| {
                Box::new(Record { epoch: Instant::now(), histogram: PlainMutex::new(histogram) })
            }))
        }

        /// Now, in nanoseconds since the executor was built; 0 where nothing is recorded.
        pub(crate) fn now_ns(&self) -> u64 {
            let now = self.0.as_ref().map(|record| record.epoch.elapsed().as_nanos());
            now.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX).max(1))
        }

        pub(crate) fn record(&self, came_ns: u64) {
            if let Some(record) = &self.0 {
                let waited = self.now_ns().saturating_sub(came_ns);
                let mut histogram = record.histogram.lock().unwrap_or_else(PoisonError::into_inner);
                // It grows with what it is given, but only by this call.
                if histogram.record(waited).is_err() {
                    histogram.saturating_record(waited);
                }
            }
        }

        pub(crate) fn summary(&self) -> Option<QueueWait> {
            let record = self.0.as_ref()?;
            let histogram = record.histogram.lock().unwrap_or_else(PoisonError::into_inner);
            Some(QueueWait {
                count: histogram.len(),
                p50_ns: histogram.value_at_quantile(0.5),
                p99_ns: histogram.value_at_quantile(0.99),
                max_ns: histogram.max(),
            })
        }
    }

    #[cfg(all(test, not(work_permit_loom)))]
    mod tests {
        use super::*;
        use std::time::Duration;

        #[test]
        fn long_waits_are_recorded_as_long() {
            let waits = Waits::new(true);
            let mut record = waits.0.unwrap();
            // Built a while ago.
            let second = Duration::from_secs(1);
            let Some(epoch) = record.epoch.checked_sub(100 * second) else { return };
            record.epoch = epoch;
            let waits = Waits(Some(record));
            for seconds in 1..=100 {
                waits.record(waits.now_ns() - 1_000_000_000 * seconds);
            }
            let summary = waits.summary().unwrap();
            let in_seconds = |ns: u64| Duration::from_nanos(ns).as_secs();
            let QueueWait { count, p50_ns, p99_ns, max_ns } = summary;
            assert_eq!((count, in_seconds(p50_ns), in_seconds(p99_ns)), (100, 50, 99));
            assert!(in_seconds(max_ns) >= 100, "{summary:?}");
        }
    }
}
