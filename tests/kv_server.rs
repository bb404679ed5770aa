//! The key-value example over real sockets, in each of its modes.

// Its own build finds dead code; here only its `main` is unused.
#[allow(dead_code)]
#[path = "../examples/kv_server.rs"]
mod kv;

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use kv::{config::Config, gate::Mode, server::Server};

/// A hang is a failure: no answer of this server takes so long.
const PATIENCE: Duration = Duration::from_secs(10);

struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
        Self(stream)
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("the server reads");
    }

    #[track_caller]
    fn expect(&mut self, answer: impl AsRef<[u8]>) {
        let answer = answer.as_ref();
        let mut got = vec![0; answer.len()];
        let read = self.0.read_exact(&mut got);
        let shown = got.escape_ascii().to_string();
        assert!(read.is_ok() && got == answer, "{shown}, not {} ({read:?})", answer.escape_ascii());
    }

    #[track_caller]
    fn ask(&mut self, request: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) {
        self.send(request);
        self.expect(answer);
    }

    /// The text of a bulk string that is the whole answer.
    fn text(&mut self, request: &str) -> String {
        self.send(request);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("a header line");
            head.extend(byte);
        }
        let head = String::from_utf8(head).expect("text");
        let len: usize = head[1..].trim().parse().expect("a length");
        let mut body = vec![0; len + 2];
        self.0.read_exact(&mut body).expect("the whole text");
        String::from_utf8(body).expect("text")
    }

    /// A number of INFO.
    fn info(&mut self, key: &str) -> u64 {
        let text = self.text("INFO\r\n");
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{key} in {text}"))
    }

    #[track_caller]
    fn expect_end(mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).expect("an orderly close");
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }
}

fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n", word.len()).into_bytes());
        request.extend(*word);
        request.extend(b"\r\n");
    }
    request
}

fn config(options: &str) -> Config {
    let options = options.split_whitespace().map(str::to_owned);
    let config = Config::parse(options).expect("valid options").expect("not --help");
    Config { port: 0, ..config }
}

/// Runs `test` against a fresh server and sees it end in good order.
fn with_server(config: Config, test: impl FnOnce(SocketAddr)) {
    let server = Server::start(config).expect("a server");
    test(server.address());
    server.stop().expect("an orderly end");
}

fn in_each_mode(test: impl Fn(Mode, SocketAddr)) {
    for mode in Mode::ALL {
        let limit = 2;
        with_server(Config { mode, limit, ..config("") }, |address| test(mode, address));
    }
}

/// A directory that goes away with its guard.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("kv-server-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_commands_answer_as_redis_does() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        client.ask("PING\r\n", "+PONG\r\n");
        client.ask("ping hello\r\n", "$5\r\nhello\r\n");
        client.ask("ECHO \"a b\"\r\n", "$3\r\na b\r\n");
        client.ask("GET k\r\n", "$-1\r\n");
        client.ask("SET k v\r\n", "+OK\r\n");
        client.ask("GET k\r\n", "$1\r\nv\r\n");
        client.ask("EXISTS k k nope\r\n", ":2\r\n");
        client.ask("DEL k nope\r\n", ":1\r\n");
        client.ask("EXISTS k\r\n", ":0\r\n");
        client.ask("CONFIG GET save\r\n", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
        client.ask("CONFIG GET app*\r\n", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
        client.ask("CONFIG GET nothing\r\n", "*0\r\n");
        client.ask("COMMAND DOCS\r\n", "*0\r\n");
        client.ask("COMMAND COUNT\r\n", ":13\r\n");
        client.ask("COMMAND\r\n", "*13\r\n*6\r\n$7\r\ncommand\r\n");
    });
}

#[test]
fn what_is_wrong_with_a_command_does_not_end_the_connection() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        client.ask("NOPE\r\n", "-ERR unknown command 'NOPE'\r\n");
        client.ask(array(&[b"a\r\n+b"]), "-ERR unknown command 'a\\r\\n+b'\r\n");
        client.ask("GET\r\n", "-ERR wrong number of arguments for 'get' command\r\n");
        client.ask("SET k v EX 1\r\n", "-ERR syntax error\r\n");
        client.ask("HELLO 3\r\n", "-NOPROTO unsupported protocol version\r\n");
        client.ask("PING\r\n", "+PONG\r\n");
    });
}

