//! **The tree below an executor**: those of its children that have work, under its one lock.
//!
//! A child has a permit word and its numbers ([`Level`]); a line it has only while something waits in it. The lines
//! of all children, theirs included, stand here, beside that of the root, under the lock of the root's line. So a
//! hand-over across several levels is one step, and no thread holds the permit of one level while it waits for that
//! of another. Permits are taken and given back on the words alone, as at the root.
//!
//! How the lines hang together is told in [`super::chain`].
#![forbid(unsafe_code)]

use super::{Inner, Work};
use crate::counters::Counters;
use crate::line::{Entry, Index, Line, Ticket};
use crate::permits::word::PermitWord;
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::AtomicU32;

/// No node.
const NOWHERE: u32 = u32::MAX;
/// Most spare lines of a tree.
const SPARE: usize = 32;
/// As many tasks as memory holds.
const UNBOUNDED: u32 = u32::MAX;

/// A child, as its tree knows it: cheap to clone.
pub(crate) trait Kin: Clone {
    fn level(&self) -> &Level;
    fn counters(&self) -> &Counters;
    /// `None`: its parent is the root.
    fn parent(&self) -> Option<&Self>;
}

/// What a child has when nothing waits.
#[derive(Debug)]
pub(crate) struct Level {
    pub(super) word: PermitWord,
    /// Its node, under the tree's lock.
    node: AtomicU32,
    /// Changed under the tree's lock.
    limit: AtomicU32,
    capacity: u32,
    pub(super) max_overtakes: u16,
}

impl Level {
    pub(crate) fn new(limit: usize, max_overtakes: u16, capacity: usize) -> Self {
        Self {
            word: PermitWord::new(limit),
            node: AtomicU32::new(NOWHERE),
            limit: AtomicU32::new(limit as u32),
            capacity: u32::try_from(capacity).unwrap_or(UNBOUNDED),
            max_overtakes,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.peek().is_closed()
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed) as usize
    }

    /// Under the tree's lock.
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit as u32, Relaxed);
    }

    pub(super) fn has_room_beside(&self, tasks: usize) -> bool {
        self.capacity == UNBOUNDED || tasks < self.capacity as usize
    }
}

/// A child with something in its line, or with such a child below it, or that somebody waits for further up.
pub(super) struct Node<T: Work> {
    pub(super) kin: T::Kin,
    /// `None`: the root.
    pub(super) parent: Option<Index>,
    pub(super) line: Line<T>,
    /// Where it stands in its parent's line: it has a token, and this is it.
    pub(super) place: Option<Ticket>,
    /// Nodes right below.
    pub(super) kids: usize,
    /// Nested waiters who have it for their [`Aim`](crate::line::Aim), wherever they stand.
    pub(super) pins: usize,
}

impl<T: Work> Node<T> {
    pub(super) fn word(&self) -> &PermitWord {
        &self.kin.level().word
    }

    /// Threads that wait to run here. A nested one counts where he is bound for, not where he stands.
    pub(super) fn waiters(&self) -> usize {
        self.line.waiters() - self.line.nested() + self.pins
    }
}

/// See the module's text.
pub(super) struct Below<T: Work> {
    nodes: Vec<Option<Node<T>>>,
    vacant: Vec<u32>,
    /// Empty lines with some memory, for the next that need one: few and small.
    spare: Vec<Line<T>>,
    /// Tickets of all children: those of one are never given out again, though its line does not last.
    next: Ticket,
    next_of_front: Ticket,
}

