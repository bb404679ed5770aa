//! Reads the pages of a file: right here where they are in the page cache, on a worker where a disk must be waited for.
//!
//! ```text
//! cargo run --release --example file_pages            # a file of its own, first cold, then warm
//! cargo run --release --example file_pages -- FILE    # pages of this one, as they are
//! ```
//!
//! A thread that serves many clients must not wait for a disk, and a hop to another thread costs more than to copy a page
//! that is in memory. Only the kernel knows which of the two a page is: `preadv2` with `RWF_NOWAIT` reads what is
//! cached and says `EAGAIN` where it would have to wait. That is the attempt of `Executor::speculate`; the rest is a
//! plain read, queued. Where there is no such call (other systems, some file systems), every read is queued.
//!
//! Where to look: `pages` has the reads, `cache` what only Linux can do.
#![forbid(unsafe_code)]

#[path = "file_pages/cache.rs"]
mod cache;
#[path = "file_pages/pages.rs"]
pub(crate) mod pages;

use pages::{PAGE, Pages};
use std::collections::VecDeque;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use work_permit::Pool;

/// Pages of the file that the example makes: 64 MiB.
const OWN_PAGES: u64 = 16 * 1024;

/// Reads that may be queued before the oldest is waited for.
const AHEAD: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let (own, path) = match std::env::args_os().nth(1) {
        Some(path) => (None, PathBuf::from(path)),
        None => {
            let own = Scratch::new(OWN_PAGES)?;
            let path = own.path().to_owned();
            (Some(own), path)
        }
    };
    let pool = Pool::new();
    let reads = pool.executor("reads").limit(8).build()?;
    let pages = Pages::open(&path, reads.clone())?;
    println!("{} pages of {PAGE} bytes: {}", pages.count(), path.display());
    println!("{:<6} {:>8} {:>8} {:>9} {:>12}", "pass", "here", "queued", "time", "a page");
    if own.is_some() {
        pages.forget_cached()?;
    }
    let passes = if own.is_some() { ["cold", "warm"] } else { ["first", "second"] };
    for name in passes {
        let pass = Pass::over(&pages)?;
        let time = pass.time.as_secs_f64();
        let each = time * 1e6 / pages.count().max(1) as f64;
        println!("{name:<6} {:>8} {:>8} {time:>8.3}s {each:>9.2} µs", pass.here, pass.queued);
    }
    let stats = reads.stats();
    println!(
        "the executor counted {} done in the attempt, {} that would block; {} ran queued",
        stats.speculated, stats.would_block, stats.ran_queued
    );
    pool.shutdown(Duration::MAX)?;
    Ok(())
}

/// What one pass over all pages came to.
pub(crate) struct Pass {
    pub(crate) here: u64,
    pub(crate) queued: u64,
    pub(crate) bytes: u64,
    time: Duration,
}

impl Pass {
    /// Reads every page once, in an order that no read-ahead can guess.
    pub(crate) fn over(pages: &Pages) -> io::Result<Self> {
        let began = Instant::now();
        let mut pass = Self { here: 0, queued: 0, bytes: 0, time: Duration::ZERO };
        let mut waiting = VecDeque::new();
        for page in scattered(pages.count()) {
            let read = pages.read(page).map_err(io::Error::other)?;
            if read.is_inline() {
                pass.here += 1;
            } else {
                pass.queued += 1;
            }
            waiting.push_back(read);
            if waiting.len() > AHEAD {
                pass.finish(waiting.pop_front())?;
            }
        }
        waiting.into_iter().try_for_each(|read| pass.finish(Some(read)))?;
        pass.time = began.elapsed();
        Ok(pass)
    }

    fn finish(&mut self, read: Option<pages::Read>) -> io::Result<()> {
        if let Some(read) = read {
            self.bytes += read.join().map_err(io::Error::other)??.len() as u64;
        }
        Ok(())
    }
}

/// The numbers below `count`, each once: steps of a size that has no divisor in common with it.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    let no_common_divisor = |step: &u64| {
        let (mut a, mut b) = (*step, count);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let step = (count / 3 * 2..).find(no_common_divisor).unwrap_or(1);
    (0..count).map(move |n| (u128::from(n) * u128::from(step) % u128::from(count)) as u64)
}

/// A file that goes when this does.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// With so many pages, each full of its own number.
    pub(crate) fn new(pages: u64) -> io::Result<Self> {
        let name = format!("work-permit-pages-{}-{pages}", std::process::id());
        let scratch = Self(std::env::temp_dir().join(name));
        let mut file = BufWriter::new(File::create(&scratch.0)?);
        for page in 0..pages {
            file.write_all(&content_of(page))?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed was removed by somebody else.
        let _gone = fs::remove_file(&self.0);
    }
}

pub(crate) fn content_of(page: u64) -> Vec<u8> {
    page.to_le_bytes().repeat(PAGE / size_of::<u64>())
}
