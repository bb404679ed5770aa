//! Claim: through the public face, tasks of strands run one after the other in their order and each sees the ones before
//! it, whoever runs them, under a permit of each level; and closing a parent closes below.
//!
//! Modelled: executors with strands, on a pool with real workers. The gate below has been through more schedules in
//! `child.rs`. Left out: what `executor.rs` leaves out.

use super::Floor;
use super::executor::{House, run_and_panic};
use crate::error::Reason;
use crate::executor::Executor;
use crate::{Size, model};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

/// A house whose executor has strands.
pub(super) struct Strands {
    house: House,
    pub(super) strand: Executor,
    /// What runs on the strand.
    floor: Arc<Floor>,
}

impl Strands {
    pub(super) fn new(limit: usize) -> Self {
        let house = House::new(1, limit, limit);
        let strand = house.exec.strand("strand").build().unwrap();
        Self { house, strand, floor: Arc::new(Floor::new(1)) }
    }

    /// A task of the strand, which says how many ran there before it.
    pub(super) fn task(&self) -> impl FnOnce() -> usize + Send + 'static {
        let floor = Arc::clone(&self.floor);
        move || {
            let before = floor.ran();
            floor.body();
            before
        }
    }

    /// All permits are back at both levels, and what the strand accepted has ended.
    pub(super) fn close(self) {
        let Self { house, strand, floor } = self;
        house.pool.shutdown(Duration::MAX).unwrap();
        for exec in [&house.exec, &strand] {
            let stats = exec.stats();
            assert_eq!((stats.active, stats.queued, stats.waiting), (0, 0, 0), "G6: {stats:?}");
            let ended = stats.completed + stats.cancelled + stats.expired + stats.unrun;
            assert_eq!(stats.accepted, ended, "G2: {stats:?}");
        }
        assert_eq!(strand.stats().completed, floor.ran() as u64, "G2");
        assert_eq!(house.pool.stats().alive, 0);
    }
}

/// Two threads run on one strand: each sees what the other did.
#[test]
fn strand_run_races_run() {
    model("strand_run_races_run", Size::Wide, 21_000..=50_000, || {
        let strands = Strands::new(2);
        let (strand, task) = (strands.strand.clone(), strands.task());
        let other = thread::spawn(move || strand.run(task).unwrap());
        let here = strands.strand.run(strands.task()).unwrap();
        assert_eq!(here + other.join().unwrap(), 1, "one of them was first");
        strands.floor.assert_all_is_seen();
        strands.close();
    });
}

/// A task is queued on a strand, and another dispatched behind it: in this order, wherever they run.
#[test]
fn strand_dispatch_races_worker() {
    model("strand_dispatch_races_worker", Size::Huge, 780..=1_800, || {
        let strands = Strands::new(2);
        let first = strands.strand.spawn(strands.task()).unwrap();
        let second = strands.strand.dispatch(strands.task()).unwrap();
        assert_eq!((second.join().unwrap(), first.join().unwrap()), (1, 0));
        strands.floor.assert_all_is_seen();
        strands.close();
    });
}

/// A call of an idle strand and one of its parent, under one permit.
#[test]
fn strand_run_races_run_of_parent() {
    model("strand_run_races_run_of_parent", Size::Wide, 630..=1_500, || {
        let strands = Strands::new(1);
        let (exec, task) = (strands.house.exec.clone(), strands.house.task());
        let other = thread::spawn(move || exec.run(task).unwrap());
        assert_eq!(strands.strand.run(strands.task()).unwrap(), 0);
        other.join().unwrap();
        strands.close();
    });
}

/// A thread inside of a task of the parent waits for the strand, which another one has.
#[test]
fn nested_strand_run_races_run() {
    model("nested_strand_run_races_run", Size::Wide, 16_000..=38_000, || {
        let strands = Strands::new(2);
        let (strand, task) = (strands.strand.clone(), strands.task());
        let other = thread::spawn(move || strand.run(task).unwrap());
        let here = strands.house.exec.run(|| strands.strand.run(strands.task()).unwrap());
        assert_eq!(here.unwrap() + other.join().unwrap(), 1, "one of them was first");
        strands.floor.assert_all_is_seen();
        strands.close();
    });
}

/// Inside of a task of the parent, which has its only permit, a task of the strand is joined.
#[test]
fn nested_strand_join_races_worker() {
    model("nested_strand_join_races_worker", Size::Huge, 120..=280, || {
        let strands = Strands::new(1);
        let handle = strands.strand.spawn(strands.task()).unwrap();
        let joined = strands.house.exec.run(|| handle.join().unwrap());
        assert_eq!(joined.unwrap(), 0);
        strands.close();
    });
}

/// A run on a strand panics while another one waits for it.
#[test]
fn panic_on_strand_races_run() {
    model("panic_on_strand_races_run", Size::Wide, 14_000..=35_000, || {
        let strands = Strands::new(1);
        let (strand, task) = (strands.strand.clone(), strands.task());
        let other = thread::spawn(move || run_and_panic(&strand, task));
        strands.strand.run(strands.task()).unwrap();
        other.join().unwrap();
        assert_eq!(strands.strand.stats().panicked, 1);
        strands.close();
    });
}

/// The parent is closed while a task is queued on a strand: it is refused, or it runs.
#[test]
fn close_of_parent_races_strand_spawn() {
    model("close_of_parent_races_strand_spawn", Size::Wide, 33_000..=78_000, || {
        let strands = Strands::new(1);
        let parent = strands.house.exec.clone();
        let closer = thread::spawn(move || parent.close());
        let ran = match strands.strand.spawn(strands.task()) {
            Ok(handle) => matches!(handle.join(), Ok(0)),
            Err(refused) => {
                assert_eq!(refused.reason(), Reason::Closed);
                false
            }
        };
        closer.join().unwrap();
        assert_eq!(strands.strand.run(|| ()).unwrap_err().reason(), Reason::Closed);
        assert_eq!(strands.floor.ran(), usize::from(ran));
        strands.close();
    });
}

/// The last handles go while a task is queued on the strand: it runs.
#[test]
fn last_handle_of_strand_races_worker() {
    model("last_handle_of_strand_races_worker", Size::Wide, 4_100..=9_600, || {
        let Strands { house, strand, floor } = Strands::new(1);
        let ran = Arc::clone(&floor);
        let handle = strand.spawn(move || ran.body()).unwrap();
        drop((house, strand));
        handle.join().unwrap();
        floor.assert_all_is_seen();
        assert_eq!(floor.ran(), 1);
    });
}
