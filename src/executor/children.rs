//! Executors below an executor.
#![forbid(unsafe_code)]

use super::Executor;
use crate::builder::ExecutorBuilder;

impl Executor {
    /// Begins an executor below this one. A task of a child needs a permit of it *and* of every executor above it:
    /// it runs inline only if all are free, and counts against every limit.
    ///
    /// For parts of a whole: tenants of a server, tables of a database, a slow kind of request among quick ones. Each
    /// has a limit of its own, and together they keep to that of the whole.
    ///
    /// *Turns.* A child with work stands in its parent's queue once, whatever it has queued itself, and goes to the end
    /// when one of its tasks has started. So children take turns, and a backlog of one delays another by one task. A
    /// child that has no permit of its own to give does not stand there. It counts against nobody's `queue_capacity`.
    ///
    /// *What it has of its own:* a limit, a queue with its capacity, statistics (the parent counts none of its tasks;
    /// it shows their permits as [`Stats::below`](crate::Stats)), and an end. *What comes from above:* the pool. A
    /// closed parent accepts nothing for its children either, and its [`drain`](Self::drain) waits for theirs; its
    /// [`shutdown_now`](Self::shutdown_now) takes theirs out too; as ever, runs inside of its own tasks go on, of its
    /// children too. At limit 0 it stops them. A child
    /// [`requires`](ExecutorBuilder::requires) of threads what its parent does, and starts from its parent's
    /// [`inline`](ExecutorBuilder::inline) and [`max_inline_depth`](ExecutorBuilder::max_inline_depth).
    /// A handle of a child keeps its parent open.
    ///
    /// *Under the parent's permit.* Inside of a task of the parent, `run`, `try_run`, `dispatch` and `join` need only
    /// the child's own permit (inside of one further up, those of the levels below that, all or none), and who waits for
    /// it, in `run`, `run_timeout` or `join`, goes ahead of the child's queue, where others may need the permit
    /// that this thread has. Inside of a task of a child, this thread is inside of its parent too. A guard
    /// ([`acquire`](Self::acquire)) may outlive the task that it was asked for in, so it takes a permit of each level,
    /// wherever that is. Beware of waiting for one inside of tasks of the parent: when all of its permits are with
    /// threads that do so, none of them goes on. (One that has all of them itself is refused with
    /// [`Reason::Deadlock`](crate::Reason::Deadlock).)
    ///
    /// *What it costs.* A child has no threads and no lines for them. It is some 200 bytes, and gets some 300 more, for
    /// its counters, with the first task that it queues. A run takes and
    /// gives one permit at each level, with atomic operations on words that its siblings' runs share above it: with
    /// many threads, that is slower than the runs of an executor without children, whose permits stay with its threads.
    ///
    /// ```
    /// use work_permit::{Pool, Reason};
    /// let server = Pool::global().executor("server").limit(8).build()?;
    /// let reports = server.child("reports").limit(2).build()?; // slow, and never more than two
    /// let pages = server.child("pages").limit(8).build()?;
    ///
    /// let (one, two) = (reports.acquire().unwrap(), reports.acquire().unwrap());
    /// assert_eq!(reports.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
    /// assert_eq!(pages.run(|| "page").unwrap(), "page", "six permits of the server are left");
    /// assert_eq!((server.stats().active, server.stats().below), (2, 2));
    /// # drop((one, two));
    ///
    /// server.close();
    /// assert_eq!(pages.run(|| ()).unwrap_err().reason(), Reason::Closed);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    ///
    /// Depth is bounded by memory alone, and costs one permit a level:
    ///
    /// ```
    /// let mut exec = work_permit::Pool::global().executor("top").build()?;
    /// for level in 0..1000 {
    ///     exec = exec.child(format!("{level}")).build()?;
    /// }
    /// assert_eq!(exec.run(|| "a thousand down").unwrap(), "a thousand down");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn child(&self, name: impl Into<String>) -> ExecutorBuilder {
        ExecutorBuilder::child(self, name.into())
    }

    /// Begins a strand: a [`child`](Self::child) whose tasks run one after the other, in the order in which they were
    /// given to it, never two at once. What one of them wrote, the next one sees.
    ///
    /// For whatever must happen in order: the writes to one key, the events of one connection. While nothing is queued
    /// and nothing runs there, `run`, `try_run` and `dispatch` still run inline. Its limit is 1 and nothing is ever
    /// overtaken; [`build`](ExecutorBuilder::build) refuses another limit or another
    /// [`max_overtakes`](ExecutorBuilder::max_overtakes), and [`set_limit`](Self::set_limit) takes 0 (paused) and 1.
    /// Only a thread inside of a task of the parent that waits, in `run`, `run_timeout` or `join`, goes ahead of what is
    /// queued (see there): it could not wait for it.
    ///
    /// It is cheap enough to have one for each key; [`Stripes`](crate::Stripes) share a number of them among all keys.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// let server = work_permit::Pool::global().executor("server").limit(8).build()?;
    /// let account = server.strand("account 7").build()?;
    /// let log = Arc::new(Mutex::new(Vec::new()));
    /// let write = |n| { let log = Arc::clone(&log); move || log.lock().unwrap().push(n) };
    ///
    /// assert!(account.dispatch(write(1)).unwrap().is_inline(), "idle: it runs here");
    /// account.execute(write(2)).unwrap();
    /// account.dispatch(write(3)).unwrap().join().unwrap(); // behind the second, unless that has run
    /// assert_eq!(*log.lock().unwrap(), [1, 2, 3]);
    ///
    /// let refused = server.strand("two at once").limit(2).build().unwrap_err();
    /// assert!(refused.to_string().contains("limit 2 of a strand"));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn strand(&self, name: impl Into<String>) -> ExecutorBuilder {
        ExecutorBuilder::strand(self, name.into())
    }
}
