//! Files and functions are short.

use crate::lexer::{body, end_of_word, find_word, next_byte};
use crate::source::{File, Violation};

/// What a file may have, with its documentation and its tests.
pub(crate) const FILE_LINES: usize = 400;

/// What a file may have that is excused by name.
pub(crate) const EXCUSED_FILE_LINES: usize = 500;

/// What a function may have, from the line of its `fn` to its closing brace, comments included.
pub(crate) const FUNCTION_LINES: usize = 70;

/// Refuses long files, and excuses that are not needed (any more) or give no reason.
pub(crate) fn check_files(files: &[File], excused: &[(&str, &str)]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let lines = file.text.lines().count();
        let limit = match excused.iter().any(|(path, _)| *path == file.path) {
            true => EXCUSED_FILE_LINES,
            false => FILE_LINES,
        };
        if lines > limit {
            let message = format!("{lines} lines, {limit} at most");
            found.push(file.violation(file.text.len(), message));
        }
    }
    for (path, reason) in excused {
        let long = |file: &File| file.path == *path && file.text.lines().count() > FILE_LINES;
        if reason.is_empty() || !files.iter().any(long) {
            let message = "excused as a long file without being one, or without a reason";
            found.push(File::new(path, "").violation(0, message));
        }
    }
    found
}

/// Refuses long functions, nested ones and those of tests too.
pub(crate) fn check_functions(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for at in find_word(&file.code, "fn") {
            let Some((name, end)) = name_after(&file.code, at + 2) else {
                continue;
            };
            let Ok(body) = body(&file.code, end) else {
                continue;
            };
            let lines = file.line(body.end) - file.line(at) + 1;
            if lines > FUNCTION_LINES {
                let message = format!("`fn {name}` has {lines} lines, {FUNCTION_LINES} at most");
                found.push(file.violation(at, message));
            }
        }
    }
    found
}

/// The name of the function whose `fn` ends at `at`; none for the type of a function pointer.
fn name_after(code: &str, at: usize) -> Option<(&str, usize)> {
    let (place, _) = next_byte(code, at)?;
    let end = end_of_word(code.as_bytes(), place);
    (end > place).then(|| (&code[place..end], end))
}

#[cfg(test)]
fn file_of(lines: usize) -> File {
    File::new("src/a.rs", &"//\n".repeat(lines))
}

#[cfg(test)]
fn function_of(lines: usize) -> String {
    format!("fn f(x: [u8; 3]) -> fn(u8) {{\n{}}}\n", "  g('{', \"}\"); // }\n".repeat(lines - 2))
}

#[test]
fn long_files_are_refused() {
    assert!(check_files(&[file_of(FILE_LINES)], &[]).is_empty());
    let found = check_files(&[file_of(FILE_LINES + 1)], &[]);
    assert_eq!(found.len(), 1);
    assert!(found[0].to_string().contains("401 lines"), "{}", found[0]);
}

#[test]
fn an_excuse_has_a_reason_a_need_and_a_limit() {
    let excused = &[("src/a.rs", "one table")];
    assert!(check_files(&[file_of(EXCUSED_FILE_LINES)], excused).is_empty());
    assert_eq!(check_files(&[file_of(EXCUSED_FILE_LINES + 1)], excused).len(), 1);
    assert_eq!(check_files(&[file_of(FILE_LINES)], excused).len(), 1);
    assert_eq!(check_files(&[file_of(FILE_LINES + 1)], &[("src/a.rs", "")]).len(), 1);
}

#[test]
fn long_functions_are_refused() {
    let text = function_of(FUNCTION_LINES);
    assert!(check_functions(&[File::new("src/a.rs", &text)]).is_empty());
    let text = format!("{text}\n{}", function_of(FUNCTION_LINES + 1));
    let found = check_functions(&[File::new("src/a.rs", &text)]);
    crate::source::assert_lines(&found, &[FUNCTION_LINES + 2]);
    assert!(found[0].to_string().contains("`fn f` has 71 lines"), "{}", found[0]);
}

#[test]
fn declarations_have_no_length() {
    let text = format!("trait T {{\n  fn f();\n{}}}\n", "  // more\n".repeat(FUNCTION_LINES));
    assert!(check_functions(&[File::new("src/a.rs", &text)]).is_empty());
}
