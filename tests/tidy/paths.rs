//! Paths in code, in imports and elsewhere, with their groups spelled out.

use crate::lexer::{end_of_word, find_word, next_byte, previous_byte};

/// One path: `use a::{b, c as d}` has two, `a::b` and `a::c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where its last segment stands.
    pub(crate) offset: usize,
    pub(crate) segments: Vec<String>,
}

impl Found {
    /// The path as text, without a closing `self`.
    pub(crate) fn text(&self) -> String {
        self.segments.join("::")
    }
}

/// Every path of more than one segment that begins with `root`.
pub(crate) fn rooted(code: &str, root: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for at in find_word(code, root) {
        let end = at + root.len();
        if begins_path(code, at) && double_colon(code, end).is_some() {
            tail(code, end, &Found { offset: at, segments: vec![root.to_owned()] }, &mut found);
        }
    }
    found
}

/// False after `a::` (another path goes on here), `a.` and `$`; true after a leading `::`.
fn begins_path(code: &str, at: usize) -> bool {
    match previous_byte(code, at) {
        Some((_, b'.' | b'$')) => false,
        Some((colon, b':')) if code[..colon].ends_with(':') => {
            let before = previous_byte(code, colon - 1).map(|(_, byte)| byte);
            !before.is_some_and(|byte| crate::lexer::is_word(byte) || byte == b'>')
        }
        _ => true,
    }
}

fn double_colon(code: &str, at: usize) -> Option<usize> {
    let (place, _) = next_byte(code, at)?;
    code[place..].starts_with("::").then_some(place + 2)
}

/// Adds every path that begins with `head` and goes on at `at`; returns where it ends.
fn tail(code: &str, at: usize, head: &Found, found: &mut Vec<Found>) -> usize {
    let next = double_colon(code, at).and_then(|after| next_byte(code, after));
    let Some((place, byte)) = next else {
        found.push(head.clone());
        return at;
    };
    if byte == b'{' {
        return group(code, place, head, found);
    }
    let mut longer = Found { offset: place, segments: head.segments.clone() };
    let end = end_of_word(code.as_bytes(), place);
    match &code[place..end] {
        "self" => {}
        "" if byte == b'*' => longer.segments.push("*".to_owned()),
        // Generic arguments: the path is over.
        "" => {
            found.push(head.clone());
            return place;
        }
        segment => longer.segments.push(segment.to_owned()),
    }
    tail(code, end.max(place + usize::from(byte == b'*')), &longer, found)
}

/// The group that opens at `open`: what each of its elements adds to `head`.
fn group(code: &str, open: usize, head: &Found, found: &mut Vec<Found>) -> usize {
    let mut at = open + 1;
    while let Some((place, byte)) = next_byte(code, at) {
        at = match byte {
            b'}' => return place + 1,
            b',' => place + 1,
            _ => {
                // An element is what a path has after `::`.
                let end = element(code, place, head, found);
                code[end..].find([',', '}']).map_or(code.len(), |length| end + length)
            }
        };
    }
    code.len()
}

fn element(code: &str, place: usize, head: &Found, found: &mut Vec<Found>) -> usize {
    let mut longer = Found { offset: place, segments: head.segments.clone() };
    let end = end_of_word(code.as_bytes(), place);
    match &code[place..end] {
        "self" => {}
        "" => longer.segments.push("*".to_owned()),
        segment => longer.segments.push(segment.to_owned()),
    }
    tail(code, end.max(place + 1), &longer, found)
}

#[cfg(test)]
fn texts(code: &str, root: &str) -> Vec<String> {
    rooted(code, root).iter().map(Found::text).collect()
}

#[test]
fn groups_are_spelled_out() {
    let code = "use crate::a::B;\nuse crate::{c::{self, D as E, f::G}, h::*, i};";
    let expected = ["crate::a::B", "crate::c", "crate::c::D", "crate::c::f::G", "crate::h::*"];
    assert_eq!(texts(code, "crate")[..5], expected);
    assert_eq!(texts(code, "crate")[5..], ["crate::i"]);
}

#[test]
fn paths_outside_imports_count() {
    let code = "let a = crate::b::C::<u8>::new(::std::thread::spawn(x)); impl crate::t::T for U {}";
    assert_eq!(texts(code, "crate"), ["crate::b::C", "crate::t::T"]);
    assert_eq!(texts(code, "std"), ["std::thread::spawn"]);
}

#[test]
fn what_only_looks_like_a_root_is_none() {
    assert!(texts("pub(crate) fn f() { $crate::g() }", "crate").is_empty());
    assert!(texts("use work::std::thread; x.std::y", "std").is_empty());
}

#[test]
fn offsets_point_at_the_last_segment() {
    let code = "use crate::{\n    a::B,\n    c,\n};";
    let lines: Vec<usize> = rooted(code, "crate")
        .iter()
        .map(|found| code[..found.offset].matches('\n').count())
        .collect();
    assert_eq!(lines, [1, 2]);
}
