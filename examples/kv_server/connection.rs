//! One connection: reads requests, runs each through the gate, answers in order.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    command::Command,
    reply::Reply,
    resp::{Event, Parser},
    server::Shared,
};

/// Answers are sent when so much has gathered, or when no complete request is left.
const FLUSH_AT: usize = 64 << 10;
/// After an error the rest of the input is read for so long, or so far, before the close.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;

/// What to do after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Close,
    StopServer,
}

/// Serves `stream` until the client leaves, breaks the protocol or sends QUIT.
///
/// The commands of a pipeline run one after the other, in every mode: submitted together they
/// could start in any order, and a GET might not see the SET before it.
pub(crate) async fn serve(mut stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut parser = Parser::new(shared.config.limits());
    let mut out = Vec::new();
    loop {
        let next = answer_all(&mut parser, &mut out, &mut stream, shared).await?;
        stream.write_all(&out).await?;
        out.clear();
        out.shrink_to(FLUSH_AT);
        match next {
            Next::GoOn => {}
            Next::Close => return linger(stream).await,
            Next::StopServer => {
                shared.stop.notify_one();
                return linger(stream).await;
            }
        }
        if stream.read_buf(parser.room()).await? == 0 {
            return Ok(());
        }
    }
}

/// Answers every complete request; what is left in `out` is still to be sent.
async fn answer_all(
    parser: &mut Parser,
    out: &mut Vec<u8>,
    stream: &mut TcpStream,
    shared: &Arc<Shared>,
) -> io::Result<Next> {
    let mut count = 0;
    let next = loop {
        let (command, next) = match parser.next() {
            Ok(None) => break Next::GoOn,
            Ok(Some(Event::Request(request))) => match Command::read(&request) {
                Ok(command) => {
                    let next = after(&command);
                    (Ok(command), next)
                }
                Err(reply) => (Err(reply), Next::GoOn),
            },
            Ok(Some(Event::TooLarge)) => {
                (Err(Reply::error("ERR the request is too large")), Next::GoOn)
            }
            Err(error) => {
                shared.counters.protocol_errors.fetch_add(1, Relaxed);
                (Err(Reply::error(format!("ERR Protocol error: {}", error.0))), Next::Close)
            }
        };
        let reply = match command {
            Ok(command) => run(command, shared).await,
            Err(reply) => reply,
        };
        count += 1;
        reply.encode(out);
        if next != Next::GoOn {
            break next;
        }
        if out.len() >= FLUSH_AT {
            stream.write_all(out).await?;
            out.clear();
        }
    };
    shared.counters.commands.fetch_add(count, Relaxed);
    Ok(next)
}

fn after(command: &Command) -> Next {
    match command {
        Command::Quit => Next::Close,
        Command::Shutdown => Next::StopServer,
        _ => Next::GoOn,
    }
}

async fn run(command: Command, shared: &Arc<Shared>) -> Reply {
    shared.gate.run(command, shared).await.unwrap_or_else(|refusal| {
        shared.counters.refused_commands.fetch_add(1, Relaxed);
        Reply::error(refusal.to_string())
    })
}

/// Closes so that the client gets the last answer: a close on unread input would reset the
/// connection and take the answer with it.
async fn linger(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut waste = vec![0; 16 << 10];
    let drain = async {
        let mut total = 0;
        while total < LINGER_BYTES {
            match stream.read(&mut waste).await {
                Ok(0) | Err(_) => return,
                Ok(count) => total += count,
            }
        }
    };
    // Either way the stream is closed on return.
    let _ = tokio::time::timeout(LINGER, drain).await;
    Ok(())
}
