//! tower's `ConcurrencyLimit` around a service that runs the closure it is called with.

use super::tokio_recipes::block_on;
use crate::adapter::{Adapter, Run, TryRun};
use std::convert::Infallible;
use std::future::{Future, Ready, poll_fn, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tower::Service;
use tower::limit::ConcurrencyLimit;

/// Calls what it is called with.
#[derive(Clone)]
pub(crate) struct CallIt;

impl<F: FnOnce()> Service<F> for CallIt {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, work: F) -> Self::Future {
        work();
        ready(Ok(()))
    }
}

/// The layer; a clone for each caller, as tower wants it.
#[derive(Clone)]
pub(crate) struct Tower {
    service: ConcurrencyLimit<CallIt>,
}

impl Adapter for Tower {
    const NAME: &'static str = "tower";

    fn new(limit: usize) -> Self {
        Self { service: ConcurrencyLimit::new(CallIt, limit) }
    }
}

impl TryRun for Tower {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        if !is_ready_for(&work, &mut self.service, &mut context) {
            return false;
        }
        let response = pin!(self.service.call(work));
        response.poll(&mut context).is_ready()
    }
}

impl Run for Tower {
    fn run(&mut self, work: impl FnOnce() + Send) {
        block_on(poll_fn(|context| match is_ready_for(&work, &mut self.service, context) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
        let Ok(()) = block_on(self.service.call(work));
    }
}

/// Whether `service` has a permit for a request of the type of `work`.
#[inline]
fn is_ready_for<F: FnOnce()>(
    _work: &F,
    service: &mut ConcurrencyLimit<CallIt>,
    context: &mut Context<'_>,
) -> bool {
    <ConcurrencyLimit<CallIt> as Service<F>>::poll_ready(service, context).is_ready()
}
