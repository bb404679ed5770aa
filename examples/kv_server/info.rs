//! The texts of INFO and CONFIG GET.

use std::{fmt::Display, process, sync::atomic::Ordering::Relaxed};

use work_permit::Stats;

use super::{config::Config, gate::Gate, reply::Reply, server::Shared};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

type Bytes = Box<[u8]>;
type Section = fn(&Shared, &mut Text);

/// Lines of `key:value` under `# Section` heads.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn head(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        self.0.push_str(&format!("# {title}\r\n"));
    }

    fn line(&mut self, key: &str, value: impl Display) {
        self.0.push_str(&format!("{key}:{value}\r\n"));
    }
}

/// The sections that are asked for, all of them when none is.
pub(crate) fn render(shared: &Shared, asked: &[Bytes]) -> String {
    const ALL: [&[u8]; 3] = [b"all", b"default", b"everything"];
    let wanted = |title: &str| {
        let matches = |name: &Bytes| {
            name.eq_ignore_ascii_case(title.as_bytes())
                || ALL.iter().any(|all| name.eq_ignore_ascii_case(all))
        };
        asked.is_empty() || asked.iter().any(matches)
    };
    let sections: [(&str, Section); 6] = [
        ("Server", server),
        ("Clients", clients),
        ("Memory", memory),
        ("Stats", stats),
        ("Executor", executor),
        ("Keyspace", keyspace),
    ];
    let mut text = Text::default();
    for (title, write) in sections {
        if wanted(title) {
            text.head(title);
            write(shared, &mut text);
        }
    }
    text.0
}

fn server(shared: &Shared, text: &mut Text) {
    text.line("redis_version", VERSION);
    text.line("server_name", "work-permit kv_server");
    text.line("process_id", process::id());
    text.line("tcp_port", shared.port);
    text.line("uptime_in_seconds", shared.started.elapsed().as_secs());
    text.line("io_threads", shared.config.threads);
    text.line("storage_engine", shared.store.engine());
    text.line("work_us", shared.config.work_us);
}

fn clients(shared: &Shared, text: &mut Text) {
    text.line("connected_clients", shared.counters.connected.load(Relaxed));
    text.line("maxclients", shared.config.max_connections);
}

fn memory(shared: &Shared, text: &mut Text) {
    text.line("used_memory_dataset", shared.store.used_memory());
    text.line("maxmemory", shared.config.max_memory);
    text.line("maxmemory_policy", "noeviction");
}

fn stats(shared: &Shared, text: &mut Text) {
    let counters = &shared.counters;
    text.line("total_connections_received", counters.connections.load(Relaxed));
    text.line("rejected_connections", counters.refused_connections.load(Relaxed));
    text.line("total_commands_processed", counters.commands.load(Relaxed));
    text.line("rejected_commands", counters.refused_commands.load(Relaxed));
    text.line("protocol_errors", counters.protocol_errors.load(Relaxed));
}

fn executor(shared: &Shared, text: &mut Text) {
    text.line("mode", shared.config.mode.name());
    match &shared.gate {
        Gate::Inline(inline) => {
            text.line("name", inline.executor().name());
            counters(&inline.executor().stats(), text);
            let (ran_inline, ran_queued) = inline.writes();
            text.line("writes_ran_inline", ran_inline);
            text.line("writes_ran_queued", ran_queued);
        }
        Gate::Queue(executor) => {
            text.line("name", executor.name());
            counters(&executor.stats(), text);
        }
        Gate::Semaphore(semaphore) => {
            text.line("limit", shared.config.limit);
            text.line("free", semaphore.available_permits());
        }
        Gate::Direct => text.line("limit", "none"),
    }
}

fn counters(stats: &Stats, text: &mut Text) {
    for (key, value) in [
        ("limit", stats.limit),
        ("active", stats.active),
        ("active_inline", stats.inline),
        ("active_on_workers", stats.on_workers),
        ("active_guards", stats.guards),
        ("active_below", stats.below),
        ("free", stats.free),
        ("queued", stats.queued),
        ("waiting", stats.waiting),
    ] {
        text.line(key, value);
    }
    for (key, value) in [
        ("accepted", stats.accepted),
        ("completed", stats.completed),
        ("ran_inline", stats.ran_inline),
        ("ran_queued", stats.ran_queued),
        ("speculated", stats.speculated),
        ("overtakes", stats.overtakes),
        ("panicked", stats.panicked),
        ("cancelled", stats.cancelled),
        ("expired", stats.expired),
        ("unrun", stats.unrun),
        ("queued_no_permit", stats.no_permit),
        ("queued_not_fit", stats.not_fit),
        ("queued_too_deep", stats.too_deep),
        ("queued_asked", stats.asked),
        ("queued_would_block", stats.would_block),
        ("refused", stats.refused.total()),
        ("refused_saturated", stats.refused.saturated),
        ("refused_queue_full", stats.refused.queue_full),
        ("refused_closed", stats.refused.closed),
        ("refused_timed_out", stats.refused.timed_out),
        ("refused_not_fit", stats.refused.not_fit),
        ("refused_deadlock", stats.refused.deadlock),
        ("refused_no_thread", stats.refused.no_thread),
        ("refused_too_many", stats.refused.too_many),
    ] {
        text.line(key, value);
    }
}

fn keyspace(shared: &Shared, text: &mut Text) {
    match shared.store.keys() {
        Ok(0) => {}
        Ok(keys) => text.line("db0", format_args!("keys={keys},expires=0,avg_ttl=0")),
        Err(error) => text.line("db0_error", error),
    }
}

/// The settings whose names match one of `patterns`, as names and values in turn.
pub(crate) fn config(config: &Config, patterns: &[Bytes]) -> Reply {
    let settings = [
        ("appendonly", if config.data.is_some() { "yes" } else { "no" }.to_owned()),
        ("databases", "1".to_owned()),
        ("executor-limit", config.limit.to_string()),
        ("executor-mode", config.mode.name().to_owned()),
        ("io-threads", config.threads.to_string()),
        ("maxclients", config.max_connections.to_string()),
        ("maxmemory", config.max_memory.to_string()),
        ("proto-max-bulk-len", config.max_value.to_string()),
        ("save", String::new()),
    ];
    let asked = |name: &str| {
        patterns.iter().any(|pattern| glob(&pattern.to_ascii_lowercase(), name.as_bytes()))
    };
    let found = settings.into_iter().filter(|(name, _)| asked(name));
    Reply::Array(found.flat_map(|(name, value)| [Reply::bulk(name), Reply::bulk(value)]).collect())
}

/// `*` stands for anything, `?` for one byte. Goes back to the last `*` only, so it never takes
/// more than the product of the two lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}
