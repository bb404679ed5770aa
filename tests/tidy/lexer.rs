//! As much of Rust's lexer as the rules need: comments, strings, braces, words.

use std::ops::Range;

/// Splits Rust text into its code and its comments. Both are as long as the text, so that offsets
/// and lines are the same in all three: blanks stand for what was left out. The quotes of a string
/// stay in the code, what is between them does not.
pub(crate) fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let mut code = blank(bytes);
    let mut comments = code.clone();
    let mut at = 0;
    while at < bytes.len() {
        let end = if bytes[at..].starts_with(b"//") {
            end_of_line(bytes, at)
        } else if bytes[at..].starts_with(b"/*") {
            end_of_block(bytes, at)
        } else if let Some(end) = end_of_literal(text, at) {
            code[at] = bytes[at];
            code[end - 1] = bytes[end - 1];
            at = end;
            continue;
        } else {
            let end = end_of_word(bytes, at).max(at + 1);
            code[at..end].copy_from_slice(&bytes[at..end]);
            at = end;
            continue;
        };
        comments[at..end].copy_from_slice(&bytes[at..end]);
        at = end;
    }
    (readable(code), readable(comments))
}

fn blank(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }).collect()
}

/// A character outside ASCII stands only in comments, strings and names; all go over whole.
fn readable(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("a character was cut")
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Block comments nest.
fn end_of_block(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

/// The end of the string or character literal that begins at `at`, if one does.
fn end_of_literal(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let prefix = bytes[at..].iter().take_while(|byte| matches!(byte, b'b' | b'c' | b'r')).count();
    let raw = prefix > 0 && bytes[at + prefix - 1] == b'r';
    let hashes = bytes[at + prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + prefix + if raw { hashes } else { 0 };
    match bytes.get(open) {
        Some(b'"') if raw => {
            let close = format!("\"{}", "#".repeat(hashes));
            let length = text[open + 1..].find(&close).map(|length| length + 1 + close.len());
            Some(length.map_or(bytes.len(), |length| open + length))
        }
        Some(b'"') => Some(end_of_quoted(bytes, open, b'"')),
        Some(b'\'') if prefix == 0 || bytes[at] == b'b' => end_of_char(text, open),
        _ => None,
    }
}

fn end_of_quoted(bytes: &[u8], open: usize, quote: u8) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// None for a lifetime: it has no closing quote after one character.
fn end_of_char(text: &str, open: usize) -> Option<usize> {
    let mut rest = text[open + 1..].chars();
    let first = rest.next()?;
    if first == '\\' {
        return Some(end_of_quoted(text.as_bytes(), open, b'\''));
    }
    (rest.next()? == '\'').then(|| open + 1 + first.len_utf8() + 1)
}

/// The end of the word (or the run of characters outside ASCII) that begins at `at`.
pub(crate) fn end_of_word(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| is_word(**byte) || !byte.is_ascii()).count()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `word` stands in `code` as a whole word.
pub(crate) fn find_word(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let whole = |at: &usize| {
        let end = at + word.len();
        (*at == 0 || !is_word(bytes[at - 1])) && (end == bytes.len() || !is_word(bytes[end]))
    };
    code.match_indices(word).map(|(at, _)| at).filter(whole).collect()
}

/// The first byte from `at` on that is not white space, and its place.
pub(crate) fn next_byte(code: &str, at: usize) -> Option<(usize, u8)> {
    let found = code.as_bytes()[at..].iter().position(|byte| !byte.is_ascii_whitespace());
    found.map(|length| (at + length, code.as_bytes()[at + length]))
}

/// The last byte before `at` that is not white space, and its place.
pub(crate) fn previous_byte(code: &str, at: usize) -> Option<(usize, u8)> {
    let found = code.as_bytes()[..at].iter().rposition(|byte| !byte.is_ascii_whitespace());
    found.map(|place| (place, code.as_bytes()[place]))
}

/// The end of what the bracket at `open` opens, of whichever kind; the end of the code if nothing
/// closes it.
pub(crate) fn end_of_group(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (length, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return open + length + 1;
        }
    }
    code.len()
}

/// The body in braces of the item that begins at `at`, or where its semicolon ends it.
pub(crate) fn body(code: &str, mut at: usize) -> Result<Range<usize>, usize> {
    while let Some((place, byte)) = next_byte(code, at) {
        match byte {
            b'{' => return Ok(place..end_of_group(code, place)),
            b';' => return Err(place + 1),
            b'(' | b'[' => at = end_of_group(code, place),
            _ => at = place + 1,
        }
    }
    Err(code.len())
}

/// The items under `#[cfg(test)]`, from the attribute on, and whether each has a body in braces.
pub(crate) fn items_of_tests(code: &str) -> Vec<(Range<usize>, bool)> {
    let mut items = Vec::new();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (start, _) in code.match_indices(attribute) {
            items.push(match body(code, end_of_group(code, start + 1)) {
                Ok(body) => (start..body.end, true),
                Err(end) => (start..end, false),
            });
        }
    }
    items
}

/// The code with the items under `#[cfg(test)]` blanked out.
pub(crate) fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (item, _) in items_of_tests(code) {
        let gone = blank(&bytes[item.clone()]);
        bytes[item].copy_from_slice(&gone);
    }
    readable(bytes)
}

#[test]
fn comments_and_strings_leave_the_code() {
    let text = "a(\"x // y \\\" z\"); // c \"q\"\n/* d /* e */ f */ b('\"', b'\\'', 'é'); //! ü\n";
    let (code, comments) = split(text);
    assert_eq!((code.len(), comments.len()), (text.len(), text.len()));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&comments), words("// c \"q\" /* d /* e */ f */ //! ü"));
    let squeezed: String = words(&code).concat();
    assert_eq!(squeezed, "a(\"\");b('',b','');");
}

#[test]
fn lifetimes_and_raw_strings_are_told_apart() {
    let text = "fn f<'a>(x: &'a str) { r#\"{ \" // no \"#; br\"\\\"; 'a'; c\"{\" } // yes";
    let (code, comments) = split(text);
    assert!(code.contains("fn f<'a>(x: &'a str) {"), "{code}");
    assert_eq!(code.matches('{').count(), 1, "{code}");
    assert_eq!(comments.trim(), "// yes");
}

#[test]
fn items_under_test_are_blanked() {
    let code = "one();\n#[cfg(test)]\nmod tests {\n fn f() { two() }\n}\nthree();\n\
                #[cfg(test)]\n#[allow(x)]\nuse a::{b, c};\nfour();\n#[cfg(not(test))]\nfive();";
    let kept = without_tests(code);
    assert_eq!(kept.len(), code.len());
    assert!(!kept.contains("two") && !kept.contains("mod tests"), "{kept}");
    for word in ["one", "three", "four", "five"] {
        assert!(kept.contains(word), "{word} in {kept}");
    }
}

#[test]
fn words_are_whole() {
    assert_eq!(find_word("loom bloom loom_tests (loom)", "loom"), [0, 23]);
}
