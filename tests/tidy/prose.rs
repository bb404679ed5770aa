//! What prose cites exists: files, and the loom models by name.

use crate::lexer::{end_of_word, find_word};
use crate::source::{File, Tree, Violation};

/// What a citation begins with.
const FOLDERS: &[&str] = &["src/", "tests/", "examples/", "loom-tests/", "benches/", ".ci/"];

/// Refuses paths in comments and Markdown that are no file of the repository, nor of the package
/// of the file that cites them. With a wildcard, something must begin like the part before it.
pub(crate) fn check_paths(files: &[File], tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_prose(&file.path)) {
        for (at, path, open) in citations(&file.comments) {
            let package = match file.path.split_once('/') {
                Some((folder, _)) if tree.has(&format!("{folder}/Cargo.toml"), false) => folder,
                _ => "",
            };
            if !tree.has(path, open) && !tree.has(&format!("{package}/{path}"), open) {
                found.push(file.violation(at, format!("cites `{path}`, which does not exist")));
            }
        }
    }
    found
}

/// Refuses a "model" followed by a name in backticks that is no function of the models.
pub(crate) fn check_models(files: &[File], models: &[File]) -> Vec<Violation> {
    const LEAD: &str = concat!("model ", "`");
    let exists = |name: &str| {
        let definition = format!("fn {name}");
        models.iter().any(|model| !find_word(&model.code, &definition).is_empty())
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_prose(&file.path)) {
        for (at, _) in file.comments.match_indices(LEAD) {
            let start = at + LEAD.len();
            let end = end_of_word(file.comments.as_bytes(), start);
            let name = &file.comments[start..end];
            if file.comments[end..].starts_with('`') && !exists(name) {
                found.push(file.violation(at, format!("cites a model `{name}`, no such function")));
            }
        }
    }
    found
}

fn is_prose(path: &str) -> bool {
    path.ends_with(".rs") || path.ends_with(".md")
}

/// The cited paths: where each stands, its text, and whether it goes on with a wildcard.
fn citations(text: &str) -> Vec<(usize, &str, bool)> {
    let in_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let mut found = Vec::new();
    for folder in FOLDERS {
        for (at, _) in text.match_indices(folder) {
            if text[..at].ends_with(in_path) {
                continue;
            }
            let rest = &text[at..];
            let path = &rest[..rest.find(|c| !in_path(c)).unwrap_or(rest.len())];
            match rest[path.len()..].chars().next() {
                // A place to fill in, not a file.
                Some('<' | '$' | '…') => {}
                Some('*' | '{') => found.push((at, path, true)),
                _ => found.push((at, path.trim_end_matches('.'), false)),
            }
        }
    }
    found
}

#[cfg(test)]
use crate::source::assert_lines;

#[cfg(test)]
fn lines_of(path: &str, text: &str, expected: &[usize]) {
    assert_lines(&check_paths(&[File::new(path, text)], &Tree::read()), expected);
}

#[test]
fn files_that_are_gone_are_refused() {
    // Put together, or this test would cite them itself.
    let (gone, also) = (concat!("sr", "c/gone.rs"), concat!("test", "s/gone_*.rs"));
    lines_of("README.md", &format!("See\n`{gone}`, and {also}.\n"), &[2, 2]);
    lines_of("src/a.rs", &format!("//! See {gone}.\nlet a = \"{gone}\";\n"), &[1]);
    lines_of("src/a.txt", gone, &[]);
}

#[test]
fn files_that_are_there_are_fine() {
    let text = "`tests/tidy/main.rs`, tests/tidy/pro*.rs, (.ci/run). src/lib.rs:12, src/<file>.rs, \
                loom-tests/src, other/tests/x.rs, https://a.org/src/x.rs and src/lib.rs.";
    lines_of("README.md", text, &[]);
    // From the top, or from the top of its package.
    lines_of("loom-tests/src/a.rs", "//! loom-tests/Cargo.toml, src/lib.rs\n", &[]);
}

#[test]
fn models_that_are_gone_are_refused() {
    let models = [File::new("loom-tests/tests/a.rs", "#[test]\nfn finish_races_enqueue() {}\n")];
    let lead = concat!("model ", "`");
    let text = format!("{lead}finish_races_enqueue` and\n{lead}finish_races`, {lead}f(x)`\n");
    assert_lines(&check_models(&[File::new("README.md", &text)], &models), &[2]);
}
