//! The ends of executors: in the middle of everything, and at the end of a round, when the books are closed.
#![forbid(unsafe_code)]

use crate::acts::{end_unrun, joined, split};
use crate::round::{Room, Round};
use crate::support::Numbers;
use crate::tally::{TOTALS, add, get};
use crate::watchdog;
use crate::work::Work;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;
use work_permit::Executor;

/// After this time the books of a quiet executor are wrong.
const BOOKS: Duration = Duration::from_secs(60);

/// Ends one executor in one of the ways there are, while others call it.
pub(crate) fn end_one(round: &Arc<Round>, numbers: &mut Numbers) {
    let room = &round.rooms[numbers.below(round.rooms.len() as u64) as usize];
    let Some(exec) = room.executor() else {
        return;
    };
    match numbers.below(8) {
        0 => exec.close(),
        1 => {
            let moment = Duration::from_micros(numbers.below(2000));
            // Whether all is done by then, nobody can say.
            let _ = exec.drain(moment);
        }
        2 | 3 => {
            pile_up(round, room, &exec, numbers);
            shutdown_now(round, room);
        }
        4 | 5 => drop_room(room),
        6 => {
            let pool = &round.pools[numbers.below(round.pools.len() as u64) as usize];
            let _ = pool.shutdown(Duration::from_micros(numbers.below(1000)));
        }
        _ => thread::yield_now(),
    }
}

/// Queues work that nobody starts, where the limit may change.
fn pile_up(round: &Arc<Round>, room: &Room, exec: &Executor, numbers: &mut Numbers) {
    let ending = room.ending.lock().unwrap();
    if room.fixed_limit.is_some() || *ending {
        return;
    }
    exec.set_limit(0).unwrap_or_else(|error| watchdog::fail(&error.to_string()));
    for _ in 0..numbers.below(8) {
        let work = Work::new(round, room.number, numbers, 3);
        match exec.spawn(move || work.go()).map_err(split) {
            Ok(handle) => {
                add(&room.tally.accepted);
                round.handles.lock().unwrap().push((room.number, handle));
            }
            Err(reason) => room.tally.refused(reason),
        }
    }
    drop(ending);
}

fn shutdown_now(round: &Arc<Round>, room: &Room) {
    let Some(exec) = room.executor() else {
        return;
    };
    for unrun in exec.shutdown_now() {
        // It may be of a room below.
        let number: usize = unrun.executor_name().parse().expect("rooms have numbers for names");
        add(&round.rooms[number].tally.unrun);
        round.unruns.lock().unwrap().push(unrun);
    }
}

/// Drops the handle of the round; the last of those that are in use drops the executor.
fn drop_room(room: &Room) {
    let mut ending = room.ending.lock().unwrap();
    *ending = true;
    let exec = room.exec.lock().unwrap().take();
    if let Some(exec) = exec {
        if exec.limit() == 0 {
            // At limit 0 a drop ends what is queued, and nobody could tell it from what got lost.
            exec.set_limit(1).unwrap_or_else(|error| watchdog::fail(&error.to_string()));
        }
        TOTALS.dropped.fetch_add(1, SeqCst);
    }
}

/// Ends everything, and closes the books.
pub(crate) fn settle(round: Arc<Round>, numbers: &mut Numbers) {
    round.owned.lock().unwrap().clear();
    for room in &round.rooms {
        *room.ending.lock().unwrap() = true;
        if let Some(exec) = room.executor() {
            exec.set_limit(exec.limit().max(1)).unwrap_or_else(|e| watchdog::fail(&e.to_string()));
        }
        if numbers.one_in(3) {
            shutdown_now(&round, room);
        }
    }
    for room in &round.rooms {
        room.executor().iter().for_each(Executor::close);
    }
    for room in &round.rooms {
        close_books(&round, room, numbers);
        if room.executor().is_some_and(|exec| exec.drain(Duration::MAX).is_err()) {
            watchdog::fail("a drain without an end found one");
        }
    }
    let kept_diary =
        |room: &Room| room.executor().is_none() || { room.diary.note(false) == get(&room.entries) };
    if !round.rooms.iter().all(kept_diary) {
        watchdog::fail("what one wrote under the only permit, the next did not see");
    }
    let joins_threads = numbers.one_in(2);
    if joins_threads {
        for pool in &round.pools {
            if pool.shutdown(Duration::MAX).is_err() || pool.stats().alive > 0 {
                watchdog::fail("a shutdown without an end found one");
            }
        }
    }
    if Arc::into_inner(round).is_none() {
        watchdog::fail("somebody still has the round");
    }
}

/// Ends what lies around for others: handles, guards, unrun work.
fn clear_bags(round: &Arc<Round>, numbers: &mut Numbers) {
    round.owned.lock().unwrap().clear();
    let unruns = std::mem::take(&mut *round.unruns.lock().unwrap());
    unruns.into_iter().for_each(|unrun| end_unrun(unrun, numbers));
    let handles = std::mem::take(&mut *round.handles.lock().unwrap());
    for (number, handle) in handles {
        // No longer: its task may wait for a guard that lies around.
        match handle.join_timeout(Duration::from_millis(1)) {
            Ok(result) => joined(round, &round.rooms[number], result),
            Err(handle) => round.handles.lock().unwrap().push((number, handle)),
        }
    }
}

/// Waits until what the room says is what was seen.
fn close_books(round: &Arc<Round>, room: &Room, numbers: &mut Numbers) {
    let exec = room.executor();
    let is_balanced = || match &exec {
        Some(exec) => {
            room.tally.differences(&exec.stats()).is_empty() && room.tally.is_all_dropped()
        }
        None => room.tally.is_balanced(),
    };
    let began = std::time::Instant::now();
    while !is_balanced() {
        // Work that still runs leaves more of them, and some waits for them.
        clear_bags(round, numbers);
        if began.elapsed() > BOOKS {
            let told = exec.as_ref().map(|exec| room.tally.differences(&exec.stats()));
            watchdog::fail(&format!("room {}: (name, seen, told) {told:?}", room.number));
        }
        thread::yield_now();
    }
    TOTALS.add(&room.tally);
}
