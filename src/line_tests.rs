//! Order, counts and memory of the line.
#![forbid(unsafe_code)]

use super::*;
use crate::sync::Parker;

fn waiter() -> Entry<u32> {
    Entry::Waiter(Waiting { signal: Parker::new().unparker(), has_token: false })
}

/// A line whose tickets are counted.
struct Counted(Line<u32>, Ticket);

impl Counted {
    fn new() -> Self {
        Self(Line::new(), Ticket::FIRST)
    }

    fn push(&mut self, entry: Entry<u32>) -> Ticket {
        let ticket = self.1;
        self.1 = ticket.next();
        self.0.push(ticket, entry, 0);
        ticket
    }
}

#[test]
fn keeps_order_around_gaps() {
    let mut line = Counted::new();
    let tickets: Vec<_> = (0..10).map(|n| line.push(Entry::Task(n))).collect();
    let Counted(mut line, _) = line;
    for n in [0, 3, 4, 9] {
        assert!(line.remove(tickets[n]).is_some());
        assert!(line.remove(tickets[n]).is_none(), "only once");
    }
    assert_eq!(drain(&mut line), [1, 2, 5, 6, 7, 8]);
    assert_eq!((line.len(), line.gaps), (0, 0));
}

fn drain(line: &mut Line<u32>) -> Vec<u32> {
    let mut left = Vec::new();
    while let Some((entry, _)) = line.pop() {
        left.extend(entry.into_task());
    }
    left
}

#[test]
fn appends_in_order_few_to_many_and_many_to_few() {
    for (there, come) in [(0, 5), (1, 5), (5, 5), (5, 1), (5, 0)] {
        let mut line = Counted::new();
        let first = line.push(Entry::Task(99));
        (0..there).for_each(|n| _ = line.push(Entry::Task(n)));
        let Counted(mut line, mut ticket) = line;
        let mut tasks = Slots::new();
        for n in there..there + come {
            tasks.push_back(Entry::Task(n).at(ticket, 0));
            ticket = ticket.next();
        }
        line.append(&mut tasks);
        assert!(tasks.is_empty());
        line.remove(first);
        assert_eq!(drain(&mut line), (0..there + come).collect::<Vec<_>>());
    }
}

#[test]
fn counts_tasks_and_waiters_apart() {
    let mut line = Counted::new();
    line.push(Entry::Task(1));
    let second = line.push(waiter());
    line.push(waiter());
    let Counted(mut line, _) = line;
    assert_eq!((line.tasks(), line.waiters(), line.len()), (1, 2, 3));
    line.remove(second);
    assert_eq!((line.tasks(), line.waiters(), line.len()), (1, 1, 2));
    line.pop();
    assert_eq!((line.tasks(), line.waiters(), line.len()), (0, 1, 1));
}

#[test]
fn gaps_behind_a_stuck_head_do_not_pile_up() {
    let mut line = Counted::new();
    line.push(Entry::Task(0));
    let mut last = line.push(Entry::Task(1));
    for n in 2..100_000 {
        let ticket = line.push(Entry::Task(n));
        line.0.remove(last);
        last = ticket;
        assert!(line.0.slots.len() <= 2 * line.0.len() + SWEEP_FLOOR + 2);
    }
    assert_eq!(line.0.len(), 2);
}

#[test]
fn a_burst_gives_its_memory_back() {
    let mut line = Counted::new();
    for n in 0..10_000 {
        line.push(Entry::Task(n));
    }
    let Counted(mut line, _) = line;
    while line.len() > 1 {
        line.pop();
    }
    line.give_memory_back();
    assert!(line.slots.capacity() <= Line::<u32>::KEEP_CAPACITY);
    assert_eq!(drain(&mut line), [9_999]);
}
