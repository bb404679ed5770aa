//! The choice whom to send, as plain data.
#![forbid(unsafe_code)]

use super::*;
use crate::sync::Parker;

fn worker(id: u64) -> Arc<WorkerShared> {
    Arc::new(WorkerShared::new(id, Parker::new().unparker()))
}

fn start(sched: &mut Sched, id: u64) -> (Arc<WorkerShared>, Role) {
    let Send::New(role) = sched.send() else { panic!("{sched:?}") };
    sched.created(worker(id));
    (sched.threads.last().unwrap().clone(), role)
}

#[test]
fn cores_first_then_one_watches_then_all_while_nothing_finishes() {
    let mut sched = Sched::new(usize::MAX, 2);
    for id in 0..2 {
        assert_eq!(start(&mut sched, id).1, Role::Search);
        assert!(matches!(sched.send(), Send::Nobody), "one is on its way");
        sched.begin_run();
    }
    assert_eq!(start(&mut sched, 2).1, Role::Watch);
    let mut seen = sched.seen_now();
    assert_eq!(sched.judge(&mut seen), Verdict::WatchOn, "one tick alone is not believed");
    assert_eq!(sched.judge(&mut seen), Verdict::JoinIn);
    sched.begin_run();
    for id in 3..64 {
        assert_eq!(start(&mut sched, id).1, Role::Search, "nothing finished");
        sched.begin_run();
    }
    sched.threads[5].finished_one();
    assert_eq!(sched.running, 64);
    // `target` learned what blocking work needs; beyond it one watches again.
    assert_eq!(start(&mut sched, 64).1, Role::Watch);
}

#[test]
fn short_tasks_get_no_more_threads_than_cores() {
    let mut sched = Sched::new(usize::MAX, 2);
    for id in 0..2 {
        start(&mut sched, id);
        sched.begin_run();
    }
    start(&mut sched, 2);
    let mut seen = sched.seen_now();
    for _ in 0..100 {
        for n in 0..200 {
            sched.threads[n % 2].finished_one();
        }
        assert_eq!(sched.judge(&mut seen), Verdict::WatchOn);
    }
}

#[test]
fn a_watcher_does_not_keep_work_from_threads_that_rest() {
    let mut sched = Sched::new(usize::MAX, 2);
    for id in 0..2 {
        start(&mut sched, id);
        sched.begin_run();
    }
    start(&mut sched, 2);
    assert!(sched.is_attended() && sched.watching);
    let resting = sched.threads[0].clone();
    assert!(sched.end_run(0), "it searches");
    assert!(!sched.searching || sched.is_attended());
    sched.searching = false;
    sched.resting.push(resting);
    assert!(!sched.is_attended(), "one thread rests: work must not wait for the next tick");
    assert!(matches!(sched.send(), Send::Resting(_)));
    assert!(sched.is_attended() && sched.searching);
    let mut seen = sched.seen_now();
    assert_eq!(sched.judge(&mut seen), Verdict::WatchOn, "one searcher is enough");
}

#[test]
fn long_tasks_get_half_as_many_again() {
    let mut sched = Sched::new(usize::MAX, 4);
    for id in 0..4 {
        start(&mut sched, id);
        sched.begin_run();
    }
    start(&mut sched, 4);
    let mut seen = sched.seen_now();
    for verdict in [Verdict::WatchOn, Verdict::JoinIn] {
        sched.threads[0].finished_one();
        assert_eq!(sched.judge(&mut seen), verdict);
    }
    sched.begin_run();
    for id in 5..7 {
        assert_eq!(start(&mut sched, id).1, Role::Search);
        sched.begin_run();
    }
    assert_eq!(start(&mut sched, 7).1, Role::Watch);
}

#[test]
fn ticks_without_progress_after_short_tasks_add_no_thread() {
    let mut sched = Sched::new(usize::MAX, 1);
    start(&mut sched, 0);
    sched.begin_run();
    start(&mut sched, 1);
    let mut seen = sched.seen_now();
    for _ in 0..100 {
        (0..100).for_each(|_| sched.threads[0].finished_one());
        assert_eq!(sched.judge(&mut seen), Verdict::WatchOn, "short tasks");
        assert_eq!(sched.judge(&mut seen), Verdict::WatchOn, "another process has the core");
    }
    let ticks = (0..100).find(|_| sched.judge(&mut seen) == Verdict::JoinIn);
    assert_eq!(ticks, Some(PATIENCE as usize - 1), "in the end they block after all");
}

#[test]
fn a_refused_thread_is_not_asked_for_again_at_once() {
    let mut sched = Sched::new(usize::MAX, 2);
    assert!(matches!(sched.send(), Send::New(Role::Search)));
    sched.not_created(Role::Search);
    assert!(!sched.is_attended());
    assert!(matches!(sched.send(), Send::Nobody));
    assert_eq!(sched.refused, 1);
}

#[test]
fn never_more_threads_than_allowed() {
    let mut sched = Sched::new(1, 2);
    start(&mut sched, 0);
    sched.begin_run();
    assert!(matches!(sched.send(), Send::Nobody));
}
