//! What stands above the table in the README: when, what and where it was measured.

use super::options::Options;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// `meanwhile`: how long it took, and what else the machine did.
pub(crate) fn header(options: &Options, meanwhile: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let length = if options.quick { "quick, " } else { "" };
    format!(
        "{year}-{month:02}-{day:02}, commit {commit}, {cores} {} cores ({}), {length}medians of {} \
         interleaved rounds, {meanwhile}.\n\n",
        std::env::consts::ARCH,
        std::env::consts::OS,
        options.rounds
    )
}

/// The commit, with a plus where files that matter differ from it.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let name = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", ":/src", ":/benches", ":/Cargo.toml"])?;
    Some(if changed.is_empty() { name } else { name + "+" })
}

/// Year, month and day of a number of days since 1970 (the civil calendar, counted from March).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date(0), (1970, 1, 1));
    assert_eq!(date(11_016), (2000, 2, 29));
    assert_eq!(date(19_358), (2023, 1, 1));
    assert_eq!(date(20_453), (2025, 12, 31));
}
