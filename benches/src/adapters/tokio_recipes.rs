//! What is usually written with tokio.
//!
//! Callers are threads, not tasks, so they wait with a `block_on` of their own: a waker that unparks, made
//! once for each thread. That costs less than entering the runtime.

use crate::adapter::{Adapter, Ask, Execute, Run, TryRun};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

/// Waits for a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    WAKER.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    })
}

/// tokio's semaphore around an inline call: `try_acquire`; `acquire` where the caller waits.
#[derive(Clone)]
pub(crate) struct TokioSemaphore {
    permits: Arc<Semaphore>,
}

impl Adapter for TokioSemaphore {
    const NAME: &'static str = "tokio semaphore";

    fn new(limit: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(limit)) }
    }
}

impl TryRun for TokioSemaphore {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        let Ok(_permit) = self.permits.try_acquire() else { return false };
        work();
        true
    }
}

impl Run for TokioSemaphore {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        let _permit = match self.permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => block_on(self.permits.acquire()).expect("nobody closes it"),
        };
        work();
    }
}

/// A runtime. Clones have the handle only: a task may drop the last clone, and a runtime must not be dropped
/// by one of its own threads.
struct Tokio {
    handle: Handle,
    _owner: Option<Runtime>,
}

impl Tokio {
    fn new(max_blocking: usize) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(max_blocking)
            .build()
            .expect("the system has threads");
        Self { handle: runtime.handle().clone(), _owner: Some(runtime) }
    }
}

impl Clone for Tokio {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), _owner: None }
    }
}

/// `spawn_blocking`, with as many blocking threads as the limit says.
#[derive(Clone)]
pub(crate) struct TokioSpawnBlocking(Tokio);

impl Adapter for TokioSpawnBlocking {
    const NAME: &'static str = "tokio spawn_blocking";

    fn new(limit: usize) -> Self {
        Self(Tokio::new(limit))
    }
}

impl Execute for TokioSpawnBlocking {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        drop(self.0.handle.spawn_blocking(work));
    }
}

impl Ask for TokioSpawnBlocking {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        block_on(self.0.handle.spawn_blocking(work)).expect("the work does not panic")
    }
}

/// `spawn` of a future that does the work at its first poll, on two workers whatever the limit.
#[derive(Clone)]
pub(crate) struct TokioSpawn(Tokio);

impl Adapter for TokioSpawn {
    const NAME: &'static str = "tokio spawn";

    fn new(_limit: usize) -> Self {
        Self(Tokio::new(1))
    }
}

impl Execute for TokioSpawn {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        drop(self.0.handle.spawn(async move { work() }));
    }
}

impl Ask for TokioSpawn {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        block_on(self.0.handle.spawn(async move { work() })).expect("the work does not panic")
    }
}

/// The recipe: `try_acquire` and run here, else wait for a permit and take it along into `spawn_blocking`.
#[derive(Clone)]
pub(crate) struct TryElseSpawnBlocking {
    permits: Arc<Semaphore>,
    tokio: Tokio,
}

impl Adapter for TryElseSpawnBlocking {
    const NAME: &'static str = "tokio try_acquire, else spawn_blocking";

    fn new(limit: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(limit)), tokio: Tokio::new(512) }
    }
}

impl Ask for TryElseSpawnBlocking {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        if let Ok(_permit) = self.permits.try_acquire() {
            return work();
        }
        block_on(async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let task = self.tokio.handle.spawn_blocking(move || {
                let _permit = permit;
                work()
            });
            task.await.expect("the work does not panic")
        })
    }
}
