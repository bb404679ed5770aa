//! The line: who waits for a permit, in order. Queued tasks, tasks whose joiner waits for them, and waiters
//! stand in one sequence. Plain data; [`crate::gate`] keeps it under its lock.
//!
//! A ring of slots with rising sequence numbers. Taking one out of the middle leaves a gap, which costs a
//! binary search and no move; gaps are swept when they are more than half of the ring, so cancelled and
//! timed-out entries cost a constant each and never pile up behind a head that cannot move.
//! (crossbeam-deque's injector, which the pool uses, has no way to take an entry out of the middle.)
#![forbid(unsafe_code)]

use crate::sync::Unparker;
use std::collections::VecDeque;

/// Gaps below this number are not worth a sweep.
const SWEEP_FLOOR: usize = 32;
/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// Of those who came to the end of the line.
    pub(crate) const FIRST: Ticket = Ticket(1 << 62);
    /// Of those who were let in at its front.
    pub(crate) const FIRST_OF_FRONT: Ticket = Ticket(1);

    #[inline]
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Names a child that has work, in the tree of its executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index(pub(crate) u32);

/// Somebody who waits in the line and runs the work himself.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) signal: Unparker,
    /// He holds the token (I5) and is on his way.
    pub(crate) has_token: bool,
}

/// What a nested waiter wants the permits of several levels for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    /// The lowest of the levels. It stays in the tree as long as anybody has it for an aim.
    pub(crate) child: Index,
    /// The task in its line that he joins.
    pub(crate) task: Option<Ticket>,
}

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum Entry<T> {
    /// A task for a worker.
    Task(T),
    /// A task whose joiner will run it himself.
    Joined(T, Waiting),
    /// A thread that wants a permit and nothing else.
    Waiter(Waiting),
    /// As `Waiter`, of a thread that has the permits of the parent already, on its way down.
    Nested(Waiting, Aim),
    /// A child with work that could start: it stands here for all of its own line.
    Child(Index),
}

impl<T> Entry<T> {
    /// The one who waits here, if it is not only a task.
    pub(crate) fn waiting(&mut self) -> Option<&mut Waiting> {
        match self {
            Entry::Task(_) | Entry::Child(_) => None,
            Entry::Joined(_, waiting) | Entry::Waiter(waiting) | Entry::Nested(waiting, _) => {
                Some(waiting)
            }
        }
    }

    /// The task, if there is one.
    pub(crate) fn into_task(self) -> Option<T> {
        match self {
            Entry::Task(task) | Entry::Joined(task, _) => Some(task),
            Entry::Waiter(_) | Entry::Nested(..) | Entry::Child(_) => None,
        }
    }

    /// A task, joined or not.
    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        matches!(self, Entry::Task(_) | Entry::Joined(..))
    }

    /// A child.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Entry::Child(_))
    }

    #[inline]
    pub(crate) fn at(self, ticket: Ticket, came_ns: u64) -> Slot<T> {
        Slot { ticket, came_ns, entry: Some(self) }
    }
}

/// An entry at its place.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    ticket: Ticket,
    /// When it came, in nanoseconds of its executor's clock; 0 where nobody asked.
    came_ns: u64,
    entry: Option<Entry<T>>,
}

/// Entries with rising tickets.
pub(crate) type Slots<T> = VecDeque<Slot<T>>;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Line<T> {
    slots: Slots<T>,
    gaps: usize,
    /// Entries that are no task.
    others: usize,
    /// Of these, children.
    children: usize,
}

impl<T> Line<T> {
    /// An empty ring larger than this gives its memory back.
    pub(crate) const KEEP_CAPACITY: usize = 1024;
    /// A ring up to this one may be kept for another line.
    const SMALL_CAPACITY: usize = 16;

    pub(crate) fn new() -> Self {
        Self { slots: Slots::new(), gaps: 0, others: 0, children: 0 }
    }

