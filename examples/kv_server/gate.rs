//! The four ways to run a command: what this example compares.

use std::{fmt, str::FromStr, sync::Arc};

use tokio::sync::Semaphore;
use work_permit::{Dispatched, Executor, Pool, Stats, Stripes};

use super::{
    command::{Access, Command},
    config::Config,
    reply::Reply,
    server::Shared,
};

/// Some times as many as commands run at once, so that different keys seldom meet.
const STRIPES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// On the connection's thread where that may be, else queued: writes by the stripe of their key, reads as
    /// an attempt that never waits, the rest by `dispatch`.
    Inline,
    /// `spawn`: always queued, a pool worker runs it.
    Queue,
    /// tokio's `Semaphore`, then `spawn_blocking`: what people write today.
    Semaphore,
    /// No limit: on the connection's thread, as if there were no executor.
    Direct,
}

impl Mode {
    pub(crate) const ALL: [Mode; 4] = [Mode::Queue, Mode::Inline, Mode::Semaphore, Mode::Direct];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Inline => "inline",
            Mode::Queue => "queue",
            Mode::Semaphore => "semaphore",
            Mode::Direct => "direct",
        }
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or(())
    }
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Not now, and nothing was run.
    Busy(String),
    /// It was accepted and did not come to an end.
    Lost(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy(why) => write!(f, "BUSY {why}"),
            Refusal::Lost(why) => write!(f, "ERR the command did not end: {why}"),
        }
    }
}

impl Refusal {
    fn busy(why: impl fmt::Display) -> Self {
        Refusal::Busy(why.to_string())
    }

    fn lost(why: impl fmt::Display) -> Self {
        Refusal::Lost(why.to_string())
    }
}

/// One limit for all commands. Writes of one key run one after the other, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Inline {
    executor: Executor,
    writes: Stripes,
}

impl Inline {
    fn new(executor: Executor) -> Result<Self, String> {
        let writes = Stripes::new(&executor, STRIPES).map_err(|error| error.to_string())?;
        Ok(Self { executor, writes })
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The counters of the stripes: those that ran inline, and those that were queued.
    pub(crate) fn writes(&self) -> (u64, u64) {
        self.writes
            .all()
            .iter()
            .map(Executor::stats)
            .fold((0, 0), |sum, stats: Stats| (sum.0 + stats.ran_inline, sum.1 + stats.ran_queued))
    }

    async fn run(&self, command: Command, shared: &Arc<Shared>) -> Result<Reply, Refusal> {
        let later = {
            let shared = Arc::clone(shared);
            move |command: Command| move || command.run(&shared)
        };
        let dispatched = match command.access(shared) {
            Access::Write(key) => {
                let stripe = self.writes.of(key);
                stripe.dispatch(later(command)).map_err(|rejected| rejected.reason())
            }
            Access::Read => {
                let attempt = || command.try_run(shared).map_err(later);
                self.executor.speculate(attempt).map_err(|rejected| rejected.reason())
            }
            Access::Other => {
                self.executor.dispatch(later(command)).map_err(|rejected| rejected.reason())
            }
        };
        match dispatched {
            Ok(Dispatched::Inline(reply)) => Ok(reply),
            Ok(Dispatched::Queued(handle)) => handle.await.map_err(Refusal::lost),
            Err(reason) => Err(Refusal::busy(reason)),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Gate {
    Inline(Inline),
    Queue(Executor),
    Semaphore(Arc<Semaphore>),
    Direct,
}

impl Gate {
    /// The gate of `config`; its workers, if it needs any, are those of `pool`.
    pub(crate) fn new(config: &Config, pool: &Pool) -> Result<Self, String> {
        let executor = || {
            pool.executor("commands")
                .limit(config.limit)
                .queue_capacity(config.queue_capacity)
                .build()
                .map_err(|error| error.to_string())
        };
        Ok(match config.mode {
            Mode::Inline => Gate::Inline(Inline::new(executor()?)?),
            Mode::Queue => Gate::Queue(executor()?),
            Mode::Semaphore if config.limit > Semaphore::MAX_PERMITS => {
                return Err(format!("--limit: at most {}", Semaphore::MAX_PERMITS));
            }
            Mode::Semaphore => Gate::Semaphore(Arc::new(Semaphore::new(config.limit))),
            Mode::Direct => Gate::Direct,
        })
    }

    /// How many commands ran inline, and how many were queued; `None`: there is no executor that counts them.
    pub(crate) fn ran(&self) -> Option<(u64, u64)> {
        let (executor, more) = match self {
            Gate::Inline(inline) => (inline.executor(), inline.writes()),
            Gate::Queue(executor) => (executor, (0, 0)),
            Gate::Semaphore(_) | Gate::Direct => return None,
        };
        let stats = executor.stats();
        Some((stats.ran_inline + more.0, stats.ran_queued + more.1))
    }

    /// Runs one command as the mode says and gives its reply.
    pub(crate) async fn run(
        &self,
        command: Command,
        shared: &Arc<Shared>,
    ) -> Result<Reply, Refusal> {
        let task = |command: Command| {
            let shared = Arc::clone(shared);
            move || command.run(&shared)
        };
        match self {
            Gate::Direct => Ok(command.run(shared)),
            Gate::Inline(inline) => inline.run(command, shared).await,
            Gate::Queue(executor) => match executor.spawn(task(command)) {
                Ok(handle) => handle.await.map_err(Refusal::lost),
                Err(rejected) => Err(Refusal::busy(rejected.reason())),
            },
            Gate::Semaphore(semaphore) => {
                let permit = Arc::clone(semaphore).acquire_owned().await.map_err(Refusal::busy)?;
                let command = task(command);
                let ran = tokio::task::spawn_blocking(move || {
                    let reply = command();
                    drop(permit);
                    reply
                });
                ran.await.map_err(Refusal::lost)
            }
        }
    }
}
