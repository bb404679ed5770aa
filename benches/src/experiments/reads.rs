//! Cassandra's: reads on the thread of their request, or handed to the read stage.
//!
//! Three replicas in this process, each with a socket, a thread for each connection (the request threads) and a stage
//! for reads. Clients in closed loops ask two of the three for a row and compare the digests, as a quorum read does.
//!
//! Compared: request threads that run the read themselves under a permit of the stage, and request threads that hand it
//! to a thread of the stage; the latter also with a channel in place of the stage, and reads without any limit. Not
//! compared: disks, garbage collection, machines apart.

use super::{Contender, Experiment, Size};
use crate::adapter::Job;
use crate::groups::Metric;
use crate::harness::percentiles::Latencies;
use crate::harness::work::Work;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use work_permit::{Executor, Operations, Pool, fitness};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "reads",
    about: "Apache Cassandra: reads on the request thread (`maybeExecuteImmediately`) against reads handed to the read \
            stage. Here: three replicas in one process over loopback sockets, 8 clients, two replicas a read, rows of \
            1 KiB, about 20 µs of work a read, 32 permits a stage.",
    columns: &[
        ("reads", Metric::PerSecond),
        ("avg", Metric::Mean),
        ("p95", Metric::P95),
        ("p99", Metric::P99),
        ("p99.9", Metric::P999),
    ],
    contenders: &[
        Contender { name: "handed to the stage", run: |size| cluster(size, || stage(false)) },
        Contender { name: "on the request thread", run: |size| cluster(size, || stage(true)) },
        Contender { name: "handed over a channel", run: |size| cluster(size, channel) },
        Contender { name: "no limit", run: |size| cluster(size, || How::NoLimit) },
    ],
    old_new: (0, 1),
    published: &["about +10 %", "about -20 %", "about -20 %", "about -20 %", "-5 to -10 %"],
};

const REPLICAS: usize = 3;
const CLIENTS: usize = 8;
const ROWS: u64 = 10_000;
const ROW: usize = 1024;
/// Cassandra's default of `concurrent_reads`.
const LIMIT: usize = 32;
const WORK: Duration = Duration::from_micros(20);

const READ: Operations = Operations::only(0).unwrap();

/// How a replica comes from a request to its row.
#[derive(Clone)]
enum How {
    /// By `dispatch`; `fit`: request threads may read.
    Stage {
        reads: Executor,
        fit: bool,
    },
    /// By threads that receive from a channel.
    Channel(crossbeam_channel::Sender<Job>),
    NoLimit,
}

fn stage(fit: bool) -> How {
    let builder = Pool::new().executor("reads").limit(LIMIT).requires(READ);
    How::Stage { reads: builder.build().expect("the settings make sense"), fit }
}

/// As many threads as the stage has permits would only be more switches: as many as there are cores, twice.
fn channel() -> How {
    let (jobs, inbox) = crossbeam_channel::unbounded::<Job>();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for _ in 0..LIMIT.min(2 * cores) {
        let inbox = inbox.clone();
        thread::spawn(move || inbox.iter().for_each(|job| job()));
    }
    How::Channel(jobs)
}

/// A row and the digest of it.
type Answer = [u8; ROW + 8];

/// What a replica stores, and how it reads.
struct Replica {
    rows: Vec<[u8; ROW]>,
    work: Work,
    how: How,
}

impl Replica {
    fn new(how: How) -> Arc<Self> {
        let row = |key: u64| std::array::from_fn(|at| key.wrapping_mul(at as u64 + 1) as u8);
        Arc::new(Self { rows: (0..ROWS).map(row).collect(), work: Work::lasting(WORK), how })
    }

    fn read(&self, key: u64) -> Answer {
        self.work.run();
        let row = &self.rows[(key % ROWS) as usize];
        let mut answer = [0; ROW + 8];
        answer[..ROW].copy_from_slice(row);
        answer[ROW..].copy_from_slice(&digest(row).to_le_bytes());
        answer
    }

    fn answer(self: &Arc<Self>, key: u64) -> Answer {
        let me = Arc::clone(self);
        match &self.how {
            How::Stage { reads, .. } => {
                let read = reads.dispatch(move || me.read(key)).expect("the queue has room");
                read.join().expect("a read does not panic")
            }
            How::Channel(jobs) => {
                let (answer, wait) = crossbeam_channel::bounded(1);
                let job = move || answer.send(me.read(key)).expect("the request waits");
                jobs.send(Box::new(job)).expect("the threads live");
                wait.recv().expect("a read does not panic")
            }
            How::NoLimit => me.read(key),
        }
    }

