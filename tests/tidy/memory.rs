//! Unsafe code and memory orderings carry their argument.

use crate::lexer::{find_word, is_word, next_byte, previous_byte};
use crate::source::{File, Violation};

/// How far above an unsafe block or impl its `// SAFETY:` may begin.
const SAFETY_LINES: usize = 8;

/// How far above an ordering its reason may stand.
const ORDERING_LINES: usize = 6;

/// The letters of numbered transitions, invariants and guarantees: a comment that names T1, I3 or
/// G2 gives the reason of an ordering where that number is written down.
const NUMBERED: &[u8] = b"TIG";

/// Refuses unsafe blocks, impls and extern blocks without a comment that says why they are sound.
pub(crate) fn check_unsafe(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for at in find_word(&file.code, "unsafe") {
            let rest = file.code[at + "unsafe".len()..].trim_start();
            let argued = file.comments_near(at, SAFETY_LINES).contains("SAFETY:");
            // An `unsafe fn` states duties of its callers; clippy wants them in its documentation.
            let takes_on_a_duty = rest.starts_with('{')
                || (rest.starts_with("impl") || rest.starts_with("extern")) && !is_function(rest);
            if takes_on_a_duty && !argued {
                let message =
                    format!("unsafe without `// SAFETY:` in the {SAFETY_LINES} lines above");
                found.push(file.violation(at, message));
            }
        }
    }
    found
}

/// `extern "C" fn`, as opposed to `extern "C" { … }`.
fn is_function(rest: &str) -> bool {
    let before_body = rest.split(['{', ';', '(']).next().unwrap_or(rest);
    !find_word(before_body, "fn").is_empty()
}

/// Refuses a file without unsafe code that does not forbid it, unless a module below it has some
/// (an inner `forbid` holds for those too).
pub(crate) fn check_forbid(files: &[File]) -> Vec<Violation> {
    let has_unsafe = |file: &File| !find_word(&file.code, "unsafe").is_empty();
    let mut found = Vec::new();
    for file in files {
        let below = file.folder();
        let excused = files.iter().any(|other| {
            has_unsafe(other) && (other.path == file.path || other.path.starts_with(&below))
        });
        if !excused && !file.code.contains("#![forbid(unsafe_code)]") {
            found.push(file.violation(0, "has no unsafe code: `#![forbid(unsafe_code)]`"));
        }
    }
    found
}

/// Refuses an ordering stronger than Relaxed, as an argument of a call, without its reason nearby.
pub(crate) fn check_orderings(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let code = file.shipped_code();
        for ordering in ["Acquire", "Release", "AcqRel", "SeqCst"] {
            for at in find_word(&code, ordering) {
                let argument = is_argument(&code, at, at + ordering.len());
                if argument && !is_reason(&file.comments_near(at, ORDERING_LINES)) {
                    let message = format!(
                        "{ordering} without a comment in the {ORDERING_LINES} lines above that says \
                         what it pairs with (\"pairs with …\", \"Ordering: …\", or T1, I3, G2)"
                    );
                    found.push(file.violation(at, message));
                }
            }
        }
    }
    found
}

/// Whether the word stands alone (or behind `Ordering::`) between brackets or commas, in a
/// statement that is not an import.
fn is_argument(code: &str, at: usize, end: usize) -> bool {
    let start = match code[..at].strip_suffix("Ordering::") {
        Some(before) => before.trim_end_matches("atomic::").len(),
        None => at,
    };
    let opened = previous_byte(code, start).is_some_and(|(_, byte)| byte == b'(' || byte == b',');
    let closed = next_byte(code, end).is_some_and(|(_, byte)| byte == b')' || byte == b',');
    opened && closed && !in_import(code, at)
}

fn in_import(code: &str, at: usize) -> bool {
    let statement = code[..at].rfind(';').map_or(0, |semicolon| semicolon + 1);
    let uses = find_word(&code[statement..at], "use");
    uses.last().is_some_and(|last| {
        // Only a path and its groups stand between `use` and a name that it imports.
        let between = &code[statement + last + "use".len()..at];
        between.bytes().all(|byte| {
            is_word(byte) || byte.is_ascii_whitespace() || matches!(byte, b':' | b',' | b'{' | b'}')
        })
    })
}

