//! Imports go down: a module names modules of its own floor and of lower ones.

use crate::lexer::{end_of_group, find_word, next_byte};
use crate::paths;
use crate::source::{File, Violation};

/// Refuses every path into a higher floor, and every path to something of the crate's root.
pub(crate) fn check(files: &[File], floors: &[&[&str]]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let module = module(&file.path);
        let Some(own) = floor(floors, &module) else {
            continue;
        };
        let code = file.shipped_code();
        for root in ["crate", "super"] {
            for path in paths::rooted(&code, root) {
                let target = resolve(&code, &module, &path);
                let Some(other) = floor_of_path(floors, &target) else {
                    continue;
                };
                if other > own {
                    let text = path.text();
                    let message = format!(
                        "`{module}` is on floor {own} and names `{text}`, on floor {other}; \
                         imports go down (FLOORS in tests/tidy/main.rs)"
                    );
                    found.push(file.violation(path.offset, message));
                }
            }
        }
    }
    found
}

/// Refuses files that the table lacks, and modules in the table that have no file.
pub(crate) fn check_table(files: &[File], floors: &[&[&str]]) -> Vec<Violation> {
    let lacking = |file: &&File| floor(floors, &module(&file.path)).is_none();
    let shipped = files.iter().filter(|file| !file.only_tests);
    let mut found: Vec<Violation> = shipped
        .filter(lacking)
        .map(|file| file.violation(0, "not in FLOORS of tests/tidy/main.rs; give it a floor"))
        .collect();
    for named in floors.iter().copied().flatten() {
        if !files.iter().any(|file| module(&file.path) == *named) {
            let table = File::new("tests/tidy/main.rs", "");
            found.push(table.violation(0, format!("FLOORS has `{named}`, which has no file")));
        }
    }
    found
}

/// The files `a/b.rs` and `a/b/mod.rs` of src are both `a::b`.
pub(crate) fn module(path: &str) -> String {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    path.replace('/', "::")
}

fn floor(floors: &[&[&str]], module: &str) -> Option<usize> {
    floors.iter().position(|modules| modules.contains(&module))
}

/// The floor of the module that the path leads into: the longest beginning that is a module. What
/// begins with none is of the root.
fn floor_of_path(floors: &[&[&str]], target: &[String]) -> Option<usize> {
    let lengths = (1..=target.len()).rev();
    let mut beginnings = lengths.map(|length| target[..length].join("::"));
    beginnings.find_map(|module| floor(floors, &module)).or_else(|| floor(floors, "lib"))
}

/// The path from the crate's root, without `crate` and `super`.
fn resolve(code: &str, module: &str, path: &paths::Found) -> Vec<String> {
    let supers = path.segments.iter().take_while(|segment| *segment == "super").count();
    let rest = path.segments.iter().skip(supers.max(1));
    if supers == 0 {
        return rest.cloned().collect();
    }
    // A module in braces within the file is left first.
    let climbs = supers.saturating_sub(modules_around(code, path.offset));
    let own: Vec<&str> = if module == "lib" { Vec::new() } else { module.split("::").collect() };
    let kept = own.len().saturating_sub(climbs);
    own[..kept].iter().map(|segment| segment.to_string()).chain(rest.cloned()).collect()
}

/// How many `mod name { … }` are open at `offset`.
fn modules_around(code: &str, offset: usize) -> usize {
    let around = |at: &usize| {
        let open = code[*at..].find(['{', ';']).map(|length| at + length);
        let body = open.filter(|open| next_byte(code, *open).is_some_and(|(_, b)| b == b'{'));
        body.is_some_and(|open| open < offset && offset < end_of_group(code, open))
    };
    find_word(code, "mod").iter().filter(|at| around(at)).count()
}

#[cfg(test)]
const TABLE: &[&[&str]] = &[&["low"], &["mid", "mid::inner"], &["high"], &["lib"]];

#[cfg(test)]
fn lines_of(path: &str, text: &str, expected: &[usize]) {
    crate::source::assert_lines(&check(&[File::new(path, text)], TABLE), expected);
}

#[test]
fn upward_imports_are_refused() {
    lines_of("src/low.rs", "use crate::mid::A;\n", &[1]);
    lines_of("src/mid/mod.rs", "use crate::low::A;\nuse crate::{\n  low,\n  high::B,\n};\n", &[4]);
    lines_of("src/mid/inner.rs", "fn f() {\n  crate::high::g();\n}\n", &[2]);
    lines_of("src/mid/inner.rs", "use super::A;\nuse super::super::high::B;\n", &[2]);
    lines_of("src/low.rs", "use super::mid::A;\n", &[1]);
}

#[test]
fn names_of_the_root_are_upward() {
    lines_of("src/high.rs", "use crate::low::A;\nuse crate::Reexport;\n", &[2]);
    lines_of("src/lib.rs", "use crate::high::A;\npub use crate::mid::B;\n", &[]);
}

#[test]
fn level_and_downward_imports_are_fine() {
    lines_of("src/mid/mod.rs", "use crate::mid::inner::A;\nuse crate::low::{self, B};\n", &[]);
    lines_of("src/low.rs", "pub(crate) fn f() {}\nmod imp { use super::f; }\n", &[]);
}

#[test]
fn tests_and_prose_may_look_up() {
    lines_of(
        "src/low.rs",
        "// use crate::high::A\n#[cfg(test)]\nmod t { use crate::high::A; }\n",
        &[],
    );
    let mut file = File::new("src/low.rs", "use crate::high::A;\n");
    file.only_tests = true;
    crate::source::assert_lines(&check(&[file], TABLE), &[]);
}

#[test]
fn the_table_and_the_files_agree() {
    let file = |path: &str| File::new(path, "");
    let files = ["src/low.rs", "src/mid/mod.rs", "src/mid/inner.rs", "src/high.rs", "src/lib.rs"];
    let mut files: Vec<File> = files.iter().map(|path| file(path)).collect();
    assert!(check_table(&files, TABLE).is_empty());
    files[0] = file("src/other.rs");
    let found = check_table(&files, TABLE);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].to_string().starts_with("src/other.rs:1: not in FLOORS"));
    assert!(found[1].to_string().contains("FLOORS has `low`"));
}