    /// Serves one connection until its client hangs up: the request thread.
    fn serve(self: &Arc<Self>, mut connection: TcpStream) -> io::Result<()> {
        let may_read = matches!(self.how, How::Stage { fit: true, .. });
        let _fit = may_read.then(|| fitness::allow(READ));
        let mut key = [0; 8];
        while read_whole(&mut connection, &mut key)? {
            connection.write_all(&self.answer(u64::from_le_bytes(key)))?;
        }
        Ok(())
    }
}

/// FNV-1a.
fn digest(row: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    row.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// `false`: the other side has hung up between two messages.
fn read_whole(connection: &mut TcpStream, into: &mut [u8]) -> io::Result<bool> {
    match connection.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Listens, and serves as many connections as there are clients, each on a thread of its own.
fn start(replica: Arc<Replica>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for connection in listener.incoming().take(CLIENTS) {
            let (connection, replica) = (connection.expect("loopback works"), Arc::clone(&replica));
            connection.set_nodelay(true).expect("TCP has it");
            thread::spawn(move || replica.serve(connection).expect("loopback works"));
        }
    });
    Ok(address)
}

/// A client with a connection to each replica.
struct Client(Vec<TcpStream>);

impl Client {
    fn connect(replicas: &[SocketAddr]) -> io::Result<Self> {
        let connect = |address: &SocketAddr| {
            let connection = TcpStream::connect(address)?;
            connection.set_nodelay(true)?;
            Ok(connection)
        };
        Ok(Self(replicas.iter().map(connect).collect::<io::Result<_>>()?))
    }

    /// A quorum read: two of the replicas, at the same time.
    fn read(&mut self, number: u64) -> io::Result<()> {
        let first = number as usize % REPLICAS;
        let both = [first, (first + 1) % REPLICAS];
        for replica in both {
            self.0[replica].write_all(&number.to_le_bytes())?;
        }
        let mut answers = [[0; ROW + 8]; 2];
        for (replica, answer) in both.into_iter().zip(&mut answers) {
            assert!(read_whole(&mut self.0[replica], answer)?, "the replica answers");
        }
        assert_eq!(answers[0][ROW..], answers[1][ROW..], "the digests are the same");
        Ok(())
    }
}

/// Three replicas of one kind under load.
fn cluster(size: Size, how: fn() -> How) -> Vec<f64> {
    let (warm_up, window) = match size {
        Size::Full => (Duration::from_millis(500), Duration::from_secs(3)),
        Size::Quick => (Duration::from_millis(5), Duration::from_millis(60)),
    };
    let replicas: Vec<SocketAddr> =
        (0..REPLICAS).map(|_| start(Replica::new(how())).expect("loopback has a port")).collect();
    let (measure, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let all_here = Barrier::new(CLIENTS + 1);
    let (latencies, elapsed) = thread::scope(|s| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (replicas, measure, stop, all_here) = (&replicas, &measure, &stop, &all_here);
                s.spawn(move || {
                    let client = Client::connect(replicas).expect("loopback works");
                    all_here.wait();
                    ask(client, number as u64, measure, stop)
                })
            })
            .collect();
        all_here.wait();
        // sleep: the clients are at work meanwhile.
        thread::sleep(warm_up);
        measure.store(true, Relaxed);
        let began = Instant::now();
        // sleep: as above.
        thread::sleep(window);
        stop.store(true, Relaxed);
        let elapsed = began.elapsed();
        let mut all = Latencies::new();
        for client in clients {
            all.add(&client.join().expect("every answer is right"));
        }
        (all, elapsed)
    });
    let rate = latencies.count() as f64 / elapsed.as_secs_f64();
    let at = |quantile| latencies.at(quantile);
    vec![rate, latencies.mean(), at(0.95), at(0.99), at(0.999)]
}

/// One client, in a closed loop.
fn ask(mut client: Client, first: u64, measure: &AtomicBool, stop: &AtomicBool) -> Latencies {
    let mut latencies = Latencies::new();
    let numbers = (first..).step_by(CLIENTS);
    for number in numbers.take_while(|_| !stop.load(Relaxed)) {
        let began = Instant::now();
        client.read(number).expect("loopback works");
        if measure.load(Relaxed) {
            latencies.record(began.elapsed());
        }
    }
    latencies
}