fn is_reason(comments: &str) -> bool {
    let lower = comments.to_lowercase();
    lower.contains("pairs with") || comments.contains("Ordering:") || names_a_number(comments)
}

/// Whether a word of the text is one of the letters and a number.
fn names_a_number(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| {
        let mut bytes = word.bytes();
        let lettered = bytes.next().is_some_and(|letter| NUMBERED.contains(&letter));
        lettered && bytes.len() > 0 && bytes.all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
use crate::source::assert_lines;

#[cfg(test)]
fn one(text: &str) -> Vec<File> {
    vec![File::new("src/a.rs", text)]
}

#[test]
fn unsafe_without_an_argument_is_refused() {
    let text = "fn f() {\n  unsafe { g() }\n}\nunsafe impl Send for A {}\n\
                unsafe extern \"C\" {\n  fn h();\n}\n";
    assert_lines(&check_unsafe(&one(text)), &[2, 4, 5]);
    let text = format!("// SAFETY: too far away.\n{}unsafe {{ g() }}\n", "\n".repeat(8));
    assert_lines(&check_unsafe(&one(&text)), &[10]);
}

#[test]
fn unsafe_with_an_argument_is_fine() {
    let text = "// SAFETY: (1) by I3.\nunsafe impl Send for A {}\n// unsafe { }\n\
                unsafe fn g() {}\ntype F = unsafe fn(u8);\nunsafe extern \"C\" fn h() {}\n";
    assert_lines(&check_unsafe(&one(text)), &[]);
    let text = format!("// SAFETY: near enough.\n{}unsafe {{ g() }}\n", "\n".repeat(7));
    assert_lines(&check_unsafe(&one(&text)), &[]);
    // The word in a string is no argument.
    assert_lines(&check_unsafe(&one("f(\"SAFETY:\"); unsafe { g() }")), &[1]);
}

#[test]
fn a_file_without_unsafe_code_must_forbid_it() {
    let files = |inner: &str| {
        let plain = "#![forbid(unsafe_code)]\n";
        vec![
            File::new("src/lib.rs", "mod a;"),
            File::new("src/a/mod.rs", "mod b;"),
            File::new("src/a/b.rs", inner),
            File::new("src/c.rs", plain),
            File::new("src/d.rs", "// #![forbid(unsafe_code)]"),
        ]
    };
    let paths = |found: Vec<Violation>| -> Vec<String> {
        found.iter().map(|v| v.to_string().split(':').next().unwrap().to_owned()).collect()
    };
    let found = check_forbid(&files("unsafe { f() }"));
    assert_eq!(paths(found), ["src/d.rs"]);
    let found = check_forbid(&files("f()"));
    assert_eq!(paths(found), ["src/lib.rs", "src/a/mod.rs", "src/a/b.rs", "src/d.rs"]);
}

#[test]
fn an_ordering_without_a_reason_is_refused() {
    let text = "a.load(Acquire);\n\n\n\n\n\n\n\n// Reads it.\na.store(1, Ordering::Release);\n\
                fence(\n  atomic::Ordering::AcqRel,\n);\n";
    assert_lines(&check_orderings(&one(text)), &[1, 10, 12]);
    let text = format!("// Pairs with T4.\n{}a.load(Acquire);\n", "\n".repeat(6));
    assert_lines(&check_orderings(&one(&text)), &[8]);
}

#[test]
fn an_ordering_with_a_reason_is_fine() {
    for reason in ["// Pairs with T4.", "// Ordering: a tally.", "// T1", "/* holds I3 */"] {
        assert_lines(&check_orderings(&one(&format!("{reason}\na.load(Acquire);\n"))), &[]);
    }
    for reason in ["// Take it.", "// IT3", "// T", "// T1x", "f(\"pairs with T4\");"] {
        assert_lines(&check_orderings(&one(&format!("{reason}\na.load(Acquire);\n"))), &[2]);
    }
}

#[test]
fn words_that_order_nothing_are_fine() {
    let text = "use std::sync::atomic::Ordering::{self, Acquire, Release, Relaxed};\n\
                fn f() -> Finish { Finish::Release }\nmatch g(Finish::Release) { Release => 1 }\n\
                enum E { Acquire, Release }\n#[cfg(test)]\nmod t { fn f() { a.load(Acquire) } }\n";
    assert_lines(&check_orderings(&one(text)), &[]);
}
