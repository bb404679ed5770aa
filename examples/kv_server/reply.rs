//! What the server answers, and how it looks on the wire.

use std::{borrow::Cow, io::Write, sync::Arc};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(&'static str),
    /// The text begins with an upper-case code, `ERR` for most.
    Error(Cow<'static, str>),
    Integer(i64),
    Nil,
    Bulk(Arc<[u8]>),
    Array(Vec<Reply>),
}

impl Reply {
    pub(crate) const OK: Reply = Reply::Simple("OK");

    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Reply::Error(text.into())
    }

    pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Reply::Bulk(Arc::from(bytes.as_ref()))
    }

    pub(crate) fn count(number: usize) -> Self {
        Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Appends the reply to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Simple(text) => line(out, b'+', text.bytes()),
            // An error must stay on its line, whatever it quotes.
            Reply::Error(text) => {
                line(out, b'-', text.bytes().map(|b| if b < b' ' { b' ' } else { b }));
            }
            Reply::Integer(number) => header(out, ':', number),
            Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
            Reply::Bulk(bytes) => {
                header(out, '$', bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Reply::Array(items) => {
                header(out, '*', items.len());
                items.iter().for_each(|item| item.encode(out));
            }
        }
    }
}

fn line(out: &mut Vec<u8>, kind: u8, text: impl Iterator<Item = u8>) {
    out.push(kind);
    out.extend(text);
    out.extend_from_slice(b"\r\n");
}

fn header(out: &mut Vec<u8>, kind: char, number: impl std::fmt::Display) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{kind}{number}\r\n");
}
