//! CPU time and wake-ups, from the system; and the threads that a measurement leaves behind.

use std::thread;
use std::time::{Duration, Instant};

/// What the process has used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Times that a thread other than the caller gave up its core to wait: each ends with a wake-up.
    pub(crate) waits: u64,
}

impl Usage {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waits: self.waits.saturating_sub(earlier.waits),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn usage() -> Usage {
    let (cpu, all) = rusage(libc::RUSAGE_SELF);
    let (_, own) = rusage(libc::RUSAGE_THREAD);
    Usage { cpu, waits: all.saturating_sub(own) }
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn usage() -> Usage {
    Usage { cpu: rusage(libc::RUSAGE_SELF).0, waits: 0 }
}

#[cfg(not(unix))]
pub(crate) fn usage() -> Usage {
    Usage::default()
}

#[cfg(unix)]
fn rusage(who: libc::c_int) -> (Duration, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to memory of the right type that the call may write.
    let answer = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(answer, 0, "getrusage knows {who}");
    // SAFETY: it is initialised: zeroed is a valid value, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| {
        let micros = i128::from(t.tv_sec) * 1_000_000 + i128::from(t.tv_usec);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    let waits = u64::try_from(usage.ru_nvcsw).unwrap_or(0);
    (time(usage.ru_utime) + time(usage.ru_stime), waits)
}

/// CPU time that all processes of the machine have used, its hypervisor's other guests included as far as they kept
/// this one waiting. `None`: the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn machine() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = text.lines().next()?.split_whitespace().skip(1);
    let ticks: Vec<u64> = ticks.map_while(|number| number.parse().ok()).collect();
    // The fourth and fifth are idleness; those from the ninth on are in the first two already.
    let busy: u64 = ticks.iter().take(3).chain(ticks.iter().take(8).skip(5)).sum();
    // SAFETY: the call has no duties.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some(Duration::from_secs_f64(busy as f64 / per_second.max(1) as f64))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn machine() -> Option<Duration> {
    None
}

/// Waits until the threads of the last subject have ended, for a second at most: its pool must not run into
/// the next measurement.
pub(crate) fn wait_for_threads_to_end() {
    let give_up = Instant::now() + Duration::from_secs(1);
    while threads().is_some_and(|alive| alive > 1) && Instant::now() < give_up {
        // sleep: they end by themselves.
        thread::sleep(Duration::from_micros(200));
    }
}

#[cfg(target_os = "linux")]
fn threads() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

#[cfg(not(target_os = "linux"))]
fn threads() -> Option<usize> {
    None
}
