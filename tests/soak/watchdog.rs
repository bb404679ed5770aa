//! Ends a soak that stands still or is broken, with the state of every executor.
#![forbid(unsafe_code)]

use crate::locks::Mutex;
use crate::round::Round;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Standing still for so long is not waiting any more.
const PATIENCE: Duration = Duration::from_secs(60);

static PROGRESS: AtomicU64 = AtomicU64::new(0);
static ROUND: Mutex<Weak<Round>> = Mutex::new(Weak::new());

/// Something moved.
pub(crate) fn moved() {
    PROGRESS.fetch_add(1, Relaxed);
}

pub(crate) fn watch(round: &Arc<Round>) {
    *ROUND.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(round);
}

pub(crate) struct Watchdog(Sender<()>, thread::JoinHandle<()>);

impl Watchdog {
    pub(crate) fn stop(self) {
        drop(self.0);
        self.1.join().expect("the watchdog does not panic");
    }
}

pub(crate) fn start() -> Watchdog {
    let (stop, stopped) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let (mut seen, mut since) = (0, Instant::now());
        while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            let now = PROGRESS.load(Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                fail("nothing moves");
            }
        }
    });
    Watchdog(stop, thread)
}

/// Prints what there is to say, and aborts.
pub(crate) fn fail(why: &str) -> ! {
    eprintln!("soak: FAILED: {why}");
    match ROUND.lock().unwrap_or_else(PoisonError::into_inner).upgrade() {
        Some(round) => eprintln!("{}", round.dump()),
        None => eprintln!("between two rounds"),
    }
    std::process::abort();
}
