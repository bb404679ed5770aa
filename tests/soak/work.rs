//! What runs under permits: counts itself, checks the limit, calls on, and panics wherever it can.
#![forbid(unsafe_code)]

use crate::acts;
use crate::round::{Room, Round};
use crate::support::Numbers;
use crate::tally::add;
use crate::watchdog;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

thread_local! {
    /// Rooms whose tasks this thread is inside of: bits of each, with those above it.
    static INSIDE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// The same of rooms of which this thread holds guards.
    static GUARDS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// What runs next came out of a shutdown and has no permit.
    static UNRUN: Cell<bool> = const { Cell::new(false) };
    static JANITOR: Cell<bool> = const { Cell::new(false) };
}

/// This thread waits for nobody, whatever it runs.
pub(crate) fn set_janitor(is_janitor: bool) {
    JANITOR.set(is_janitor);
}

/// This thread waits for nobody inside of `f`.
pub(crate) fn waiting_for_nobody(f: impl FnOnce()) {
    let before = JANITOR.replace(true);
    f();
    JANITOR.set(before);
}

/// What runs inside of `f` has no permit.
pub(crate) fn as_unrun(f: impl FnOnce()) {
    UNRUN.set(true);
    f();
    UNRUN.set(false);
}

/// Bits of all rooms that this thread is inside of.
fn inside() -> u32 {
    INSIDE.with_borrow(|inside| inside.iter().fold(0, |all, levels| all | levels))
}

fn guards() -> u32 {
    GUARDS.with_borrow(|guards| guards.iter().fold(0, |all, levels| all | levels))
}

pub(crate) fn is_inside(room: usize) -> bool {
    inside() >> room & 1 == 1
}

/// This thread is inside of the room or of one above it.
pub(crate) fn is_inside_of_any_level(room: &Room) -> bool {
    inside() & room.levels != 0
}

/// Whether this thread may wait for a run in a room without an end: those who hold something wait only for rooms with
/// higher numbers, so nobody waits in a circle; and tasks of a pool with a cap wait for nobody. A child has a higher
/// number than those above it, and a thread inside of one of them waits for the levels below that alone.
pub(crate) fn may_wait_for(round: &Round, room: usize) -> bool {
    let inside = inside();
    let needed = round.rooms[room].levels & !inside;
    // Bits above the highest one that is held.
    let higher = u32::MAX.checked_shl(u32::BITS - (inside | guards()).leading_zeros()).unwrap_or(0);
    let capped = round.rooms.iter().any(|room| room.is_capped && inside >> room.number & 1 == 1);
    needed != 0 && needed & !higher == 0 && !capped && !JANITOR.get()
}

/// As [`may_wait_for`], for a guard, which needs a permit of all levels.
pub(crate) fn may_wait_for_guard(round: &Round, room: usize) -> bool {
    !is_inside_of_any_level(&round.rooms[room]) && may_wait_for(round, room)
}

/// Whether a task may wait for a task of its own room that it has queued itself: that one runs here, or it runs
/// elsewhere already and waits only for rooms of which this thread holds nothing.
pub(crate) fn may_join_child(room: usize) -> bool {
    let no_more = inside() >> room == 1;
    let no_guards = guards() >> room == 0;
    no_more && no_guards && !JANITOR.get()
}

/// Something that counts against the limits of a room and of those above it.
#[derive(Debug)]
pub(crate) struct Inside<'a>(Vec<&'a Room>);

impl<'a> Inside<'a> {
    /// A guard, which counts on every level.
    pub(crate) fn guard(round: &'a Round, room: usize) -> Self {
        Self::levels(round, round.rooms[room].levels)
    }

    /// A task, which counts on those that this thread is not inside of.
    fn task(round: &'a Round, room: usize) -> Self {
        Self::levels(round, round.rooms[room].levels & !inside())
    }

    fn levels(round: &'a Round, levels: u32) -> Self {
        let rooms = round.rooms.iter().filter(|room| levels >> room.number & 1 == 1);
        let rooms: Vec<_> = rooms.collect();
        for room in &rooms {
            let now = 1 + room.inside.fetch_add(1, Relaxed);
            if room.fixed_limit.is_some_and(|limit| now > limit) {
                watchdog::fail(&format!("G1: {now} inside of room {}", room.number));
            }
            if room.fixed_limit == Some(1) {
                add(&room.entries);
                room.diary.note(true);
            }
        }
        Self(rooms)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        for room in &self.0 {
            room.inside.fetch_sub(1, Relaxed);
        }
    }
}

/// A guard's place, for [`may_wait_for`].
pub(crate) fn with_guard_noted(room: &Room, f: impl FnOnce()) {
    GUARDS.with_borrow_mut(|guards| guards.push(room.levels));
    f();
    GUARDS.with_borrow_mut(Vec::pop);
}

/// Counts drops; the first says what is counted.
#[derive(Debug)]
struct Token(Arc<Round>, usize, bool);

