//! One random call.
#![forbid(unsafe_code)]

use crate::end::end_one;
use crate::round::{Room, Round};
use crate::support::Numbers;
use crate::tally::{add, get};
use crate::watchdog;
use crate::work::{
    self, Inside, Product, Work, is_inside, is_inside_of_any_level, may_join_child, may_wait_for,
    may_wait_for_guard, quietly, with_guard_noted,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use work_permit::{
    Dispatched, Executor, JoinError, JoinHandle, Operations, Permit, Reason, Rejected,
    ScopedJoinHandle, fitness,
};

pub(crate) fn act(round: &Arc<Round>, numbers: &mut Numbers, depth: u32) {
    watchdog::moved();
    let room = &round.rooms[numbers.below(round.rooms.len() as u64) as usize];
    let Some(exec) = room.executor() else {
        return handle(round, numbers);
    };
    match numbers.below(17) {
        0..4 => run(round, room, &exec, numbers, depth),
        4..9 => queue(round, room, &exec, numbers, depth),
        9..11 => guard(round, room, &exec, numbers, depth),
        11..15 => handle(round, numbers),
        15 => scope(round, room, &exec, numbers, depth),
        _ if depth > 0 && numbers.one_in(200) => end_one(round, numbers),
        _ if depth < 3 && numbers.one_in(2) => described(round, numbers, depth),
        _ => look(room, &exec),
    }
}

/// The same on a thread that says what it may do. It waits for nobody then: what it would wait for may not be able to
/// run here.
fn described(round: &Arc<Round>, numbers: &mut Numbers, depth: u32) {
    let _guard = match numbers.below(3) {
        0 => fitness::allow(Operations::ALL),
        _ => fitness::no_inline(),
    };
    work::waiting_for_nobody(|| act(round, numbers, depth + 1));
}

/// A short wait: none, or a little.
fn moment(numbers: &mut Numbers) -> Duration {
    [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(1)][numbers.below(3) as usize]
}

fn run(round: &Arc<Round>, room: &Room, exec: &Executor, numbers: &mut Numbers, depth: u32) {
    let work = Work::new(round, room.number, numbers, depth);
    let may_wait = may_wait_for(round, room.number) || is_inside(room.number);
    let answer = match numbers.below(3) {
        0 => quietly(|| exec.try_run(|| work.go()).map_err(split)),
        1 if may_wait => quietly(|| exec.run(|| work.go()).map_err(split)),
        _ => {
            let moment = moment(numbers);
            quietly(|| exec.run_timeout(moment, || work.go()).map_err(split))
        }
    };
    match answer {
        Some(Err(reason)) => room.tally.refused(reason),
        Some(Ok(product)) => accepted_inline(room, product),
        None => add(&room.tally.accepted),
    }
}

fn accepted_inline(room: &Room, product: Product) {
    add(&room.tally.accepted);
    if product.room() != room.number {
        watchdog::fail("the result of another room");
    }
    quietly(|| drop(product));
}

/// What stays of a refusal.
pub(crate) fn split<F>(refused: Rejected<F>) -> Reason {
    let reason = refused.reason();
    let task = refused.into_task();
    quietly(|| drop(task));
    reason
}

fn queue(round: &Arc<Round>, room: &Room, exec: &Executor, numbers: &mut Numbers, depth: u32) {
    let work = Work::new(round, room.number, numbers, depth);
    let answer = match numbers.below(5) {
        0 | 1 => quietly(|| exec.dispatch(move || work.go()).map_err(split).map(Some)),
        3 => {
            let blocks = numbers.one_in(2);
            let attempt = || if blocks { Err(move || work.go()) } else { Ok(work.attempt()) };
            quietly(|| exec.speculate(attempt).map_err(split).map(Some))
        }
        2 => {
            let handle = exec.spawn(move || work.go()).map_err(split);
            Some(handle.map(|handle| Some(Dispatched::Queued(handle))))
        }
        _ => {
            // A result that panics when it is dropped must not look like a task that does.
            let body = move || {
                let product = work.go();
                quietly(|| drop(product));
            };
            Some(exec.execute(body).map_err(split).map(|()| None))
        }
    };
    match answer {
        Some(Err(reason)) => room.tally.refused(reason),
        Some(Ok(Some(Dispatched::Inline(product)))) => accepted_inline(room, product),
        Some(Ok(Some(Dispatched::Queued(handle)))) => {
            add(&room.tally.accepted);
            keep(round, room, handle, numbers);
        }
        Some(Ok(None)) | None => add(&room.tally.accepted),
    }
}

/// A new handle: joined by whoever made it, left to others, or dropped.
fn keep(round: &Arc<Round>, room: &Room, handle: JoinHandle<Product>, numbers: &mut Numbers) {
    match numbers.below(4) {
        0 if may_wait_for(round, room.number) || may_join_child(room.number) => {
            joined(round, room, handle.join());
        }
        1 => drop(handle),
        _ => round.handles.lock().unwrap().push((room.number, handle)),
    }
}

/// Tasks that borrow, and are waited for.
fn scope(round: &Arc<Round>, room: &Room, exec: &Executor, numbers: &mut Numbers, depth: u32) {
    if !may_wait_for(round, room.number) && !may_join_child(room.number) {
        return;
    }
    let (started, mut accepted) = (AtomicU64::new(0), 0);
    let ends: Vec<_> = exec.scope(|s| {
        let mut handles = Vec::new();
        for _ in 0..1 + numbers.below(3) {
            let (work, started) = (Work::new(round, room.number, numbers, depth), &started);
            let body = move || {
                add(started);
                work.go()
            };
            match s.spawn(body).map_err(split) {
                Ok(handle) => handles.push(handle),
                Err(reason) => room.tally.refused(reason),
            }
        }
        accepted = handles.len();
        handles.into_iter().map(ScopedJoinHandle::join).collect()
    });
    let mut ran = accepted as u64;
    for end in ends {
        add(&room.tally.accepted);
        if matches!(end, Err(JoinError::Closed)) {
            add(&room.tally.unrun);
            ran -= 1;
        }
        joined(round, room, end);
    }
    if get(&started) != ran {
        watchdog::fail("a scope lost a task");
    }
}

pub(crate) fn joined(round: &Round, room: &Room, result: Result<Product, JoinError>) {
    match &result {
        Ok(product) if product.room() != room.number => {
            watchdog::fail("joined the result of another room");
        }
        Err(JoinError::Deadlock) if !is_inside_of_any_level(room) && !is_guarded(round, room) => {
            watchdog::fail("a deadlock where nobody holds anything");
        }
        _ => {}
    }
    quietly(|| drop(result));
}

fn is_guarded(round: &Round, room: &Room) -> bool {
    let mut levels = round.rooms.iter().filter(|above| above.has_below(room));
    levels.any(|room| room.executor().is_none_or(|exec| exec.is_held()))
}

/// Something with a handle that any thread may have left.
fn handle(round: &Arc<Round>, numbers: &mut Numbers) {
    let Some((number, mut handle)) = take(&mut round.handles.lock().unwrap(), numbers) else {
        return;
    };
    let room = &round.rooms[number];
    let back = match numbers.below(6) {
        0 | 1 => {
            if handle.cancel() {
                add(&room.tally.cancelled);
            }
            Some(handle)
        }
        2 if may_wait_for(round, number) => {
            joined(round, room, handle.join());
            None
        }
        3 => {
            let mut context = Context::from_waker(Waker::noop());
            match std::pin::Pin::new(&mut handle).poll(&mut context) {
                Poll::Ready(result) => {
                    joined(round, room, result);
                    None
                }
                Poll::Pending => Some(handle),
            }
        }
        4 if numbers.one_in(2) => None,
        _ => match handle.join_timeout(moment(numbers)) {
            Ok(result) => {
                joined(round, room, result);
                None
            }
            Err(handle) => Some(handle),
        },
    };
    round.handles.lock().unwrap().extend(back.map(|handle| (number, handle)));
}

fn take<T>(list: &mut Vec<T>, numbers: &mut Numbers) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(numbers.below(list.len() as u64) as usize))
}

