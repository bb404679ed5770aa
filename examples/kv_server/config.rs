//! The command line.

use std::{net::IpAddr, path::PathBuf, str::FromStr, time::Duration};

use super::{gate::Mode, resp::Limits};

pub(crate) const USAGE: &str = "\
A key-value server that speaks RESP2; redis-cli and redis-benchmark work on it.

    kv_server [OPTIONS]

    --mode MODE            inline, queue, semaphore or direct           [inline]
    --limit N              commands that may run at once                [8]
    --queue-capacity N     commands that may wait in the executor       [65536]
    --threads N            threads of the network runtime               [2]
    --bind ADDRESS         address to listen on                         [127.0.0.1]
    --port N               0: any free port                             [6379]
    --data DIR             keep the values in an engine on disk
    --work-us N            microseconds of CPU work added to a GET      [0]
    --max-value BYTES      longest key or value                         [524288]
    --max-memory BYTES     bound on the values in memory, or on the
                           cache of the engine on disk                  [268435456]
    --max-connections N    connections at once                          [512]
    --demo                 compare the four modes over real sockets, and end
    --seconds S            of the demo, for each mode                   [3]
    --help                 this text
";

/// Arguments of one request: enough for any DEL a client sends, little enough to hold.
const MAX_ARGS: usize = 1024;
/// What a request may need beside one longest value: its name, a key, the framing.
const REQUEST_ROOM: usize = 64 << 10;
const MAX_INLINE: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) mode: Mode,
    pub(crate) limit: usize,
    pub(crate) queue_capacity: usize,
    pub(crate) threads: usize,
    pub(crate) bind: IpAddr,
    pub(crate) port: u16,
    pub(crate) data: Option<PathBuf>,
    pub(crate) work_us: u64,
    pub(crate) max_value: usize,
    pub(crate) max_memory: usize,
    pub(crate) max_connections: usize,
    pub(crate) demo: bool,
    /// How long the demo measures each mode, all rounds together.
    pub(crate) seconds: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Inline,
            limit: 8,
            queue_capacity: 65_536,
            threads: 2,
            bind: IpAddr::from([127, 0, 0, 1]),
            port: 6379,
            data: None,
            work_us: 0,
            max_value: 512 << 10,
            max_memory: 256 << 20,
            max_connections: 512,
            demo: false,
            seconds: Duration::from_secs(3),
        }
    }
}

impl Config {
    /// `None` when the usage text was asked for.
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Self>, String> {
        let mut config = Self::default();
        let mut args = args.into_iter();
        while let Some(option) = args.next() {
            match &*option {
                "--help" | "-h" => return Ok(None),
                "--demo" => config.demo = true,
                _ => {
                    let value = args.next().ok_or_else(|| format!("{option}: needs a value"))?;
                    config.set(&option, &value)?;
                }
            }
        }
        Ok(Some(config))
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--mode" => {
                self.mode = value.parse().map_err(|()| format!("--mode: no mode {value:?}"))?;
            }
            "--limit" => self.limit = number(option, value, 1, usize::MAX)?,
            "--queue-capacity" => self.queue_capacity = number(option, value, 0, usize::MAX)?,
            "--threads" => self.threads = number(option, value, 1, 1024)?,
            "--bind" => self.bind = value.parse().map_err(|e| format!("--bind: {e}"))?,
            "--port" => self.port = number(option, value, 0, u16::MAX)?,
            "--data" => self.data = Some(value.into()),
            "--work-us" => self.work_us = number(option, value, 0, 1_000_000)?,
            "--max-value" => self.max_value = number(option, value, 1, 256 << 20)?,
            "--max-memory" => self.max_memory = number(option, value, 0, usize::MAX)?,
            "--max-connections" => self.max_connections = number(option, value, 1, 1 << 20)?,
            "--seconds" => {
                let seconds: f64 = number(option, value, 0.01, 60.0)?;
                self.seconds = Duration::from_secs_f64(seconds);
            }
            _ => return Err(format!("{option}: no such option; --help lists them")),
        }
        Ok(())
    }

    /// What a connection may send.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            bulk: self.max_value,
            args: MAX_ARGS,
            request: self.max_value + REQUEST_ROOM,
            line: MAX_INLINE,
        }
    }
}

fn number<T>(option: &str, text: &str, least: T, most: T) -> Result<T, String>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    match text.parse() {
        Ok(number) if least <= number && number <= most => Ok(number),
        _ => Err(format!("{option}: {text:?} is not a number from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    fn parse(options: &str) -> Result<Option<Config>, String> {
        Config::parse(options.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_that_make_no_sense_are_refused_by_name() {
        for (options, name) in [
            ("--limit 0", "--limit"),
            ("--limit", "--limit"),
            ("--mode fast", "--mode"),
            ("--demo --port 70000", "--port"),
            ("--seconds NaN", "--seconds"),
            ("--nope 1", "--nope"),
        ] {
            let error = parse(options).expect_err(options);
            assert!(error.starts_with(name), "{error}");
        }
        assert!(matches!(parse("--help"), Ok(None)));
        assert!(matches!(parse("--limit 3"), Ok(Some(Config { limit: 3, .. }))));
    }
}
