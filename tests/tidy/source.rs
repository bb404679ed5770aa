//! The files of the repository, and what a rule says about them.

use crate::lexer;
use std::fmt;
use std::fs;
use std::path::Path;

/// One file, with its path from the top of the repository.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Rust files: the text with comments and the contents of strings blanked out.
    pub(crate) code: String,
    /// Rust files: the text with all but the comments blanked out. Other files: the text.
    pub(crate) comments: String,
    /// Whether the file is a module under `#[cfg(test)]` of another one.
    pub(crate) only_tests: bool,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> File {
        let (code, comments) = match path.ends_with(".rs") {
            true => lexer::split(text),
            false => (String::new(), text.to_owned()),
        };
        File { path: path.to_owned(), text: text.to_owned(), code, comments, only_tests: false }
    }

    /// The number of the line in which the byte at `offset` stands.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
    }

    /// The comments of the line of `offset` and of `above` lines before it.
    pub(crate) fn comments_near(&self, offset: usize, above: usize) -> String {
        let line = self.line(offset);
        let first = line.saturating_sub(above + 1);
        let lines: Vec<&str> = self.comments.lines().skip(first).take(line - first).collect();
        lines.join("\n")
    }

    pub(crate) fn violation(&self, offset: usize, message: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line: self.line(offset), message: message.into() }
    }

    /// The code without items under `#[cfg(test)]`; nothing at all for a file of tests.
    pub(crate) fn shipped_code(&self) -> String {
        match self.only_tests {
            true => String::new(),
            false => lexer::without_tests(&self.code),
        }
    }

    /// Where the modules of this file are.
    pub(crate) fn folder(&self) -> String {
        for root in ["lib.rs", "mod.rs", "main.rs"] {
            if let Some(folder) = self.path.strip_suffix(root) {
                return folder.to_owned();
            }
        }
        format!("{}/", self.path.trim_end_matches(".rs"))
    }

    /// The paths of the modules that this file declares under `#[cfg(test)]`.
    fn modules_of_tests(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (item, _) in lexer::items_of_tests(&self.code).iter().filter(|(_, body)| !body) {
            let declared = &self.code[item.clone()];
            let Some(name) = declared.rsplit_once("mod ").map(|(_, name)| name) else {
                continue;
            };
            let name = name.trim_end_matches(';').trim();
            let attribute = self.text[item.clone()].split_once("#[path = \"");
            if let Some((path, _)) = attribute.and_then(|(_, rest)| rest.split_once('"')) {
                let beside = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                paths.push(format!("{beside}/{path}"));
            } else {
                paths.push(format!("{}{name}.rs", self.folder()));
                paths.push(format!("{}{name}/mod.rs", self.folder()));
            }
        }
        paths
    }
}

/// What a rule found, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Fails with all that was found, one finding a line.
#[track_caller]
pub(crate) fn assert_clean(mut violations: Vec<Violation>) {
    violations.sort();
    let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(lines.is_empty(), "{} violation(s):\n{}", lines.len(), lines.join("\n"));
}

/// Every text file of the repository but what builds and git left there.
#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<File>,
}

impl Tree {
    pub(crate) fn read() -> Tree {
        let mut files = Vec::new();
        // As cargo says now: two checkouts that share a target folder may share this program.
        let top = std::env::var("CARGO_MANIFEST_DIR");
        let top = top.unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        walk(Path::new(&top), "", &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        mark_tests(&mut files);
        Tree { files }
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// The Rust files below the given folders (each ends with a slash; the empty one is the top).
    pub(crate) fn rust(&self, folders: &[&str]) -> Vec<File> {
        let wanted = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
        let rust = self.files.iter().filter(|file| file.path.ends_with(".rs"));
        rust.filter(|file| wanted(&file.path)).cloned().collect()
    }

    /// The file with this path; an empty one when there is none.
    pub(crate) fn file(&self, path: &str) -> File {
        let found = self.files.iter().find(|file| file.path == path);
        found.cloned().unwrap_or_else(|| File::new(path, ""))
    }

    /// Whether a file or a folder has this path, or with `prefix` one that begins like it.
    pub(crate) fn has(&self, path: &str, prefix: bool) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        self.files.iter().any(|file| {
            file.path == path
                || file.path.starts_with(&below)
                || (prefix && file.path.starts_with(path))
        })
    }
}

/// Tells the files that are compiled for tests only.
pub(crate) fn mark_tests(files: &mut [File]) {
    let tests: Vec<String> = files.iter().flat_map(File::modules_of_tests).collect();
    for file in files {
        file.only_tests = tests.contains(&file.path);
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let hidden = name.starts_with('.') && name != ".ci" && name != ".github";
        if hidden || name == "target" || name == "Cargo.lock" {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File::new(&path, &text));
        }
    }
}

/// What the rules' own tests say: the lines of the findings.
#[track_caller]
pub(crate) fn assert_lines(violations: &[Violation], expected: &[usize]) {
    let lines: Vec<usize> = violations.iter().map(|violation| violation.line).collect();
    assert_eq!(lines, expected, "{violations:#?}");
}

#[test]
fn a_finding_names_file_and_line() {
    let file = File::new("src/a.rs", "one\ntwo\nthree\n");
    assert_eq!(file.violation(4, "is bad").to_string(), "src/a.rs:2: is bad");
    let failure = std::panic::catch_unwind(|| assert_clean(vec![file.violation(4, "is bad")]));
    let message = failure.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("src/a.rs:2: is bad"), "{message}");
}

#[test]
fn comments_near_a_line_reach_up_so_far() {
    let file = File::new("src/a.rs", "// one\n// two\ncode(); // three\n// four\n");
    let at = file.text.find("code").unwrap();
    assert_eq!(file.comments_near(at, 0).trim(), "// three");
    assert!(file.comments_near(at, 1).starts_with("// two\n"));
    assert!(file.comments_near(at, 9).starts_with("// one\n"));
    assert!(!file.comments_near(at, 9).contains("four"));
}

#[test]
fn modules_of_tests_are_known() {
    let root = "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod inline { mod b; }\n";
    let inner = "#[cfg(test)]\n#[path = \"walk.rs\"]\nmod tests;\n#[cfg(test)]\nuse mod_x::A;\n";
    let paths = ["src/lib.rs", "src/c/a.rs", "src/tests.rs", "src/c/walk.rs", "src/c/b.rs"];
    let mut files = paths.map(|path| File::new(path, ""));
    files[0] = File::new(paths[0], root);
    files[1] = File::new(paths[1], inner);
    mark_tests(&mut files);
    assert_eq!(files.map(|file| file.only_tests), [false, false, true, true, false]);
}

#[test]
fn the_tree_has_this_file() {
    let tree = Tree::read();
    assert!(tree.has("tests/tidy/source.rs", false) && tree.has("tests/tidy/", false));
    assert!(tree.has("tests/tidy/sou", true) && !tree.has("tests/tidy/sou", false));
    assert!(tree.file("tests/tidy/source.rs").code.contains("fn walk"));
    assert!(tree.file("no such file").text.is_empty());
}
