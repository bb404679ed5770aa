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
    /// Rooms whose tasks this thread is inside of.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Rooms of which this thread holds guards.
    static GUARDS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
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

pub(crate) fn is_inside(room: usize) -> bool {
    INSIDE.with_borrow(|inside| inside.contains(&room))
}

/// Whether this thread may wait for a room without an end: those who hold something wait only for rooms with a
/// higher number, so nobody waits in a circle; and tasks of a pool with a cap wait for nobody.
pub(crate) fn may_wait_for(round: &Round, room: usize) -> bool {
    let above = |held: &Vec<usize>| held.iter().all(|held| *held < room);
    let capped = |inside: &Vec<usize>| inside.iter().any(|room| round.rooms[*room].is_capped);
    let inside = INSIDE.with_borrow(|inside| above(inside) && !capped(inside));
    inside && GUARDS.with_borrow(above) && !JANITOR.get()
}

/// Whether a task may wait for a task of its own room that it has queued itself: that one runs here, or it runs
/// elsewhere already and waits only for rooms of which this thread holds nothing.
pub(crate) fn may_join_child(room: usize) -> bool {
    let no_more = INSIDE.with_borrow(|inside| inside.iter().all(|other| *other <= room));
    let no_guards = GUARDS.with_borrow(|guards| guards.iter().all(|other| *other < room));
    is_inside(room) && no_more && no_guards && !JANITOR.get()
}

/// Something that counts against the limit of a room.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Room);

impl<'a> Inside<'a> {
    pub(crate) fn enter(room: &'a Room) -> Self {
        let now = 1 + room.inside.fetch_add(1, Relaxed);
        if room.fixed_limit.is_some_and(|limit| now > limit) {
            watchdog::fail(&format!("G1: {now} inside of room {}", room.number));
        }
        if room.fixed_limit == Some(1) {
            add(&room.entries);
            room.diary.note(true);
        }
        Self(room)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Relaxed);
    }
}

/// A guard's place, for [`may_wait_for`].
pub(crate) fn with_guard_noted(room: usize, f: impl FnOnce()) {
    GUARDS.with_borrow_mut(|guards| guards.push(room));
    f();
    GUARDS.with_borrow_mut(|guards| guards.retain(|other| *other != room));
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
        let _inside = (!is_inside(self.room)).then(|| Inside::enter(room));
        let _left = Left::enter(self.room);
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
struct Left(usize);

impl Left {
    fn enter(room: usize) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(room));
        Self(room)
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
