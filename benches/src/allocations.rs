//! Allocations a call, counted by an allocator that counts.

use crate::adapter::{Ask, Execute, Run, TryRun};
use crate::adapters::bare::BarePool;
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::{WorkPermit, WorkPermitSpawn};
use crate::adapters::pools::{Executors, Rayon, Threadpool};
use crate::adapters::semaphores::{AsyncLock, ParkingLot};
use crate::adapters::tokio_recipes::{TokioSemaphore, TokioSpawn, TokioSpawnBlocking};
use crate::adapters::tower_limit::Tower;
use crate::harness::done::Since;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, counting. It is the allocator of a program of its own, so that what is timed
/// elsewhere is not slowed down by it.
#[derive(Debug)]
pub struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        // SAFETY: the caller's duties are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are those of this call.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        // SAFETY: the caller's duties are those of this call.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

const CALLS: u64 = 20_000;

/// Prints the table.
pub fn print() {
    println!("| call | subject | allocations a call |\n|---|---|---|");
    inline::<WorkPermit>("try_run");
    inline::<TokioSemaphore>("try_acquire");
    inline::<AsyncLock>("try_acquire");
    inline::<ParkingLot>("lock");
    inline::<Tower>("call");
    run::<WorkPermit>("run");
    ask::<WorkPermit>("dispatch, inline");
    ask::<WorkPermitSpawn>("spawn + join");
    ask::<BarePool>("submit + reply");
    ask::<CrossbeamChannel>("submit + reply");
    ask::<Kanal>("submit + reply");
    ask::<Executors>("submit + reply");
    ask::<Rayon>("install");
    ask::<Threadpool>("submit + reply");
    ask::<TokioSpawn>("spawn + join");
    ask::<TokioSpawnBlocking>("spawn_blocking + join");
    execute::<WorkPermit>();
    execute::<BarePool>();
    execute::<CrossbeamChannel>();
    execute::<Kanal>();
    execute::<Executors>();
    execute::<Rayon>();
    execute::<Threadpool>();
    execute::<TokioSpawn>();
    execute::<TokioSpawnBlocking>();
}

fn row(call: &str, subject: &str, allocations: u64) {
    println!("| {call} | {subject} | {:.3} |", allocations as f64 / CALLS as f64);
}

/// Allocations of all threads while `calls` is at work, after a round that warms everything up.
fn counted(mut calls: impl FnMut()) -> u64 {
    calls();
    let before = COUNT.load(Relaxed);
    calls();
    COUNT.load(Relaxed) - before
}

fn inline<A: TryRun>(call: &str) {
    let mut adapter = A::new(2);
    let count = counted(|| {
        (0..CALLS).for_each(|n| {
            let ran = adapter.try_run(|| {
                black_box(n);
            });
            assert!(ran, "a permit is free");
        });
    });
    row(call, A::NAME, count);
}

fn run<A: Run>(call: &str) {
    let mut adapter = A::new(2);
    let count = counted(|| {
        (0..CALLS).for_each(|n| {
            adapter.run(|| {
                black_box(n);
            });
        });
    });
    row(call, A::NAME, count);
}

fn ask<A: Ask>(call: &str) {
    let mut adapter = A::new(2);
    let count = counted(|| {
        (0..CALLS).for_each(|n| assert_eq!(adapter.ask(move || n), n, "its own answer"));
    });
    row(call, A::NAME, count);
}

fn execute<A: Execute>() {
    let adapter = A::new(2);
    let count = counted(|| {
        let since = Since::now();
        let done = since.done();
        (0..CALLS).for_each(|_| adapter.execute(move || done.one()));
        since.wait_for(CALLS);
    });
    row("execute, one word captured", A::NAME, count);
}
