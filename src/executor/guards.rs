//! Permits as guards, taken from the executor.
#![forbid(unsafe_code)]

use super::Executor;
use crate::error::{Reason, Rejected};
use crate::permit::Permit;
use crate::permits::state::Refusal;
use crate::sync::deadline_after;
use std::time::Duration;

impl Executor {
    /// A permit as a guard, if one is free.
    ///
    /// # Errors
    /// [`Reason::Saturated`], [`Reason::Closed`].
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.try_acquire().unwrap();
    /// assert!(exec.try_acquire().is_err());
    /// drop(permit);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn try_acquire(&self) -> Result<Permit<'_>, Rejected<()>> {
        match self.engine().try_take() {
            Ok(()) => Ok(Permit::new(self)),
            Err(Refusal::Saturated) => Err(self.reject((), Reason::Saturated)),
            Err(Refusal::Closed) => Err(self.reject((), Reason::Closed)),
        }
    }

    /// A permit as a guard; with none free this thread waits its turn in the queue.
    ///
    /// # Errors
    /// [`Reason::Closed`], or [`Reason::Deadlock`] when this thread itself holds all the permits, as guards or
    /// by the task it is inside of.
    ///
    /// ```
    /// use work_permit::{Pool, Reason};
    /// let exec = Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.acquire().unwrap();
    /// assert_eq!(exec.acquire().unwrap_err().reason(), Reason::Deadlock);
    /// drop(permit);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn acquire(&self) -> Result<Permit<'_>, Rejected<()>> {
        match self.engine().try_take().or_else(|_| self.engine().wait_for_permit(None)) {
            Ok(()) => Ok(Permit::new(self)),
            Err(reason) => Err(self.reject((), reason)),
        }
    }

    /// As [`acquire`](Self::acquire), for `timeout` at most. A zero timeout has passed already.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and [`Reason::TimedOut`].
    ///
    /// ```
    /// use std::time::Duration;
    /// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// assert!(exec.acquire_timeout(Duration::from_secs(1)).is_ok());
    /// assert!(exec.acquire_timeout(Duration::ZERO).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permit<'_>, Rejected<()>> {
        match self.take_timeout(timeout) {
            Ok(()) => Ok(Permit::new(self)),
            Err(reason) => Err(self.reject((), reason)),
        }
    }

    pub(super) fn take_timeout(&self, timeout: Duration) -> Result<(), Reason> {
        if timeout.is_zero() {
            return Err(Reason::TimedOut);
        }
        self.engine().try_take().or_else(|_| self.engine().wait_for_permit(deadline_after(timeout)))
    }
}
