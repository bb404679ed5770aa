//! What the proof says of itself is true: its map, its mutants, and the tests that faults name.

use crate::lexer::find_word;
use crate::source::{File, Violation};

/// Refuses a guarantee in the map that has an empty cell, or names a model that is none.
pub(crate) fn check_map(map: &File, models: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in map.text.split_inclusive('\n') {
        let row = line.trim().strip_prefix("| G").and_then(|row| row.strip_suffix('|'));
        let cells: Vec<&str> = row.iter().flat_map(|row| row.split('|')).map(str::trim).collect();
        if cells.iter().any(|cell| cell.is_empty()) {
            found.push(map.violation(at, "an empty cell: say why there is nothing"));
        }
        for name in cells.get(1).iter().flat_map(|cell| names(cell)) {
            if !is_function(name, models) {
                found.push(map.violation(at, format!("no model `{name}`")));
            }
        }
        at += line.len();
    }
    found
}

/// Refuses a patch that does not begin with a model that must fail.
pub(crate) fn check_mutants(patches: &[&File], models: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for patch in patches {
        let first = patch.text.lines().next().unwrap_or_default();
        match first.strip_prefix("fails: ") {
            Some(name) if is_function(name, models) => {}
            _ => found.push(patch.violation(0, format!("no model must fail: `{first}`"))),
        }
    }
    found
}

/// Refuses a name in backticks that has the form of a test's (three words or more) and is no function.
pub(crate) fn check_tests(text: &File, rust: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in names(&text.text).filter(|name| name.matches('_').count() >= 2) {
        let at = name.as_ptr().addr() - text.text.as_ptr().addr();
        if !is_function(name, rust) {
            found.push(text.violation(at, format!("no function `{name}`")));
        }
    }
    found
}

/// What stands in backticks and has the form of a name.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(move |name| !name.is_empty() && name.chars().all(in_name))
}

fn is_function(name: &str, files: &[File]) -> bool {
    let definition = format!("fn {name}");
    files.iter().any(|file| !find_word(&file.code, &definition).is_empty())
}

#[cfg(test)]
use crate::source::assert_lines;

#[cfg(test)]
fn models() -> [File; 1] {
    [File::new("loom-tests/src/models/a.rs", "#[test]\nfn push_races_give() {}\n")]
}

#[test]
fn empty_cells_and_models_that_are_gone_are_refused() {
    let text = "# Map\n| guarantee | models | tests | nobody |\n|---|---|---|---|\n\
                | G1 x | walk; `push_races_give` | `stress::mixed` | time |\n\
                | G2 x | `push_races` | `stress::mixed` | time |\n\
                | G3 x | `push_races_give` | `soak` | |\n";
    assert_lines(&check_map(&File::new("README.md", text), &models()), &[5, 6]);
}

#[test]
fn mutants_without_a_model_are_refused() {
    let patch = |first: &str| File::new("a.patch", &format!("{first}\nA bug.\n"));
    let (good, bad) = (patch("fails: push_races_give"), patch("fails: push_races"));
    let none = patch("--- a/src/lib.rs");
    assert_lines(&check_mutants(&[&good, &bad, &none], &models()), &[1, 1]);
}

#[test]
fn tests_that_are_gone_are_refused() {
    let text = "Fixed (`push_races_give`), `run_timeout`,\nand (`a_task_is_lost`, in `stress`).\n";
    assert_lines(&check_tests(&File::new("CHANGELOG.md", text), &models()), &[2]);
}
