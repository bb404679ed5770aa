//! An incremental reader of RESP2 requests: arrays of bulk strings, and inline commands.
//!
//! Memory follows the bytes that have arrived, never a length that was announced. A request that
//! is too large but says where it ends is skipped as it comes in, and the stream goes on.

use std::ops::Range;

use super::words;

/// The longest `*N` or `$N` line: its sign, the digits of an `i64` and the line end fit.
const HEADER_LINE: usize = 32;
/// What may be announced and skipped; beyond it the connection is closed (Redis's own bounds).
const MAX_SKIPPED_BULK: i64 = 512 << 20;
const MAX_SKIPPED_ARGS: i64 = 1 << 20;
/// Room that is made before every read.
const READ_CHUNK: usize = 16 << 10;
/// A buffer that has grown beyond this is given back once it is empty.
const KEEP: usize = 64 << 10;

/// What one request may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of one argument.
    pub(crate) bulk: usize,
    /// Arguments, the command's name included.
    pub(crate) args: usize,
    /// Bytes of a whole request as it is on the wire.
    pub(crate) request: usize,
    /// Bytes of an inline command.
    pub(crate) line: usize,
}

/// A complete request; its arguments lie in the parser's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    bytes: &'a [u8],
    args: &'a [Range<usize>],
}

impl<'a> Request<'a> {
    /// How many arguments there are, the command's name included; at least one.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    pub(crate) fn arg(&self, index: usize) -> &'a [u8] {
        self.args.get(index).and_then(|range| self.bytes.get(range.clone())).unwrap_or_default()
    }

    /// The arguments from `first` on.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = &'a [u8]> {
        (first..self.len()).map(|index| self.arg(index))
    }
}

/// What the parser found.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Request(Request<'a>),
    /// A whole request went by that is over a limit; nothing of it was kept.
    TooLarge,
}

/// The stream makes no sense from here on: answer, then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) &'static str);

#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    /// `left` bulk strings are still to come.
    Header {
        left: usize,
    },
    /// `len` bytes and a line end are to come, then `left` more bulk strings.
    Body {
        len: usize,
        left: usize,
    },
    /// An inline command has been split into words.
    Words,
}

#[derive(Debug)]
pub(crate) struct Parser {
    limits: Limits,
    buffer: Vec<u8>,
    /// Where the request that is being read begins.
    start: usize,
    /// The first byte that is not understood yet.
    at: usize,
    /// Bytes from `start` on in which no line feed was found.
    searched: usize,
    state: State,
    /// The request is over a limit: read it to its end, keep nothing.
    skipping: bool,
    /// The arguments, counted from `start`, or from the beginning of `words`.
    args: Vec<Range<usize>>,
    /// The words of an inline command, without their quotes.
    words: Vec<u8>,
}