fn guard(round: &Arc<Round>, room: &Room, exec: &Executor, numbers: &mut Numbers, depth: u32) {
    let answer: Result<Permit<'_>, Rejected<()>> = match numbers.below(3) {
        0 => exec.try_acquire(),
        1 if may_wait_for_guard(round, room.number) => exec.acquire(),
        _ => exec.acquire_timeout(moment(numbers)),
    };
    let permit = match answer {
        Ok(permit) => permit,
        Err(refused) => return room.tally.refused(refused.reason()),
    };
    let inside = Inside::guard(round, room.number);
    if numbers.one_in(3) {
        // What lies in a bag counts as outside for us: the check is then weaker than the limit.
        drop(inside);
        round.owned.lock().unwrap().push(permit.into_owned());
        return;
    }
    if depth < 3 {
        with_guard_noted(room, || act(round, numbers, depth + 1));
    }
    drop(inside);
    drop(permit);
}

fn look(room: &Room, exec: &Executor) {
    let stats = exec.stats();
    if room.fixed_limit.is_some_and(|limit| stats.active > limit || stats.limit != limit) {
        watchdog::fail(&format!("G1: {stats:?}"));
    }
}

/// What one thread does that never waits: others may wait for what it lets go.
pub(crate) fn keep_house(round: &Arc<Round>, numbers: &mut Numbers) {
    let given = take(&mut round.owned.lock().unwrap(), numbers);
    drop(given);
    let room = &round.rooms[1 + 2 * numbers.below(round.rooms.len() as u64 / 2) as usize];
    if let Some(exec) = room.executor() {
        let ending = room.ending.lock().unwrap();
        let last = round.callers.load(SeqCst) <= 1;
        let least = u64::from(*ending || last);
        let limit = least + numbers.below(5 - least);
        exec.set_limit(limit as usize).unwrap_or_else(|error| watchdog::fail(&error.to_string()));
    }
    let unrun = take(&mut round.unruns.lock().unwrap(), numbers);
    if let Some(unrun) = unrun {
        end_unrun(unrun, numbers);
    }
}

/// Runs it, or drops it.
pub(crate) fn end_unrun(unrun: work_permit::Unrun, numbers: &mut Numbers) {
    if numbers.one_in(2) {
        work::as_unrun(|| unrun.run());
    } else {
        drop(unrun);
    }
}
