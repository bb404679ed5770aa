//! Splits an inline command into words, by the rules of Redis: blanks separate, `"…"` takes
//! escapes, `'…'` takes only `\'`.

use std::ops::Range;

/// Appends the words to `out` and where each lies to `ranges`; `false` when quotes do not balance.
pub(crate) fn split(line: &[u8], out: &mut Vec<u8>, ranges: &mut Vec<Range<usize>>) -> bool {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let from = out.len();
        let Some(after) = word(rest, out) else {
            return false;
        };
        ranges.push(from..out.len());
        rest = after.trim_ascii_start();
    }
    true
}

/// Takes one word off `rest`; `None` when a quote is not closed, or not followed by a blank.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' | b'\'' => {
                let after = quoted(byte, after, out)?;
                let ends = after.first().is_none_or(u8::is_ascii_whitespace);
                return ends.then_some(after);
            }
            _ if byte.is_ascii_whitespace() => return Some(after),
            _ => out.push(byte),
        }
        rest = after;
    }
    Some(rest)
}

/// Takes what stands before the closing `quote`.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            _ if byte == quote => return Some(rest),
            b'\\' if quote == b'"' => {
                if let [b'x', high, low, after @ ..] = rest {
                    if let (Some(high), Some(low)) = (hex(*high), hex(*low)) {
                        out.push(high << 4 | low);
                        rest = after;
                        continue;
                    }
                }
                let (&escaped, after) = rest.split_first()?;
                out.push(unescape(escaped));
                rest = after;
            }
            b'\\' if rest.first() == Some(&b'\'') => {
                out.push(b'\'');
                rest = &rest[1..];
            }
            _ => out.push(byte),
        }
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
