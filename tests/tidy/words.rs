//! Words that do not stay: notes of unfinished work, paths of one machine, unexplained naps, and
//! syntax that the oldest supported compiler does not know.

use crate::lexer::{end_of_group, find_word, is_word, next_byte, previous_byte};
use crate::source::{File, Violation};

/// Spelled apart, so that this file passes its own rule.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];
const FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Refuses notes of unfinished work in every file, and the macros for it in code.
pub(crate) fn check_leftovers(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for note in NOTES {
            for at in find_word(&file.text, note) {
                found.push(file.violation(at, format!("{note}: finish it or leave it out")));
            }
        }
        for name in MACROS {
            for at in find_word(&file.code, name) {
                if file.code[at + name.len()..].starts_with('!') {
                    found.push(file.violation(at, format!("{name}!: finish it or leave it out")));
                }
            }
        }
    }
    found
}

/// Refuses paths that exist on one machine only.
pub(crate) fn check_absolute_paths(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for folder in FOLDERS {
            for (at, _) in file.text.match_indices(folder) {
                // `a/b/` goes on from `a`; so do addresses.
                let goes_on = file.text[..at].ends_with(|c: char| {
                    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '/')
                });
                if !goes_on {
                    let message = format!("a path of one machine, {folder}…");
                    found.push(file.violation(at, message));
                }
            }
        }
    }
    found
}

/// Refuses `thread::sleep` without a comment `sleep: why` on its line or the one above.
pub(crate) fn check_naps(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for at in find_word(&file.code, "sleep") {
            let explained = file.comments_near(at, 1).lines().any(says_why);
            if is_nap(&file.code, at) && !explained {
                let message = "a nap without `// sleep: WHY` here or on the line above";
                found.push(file.violation(at, message));
            }
        }
    }
    found
}

/// A call of `thread::sleep`, or of a `sleep` that was imported: not a method, a definition or
/// another module's (tokio's `time::sleep` holds no thread).
fn is_nap(code: &str, at: usize) -> bool {
    let called = next_byte(code, at + "sleep".len()).is_some_and(|(_, byte)| byte == b'(');
    let before = code[..at].trim_end();
    let foreign = match previous_byte(code, at) {
        Some((_, b':')) => !before.ends_with("thread::"),
        Some((_, b'.')) => true,
        _ => find_word(before, "fn").last().is_some_and(|word| word + 2 == before.len()),
    };
    called && !foreign
}

fn says_why(comment: &str) -> bool {
    comment.split_once("// sleep:").is_some_and(|(_, why)| !why.trim().is_empty())
}

/// Refuses `if let … && …`: stable since Rust 1.88, and no lint of clippy's finds it.
pub(crate) fn check_let_chains(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for at in find_word(&file.code, "let") {
            if file.code[..at].trim_end().ends_with("&&") || starts_a_chain(&file.code, at) {
                found.push(file.violation(at, "a let chain; rust-version in Cargo.toml is older"));
            }
        }
    }
    found
}

/// Whether a condition that begins with the `let` at `at` goes on with `&&`.
fn starts_a_chain(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end();
    let ends_with = |word: &str| {
        find_word(before, word).last().is_some_and(|last| last + word.len() == before.len())
    };
    if !ends_with("if") && !ends_with("while") {
        return false;
    }
    let mut in_pattern = true;
    let mut rest = at;
    while let Some((place, byte)) = next_byte(code, rest) {
        rest = match byte {
            b'{' if !in_pattern => return false,
            b'(' | b'[' | b'{' => end_of_group(code, place),
            b'=' if !code[..place].ends_with('.') => {
                in_pattern = false;
                place + 1
            }
            b'&' if code[place..].starts_with("&&") && !in_pattern => {
                let left = previous_byte(code, place).map(|(_, byte)| byte);
                if left.is_some_and(|byte| is_word(byte) || b")]}?\"".contains(&byte)) {
                    return true;
                }
                place + 2
            }
            _ => place + 1,
        };
    }
    false
}

#[cfg(test)]
use crate::source::assert_lines;

#[cfg(test)]
fn one(text: &str) -> Vec<File> {
    vec![File::new("src/a.rs", text)]
}

#[test]
fn leftovers_are_refused() {
    for note in NOTES {
        assert_lines(&check_leftovers(&one(&format!("\n// {note}: later\n"))), &[2]);
        assert_lines(&check_leftovers(&[File::new("README.md", note)]), &[1]);
        assert_lines(&check_leftovers(&one(&format!("// {note}S and A{note}\n"))), &[]);
    }
    for name in MACROS {
        assert_lines(&check_leftovers(&one(&format!("fn f() {{\n  {name}!()\n}}\n"))), &[2]);
        assert_lines(&check_leftovers(&one(&format!("// {name}!()\nlet {name} = 1;\n"))), &[]);
    }
}

#[test]
fn paths_of_one_machine_are_refused() {
    for folder in FOLDERS {
        let text = format!("\nlet a = \"{folder}a\";\n");
        assert_lines(&check_absolute_paths(&one(&text)), &[2]);
        let text = format!("// https://example.org{folder}a src{folder}b ${{dir}}{folder}c\n");
        assert_lines(&check_absolute_paths(&one(&text)), &[]);
    }
}

#[test]
fn naps_without_a_reason_are_refused() {
    let text = "thread::sleep(d);\n// sleep:\nstd::thread::sleep(d);\n// wait\nsleep(d);\n";
    assert_lines(&check_naps(&one(text)), &[1, 3, 5]);
}

#[test]
fn naps_with_a_reason_are_fine() {
    let text = "// sleep: lets the keep-alive pass.\nthread::sleep(d);\n\n\
                sleep(d); // sleep: the work itself\n\n\
                tokio::time::sleep(d);\nfn sleep(d: u8) {}\nuse std::thread::sleep;\na.sleep(d);\n";
    assert_lines(&check_naps(&one(text)), &[]);
}

#[test]
fn let_chains_are_refused() {
    let text = "if a && let Some(b) = c {}\nif let Some(b) = c && b > 1 {}\n\
                while let B { c, .. } = d(|| e && f)? && g {}\nif a\n  && let b = c {}\n";
    assert_lines(&check_let_chains(&one(text)), &[1, 2, 3, 5]);
}

#[test]
fn other_conditions_are_fine() {
    let text = "if let Some(a) = &&b { c && d; }\nif let B { c: 1..=2, .. } = d(e && f) { g }\n\
                let a = b && c;\nif a && b { let c = d; }\nlet Some(a) = b else { return c && d };\n";
    assert_lines(&check_let_chains(&one(text)), &[]);
}
