//! What is written down twice agrees: versions, and the documentation of the crate.

use crate::source::{File, Violation};

/// The crate's documentation is its README.
pub(crate) fn check_readme(lib: &File) -> Vec<Violation> {
    const INCLUDE: &str = "#![doc = include_str!(\"../README.md\")]";
    match lib.text.lines().any(|line| line.trim() == INCLUDE) {
        true => Vec::new(),
        false => vec![lib.violation(0, format!("lacks `{INCLUDE}`"))],
    }
}

/// The change log has a heading for the version of the package.
pub(crate) fn check_changelog(manifest: &File, changelog: &File) -> Vec<Violation> {
    let Some((_, version)) = values(manifest, "version").into_iter().next() else {
        return vec![manifest.violation(0, "has no version")];
    };
    let names = |line: &str| {
        line.starts_with("## ") && line.split([' ', '[', ']', ',']).any(|word| word == version)
    };
    match changelog.text.lines().any(names) {
        true => Vec::new(),
        false => vec![changelog.violation(0, format!("has no heading `## {version}`"))],
    }
}

/// The oldest supported compiler is the same wherever it is stated.
pub(crate) fn check_msrv(manifest: &File, clippy: &File) -> Vec<Violation> {
    let Some((_, msrv)) = values(clippy, "msrv").into_iter().next() else {
        return vec![clippy.violation(0, "has no msrv")];
    };
    let stated = values(manifest, "rust-version");
    if stated.is_empty() {
        return vec![manifest.violation(0, "has no rust-version")];
    }
    let others = stated.into_iter().filter(|(_, version)| *version != msrv);
    let message = |version| format!("rust-version is {version}, msrv in clippy.toml is {msrv}");
    others.map(|(at, version)| manifest.violation(at, message(version))).collect()
}

/// The values of the lines `key = "value"`, and where those lines begin.
fn values<'a>(file: &'a File, key: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in file.text.split_inclusive('\n') {
        let value = line.strip_prefix(key).map(str::trim_start);
        let value = value.and_then(|rest| rest.strip_prefix('=')).map(str::trim);
        if let Some(value) = value {
            found.push((at, value.trim_matches('"')));
        }
        at += line.len();
    }
    found
}

#[cfg(test)]
use crate::source::assert_lines;

#[test]
fn a_crate_without_its_readme_is_refused() {
    let lib = |text: &str| File::new("src/lib.rs", text);
    assert_lines(&check_readme(&lib("//! Docs of its own.\n")), &[1]);
    assert_lines(&check_readme(&lib("// #![doc = include_str!(\"../README.md\")]\n")), &[1]);
    assert_lines(&check_readme(&lib("\n#![doc = include_str!(\"../README.md\")]\n")), &[]);
}

#[test]
fn a_version_without_a_change_log_is_refused() {
    let manifest = File::new("Cargo.toml", "[package]\nversion = \"0.2.0\"\n");
    let log = |text: &str| check_changelog(&manifest, &File::new("CHANGELOG.md", text));
    assert_lines(&log(""), &[1]);
    assert_lines(&log("## 0.1.0\n\nBefore 0.2.0.\n## 0.2.0-rc.1\n"), &[1]);
    assert_lines(&log("# Changes\n\n## 0.2.0\n"), &[]);
    assert_lines(&log("## [0.2.0], in spring\n"), &[]);
    assert_eq!(check_changelog(&File::new("Cargo.toml", ""), &manifest).len(), 1);
}

#[test]
fn two_oldest_compilers_are_refused() {
    let clippy = File::new("clippy.toml", "msrv = \"1.85\"\n");
    let check = |text: &str| check_msrv(&File::new("Cargo.toml", text), &clippy);
    assert_lines(&check("rust-version = \"1.85\"\nrust-version = \"1.86\"\n"), &[2]);
    assert_lines(&check("rust-version = \"1.85\"\nrust-version.workspace = true\n"), &[]);
    assert_lines(&check("[package]\n"), &[1]);
    assert_eq!(check_msrv(&clippy, &File::new("clippy.toml", "")).len(), 1);
}
