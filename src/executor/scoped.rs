//! The scope of an executor.
#![forbid(unsafe_code)]

use super::Executor;
use crate::scope::{Scope, hold};
use crate::task::unwind::drop_quietly;
use std::panic::resume_unwind;

impl Executor {
    /// Calls `f` with a [`Scope`], whose tasks may borrow, and returns when all of them have ended. Its shape is
    /// that of [`std::thread::scope`], with tasks under this executor's limit in place of threads.
    ///
    /// `f` itself runs on this thread without a permit. When it has returned, this thread helps: it runs those
    /// tasks of the scope that have not started, one after the other, each as soon as a permit is free and in the
    /// order of the queue (inside a task of the executor at once, under that task's permit), and never a
    /// stranger's. Then it waits for the others.
    ///
    /// *What can delay the end.* At limit 0 it waits until somebody raises the limit. [`close`](Self::close) lets
    /// the tasks that were accepted run. [`shutdown_now`](Self::shutdown_now) ends those that have not started
    /// there and then, as [`JoinError::Closed`](crate::JoinError::Closed), and none of them comes out as an
    /// [`Unrun`](crate::Unrun); join the handles of tasks whose work must have been done.
    ///
    /// *What may be forgotten.* Everything: no promise of this call rests on the handles or on their drop. A
    /// result that nobody has taken is dropped before the call returns.
    ///
    /// # Panics
    /// When all tasks have ended: with the panic of `f`; or because a task panicked and nobody joined it; or
    /// because this thread holds, as guards, all the permits under which a task could have started: the wait is
    /// not made, and the task ends as [`JoinError::Deadlock`](crate::JoinError::Deadlock).
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("parse").limit(4).build()?;
    /// let text = String::from("the quick brown fox jumps over the lazy dog");
    /// let mut lengths = vec![0; 9];
    /// exec.scope(|s| {
    ///     for (word, length) in text.split(' ').zip(&mut lengths) {
    ///         s.spawn(|| *length = word.len()).unwrap();
    ///     }
    /// });
    /// assert_eq!(lengths, [3, 5, 5, 3, 5, 4, 3, 4, 3]);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[track_caller]
    pub fn scope<'env, F, T>(&self, f: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        let held = hold(self, f);
        let value = match held.result {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        };
        if held.panics > 0 || held.stuck > 0 {
            drop_quietly(value);
            assert!(held.panics == 0, "a scoped task panicked");
            panic!("a scoped task could not start: this thread holds all permits of the executor");
        }
        value
    }
}
