//! The four ways to run a command: what this example compares.

use std::{fmt, str::FromStr, sync::Arc};

use tokio::sync::Semaphore;
use work_permit::{Dispatched, Executor, Pool};

use super::config::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `dispatch`: on the connection's thread under a free permit, else queued.
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

#[derive(Debug)]
pub(crate) enum Gate {
    Inline(Executor),
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
            Mode::Inline => Gate::Inline(executor()?),
            Mode::Queue => Gate::Queue(executor()?),
            Mode::Semaphore if config.limit > Semaphore::MAX_PERMITS => {
                return Err(format!("--limit: at most {}", Semaphore::MAX_PERMITS));
            }
            Mode::Semaphore => Gate::Semaphore(Arc::new(Semaphore::new(config.limit))),
            Mode::Direct => Gate::Direct,
        })
    }

    pub(crate) fn executor(&self) -> Option<&Executor> {
        match self {
            Gate::Inline(executor) | Gate::Queue(executor) => Some(executor),
            Gate::Semaphore(_) | Gate::Direct => None,
        }
    }

    /// Runs one command as the mode says and gives its result.
    pub(crate) async fn run<R, F>(&self, command: F) -> Result<R, Refusal>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        match self {
            Gate::Direct => Ok(command()),
            Gate::Inline(executor) => match executor.dispatch(command) {
                Ok(Dispatched::Inline(result)) => Ok(result),
                Ok(Dispatched::Queued(handle)) => handle.await.map_err(Refusal::lost),
                Err(rejected) => Err(Refusal::busy(rejected.reason())),
            },
            Gate::Queue(executor) => match executor.spawn(command) {
                Ok(handle) => handle.await.map_err(Refusal::lost),
                Err(rejected) => Err(Refusal::busy(rejected.reason())),
            },
            Gate::Semaphore(semaphore) => {
                let permit = Arc::clone(semaphore).acquire_owned().await.map_err(Refusal::busy)?;
                let ran = tokio::task::spawn_blocking(move || {
                    let result = command();
                    drop(permit);
                    result
                });
                ran.await.map_err(Refusal::lost)
            }
        }
    }
}
