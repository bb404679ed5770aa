//! The example that reads pages, on files of its own.
#![forbid(unsafe_code)]

// Its own build finds dead code; here only its `main` is unused.
#[allow(dead_code)]
#[path = "../examples/file_pages.rs"]
mod example;
mod support;

use example::pages::{PAGE, Pages, Read};
use example::{Pass, Scratch, content_of};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;
use support::{assert_quiet, executor, hang_guard};
use work_permit::Reason;

fn bytes(read: Read) -> Vec<u8> {
    read.join().unwrap().unwrap()
}

#[test]
fn every_page_is_right_cold_and_warm() {
    hang_guard(|| {
        const COUNT: u64 = 1000;
        let file = Scratch::new(COUNT).unwrap();
        let exec = executor(4);
        let pages = Pages::open(file.path(), exec.clone()).unwrap();
        assert_eq!(pages.count(), COUNT);
        pages.forget_cached().unwrap();
        let cold = Pass::over(&pages).unwrap();
        let warm = Pass::over(&pages).unwrap();
        for pass in [&cold, &warm] {
            assert_eq!(pass.here + pass.queued, COUNT);
            assert_eq!(pass.bytes, COUNT * PAGE as u64);
        }
        println!("here, cold: {} of {COUNT}; warm: {}", cold.here, warm.here);
        for page in 0..COUNT {
            assert_eq!(bytes(pages.read(page).unwrap()), content_of(page));
        }
        let stats = exec.stats();
        assert_eq!(stats.speculated + stats.would_block, 3 * COUNT);
        assert_eq!(stats.would_block, stats.ran_queued);
        assert_eq!(stats.attempts, 0);
        // Elsewhere nothing is known of the cache; and not every file system tells.
        if cfg!(target_os = "linux") && stats.speculated > 0 {
            assert!(warm.here > COUNT / 2, "just read, and {} of them are in memory", warm.here);
        }
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn the_last_page_may_be_short_and_there_is_none_beyond() {
    hang_guard(|| {
        let file = Scratch::new(3).unwrap();
        OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"end").unwrap();
        let pages = Pages::open(file.path(), executor(1)).unwrap();
        assert_eq!(pages.count(), 4);
        assert_eq!(bytes(pages.read(2).unwrap()), content_of(2));
        assert_eq!(bytes(pages.read(3).unwrap()), b"end");
        assert!(bytes(pages.read(4).unwrap()).is_empty());
    });
}

#[test]
fn what_cannot_be_read_is_an_error_and_not_a_hang() {
    hang_guard(|| {
        let exec = executor(1);
        // A folder opens on unix and has no pages.
        if let Ok(folder) = Pages::open(&std::env::temp_dir(), exec.clone()) {
            assert!(folder.read(0).unwrap().join().unwrap().is_err());
        }
        let file = Scratch::new(2).unwrap();
        let pages = Pages::open(file.path(), exec.clone()).unwrap();
        assert!(pages.read(u64::MAX).unwrap().join().unwrap().map_or(true, |page| page.is_empty()));
        exec.close();
        match pages.read(0) {
            Ok(read) => assert_eq!(bytes(read), content_of(0), "in memory: nothing to be refused"),
            Err(reason) => assert_eq!(reason, Reason::Closed),
        }
    });
}
