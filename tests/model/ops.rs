//! Random operations, and the executors they are made for.
#![forbid(unsafe_code)]

use crate::jobs::Kind;
use proptest::collection::vec;
use proptest::prelude::*;

/// Whether anybody waits in the line of an executor whose pool has a cap: see `stalled.rs`.
pub(crate) const WAITS_BESIDE_A_CAP: bool = true;

/// How a case begins and ends.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) limits: [usize; 2],
    pub(crate) capacity: usize,
    pub(crate) max_overtakes: usize,
    pub(crate) max_inline_depth: usize,
    pub(crate) never_inline: bool,
    /// The pool's cap; with one, only executor 0 queues tasks, so that no two compete for a thread.
    pub(crate) max_threads: Option<usize>,
    pub(crate) end: Finale,
}

impl Setup {
    pub(crate) fn may_wait(&self) -> bool {
        WAITS_BESIDE_A_CAP || self.max_threads.is_none()
    }
}

/// How the executors of a case end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finale {
    Drain,
    ShutdownNow,
    ShutdownPool,
    DropHandles,
}

/// How long a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Never,
    Zero,
    Short,
    Forever,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Dispatch,
    Spawn,
    Execute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleOp {
    Cancel,
    Join(Wait),
    Poll,
    Drop,
}

/// One call of the driver. Numbers that choose one of several things that may or may not be there are
/// taken modulo how many there are.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// `try_run`, `run`, `run_timeout`; inside of it the driver goes on with `inside`.
    Run {
        exec: usize,
        wait: Wait,
        kind: Kind,
        inside: Vec<Op>,
    },
    Queue {
        exec: usize,
        verb: Verb,
        kind: Kind,
    },
    /// `speculate`; inside of the attempt the driver goes on with `inside`.
    Attempt {
        exec: usize,
        blocks: bool,
        kind: Kind,
        inside: Vec<Op>,
    },
    /// `try_acquire`, `acquire`, `acquire_timeout`.
    Acquire {
        exec: usize,
        wait: Wait,
    },
    DropGuard(usize),
    IntoOwned(usize),
    DropOwned(usize),
    SetLimit {
        exec: usize,
        limit: usize,
    },
    Handle(HandleOp, usize),
    /// Lets a gated job end.
    Open(usize),
    /// Another thread calls `run`, or `acquire`.
    Other {
        exec: usize,
        acquires: bool,
        kind: Kind,
    },
    /// Another executor takes threads of a pool with a cap.
    Stall(usize),
    Unstall,
    Close(usize),
    DrainZero(usize),
    ShutdownNow(usize),
    RunUnrun(usize),
    DropUnrun(usize),
}

