//! Queued work that a shutdown took out.
#![forbid(unsafe_code)]

use crate::engine::Engine;
use crate::sync::Arc;
use crate::task::cell::{End, Task};
use std::fmt;

/// A queued task that [`Executor::shutdown_now`](crate::Executor::shutdown_now) took out.
///
/// Run it, or drop it: then its closure is dropped and its handle says
/// [`JoinError::Closed`](crate::JoinError::Closed). Either way it stays counted as `unrun`.
///
/// ```
/// use work_permit::{JoinError, Pool};
/// let exec = Pool::global().executor("paused").limit(0).build()?;
/// let (kept, dropped) = (exec.spawn(|| 1).unwrap(), exec.spawn(|| 2).unwrap());
/// let mut unrun = exec.shutdown_now();
/// unrun.pop();
/// unrun.pop().unwrap().run();
/// assert_eq!(kept.join().unwrap(), 1);
/// assert!(matches!(dropped.join(), Err(JoinError::Closed)));
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "dropping it ends its task with `Closed`"]
pub struct Unrun {
    task: Option<Task>,
    engine: Arc<Engine>,
}

impl Unrun {
    pub(crate) fn new(task: Task, engine: Arc<Engine>) -> Self {
        Self { task: Some(task), engine }
    }

    /// The name of the executor that accepted the task: a shutdown takes out what is queued in children too.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let tenant = exec.child("tenant").build()?;
    /// tenant.execute(|| ()).unwrap();
    /// let unrun = exec.shutdown_now();
    /// assert_eq!(unrun[0].executor_name(), "tenant");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn executor_name(&self) -> &str {
        &self.engine.settings.name
    }

    /// Runs the task on this thread, without a permit. A panic goes into its handle.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// exec.execute(|| println!("late, but done")).unwrap();
    /// exec.shutdown_now().into_iter().for_each(|unrun| unrun.run());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn run(mut self) {
        if let Some(task) = self.task.take() {
            self.engine.run_unrun(task);
        }
    }
}

impl Drop for Unrun {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            Engine::end_task(task, End::Closed);
        }
    }
}

impl fmt::Debug for Unrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unrun")
            .field("executor", &self.engine.settings.name)
            .finish_non_exhaustive()
    }
}
