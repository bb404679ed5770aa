//! What the types promise: which may cross threads, which are futures, which are errors for `?`.
#![forbid(unsafe_code)]

use crate::support::{block_on, executor};
use std::cell::Cell;
use std::error::Error;
use std::future::{Future, IntoFuture};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::mpsc;
use work_permit::{
    ConfigError, Dispatched, DispatchedFuture, Executor, ExecutorBuilder, Inline, JoinError,
    JoinHandle, OwnedPermit, Panic, Permit, Pool, PoolBuilder, PoolStats, Reason, Refused,
    Rejected, Stats, Unfinished, Unrun,
};

fn crosses_threads<T: Send + Sync>() {}
fn can_be_sent<T: Send>() {}
fn is_shared<T: Sync>() {}
fn is_static<T: 'static>() {}
fn is_error<T: Error + Send + Sync + 'static>() {}
fn is_unpin<T: Unpin>() {}

/// `true` where the type has the trait; decided by which of two methods of one name is in reach.
macro_rules! implements {
    ($type:ty: $($bound:tt)+) => {{
        #[allow(dead_code)]
        trait No {
            const HAS: bool = false;
        }
        impl<T: ?Sized> No for T {}
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $($bound)+> Probe<T> {
            const HAS: bool = true;
        }
        <Probe<$type>>::HAS
    }};
}

/// Sent, but not shared: `Send`, not `Sync`.
type NotSync = Cell<u8>;
/// Neither.
type NotSend = std::rc::Rc<u8>;

#[test]
fn what_crosses_threads() {
    crosses_threads::<Executor>();
    crosses_threads::<ExecutorBuilder>();
    crosses_threads::<Pool>();
    crosses_threads::<PoolBuilder>();
    crosses_threads::<OwnedPermit>();
    crosses_threads::<JoinHandle<u8>>();
    crosses_threads::<JoinHandle<NotSync>>();
    crosses_threads::<Dispatched<u8>>();
    crosses_threads::<DispatchedFuture<u8>>();
    crosses_threads::<JoinError>();
    crosses_threads::<Panic>();
    crosses_threads::<Rejected<u8>>();
    crosses_threads::<(Stats, PoolStats, Refused, Reason, Inline, Unfinished, ConfigError)>();
    can_be_sent::<Unrun>();
    can_be_sent::<Rejected<NotSync>>();
    is_shared::<Rejected<NotSync>>();
    is_static::<(Executor, Pool, OwnedPermit, Unrun, JoinHandle<u8>)>();
    is_unpin::<(JoinHandle<u8>, DispatchedFuture<std::marker::PhantomPinned>)>();
}

#[test]
fn what_stays_on_its_thread() {
    assert!(!implements!(Permit<'static>: Send));
    assert!(!implements!(Rejected<NotSend>: Send));
    assert!(!implements!(Rejected<NotSend>: Sync));
    assert!(!implements!(Dispatched<NotSend>: Send));
    assert!(!implements!(Dispatched<NotSync>: Sync), "the value itself is in it");
    // The macro can tell.
    assert!(implements!(OwnedPermit: Send) && implements!(Executor: Sync));
}

#[test]
fn what_can_be_copied_and_caught() {
    fn is_copy<T: Copy>() {}
    fn is_clone<T: Clone>() {}
    is_copy::<(Reason, Inline, Unfinished, PoolStats, Refused)>();
    is_clone::<(Executor, ExecutorBuilder, Pool, Stats, ConfigError)>();
    assert!(!implements!(JoinHandle<u8>: Clone), "a task has one handle");
    assert!(!implements!(OwnedPermit: Clone));
    fn is_future<T: Future<Output = Result<u8, JoinError>>>() {}
    fn becomes_future<T: IntoFuture<Output = Result<u8, JoinError>>>() {}
    is_future::<JoinHandle<u8>>();
    is_future::<DispatchedFuture<u8>>();
    becomes_future::<Dispatched<u8>>();
}

type Any = Box<dyn Error + Send + Sync>;

fn joins(exec: &Executor) -> Result<u8, Any> {
    let handle = exec.spawn(|| 1).map_err(|refused| refused.into_reason())?;
    Ok(handle.join()?)
}

fn borrows(exec: &Executor, bytes: &[u8]) -> Result<usize, Any> {
    let sum = exec.try_run(|| bytes.len());
    Ok(sum.map_err(Rejected::into_reason)?)
}

fn passes_the_refusal_on(exec: &Executor) -> Result<(), Any> {
    Ok(exec.execute(|| ())?)
}

fn fails(exec: &Executor) -> Result<(), Any> {
    Ok(exec.spawn(|| resume("out"))?.join()?)
}

fn resume(text: &'static str) {
    std::panic::resume_unwind(Box::new(text));
}

#[test]
fn errors_go_through_question_marks() {
    is_error::<JoinError>();
    is_error::<Reason>();
    is_error::<ConfigError>();
    is_error::<Unfinished>();
    is_error::<Rejected<Box<dyn FnOnce() + Send>>>();
    let exec = executor(1);
    assert_eq!(joins(&exec).unwrap(), 1);
    assert_eq!(borrows(&exec, &[1, 2, 3]).unwrap(), 3);
    assert!(passes_the_refusal_on(&exec).is_ok());
    let failed = fails(&exec).unwrap_err();
    assert_eq!(failed.to_string(), "the task panicked: out");
    assert!(failed.is::<JoinError>());
    exec.close();
    assert_eq!(*joins(&exec).unwrap_err().downcast::<Reason>().unwrap(), Reason::Closed);
    assert_eq!(borrows(&exec, &[]).unwrap_err().to_string(), "the executor is closed");
    let passed_on = passes_the_refusal_on(&exec).unwrap_err();
    assert_eq!(passed_on.to_string(), "the executor is closed");
    assert!(executor(1).set_limit(usize::MAX).map_err(Any::from).is_err());
}

#[test]
fn values_that_may_not_be_shared_come_back() {
    let exec = executor(1);
    let guard = exec.acquire().unwrap();
    let handle = exec.spawn(|| Cell::new(5_u8)).unwrap();
    drop(guard);
    assert_eq!(block_on(handle).unwrap().get(), 5);
    let (tx, rx) = mpsc::channel();
    exec.close();
    // A channel's receiver is not `Sync`: in a refusal it may be shared all the same.
    let refused = exec.spawn(move || rx.recv()).unwrap_err();
    std::thread::scope(|s| {
        s.spawn(|| assert_eq!(refused.reason(), Reason::Closed));
    });
    tx.send(7).unwrap();
    assert_eq!(refused.into_task()().unwrap(), 7);
}

#[test]
fn handles_may_be_used_across_a_caught_panic() {
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<(Reason, ConfigError, Unfinished, Stats)>();
    let exec = executor(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        exec.run(|| resume("out")).unwrap();
    }));
    assert!(caught.is_err());
    assert_eq!(exec.run(|| 1).unwrap(), 1);
}