impl<T: Work> Below<T> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: Vec::new(),
            spare: Vec::new(),
            next: Ticket::FIRST,
            next_of_front: Ticket::FIRST_OF_FRONT,
        }
    }

    /// Nothing waits in any child.
    pub(super) fn is_empty(&self) -> bool {
        self.vacant.len() == self.nodes.len()
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        let ticket = self.next;
        self.next = ticket.next();
        ticket
    }

    pub(super) fn ticket_of_front(&mut self) -> Ticket {
        let ticket = self.next_of_front;
        self.next_of_front = ticket.next();
        ticket
    }

    pub(super) fn find(&self, kin: &T::Kin) -> Option<Index> {
        let node = kin.level().node.load(Relaxed);
        (node != NOWHERE).then_some(Index(node))
    }

    pub(super) fn node(&mut self, at: Index) -> &mut Node<T> {
        match self.nodes[at.0 as usize].as_mut() {
            Some(node) => node,
            None => unreachable!("a node stays while something is in its line"),
        }
    }

    /// The node of `kin`, made if there is none, with those of all that are above it.
    pub(super) fn enter(&mut self, kin: &T::Kin) -> Index {
        if let Some(at) = self.find(kin) {
            return at;
        }
        let first = self.insert(kin, 0);
        let (mut child, mut above) = (first, kin.parent());
        while let Some(kin) = above {
            let found = self.find(kin);
            let at = found.unwrap_or_else(|| self.insert(kin, 0));
            self.node(child).parent = Some(at);
            self.node(at).kids += 1;
            if found.is_some() {
                break;
            }
            (child, above) = (at, kin.parent());
        }
        first
    }

    fn insert(&mut self, kin: &T::Kin, kids: usize) -> Index {
        let line = self.spare.pop().unwrap_or_else(Line::new);
        let node = Node { kin: kin.clone(), parent: None, line, place: None, kids, pins: 0 };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.nodes[at as usize] = Some(node);
                at
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() as u32 - 1
            }
        };
        kin.level().node.store(at, Relaxed);
        Index(at)
    }

    /// Takes the node out if nothing is in its line or below it, then the one above it. Their names are dropped
    /// here, under the lock: the caller has the lowest one, and with it all. Says whether any has gone.
    pub(super) fn leave(&mut self, at: Index) -> bool {
        let mut next = Some(at);
        let mut any = false;
        while let Some(at) = next {
            let node = self.node(at);
            if node.line.len() > 0 || node.kids > 0 || node.pins > 0 {
                break;
            }
            debug_assert!(node.place.is_none());
            next = node.parent;
            let left = self.remove(at).map(|node| node.line);
            let is_kept = |line: &Line<T>| self.spare.len() < SPARE && line.is_small();
            self.spare.extend(left.filter(is_kept));
            if let Some(parent) = next {
                self.node(parent).kids -= 1;
            }
            any = true;
        }
        any
    }

    fn remove(&mut self, at: Index) -> Option<Node<T>> {
        let node = self.nodes[at.0 as usize].take()?;
        node.kin.level().node.store(NOWHERE, Relaxed);
        self.vacant.push(at.0);
        if self.is_empty() && self.nodes.capacity() > Line::<T>::KEEP_CAPACITY {
            (self.nodes, self.vacant) = (Vec::new(), Vec::new());
        }
        Some(node)
    }

    /// `at` is `top` or below it.
    pub(super) fn is_below(&mut self, at: Index, top: Index) -> bool {
        let mut next = Some(at);
        while let Some(at) = next {
            if at == top {
                return true;
            }
            next = self.node(at).parent;
        }
        false
    }

    /// The nodes of `top` and of all that are below it; those of all children with `None`.
    fn all_below(&mut self, top: Option<Index>) -> Vec<Index> {
        if let Some(top) = top.filter(|&top| self.node(top).kids == 0) {
            return vec![top];
        }
        let mut is_below: Vec<Option<bool>> = vec![top.is_none().then_some(true); self.nodes.len()];
        if let Some(top) = top {
            is_below[top.0 as usize] = Some(true);
        }
        let mut path = Vec::new();
        for at in 0..self.nodes.len() {
            let mut next = self.nodes[at].as_ref().map(|_| Index(at as u32));
            let answer = loop {
                let Some(at) = next else { break false };
                if let Some(known) = is_below[at.0 as usize] {
                    break known;
                }
                path.push(at);
                next = self.node(at).parent;
            };
            path.drain(..).for_each(|at| is_below[at.0 as usize] = Some(answer));
        }
        let chosen = (0..is_below.len()).filter(|&at| is_below[at] == Some(true));
        let chosen = chosen.filter(|&at| self.nodes[at].is_some());
        chosen.map(|at| Index(at as u32)).collect()
    }

    /// How many tasks and how many threads wait below `top`, itself left out; below the root with `None`.
    pub(super) fn count_waiting(&mut self, top: Option<Index>) -> (usize, usize) {
        let (mut tasks, mut waiters) = (0, 0);
        for at in self.all_below(top).into_iter().filter(|&at| Some(at) != top) {
            let node = self.node(at);
            tasks += node.line.tasks();
            waiters += node.waiters();
        }
        (tasks, waiters)
    }

    /// Something waits in the line of `top`, or below it, that needs a permit of every level up to the root.
    pub(super) fn waits_for_all_levels(&mut self, top: Index) -> bool {
        self.all_below(Some(top)).into_iter().any(|at| {
            let line = &self.node(at).line;
            line.tasks() > 0 || line.waiters() > line.nested()
        })
    }

    /// Takes out the nodes of `top` and of all that are below it; those of all children with `None`.
    pub(super) fn remove_all(&mut self, top: Option<Index>) -> Vec<Node<T>> {
        let above = top.and_then(|top| self.node(top).parent);
        let chosen = self.all_below(top);
        let removed = chosen.into_iter().filter_map(|at| self.remove(at)).collect();
        if let Some(above) = above {
            self.node(above).kids -= 1;
        }
        removed
    }
}

impl<T: Work> Inner<T> {
    /// The line of a child, or of the root.
    pub(super) fn line_of(&mut self, at: Option<Index>) -> &mut Line<T> {
        match at {
            None => &mut self.line,
            Some(at) => &mut self.below.node(at).line,
        }
    }

    /// Where the chain of heads ends that begins at the root: a child is the head of the root's line, a child of
    /// its own is the head of that one's, and so on.
    pub(super) fn end_of_chain(&mut self) -> Option<Index> {
        let mut at = None;
        while let Some((_, Entry::Child(next))) = self.line_of(at).head() {
            at = Some(*next);
        }
        at
    }

    /// Who is served next: the root's head, or whoever it stands for.
    pub(super) fn first(&mut self) -> Option<&mut Entry<T>> {
        let end = if self.line.is_headed_by_child() { self.end_of_chain() } else { None };
        self.line_of(end).head().map(|(_, entry)| entry)
    }

    /// The entry at `ticket` of this child is the one that is served next.
    pub(super) fn is_first(&mut self, at: Index, ticket: Ticket) -> bool {
        let mut next = Some((at, ticket));
        while let Some((at, ticket)) = next {
            let node = self.below.node(at);
            if node.line.head().is_none_or(|(head, _)| head != ticket) {
                return false;
            }
            let (place, parent) = (node.place, node.parent);
            let Some(place) = place else { return false };
            next = parent.map(|parent| (parent, place));
            if next.is_none() {
                return self.line.head().is_some_and(|(head, _)| head == place);
            }
        }
        false
    }
}
