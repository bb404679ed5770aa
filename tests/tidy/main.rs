//! House rules, as tests over the files of the repository.
//!
//! Each rule is a function from files to violations in a module of its own, next to small examples
//! that it must refuse; this file has the tables that a change of the code may have to change, and
//! applies every rule to the repository. Run with `cargo test --test tidy`.
//!
//! The scanner knows comments, strings and braces, not Rust: a rule that is wrong about a line is
//! mended here, and the line is not bent to please it.

#![cfg(not(miri))]
#![forbid(unsafe_code)]

mod floors;
mod ground;
mod lexer;
mod manifest;
mod memory;
mod paths;
mod proof;
mod prose;
mod sizes;
mod source;
mod words;

use source::{Tree, assert_clean};

/// The modules by floor, the lowest first. A file names modules of its own floor and of lower ones
/// only. Every file of `src` stands here, but for those under `#[cfg(test)]`; the files `a/b.rs` and
/// `a/b/mod.rs` are both `a::b`.
#[rustfmt::skip]
const FLOORS: &[&[&str]] = &[
    // F0 ground: what std or loom gives.
    &["sync", "sync::loom_imp", "sync::membarrier", "sync::std_imp", "thread_index", "draws"],
    // F1 values: pure, plain data.
    &["error", "operations", "permits::state", "stats"],
    // F2 protocol: the one owner of the word.
    &["permits", "permits::word"],
    // F3 line: queue and admission under one lock.
    &[
        "counters", "gate", "gate::answers", "gate::below", "gate::chain", "gate::child",
        "gate::child_life", "gate::demand", "gate::inline", "gate::intake", "gate::life",
        "gate::many", "gate::nested", "lease", "line", "waits",
    ],
    // F4 run: who runs a task, and where.
    &[
        "pool", "pool::headcount", "pool::run_queue", "pool::sched", "pool::worker",
        "task", "task::cell", "task::closure", "task::context", "task::fit", "task::unwind",
    ],
    // F5 engine: what an executor is.
    &[
        "engine", "engine::child", "engine::inline", "engine::life", "engine::many",
        "engine::nested", "engine::waiting",
    ],
    // F6 front: what is public.
    &[
        "builder", "chooser", "dispatched", "executor", "executor::all",
        "executor::children", "executor::guards", "executor::life", "executor::scoped", "executor::speculate", "fitness", "join", "permit",
        "pool_builder", "pool_handle", "roster", "scope", "scope::cell", "scope::erase",
        "scope::frame", "scope::handle", "stripes", "unrun",
    ],
    // The root; everything below it names a module, not a re-export.
    &["lib"],
];

/// Files of `src` with more than `sizes::FILE_LINES` lines, up to the hard limit: path and reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Where the limit on the length of functions holds.
const FUNCTION_TREES: &[&str] = &["src/", "loom-tests/", "benches/", "examples/", "tests/tidy/"];

#[test]
fn imports_go_down() {
    assert_clean(floors::check(&Tree::read().rust(&["src/"]), FLOORS));
}

#[test]
fn the_table_of_floors_is_true() {
    assert_clean(floors::check_table(&Tree::read().rust(&["src/"]), FLOORS));
}

#[test]
fn only_sync_names_the_ground() {
    assert_clean(ground::check(&Tree::read().rust(&["src/"])));
}

#[test]
fn files_are_short() {
    assert_clean(sizes::check_files(&Tree::read().rust(&["src/", "tests/tidy/"]), LONG_FILES));
}

#[test]
fn functions_are_short() {
    assert_clean(sizes::check_functions(&Tree::read().rust(FUNCTION_TREES)));
}

#[test]
fn unsafe_code_is_argued_for() {
    assert_clean(memory::check_unsafe(&Tree::read().rust(&[""])));
}

#[test]
fn files_without_unsafe_code_forbid_it() {
    assert_clean(memory::check_forbid(&Tree::read().rust(&["src/"])));
}

#[test]
fn orderings_name_their_partner() {
    assert_clean(memory::check_orderings(&Tree::read().rust(&["src/"])));
}

#[test]
fn nothing_is_left_to_do() {
    assert_clean(words::check_leftovers(Tree::read().files()));
}

#[test]
fn no_path_of_one_machine() {
    assert_clean(words::check_absolute_paths(Tree::read().files()));
}

#[test]
fn naps_say_why() {
    assert_clean(words::check_naps(&Tree::read().rust(&["src/", "tests/"])));
}

#[test]
fn syntax_is_no_newer_than_the_oldest_compiler() {
    assert_clean(words::check_let_chains(&Tree::read().rust(&[""])));
}

#[test]
fn cited_files_exist() {
    let tree = Tree::read();
    assert_clean(prose::check_paths(tree.files(), &tree));
}

#[test]
fn cited_models_exist() {
    let tree = Tree::read();
    let models = tree.rust(&["loom-tests/"]);
    assert_clean(prose::check_models(tree.files(), &models));
}

#[test]
fn the_map_of_the_proof_is_true() {
    let tree = Tree::read();
    let models = tree.rust(&["loom-tests/src/models/", "src/permits/"]);
    assert_clean(proof::check_map(&tree.file("loom-tests/README.md"), &models));
}

#[test]
fn each_mutant_has_a_model() {
    let tree = Tree::read();
    let patches: Vec<_> = tree.files().iter().filter(|f| f.path.ends_with(".patch")).collect();
    assert_clean(proof::check_mutants(&patches, &tree.rust(&["loom-tests/src/models/"])));
}

#[test]
fn cited_tests_exist() {
    let tree = Tree::read();
    let rust = tree.rust(&["src/", "tests/", "loom-tests/"]);
    for text in ["CHANGELOG.md", "loom-tests/README.md"] {
        assert_clean(proof::check_tests(&tree.file(text), &rust));
    }
}

#[test]
fn the_readme_is_the_documentation_of_the_crate() {
    assert_clean(manifest::check_readme(&Tree::read().file("src/lib.rs")));
}

#[test]
fn the_changelog_knows_the_version() {
    let tree = Tree::read();
    assert_clean(manifest::check_changelog(&tree.file("Cargo.toml"), &tree.file("CHANGELOG.md")));
}

#[test]
fn the_oldest_compiler_is_stated_once() {
    let tree = Tree::read();
    assert_clean(manifest::check_msrv(&tree.file("Cargo.toml"), &tree.file("clippy.toml")));
}