    /// Entries of every kind.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.gaps
    }

    /// Tasks, joined or not.
    pub(crate) fn tasks(&self) -> usize {
        self.len() - self.others
    }

    /// The oldest entry is a child.
    #[inline]
    pub(crate) fn is_headed_by_child(&self) -> bool {
        let head = self.slots.front().and_then(|slot| slot.entry.as_ref());
        self.children > 0 && head.is_some_and(Entry::is_child)
    }

    /// Of these, nested ones.
    pub(crate) fn nested(&self) -> usize {
        let front = self.slots.iter().take_while(|slot| slot.ticket < Ticket::FIRST);
        front.filter(|slot| matches!(slot.entry, Some(Entry::Nested(..)))).count()
    }

    /// It has little memory.
    pub(crate) fn is_small(&self) -> bool {
        self.slots.capacity() <= Self::SMALL_CAPACITY
    }

    /// Threads that wait for a permit.
    pub(crate) fn waiters(&self) -> usize {
        self.others - self.children
    }

    #[inline]
    fn count_in(&mut self, entry: &Entry<T>) {
        self.others += usize::from(!entry.is_task());
        self.children += usize::from(entry.is_child());
    }

    #[inline]
    fn count_out(&mut self, entry: &Entry<T>) {
        self.others -= usize::from(!entry.is_task());
        self.children -= usize::from(entry.is_child());
    }

    /// Puts an entry at the end; its ticket is above all that are there.
    pub(crate) fn push(&mut self, ticket: Ticket, entry: Entry<T>, came_ns: u64) {
        self.count_in(&entry);
        self.slots.push_back(entry.at(ticket, came_ns));
    }

    /// Puts an entry in front of all that came to the end, behind those that were put there before.
    pub(crate) fn push_to_front(&mut self, ticket: Ticket, entry: Entry<T>, came_ns: u64) {
        self.count_in(&entry);
        let at = self.slots.partition_point(|slot| slot.ticket < Ticket::FIRST);
        self.slots.insert(at, entry.at(ticket, came_ns));
    }

    /// Moves tasks to the end, whose tickets are above all that are there. Whichever are fewer are moved.
    pub(crate) fn append(&mut self, tasks: &mut Slots<T>) {
        if self.slots.len() >= tasks.len() {
            self.slots.append(tasks);
            return;
        }
        std::mem::swap(&mut self.slots, tasks);
        while let Some(slot) = tasks.pop_back() {
            self.slots.push_front(slot);
        }
    }

    /// The oldest entry. The front slot is never a gap.
    pub(crate) fn head(&mut self) -> Option<(Ticket, &mut Entry<T>)> {
        let slot = self.slots.front_mut()?;
        let ticket = slot.ticket;
        slot.entry.as_mut().map(|entry| (ticket, entry))
    }

    /// Those who were put in front.
    pub(crate) fn front(&mut self) -> impl Iterator<Item = (Ticket, &mut Entry<T>)> {
        let front = self.slots.iter_mut().take_while(|slot| slot.ticket < Ticket::FIRST);
        front.filter_map(|slot| slot.entry.as_mut().map(|entry| (slot.ticket, entry)))
    }

    pub(crate) fn get(&mut self, ticket: Ticket) -> Option<&mut Entry<T>> {
        let at = self.find(ticket)?;
        self.slots[at].entry.as_mut()
    }

    /// Makes another kind of entry of the one at `ticket`, which keeps its place. `false`: it is gone.
    pub(crate) fn convert(&mut self, ticket: Ticket, f: impl FnOnce(Entry<T>) -> Entry<T>) -> bool {
        let Some(slot) = self.find(ticket).map(|at| &mut self.slots[at]) else {
            return false;
        };
        slot.entry = slot.entry.take().map(f);
        slot.entry.is_some()
    }

    /// Takes the oldest entry out, with the moment it came.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Entry<T>, u64)> {
        let slot = self.slots.pop_front()?;
        let entry = slot.entry?;
        self.count_out(&entry);
        if self.gaps > 0 {
            self.trim();
        }
        Some((entry, slot.came_ns))
    }

    /// Moves the oldest entry to `place`, where nothing is, and says when it came. It goes there in one step, since
    /// a copy of what was just written costs more than all the rest.
    #[inline(always)]
    pub(crate) fn pop_into(&mut self, place: &mut Option<Entry<T>>) -> u64 {
        debug_assert!(place.is_none(), "what is there would be dropped under the lock");
        let Some(slot) = self.slots.front_mut() else { return 0 };
        std::mem::swap(place, &mut slot.entry);
        let came_ns = slot.came_ns;
        if let Some(entry) = place {
            self.count_out(entry);
        }
        drop(self.slots.pop_front());
        if self.gaps > 0 {
            self.trim();
        }
        came_ns
    }

    /// Takes an entry out wherever it stands.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<(Entry<T>, u64)> {
        let at = self.find(ticket)?;
        let came_ns = self.slots[at].came_ns;
        let entry = self.slots[at].entry.take()?;
        self.count_out(&entry);
        self.gaps += 1;
        self.trim();
        if self.gaps > SWEEP_FLOOR && self.gaps > self.slots.len() / 2 {
            self.slots.retain(|slot| slot.entry.is_some());
            self.gaps = 0;
        }
        Some((entry, came_ns))
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.slots.binary_search_by_key(&ticket, |slot| slot.ticket).ok()
    }

    /// Drops gaps at both ends.
    fn trim(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop_front();
            self.gaps -= 1;
        }
        while self.slots.back().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop_back();
            self.gaps -= 1;
        }
    }

    /// Ends the memory of a large burst, once it is over.
    pub(crate) fn give_memory_back(&mut self) {
        if self.slots.len() <= 1 && self.slots.capacity() > Self::KEEP_CAPACITY {
            self.slots.shrink_to(1);
        }
    }
}

#[cfg(all(test, not(work_permit_loom)))]
#[path = "line_tests.rs"]
mod tests;
