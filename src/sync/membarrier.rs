//! The process-wide barrier of Linux: `membarrier(2)`, private and expedited. After it returns, every running
//! thread of the process has passed a full barrier between the call and the return; a thread that does not run
//! passes one when it is switched in.

#[cfg(target_os = "linux")]
pub(crate) use linux::{process_barrier, process_barrier_is_ready};

/// No such call on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn process_barrier_is_ready() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn process_barrier() {
    unreachable!("nobody was told that there is one");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    // Values of `linux/membarrier.h`, part of the kernel's stable interface.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the system call takes three integers, reads and writes no memory of ours, and refuses
        // commands that it does not know.
        let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        answer == 0
    }

    /// The kernel has the call, and this process is registered for it: asked once.
    pub(crate) fn process_barrier_is_ready() -> bool {
        static READY: OnceLock<bool> = OnceLock::new();
        *READY
            .get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED))
    }

    /// Makes every thread of this process pass a full barrier.
    ///
    /// # Panics
    /// When the kernel refuses what it granted before: to go on would break the limit.
    pub(crate) fn process_barrier() {
        assert!(membarrier(PRIVATE_EXPEDITED), "membarrier was registered and is refused now");
    }
}
