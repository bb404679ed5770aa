//! The parser against valid, broken and random streams, cut at every byte.

use super::resp::{Event, Limits, Parser, ProtocolError};

const LIMITS: Limits = Limits { bulk: 64, args: 8, request: 256, line: 48 };

/// What a stream comes to; a protocol error ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Request(Vec<Vec<u8>>),
    TooLarge,
    Broken(ProtocolError),
}

#[derive(Debug)]
struct Reader {
    parser: Parser,
    seen: Vec<Seen>,
}

impl Reader {
    fn new() -> Self {
        Self { parser: Parser::new(LIMITS), seen: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        if let Some(Seen::Broken(_)) = self.seen.last() {
            return;
        }
        self.parser.room().extend_from_slice(bytes);
        loop {
            let seen = match self.parser.next() {
                Ok(None) => return,
                Ok(Some(Event::TooLarge)) => Seen::TooLarge,
                Ok(Some(Event::Request(request))) => {
                    Seen::Request(request.from(0).map(<[u8]>::to_vec).collect())
                }
                Err(error) => Seen::Broken(error),
            };
            self.seen.push(seen);
            if let Some(Seen::Broken(_)) = self.seen.last() {
                return;
            }
        }
    }
}

fn whole(stream: &[u8]) -> Vec<Seen> {
    let mut reader = Reader::new();
    reader.feed(stream);
    reader.seen
}

fn request(words: &[&str]) -> Seen {
    Seen::Request(words.iter().map(|word| word.as_bytes().to_vec()).collect())
}

/// However a stream is cut into reads, it comes to the same.
fn assert_same_however_cut(stream: &[u8]) {
    let expected = whole(stream);
    for cut in 0..=stream.len() {
        let mut reader = Reader::new();
        reader.feed(&stream[..cut]);
        reader.feed(&stream[cut..]);
        assert_eq!(reader.seen, expected, "{} cut at {cut}", stream.escape_ascii());
    }
    let mut reader = Reader::new();
    for byte in stream.chunks(1) {
        reader.feed(byte);
    }
    assert_eq!(reader.seen, expected, "{} byte by byte", stream.escape_ascii());
}

/// xorshift64*, so that every run sees the same streams.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        // Bytes that mean something come often.
        const TELLING: &[u8] = b"*$-+0123456789\r\n\r\n \"'\\xGET\0\xff";
        let mut byte = || match self.below(3) {
            0 => self.below(256) as u8,
            _ => TELLING[self.below(TELLING.len())],
        };
        (0..len).map(|_| byte()).collect()
    }

    /// A request that is valid, though it may be over a limit.
    fn request(&mut self) -> Vec<u8> {
        if self.below(4) == 0 {
            return b"  echo 'it\\'s' \"a\\x41\\n\" plain\r\n".to_vec();
        }
        let count = self.below(LIMITS.args + 2);
        let mut stream = format!("*{count}\r\n").into_bytes();
        for _ in 0..count {
            let len = self.below(LIMITS.bulk + 4);
            stream.extend(format!("${len}\r\n").into_bytes());
            stream.extend(self.bytes(len));
            stream.extend(b"\r\n");
        }
        stream
    }
}

#[test]
fn reads_arrays_and_inline_commands_from_one_stream() {
    let stream =
        b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n\r\n*0\r\n*-1\r\n set k \"\\x00 \\\"\" ''\n";
    let expected =
        [request(&["GET", "a\r\nb"]), request(&["PING"]), request(&["set", "k", "\0 \"", ""])];
    assert_eq!(whole(stream), expected);
    assert_same_however_cut(stream);
}

#[test]
fn a_request_over_a_limit_is_skipped_and_the_stream_goes_on() {
    let long = "x".repeat(LIMITS.bulk + 1);
    let full = "y".repeat(LIMITS.bulk);
    let argument = format!("${}\r\n{full}\r\n", full.len());
    for large in [
        format!("*2\r\n$3\r\nGET\r\n${}\r\n{long}\r\n", long.len()),
        format!("*9\r\n{}", "$1\r\na\r\n".repeat(9)),
        format!("*4\r\n{}", argument.repeat(4)),
        format!("{}\r\n", "a ".repeat(9)),
    ] {
        let stream = [large.as_bytes(), b"PING\r\n"].concat();
        assert_eq!(whole(&stream), [Seen::TooLarge, request(&["PING"])], "{large}");
        assert_same_however_cut(&stream);
    }
}

#[test]
fn a_broken_stream_is_an_error_and_ends() {
    for stream in [
        "*1\r\n:1\r\n",
        "*x\r\n",
        "*+1\r\n",
        "*1 \r\n",
        "*1\n$4\r\nPING\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$4\r\nPINGxx",
        "*2147483648\r\n",
        "*1\r\n$99999999999\r\n",
        "*99999999999999999999999999999999",
        "echo \"open\r\n",
        "echo 'a'b\r\n",
        "POST / HTTP/1.1\r\n",
    ] {
        let seen = whole(format!("PING\r\n{stream}PING\r\n").as_bytes());
        assert_eq!(seen.len(), 2, "{stream:?}: {seen:?}");
        assert!(matches!(seen[1], Seen::Broken(_)), "{stream:?}: {seen:?}");
        assert_same_however_cut(format!("PING\r\n{stream}").as_bytes());
    }
    let endless = vec![b'a'; LIMITS.line + 1];
    assert!(matches!(whole(&endless)[..], [Seen::Broken(_)]));
}

#[test]
fn an_announced_length_takes_no_memory() {
    for stream in
        ["*1000000\r\n", "*2\r\n$3\r\nSET\r\n$536870912\r\n", "*1000000\r\n$536870912\r\n"]
    {
        let mut parser = Parser::new(LIMITS);
        parser.room().extend_from_slice(stream.as_bytes());
        assert!(matches!(parser.next(), Ok(None)), "{stream:?}");
        // What is being skipped is not kept either.
        for _ in 0..1000 {
            let room = parser.room();
            room.extend_from_slice(&[b'x'; 1000]);
            assert!(room.capacity() <= 64 << 10, "{stream:?}: {}", room.capacity());
            if parser.next().is_err() {
                break;
            }
        }
    }
}

#[test]
fn valid_streams_come_to_the_same_however_they_are_cut() {
    let mut random = Random(0x5EED);
    for _ in 0..300 {
        let stream = (0..3).flat_map(|_| random.request()).collect::<Vec<_>>();
        let seen = whole(&stream);
        assert!(!seen.iter().any(|seen| matches!(seen, Seen::Broken(_))), "{seen:?}");
        assert_same_however_cut(&stream);
    }
}

#[test]
fn damaged_and_random_streams_never_panic() {
    let mut random = Random(0xBAD5EED);
    for round in 0..3000 {
        let mut stream = match round % 3 {
            0 => {
                let len = random.below(120);
                random.bytes(len)
            }
            _ => [random.request(), random.request()].concat(),
        };
        if round % 3 == 1 && !stream.is_empty() {
            let (at, byte) = (random.below(stream.len()), random.bytes(1)[0]);
            stream[at] = byte;
        }
        if round % 3 == 2 {
            stream.truncate(random.below(stream.len() + 1));
        }
        assert_same_however_cut(&stream);
    }
}