#[test]
fn a_pipeline_is_answered_in_order_however_it_arrives() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        for index in 0..500 {
            let (key, value) = (format!("k{}", index % 7), index.to_string());
            requests.extend(array(&[b"SET", key.as_bytes(), value.as_bytes()]));
            requests.extend(array(&[b"GET", key.as_bytes()]));
            answers.extend(format!("+OK\r\n${}\r\n{value}\r\n", value.len()).into_bytes());
        }
        client.ask(&requests, &answers);
        // Once more in pieces that end anywhere.
        client.0.set_nodelay(true).expect("a socket option");
        requests.chunks(61).for_each(|piece| client.send(piece));
        client.expect(&answers);
    });
}

#[test]
fn values_and_keys_are_binary_safe() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        let every_byte = (0..=255).collect::<Vec<u8>>();
        let value = every_byte.repeat(700);
        client.ask(array(&[b"SET", &every_byte, &value]), "+OK\r\n");
        client.ask(array(&[b"SET", b"", b""]), "+OK\r\n");
        let length = format!("${}\r\n", value.len());
        let answer = [length.as_bytes(), &value, b"\r\n"].concat();
        // Three large answers at once are more than is gathered before a write.
        client.ask(array(&[b"GET", &every_byte]).repeat(3), answer.repeat(3));
        client.ask(array(&[b"GET", b""]), "$0\r\n\r\n");
    });
}

#[test]
fn a_malformed_stream_gets_an_error_and_an_end() {
    in_each_mode(|_, address| {
        for (request, answer) in [
            ("*1\r\n:1\r\n", "-ERR Protocol error: expected '$'\r\n"),
            ("*1000000000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            ("*1\r\n$999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            ("*1\r\n$4\r\nPINGPONG", "-ERR Protocol error: expected a line end"),
            ("GET \"x\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        ] {
            let mut client = Client::connect(address);
            client.send(format!("SET sane 1\r\n{request}"));
            client.expect(format!("+OK\r\n{answer}"));
            let mut rest = Vec::new();
            client.0.read_to_end(&mut rest).expect("an orderly close");
        }
        // Input that the server has not read must not cost the client its answer.
        let mut client = Client::connect(address);
        client.send([b'x'; 200_000]);
        client.expect("-ERR Protocol error: too big inline request\r\n");
        client.expect_end();
    });
}

#[test]
fn an_oversized_request_is_refused_and_the_connection_goes_on() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        let too_long = vec![b'v'; (512 << 10) + 1];
        client.ask(array(&[b"SET", b"k", &too_long]), "-ERR the request is too large\r\n");
        let mut many: Vec<&[u8]> = vec![b"DEL"];
        many.resize(1025, b"k");
        client.ask(array(&many), "-ERR the request is too large\r\n");
        client.ask("EXISTS k\r\n", ":0\r\n");
        client.ask(array(&[b"SET", b"k", &too_long[1..]]), "+OK\r\n");
    });
}

#[test]
fn memory_and_connections_are_bounded() {
    with_server(config("--max-memory 10000 --max-connections 2"), |address| {
        let mut client = Client::connect(address);
        let oom = "-OOM the values would exceed --max-memory\r\n";
        client.ask(array(&[b"SET", b"a", &[0; 9000]]), "+OK\r\n");
        client.ask(array(&[b"SET", b"b", &[0; 9000]]), oom);
        client.ask(array(&[b"SET", b"a", &[0; 9999]]), oom);
        client.ask("DEL a\r\n", ":1\r\n");
        assert_eq!(client.info("used_memory_dataset"), 0);
        client.ask(array(&[b"SET", b"b", &[0; 9000]]), "+OK\r\n");

        let mut second = Client::connect(address);
        second.ask("PING\r\n", "+PONG\r\n");
        let mut third = Client::connect(address);
        third.expect("-ERR max number of clients reached\r\n");
        third.expect_end();
        assert_eq!(client.info("rejected_connections"), 1);
    });
}