impl Parser {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            start: 0,
            at: 0,
            searched: 0,
            state: State::Start,
            skipping: false,
            args: Vec::new(),
            words: Vec::new(),
        }
    }

    /// The buffer to append to, with some room; bytes that are done with are gone from it.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.at -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(READ_CHUNK);
        &mut self.buffer
    }

    /// The next request, or `None` when more bytes are needed. After an error there is no next.
    pub(crate) fn next(&mut self) -> Result<Option<Event<'_>>, ProtocolError> {
        loop {
            let went_on = match self.state {
                State::Start => self.begin()?,
                State::Header { left: 0 } | State::Words => return Ok(Some(self.finish())),
                State::Header { left } => self.header(left)?,
                State::Body { len, left } => self.body(len, left)?,
            };
            if !went_on {
                return Ok(None);
            }
        }
    }

    /// Each step says whether it found what it needs; when not, it will be called again.
    fn begin(&mut self) -> Result<bool, ProtocolError> {
        self.args.clear();
        self.skipping = false;
        match self.buffer.get(self.at) {
            None => Ok(false),
            Some(b'*') => self.array(),
            Some(_) => self.line(),
        }
    }

    fn array(&mut self) -> Result<bool, ProtocolError> {
        let Some(count) = self.number("invalid multibulk length")? else {
            return Ok(false);
        };
        if count > MAX_SKIPPED_ARGS {
            return Err(ProtocolError("invalid multibulk length"));
        }
        // As in Redis, an array of nothing is no request and has no answer.
        let left = usize::try_from(count).unwrap_or(0);
        if left == 0 {
            self.start = self.at;
            return Ok(true);
        }
        self.skipping = left > self.limits.args;
        self.state = State::Header { left };
        Ok(true)
    }

    fn header(&mut self, left: usize) -> Result<bool, ProtocolError> {
        match self.buffer.get(self.at) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(_) => return Err(ProtocolError("expected '$'")),
        }
        let Some(len) = self.number("invalid bulk length")? else {
            return Ok(false);
        };
        let len = match usize::try_from(len) {
            Ok(small) if len <= MAX_SKIPPED_BULK => small,
            _ => return Err(ProtocolError("invalid bulk length")),
        };
        let request = self.at - self.start + len + 2;
        self.skipping |= len > self.limits.bulk || request > self.limits.request;
        self.state = State::Body { len, left: left - 1 };
        Ok(true)
    }

    fn body(&mut self, mut len: usize, left: usize) -> Result<bool, ProtocolError> {
        if self.skipping {
            let here = len.min(self.buffer.len() - self.at);
            self.at += here;
            self.start = self.at;
            len -= here;
            self.state = State::Body { len, left };
        }
        let end = self.at + len;
        let Some(after) = self.buffer.get(end..end + 2) else {
            return Ok(false);
        };
        if after != b"\r\n" {
            return Err(ProtocolError("expected a line end after a bulk string"));
        }
        if !self.skipping {
            self.args.push(self.at - self.start..end - self.start);
        }
        self.at = end + 2;
        self.state = State::Header { left };
        Ok(true)
    }

    fn line(&mut self) -> Result<bool, ProtocolError> {
        let rest = &self.buffer[self.start..];
        let found = rest[self.searched..].iter().position(|&byte| byte == b'\n');
        let end = found.map_or(rest.len(), |offset| self.searched + offset);
        if end > self.limits.line {
            return Err(ProtocolError("too big inline request"));
        }
        if found.is_none() {
            self.searched = end;
            return Ok(false);
        }
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.words.clear();
        if !words::split(line, &mut self.words, &mut self.args) {
            return Err(ProtocolError("unbalanced quotes in request"));
        }
        self.searched = 0;
        self.at = self.start + end + 1;
        if self.args.is_empty() {
            self.start = self.at;
            return Ok(true);
        }
        // A browser that was talked into posting here must not get to the body of its request.
        let first = &self.words[self.args[0].clone()];
        if first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:") {
            return Err(ProtocolError("this is not an HTTP server"));
        }
        self.skipping = self.args.len() > self.limits.args
            || self.args.iter().any(|word| word.len() > self.limits.bulk);
        self.state = State::Words;
        Ok(true)
    }

    fn finish(&mut self) -> Event<'_> {
        let inline = matches!(self.state, State::Words);
        let from = std::mem::replace(&mut self.start, self.at);
        self.state = State::Start;
        if self.skipping {
            return Event::TooLarge;
        }
        let bytes = if inline { &self.words[..] } else { &self.buffer[from..self.at] };
        Event::Request(Request { bytes, args: &self.args })
    }

    /// Reads the number of a `*N` or `$N` line; `what` names the error.
    fn number(&mut self, what: &'static str) -> Result<Option<i64>, ProtocolError> {
        let rest = &self.buffer[self.at..];
        let line = &rest[..rest.len().min(HEADER_LINE)];
        let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
            return if line.len() == HEADER_LINE { Err(ProtocolError(what)) } else { Ok(None) };
        };
        let digits = line[1..end].strip_suffix(b"\r").ok_or(ProtocolError(what))?;
        let number = integer(digits).ok_or(ProtocolError(what))?;
        self.at += end + 1;
        Ok(Some(number))
    }
}

/// Digits with an optional minus, and nothing else.
fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.starts_with('+') { None } else { text.parse().ok() }
}
