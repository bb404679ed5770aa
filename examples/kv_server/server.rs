//! A running server: its runtime, its listener and what its connections share.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::Notify,
};
use work_permit::Pool;

use super::{config::Config, connection, gate::Gate, store::Store, work::Work};

const FULL: &[u8] = b"-ERR max number of clients reached\r\n";
/// How long `stop` waits for connections, and again for the pool.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const BACK_OFF: Duration = Duration::from_millis(10);
const MAX_BACK_OFF: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) gate: Gate,
    pub(crate) store: Store,
    pub(crate) work: Work,
    pub(crate) started: Instant,
    pub(crate) counters: Counters,
    pub(crate) port: u16,
    pub(crate) stop: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connected: AtomicUsize,
    pub(crate) connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) refused_commands: AtomicU64,
    pub(crate) protocol_errors: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Server {
    runtime: Runtime,
    pool: Pool,
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Server {
    /// Opens the store and the port; on return the server answers.
    pub(crate) fn start(config: Config) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(config.threads)
            .thread_name("kv-net")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind((config.bind, config.port)))?;
        let address = listener.local_addr()?;
        let pool = Pool::new();
        let shared = Arc::new(Shared {
            gate: Gate::new(&config, &pool).map_err(io::Error::other)?,
            store: Store::open(&config).map_err(|error| io::Error::other(error.to_string()))?,
            work: Work::microseconds(config.work_us),
            started: Instant::now(),
            counters: Counters::default(),
            port: address.port(),
            stop: Notify::new(),
            config,
        });
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { runtime, pool, shared, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns when a client has sent SHUTDOWN.
    pub(crate) fn wait(&self) {
        self.runtime.block_on(self.shared.stop.notified());
    }

    /// Ends connections, then the pool, then the store: what was written is durable on return.
    pub(crate) fn stop(self) -> io::Result<()> {
        self.runtime.shutdown_timeout(STOP_TIMEOUT);
        self.pool
            .shutdown(STOP_TIMEOUT)
            .map_err(|left| io::Error::other(format!("commands are left: {left:?}")))?;
        match Arc::into_inner(self.shared) {
            Some(_) => Ok(()),
            None => Err(io::Error::other("a command still holds the store")),
        }
    }
}

/// A place among `--max-connections`.
#[derive(Debug)]
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let most = shared.config.max_connections;
        let one_more = |connected| (connected < most).then_some(connected + 1);
        shared.counters.connected.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.counters.connected.fetch_sub(1, Relaxed);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut pause = BACK_OFF;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                pause = BACK_OFF;
                welcome(stream, &shared);
            }
            // Mostly "too many open files": it passes when connections end, and never at once.
            Err(error) => {
                eprintln!("accept: {error}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_BACK_OFF);
            }
        }
    }
}

fn welcome(stream: TcpStream, shared: &Arc<Shared>) {
    shared.counters.connections.fetch_add(1, Relaxed);
    let Some(place) = Place::take(shared) else {
        shared.counters.refused_connections.fetch_add(1, Relaxed);
        // A fresh socket has room for one line; whoever cannot take it is not waited for.
        let _ = stream.try_write(FULL);
        return;
    };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let _place = place;
        // An error here is the network's: the client is gone, there is nobody to tell.
        let _ = connection::serve(stream, &shared).await;
    });
}