/// A number that is spent piece by piece on choices: cheap to make, and proptest knows how to shrink it.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        let rest = self.0 % n;
        self.0 /= n;
        rest
    }

    /// One of several, each with its weight; the first for 0.
    fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("less than the sum of the weights")
    }

    fn which(&mut self) -> usize {
        self.below(1 << 10) as usize
    }

    fn exec(&mut self) -> usize {
        self.pick(&[(4, 0), (1, 1)])
    }

    fn kind(&mut self) -> Kind {
        self.pick(&[
            (4, Kind::Quick),
            (5, Kind::Gated),
            (2, Kind::CallsAgain),
            (1, Kind::Panics),
            (1, Kind::PayloadBomb),
            (1, Kind::ClosureBomb),
            (1, Kind::ResultBomb),
        ])
    }

    fn wait(&mut self) -> Wait {
        self.pick(&[(6, Wait::Never), (2, Wait::Zero), (1, Wait::Short), (6, Wait::Forever)])
    }

    fn limit(&mut self) -> usize {
        let special = [(20, 0), (1, work_permit::Executor::MAX_LIMIT), (1, usize::MAX)];
        match self.pick(&special) {
            0 => self.below(5) as usize,
            limit => limit,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Choice {
    Run,
    Queue,
    Attempt,
    Acquire,
    DropGuard,
    IntoOwned,
    DropOwned,
    SetLimit,
    Handle,
    Open,
    Other,
    Stall,
    Unstall,
    RunUnrun,
    DropUnrun,
    Close,
    DrainZero,
    ShutdownNow,
}

const CHOICES: [(u64, Choice); 18] = [
    (80, Choice::Run),
    (130, Choice::Queue),
    (40, Choice::Attempt),
    (40, Choice::Acquire),
    (22, Choice::DropGuard),
    (10, Choice::IntoOwned),
    (14, Choice::DropOwned),
    (24, Choice::SetLimit),
    (110, Choice::Handle),
    (45, Choice::Open),
    (16, Choice::Other),
    (20, Choice::Stall),
    (16, Choice::Unstall),
    (10, Choice::RunUnrun),
    (10, Choice::DropUnrun),
    (1, Choice::Close),
    (1, Choice::DrainZero),
    (1, Choice::ShutdownNow),
];

/// Deepest nesting of calls inside calls.
const MAX_DEPTH: usize = 3;

/// The operation that the next number stands for; a `run` takes some of the numbers after it inside.
fn op(numbers: &mut std::slice::Iter<'_, u64>, depth: usize) -> Option<Op> {
    let mut dice = Dice(*numbers.next()?);
    let choice = dice.pick(&CHOICES);
    Some(match choice {
        Choice::Run => {
            let (exec, wait, kind) = (dice.exec(), dice.wait(), dice.kind());
            Op::Run { exec, wait, kind, inside: inside(&mut dice, numbers, depth) }
        }
        Choice::Attempt => {
            let (exec, blocks, kind) = (dice.exec(), dice.below(2) == 1, dice.kind());
            Op::Attempt { exec, blocks, kind, inside: inside(&mut dice, numbers, depth) }
        }
        Choice::Queue => {
            let verb = dice.pick(&[(2, Verb::Dispatch), (1, Verb::Spawn), (1, Verb::Execute)]);
            Op::Queue { exec: dice.exec(), verb, kind: dice.kind() }
        }
        Choice::Acquire => Op::Acquire { exec: dice.exec(), wait: dice.wait() },
        Choice::DropGuard => Op::DropGuard(dice.which()),
        Choice::IntoOwned => Op::IntoOwned(dice.which()),
        Choice::DropOwned => Op::DropOwned(dice.which()),
        Choice::SetLimit => Op::SetLimit { exec: dice.exec(), limit: dice.limit() },
        Choice::Handle => {
            let join = dice.pick(&[(2, Wait::Forever), (1, Wait::Zero), (1, Wait::Short)]);
            let what = dice.pick(&[
                (4, HandleOp::Join(join)),
                (3, HandleOp::Cancel),
                (1, HandleOp::Poll),
                (2, HandleOp::Drop),
            ]);
            Op::Handle(what, dice.which())
        }
        Choice::Open => Op::Open(dice.which()),
        Choice::Other => {
            Op::Other { exec: dice.exec(), acquires: dice.below(2) == 1, kind: dice.kind() }
        }
        Choice::Stall => Op::Stall(1 + dice.below(2) as usize),
        Choice::Unstall => Op::Unstall,
        Choice::RunUnrun => Op::RunUnrun(dice.which()),
        Choice::DropUnrun => Op::DropUnrun(dice.which()),
        Choice::Close => Op::Close(dice.exec()),
        Choice::DrainZero => Op::DrainZero(dice.exec()),
        Choice::ShutdownNow => Op::ShutdownNow(dice.exec()),
    })
}

/// What the driver does inside of a call.
fn inside(dice: &mut Dice, numbers: &mut std::slice::Iter<'_, u64>, depth: usize) -> Vec<Op> {
    let length = if depth < MAX_DEPTH { dice.pick(&[(4, 0), (2, 2), (2, 3), (1, 6)]) } else { 0 };
    (0..length).map_while(|_| op(numbers, depth + 1)).collect()
}

fn setup(number: u64) -> Setup {
    let mut dice = Dice(number);
    let ends = [Finale::Drain, Finale::ShutdownNow, Finale::ShutdownPool, Finale::DropHandles];
    let small = dice.below(4) as usize;
    Setup {
        limits: [1 + dice.below(3) as usize, dice.below(3) as usize],
        capacity: dice.pick(&[(3, 64), (1, small)]),
        max_overtakes: dice.pick(&[(1, 0), (1, 1), (1, 2), (1, 16)]),
        max_inline_depth: dice.pick(&[(3, 16), (1, 0), (1, 1), (1, 2)]),
        never_inline: dice.below(6) == 5,
        max_threads: dice.pick(&[(2, None), (2, Some(1)), (1, Some(2))]),
        end: ends[dice.below(4) as usize],
    }
}

/// A whole case.
pub(crate) fn case() -> impl Strategy<Value = (Setup, Vec<Op>)> {
    let numbers = (any::<u64>(), vec(any::<u64>(), 1..150));
    numbers.prop_map(|(first, numbers)| {
        let mut rest = numbers.iter();
        let ops = std::iter::from_fn(|| op(&mut rest, 0)).collect();
        (setup(first), ops)
    })
}