impl Token {
    fn closure(round: &Arc<Round>, room: usize) -> Self {
        add(&round.rooms[room].tally.closures_made);
        Self(Arc::clone(round), room, true)
    }

    fn outcome(round: &Arc<Round>, room: usize) -> Self {
        add(&round.rooms[room].tally.outcomes_made);
        Self(Arc::clone(round), room, false)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let tally = &self.0.rooms[self.1].tally;
        add(if self.2 { &tally.closures_dropped } else { &tally.outcomes_dropped });
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new(Bang));
        }
    }
}

/// The payload of a bomb: of no size, because the crate forgets the panic of a payload's drop.
#[derive(Debug)]
struct Bang;

/// The payload of every other panic that is meant.
#[derive(Debug)]
struct Boom {
    _token: Option<Token>,
    _bomb: Option<Bomb>,
}

#[derive(Debug)]
pub(crate) struct Product {
    token: Token,
    _bomb: Option<Bomb>,
}

impl Product {
    pub(crate) fn room(&self) -> usize {
        self.token.1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Nothing,
    Spin,
    CallOn,
    Panics,
    PayloadBomb,
    ClosureBomb,
    ResultBomb,
}

/// A closure. No room keeps an executor alive by what is in its queue: executors are looked up.
#[derive(Debug)]
pub(crate) struct Work {
    round: Arc<Round>,
    room: usize,
    plan: Plan,
    depth: u32,
    seed: u64,
    _token: Token,
    bomb: Option<Bomb>,
}

impl Work {
    pub(crate) fn new(round: &Arc<Round>, room: usize, numbers: &mut Numbers, depth: u32) -> Self {
        let plan = match numbers.below(20) {
            0 => Plan::Panics,
            1 => Plan::PayloadBomb,
            2 => Plan::ClosureBomb,
            3 => Plan::ResultBomb,
            4..8 => Plan::Spin,
            8..12 => Plan::CallOn,
            _ => Plan::Nothing,
        };
        Self {
            round: Arc::clone(round),
            room,
            plan,
            depth,
            seed: numbers.next(),
            _token: Token::closure(round, room),
            bomb: (plan == Plan::ClosureBomb).then(|| Bomb),
        }
    }

    pub(crate) fn go(mut self) -> Product {
        watchdog::moved();
        let round = Arc::clone(&self.round);
        let room = &round.rooms[self.room];
        let tally = &room.tally;
        if UNRUN.replace(false) {
            add(&tally.unrun_ran);
            return self.finish();
        }
        self.count();
        let _inside = Inside::task(&round, self.room);
        let _left = Left::enter(room.levels);
        match self.plan {
            Plan::Spin => (0..self.seed % 500).for_each(|_| std::hint::spin_loop()),
            Plan::CallOn if self.depth < 3 => {
                let mut numbers = Numbers::from_seed(self.seed);
                for _ in 0..1 + numbers.below(2) {
                    acts::act(&round, &mut numbers, self.depth + 1);
                }
            }
            _ => {}
        }
        self.finish()
    }

    /// All of it as an attempt, which has no permit.
    pub(crate) fn attempt(mut self) -> Product {
        watchdog::moved();
        self.count();
        self.finish()
    }

    fn count(&self) {
        let tally = &self.round.rooms[self.room].tally;
        add(&tally.ran);
        if matches!(self.plan, Plan::Panics | Plan::PayloadBomb | Plan::ClosureBomb) {
            add(&tally.panicked);
        }
    }

    fn finish(&mut self) -> Product {
        match self.plan {
            Plan::Panics | Plan::PayloadBomb => {
                let bomb = (self.plan == Plan::PayloadBomb).then(|| Bomb);
                let token = Some(Token::outcome(&self.round, self.room));
                resume_unwind(Box::new(Boom { _token: token, _bomb: bomb }));
            }
            // Here and not after the last line: rustc leaks a result when an argument's drop panics.
            Plan::ClosureBomb => drop(self.bomb.take()),
            _ => {}
        }
        let bomb = (self.plan == Plan::ResultBomb).then(|| Bomb);
        Product { token: Token::outcome(&self.round, self.room), _bomb: bomb }
    }
}

/// This thread is inside of a task of a room.
struct Left(u32);

impl Left {
    fn enter(levels: u32) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(levels));
        Self(levels)
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        let last = INSIDE.with_borrow_mut(Vec::pop);
        if last != Some(self.0) {
            watchdog::fail("tasks of one thread ended in the wrong order");
        }
    }
}

/// Calls `f`; a panic that is meant ends here, any other ends the soak.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            swallow(payload);
            None
        }
    }
}

/// Drops the payload of a panic that was meant.
pub(crate) fn swallow(payload: Box<dyn Any + Send>) {
    if !payload.is::<Boom>() && !payload.is::<Bang>() {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied());
        watchdog::fail(text.unwrap_or("a panic that nobody meant"));
    }
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        swallow(again);
    }
}
