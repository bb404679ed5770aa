//! What the cases met, so that a change of the dice cannot make the comparison empty without a word.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Mutex;

static SEEN: Mutex<BTreeMap<&str, u64>> = Mutex::new(BTreeMap::new());

/// What a run of the default length meets at least once; mostly hundreds of times.
const MUST_BE_SEEN: [&str; 29] = [
    "run nested",
    "run at once",
    "run waits in line",
    "run refused: Saturated",
    "run refused: Closed",
    "run refused: TimedOut",
    "run refused: Deadlock",
    "acquire at once",
    "acquire waits in line",
    "acquire refused: Deadlock",
    "dispatch nested",
    "dispatch inline",
    "queued: NoPermit",
    "queued: TooDeep",
    "queued: Asked",
    "queue refused: QueueFull",
    "queue refused: Closed",
    "overtook",
    "another thread waits",
    "a task waits for a thread beside a free permit",
    "cancelled",
    "join here",
    "join here, nested",
    "join with gates opened",
    "join refused: Deadlock",
    "unrun ran",
    "attempt done",
    "attempt blocks",
    "attempt refused",
];

pub(crate) fn note(what: &'static str) {
    *SEEN.lock().unwrap().entry(what).or_default() += 1;
}

pub(crate) fn assert_all_seen() {
    let seen = SEEN.lock().unwrap();
    println!("{seen:#?}");
    for what in MUST_BE_SEEN {
        assert!(seen.contains_key(what), "not one case met: {what}");
    }
}
