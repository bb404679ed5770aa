//! Only the module `sync` names what std and loom give: atomics, locks, threads, and SeqCst.

use crate::lexer::find_word;
use crate::paths;
use crate::source::{File, Violation};

/// What is refused, with everything below it. A whole module is refused as such (`use std::thread;`
/// and then `thread::spawn` would go unseen), not what stands beside the refused names in it.
const GROUND: &[&str] = &[
    "std::sync::atomic",
    "std::sync::Mutex",
    "std::sync::MutexGuard",
    "std::sync::Condvar",
    "std::sync::RwLock",
    "std::sync::Barrier",
    "std::sync::mpsc",
    "std::thread::spawn",
    "std::thread::scope",
    "std::thread::park",
    "std::thread::park_timeout",
    "std::thread::yield_now",
    "std::thread::sleep",
    "std::thread::Builder",
    "std::hint::spin_loop",
    "core::sync::atomic",
    "core::hint::spin_loop",
    "crossbeam_utils::atomic",
    "crossbeam_utils::sync",
    "crossbeam_utils::thread",
    "loom",
];

const WHOLE_MODULES: &[&str] = &[
    "std::sync",
    "std::sync::*",
    "std::thread",
    "std::thread::*",
    "core::sync",
    "core::sync::*",
    "crossbeam_utils",
    "crossbeam_utils::*",
];

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_sync(&file.path)) {
        let code = file.shipped_code();
        for root in ["std", "core", "crossbeam_utils", "loom"] {
            for path in paths::rooted(&code, root) {
                let text = path.text();
                if is_ground(&text) {
                    let message = format!("names `{text}`; use `crate::sync`");
                    found.push(file.violation(path.offset, message));
                }
            }
        }
        for at in find_word(&code, "SeqCst") {
            found.push(file.violation(at, "SeqCst; use a named fence of `crate::sync`"));
        }
    }
    found
}

/// The module `sync`, in one file or several.
fn is_sync(path: &str) -> bool {
    path == "src/sync.rs" || path.starts_with("src/sync/")
}

fn is_ground(text: &str) -> bool {
    let below = |ground: &str| {
        text.strip_prefix(ground).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    WHOLE_MODULES.contains(&text) || GROUND.iter().any(|ground| below(ground))
}

#[cfg(test)]
fn lines_of(path: &str, text: &str, expected: &[usize]) {
    crate::source::assert_lines(&check(&[File::new(path, text)]), expected);
}

#[test]
fn the_ground_is_refused_outside_sync() {
    let text = "use std::sync::atomic::AtomicU64;\nuse std::sync::{Arc, Mutex};\n\
                use std::{\n  sync::Arc,\n  thread,\n};\nfn f() { std::thread::spawn(g); }\n\
                use loom::cell::UnsafeCell;\nuse core::sync::atomic::fence;\nuse std::sync::*;\n";
    lines_of("src/line.rs", text, &[1, 2, 5, 7, 10, 9, 8]);
    lines_of("src/sync.rs", text, &[]);
    lines_of("src/sync/shim.rs", text, &[]);
    lines_of("src/synchrony.rs", "use std::thread;", &[1]);
}

#[test]
fn what_stands_beside_the_ground_is_fine() {
    let text = "use std::sync::{Arc, OnceLock, Weak};\nlet p = std::thread::panicking();\n\
                use crate::sync::{Mutex, thread};\n#[cfg(work_permit_loom)]\nuse a::loom;\n\
                // std::sync::Mutex\n#[cfg(test)]\nmod tests { use std::thread; }\n\
                use crossbeam_utils::CachePadded;\n";
    lines_of("src/line.rs", text, &[]);
}

#[test]
fn the_strongest_ordering_is_refused_outside_sync() {
    lines_of("src/line.rs", "// SeqCst\n\nfence(SeqCst);\na.load(Ordering::SeqCst);\n", &[3, 4]);
    lines_of("src/sync.rs", "fence(SeqCst);\n", &[]);
}