#[test]
fn quit_answers_and_closes_and_so_does_the_end_of_input() {
    in_each_mode(|_, address| {
        let mut client = Client::connect(address);
        client.ask("PING\r\nQUIT\r\nPING\r\n", "+PONG\r\n+OK\r\n");
        client.expect_end();
        let mut client = Client::connect(address);
        client.send("PING\r\n");
        client.0.shutdown(Shutdown::Write).expect("an open socket");
        client.expect("+PONG\r\n");
        client.expect_end();
    });
}

#[test]
fn info_shows_the_counters_of_the_executor() {
    in_each_mode(|mode, address| {
        let mut client = Client::connect(address);
        for _ in 0..50 {
            client.ask("PING\r\n", "+PONG\r\n");
        }
        let text = client.text("INFO executor\r\n");
        assert!(text.contains(&format!("mode:{}\r\n", mode.name())), "{text}");
        assert!(!text.contains("# Server"), "{text}");
        if mode == Mode::Direct {
            return;
        }
        assert_eq!(client.info("limit"), 2);
        if mode == Mode::Semaphore {
            return;
        }
        // The last PING may still be giving its permit back, hence no exact figures.
        let (inline, queued) = (client.info("ran_inline"), client.info("ran_queued"));
        match mode {
            Mode::Inline => assert!(inline >= 50 && queued == 0, "{inline} and {queued}"),
            _ => assert!(inline == 0 && queued >= 50, "{inline} and {queued}"),
        }
        assert!(client.info("active") >= 1, "the INFO itself");
    });
}

#[test]
fn reads_are_tried_at_once_and_writes_go_by_their_key() {
    with_server(config("--mode inline"), |address| {
        let mut client = Client::connect(address);
        for n in 0..50 {
            client.ask(format!("SET key {n}\r\n"), "+OK\r\n");
            client.ask("GET key\r\n", format!("${}\r\n{n}\r\n", n.to_string().len()));
        }
        client.ask("DEL key\r\nGET key\r\n", ":1\r\n$-1\r\n");
        // An attempt that met somebody at the same part of the memory is queued instead.
        let (done, queued) = (client.info("speculated"), client.info("queued_would_block"));
        assert_eq!((done + queued, client.info("refused")), (51, 0));
        let (inline, queued) = (client.info("writes_ran_inline"), client.info("writes_ran_queued"));
        assert_eq!(inline + queued, 51);
    });
    // What takes time is not tried without a permit.
    with_server(config("--mode inline --work-us 1"), |address| {
        let mut client = Client::connect(address);
        client.ask("GET key\r\n", "$-1\r\n");
        assert_eq!(client.info("speculated") + client.info("queued_would_block"), 0);
    });
}

#[test]
fn a_command_that_the_executor_refuses_is_answered_busy() {
    with_server(config("--mode queue --queue-capacity 0"), |address| {
        let mut client = Client::connect(address);
        client.ask("PING\r\nPING\r\n", "-BUSY ");
        client.send("QUIT\r\n");
        let mut rest = String::new();
        client.0.read_to_string(&mut rest).expect("an orderly close");
        assert_eq!(rest.matches("-BUSY ").count(), 2, "{rest}");
    });
}

#[test]
fn values_on_disk_outlive_the_server() {
    for mode in Mode::ALL {
        let directory = Directory::new();
        let data = Some(directory.path().to_owned());
        let config = Config { mode, data, ..config("") };
        with_server(config.clone(), |address| {
            let mut client = Client::connect(address);
            client.ask("SET kept \"a\\x00b\"\r\nSET gone x\r\n", "+OK\r\n+OK\r\n");
            client.ask("DEL gone nope\r\nEXISTS kept gone\r\n", ":1\r\n:1\r\n");
        });
        with_server(config, |address| {
            let mut client = Client::connect(address);
            client.ask("GET kept\r\nGET gone\r\n", "$3\r\na\0b\r\n$-1\r\n");
            assert!(client.text("INFO\r\n").contains("db0:keys=1,"));
        });
    }
}

#[test]
fn shutdown_ends_the_wait_for_it() {
    let server = Server::start(config("")).expect("a server");
    let mut client = Client::connect(server.address());
    client.ask("SHUTDOWN\r\n", "+OK\r\n");
    server.wait();
    server.stop().expect("an orderly end");
}
