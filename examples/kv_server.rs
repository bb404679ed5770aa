//! A key-value server that speaks RESP2, every command run through an executor.
//!
//! ```text
//! cargo run --release --example kv_server -- --demo          # compare the modes, no tools needed
//! cargo run --release --example kv_server -- --mode inline   # serve redis-cli, redis-benchmark
//! ```
//!
//! The modes differ in one place, `gate.rs`; all else is a small server with bounds on everything
//! a client can send. One connection may hold about `2 * (max-value + 80 KiB)` of input and 64 KiB
//! and one value of output.
//!
//! Where to look: `gate` runs a command in one of four ways, `connection` is the loop around it,
//! `resp` reads requests, `command` carries them out, `store` and `disk` keep the values, `demo`
//! and `load` measure.
#![forbid(unsafe_code)]

#[path = "kv_server/command.rs"]
mod command;
#[path = "kv_server/config.rs"]
pub(crate) mod config;
#[path = "kv_server/connection.rs"]
mod connection;
#[path = "kv_server/demo.rs"]
mod demo;
#[path = "kv_server/disk.rs"]
mod disk;
#[path = "kv_server/gate.rs"]
pub(crate) mod gate;
#[path = "kv_server/info.rs"]
mod info;
#[path = "kv_server/load.rs"]
mod load;
#[path = "kv_server/reply.rs"]
mod reply;
#[path = "kv_server/resp.rs"]
mod resp;
#[cfg(test)]
#[path = "kv_server/resp_tests.rs"]
mod resp_tests;
#[path = "kv_server/server.rs"]
pub(crate) mod server;
#[path = "kv_server/store.rs"]
mod store;
#[path = "kv_server/words.rs"]
mod words;
#[path = "kv_server/work.rs"]
mod work;

use std::{io, process::ExitCode};

use config::Config;
use server::Server;

fn main() -> ExitCode {
    let config = match Config::parse(std::env::args().skip(1)) {
        Ok(Some(config)) => config,
        Ok(None) => {
            print!("{}", config::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let result = if config.demo { demo::run(&config, &mut io::stdout()) } else { serve(config) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kv_server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: Config) -> io::Result<()> {
    let mode = config.mode.name();
    let server = Server::start(config)?;
    println!("{mode}: listening on {}; SHUTDOWN ends it", server.address());
    server.wait();
    server.stop()
}
