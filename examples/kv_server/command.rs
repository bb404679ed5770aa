//! The commands: reading one from a request, and running it.

use std::fmt::Write;

use super::{
    info,
    reply::Reply,
    resp::Request,
    server::Shared,
    store::{StoreError, Value},
};

/// Name, arity as Redis counts it (the name included, negative: at least), first and last key.
const COMMANDS: [(&str, i64, i64, i64); 13] = [
    ("command", -1, 0, 0),
    ("config", -2, 0, 0),
    ("del", -2, 1, -1),
    ("echo", 2, 0, 0),
    ("exists", -2, 1, -1),
    ("get", 2, 1, 1),
    ("hello", -1, 0, 0),
    ("info", -1, 0, 0),
    ("ping", -1, 0, 0),
    ("quit", -1, 0, 0),
    ("select", 2, 0, 0),
    ("set", -3, 1, 1),
    ("shutdown", -1, 0, 0),
];

/// A command with arguments of its own, so that it can wait in a queue.
#[derive(Debug)]
pub(crate) enum Command {
    Ping(Option<Bytes>),
    Echo(Bytes),
    Get(Bytes),
    Set {
        key: Bytes,
        value: Value,
    },
    Delete(Vec<Bytes>),
    Exists(Vec<Bytes>),
    Info(Vec<Bytes>),
    ConfigGet(Vec<Bytes>),
    /// The table of commands, or one of its answers that say nothing.
    Describe(Description),
    Hello,
    Select,
    Quit,
    Shutdown,
}

/// What a command does with its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access<'a> {
    /// It reads one, and can be tried without waiting.
    Read,
    /// It writes this one, and maybe others.
    Write(&'a [u8]),
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Description {
    All,
    Count,
    Nothing,
}

type Bytes = Box<[u8]>;

impl Command {
    /// The command that `request` asks for, or the error to answer.
    pub(crate) fn read(request: &Request<'_>) -> Result<Self, Reply> {
        let name = request.arg(0);
        let known = COMMANDS.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()));
        let Some(&(name, arity, ..)) = known else {
            return Err(Reply::error(format!("ERR unknown command '{}'", quote(name))));
        };
        let count = i64::try_from(request.len()).unwrap_or(i64::MAX);
        if if arity < 0 { count < -arity } else { count != arity } {
            let text = format!("ERR wrong number of arguments for '{name}' command");
            return Err(Reply::error(text));
        }
        let own = |index| Bytes::from(request.arg(index));
        let rest = |first| request.from(first).map(Bytes::from).collect::<Vec<_>>();
        Ok(match name {
            "ping" if count > 2 => return Err(Reply::error("ERR too many arguments for 'ping'")),
            "ping" => Command::Ping((count == 2).then(|| own(1))),
            "echo" => Command::Echo(own(1)),
            "get" => Command::Get(own(1)),
            // Expiry and conditions are not offered.
            "set" if count > 3 => return Err(Reply::error("ERR syntax error")),
            "set" => Command::Set { key: own(1), value: request.arg(2).into() },
            "del" => Command::Delete(rest(1)),
            "exists" => Command::Exists(rest(1)),
            "info" => Command::Info(rest(1)),
            "config" if request.arg(1).eq_ignore_ascii_case(b"get") && count > 2 => {
                Command::ConfigGet(rest(2))
            }
            "config" => return Err(Reply::error("ERR only CONFIG GET is offered")),
            "command" => Command::Describe(description(request)),
            "hello" => return hello(request),
            "select" if request.arg(1) == b"0" => Command::Select,
            "select" => return Err(Reply::error("ERR DB index is out of range")),
            "quit" => Command::Quit,
            _ => Command::Shutdown,
        })
    }

    pub(crate) fn access(&self, shared: &Shared) -> Access<'_> {
        match self {
            // Work that takes time wants a permit, and a disk may always make us wait.
            Command::Get(_) if shared.work.is_none() && shared.store.is_in_memory() => Access::Read,
            Command::Set { key, .. } => Access::Write(key),
            Command::Delete(keys) => keys.first().map_or(Access::Other, |key| Access::Write(key)),
            _ => Access::Other,
        }
    }

    /// Runs a read if nothing is in its way now; else it comes back.
    pub(crate) fn try_run(self, shared: &Shared) -> Result<Reply, Self> {
        let Command::Get(key) = self else {
            return Err(self);
        };
        match shared.store.try_get(&key) {
            Some(found) => Ok(found.map_or(Reply::Nil, Reply::Bulk)),
            None => Err(Command::Get(key)),
        }
    }

    /// Runs the command; the executor decides where and when.
    pub(crate) fn run(self, shared: &Shared) -> Reply {
        let store = &shared.store;
        let result: Result<Reply, StoreError> = match self {
            Command::Ping(None) => Ok(Reply::Simple("PONG")),
            Command::Ping(Some(message)) | Command::Echo(message) => {
                Ok(Reply::Bulk(message.into()))
            }
            Command::Get(key) => {
                shared.work.burn();
                store.get(&key).map(|found| found.map_or(Reply::Nil, Reply::Bulk))
            }
            Command::Set { key, value } => store.set(key, value).map(|()| Reply::OK),
            Command::Delete(keys) => store.delete(&keys).map(Reply::count),
            Command::Exists(keys) => store.count(&keys).map(Reply::count),
            Command::Info(sections) => Ok(Reply::bulk(info::render(shared, &sections))),
            Command::ConfigGet(patterns) => Ok(info::config(&shared.config, &patterns)),
            Command::Describe(what) => Ok(describe(what)),
            Command::Hello => Ok(welcome()),
            Command::Select | Command::Quit | Command::Shutdown => Ok(Reply::OK),
        };
        result.unwrap_or_else(|error| Reply::error(error.to_string()))
    }
}

fn hello(request: &Request<'_>) -> Result<Command, Reply> {
    match (request.len(), request.arg(1)) {
        (1, _) | (2, b"2") => Ok(Command::Hello),
        (2, _) => Err(Reply::error("NOPROTO unsupported protocol version")),
        _ => Err(Reply::error("ERR no options of HELLO are offered")),
    }
}

fn welcome() -> Reply {
    let text = |text: &str| Reply::bulk(text);
    let fields = [("server", text("redis")), ("version", text(info::VERSION))];
    let more = [("proto", Reply::Integer(2)), ("mode", text("standalone"))];
    Reply::Array(
        fields.into_iter().chain(more).flat_map(|(key, value)| [text(key), value]).collect(),
    )
}

fn description(request: &Request<'_>) -> Description {
    match request.arg(1) {
        b"" => Description::All,
        sub if sub.eq_ignore_ascii_case(b"count") => Description::Count,
        _ => Description::Nothing,
    }
}

fn describe(what: Description) -> Reply {
    let entry = |&(name, arity, first, last): &(&str, i64, i64, i64)| {
        let numbers = [first, last, i64::from(first > 0)];
        let head = [Reply::bulk(name), Reply::Integer(arity), Reply::Array(Vec::new())];
        Reply::Array(head.into_iter().chain(numbers.map(Reply::Integer)).collect())
    };
    match what {
        Description::All => Reply::Array(COMMANDS.iter().map(entry).collect()),
        Description::Count => Reply::count(COMMANDS.len()),
        Description::Nothing => Reply::Array(Vec::new()),
    }
}

/// At most 64 bytes of what a client sent, fit to stand in a line of text.
fn quote(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(64) {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{}", byte.escape_ascii());
    }
    text
}
