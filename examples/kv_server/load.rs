//! Client threads with blocking sockets: pipelines of GET and SET, every answer checked.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// Requests that are sent together, before their answers are read together.
    pub(crate) pipeline: usize,
    pub(crate) keys: u64,
    pub(crate) value_len: usize,
    pub(crate) set_percent: u64,
}

/// What they saw.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) requests: u64,
    pub(crate) elapsed: Duration,
    /// From the first byte of a pipeline sent to the last byte of its answers; sorted.
    pub(crate) latencies: Vec<Duration>,
}

impl Sample {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `fraction` of the pipelines did not exceed.
    pub(crate) fn percentile(&self, fraction: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * fraction).ceil() as usize).copied().unwrap_or_default()
    }
}

impl Load {
    /// Gives every key its value.
    pub(crate) fn fill(&self, address: SocketAddr) -> io::Result<()> {
        let mut client = Client::connect(address)?;
        for key in 0..self.keys {
            client.add_set(key, self.value_len);
            if client.sent.len() > 32 << 10 {
                client.exchange()?;
            }
        }
        client.exchange()
    }

    /// Drives `address` from one thread a connection until `duration` has passed.
    pub(crate) fn drive(&self, address: SocketAddr, duration: Duration) -> io::Result<Sample> {
        let clients = (0..self.connections)
            .map(|_| Client::connect(address))
            .collect::<io::Result<Vec<_>>>()?;
        let barrier = Barrier::new(self.connections);
        let samples = thread::scope(|scope| {
            let client = |(seed, client): (u64, Client)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    self.run(client, seed, duration)
                })
            };
            let threads = (1..).zip(clients).map(client).collect::<Vec<_>>();
            let panicked = |_| Err(io::Error::other("a client panicked"));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(panicked))
                .collect::<io::Result<Vec<_>>>()
        })?;
        let mut all = Sample::default();
        for sample in samples {
            all.requests += sample.requests;
            all.elapsed = all.elapsed.max(sample.elapsed);
            all.latencies.extend(sample.latencies);
        }
        all.latencies.sort_unstable();
        Ok(all)
    }

    fn run(&self, mut client: Client, seed: u64, duration: Duration) -> io::Result<Sample> {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut sample = Sample::default();
        let begin = Instant::now();
        while sample.elapsed < duration {
            for _ in 0..self.pipeline {
                let key = random.below(self.keys);
                if random.below(100) < self.set_percent {
                    client.add_set(key, self.value_len);
                } else {
                    client.add_get(key, self.value_len);
                }
            }
            let sent = Instant::now();
            client.exchange()?;
            sample.latencies.push(sent.elapsed());
            sample.requests += self.pipeline as u64;
            sample.elapsed = begin.elapsed();
        }
        Ok(sample)
    }
}

/// A connection with the requests to send and the answers that must come, byte for byte: every
/// key has one value, which follows from the key.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    sent: Vec<u8>,
    expected: Vec<u8>,
    received: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        // A server that loses an answer must fail the run, not hang it.
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, sent: Vec::new(), expected: Vec::new(), received: Vec::new() })
    }

    fn add_get(&mut self, key: u64, len: usize) {
        // Writing to a `Vec` cannot fail.
        let _ = write!(self.sent, "*2\r\n$3\r\nGET\r\n$12\r\nkey:{key:08}\r\n");
        let _ = write!(self.expected, "${len}\r\n{key:0len$}\r\n");
    }

    fn add_set(&mut self, key: u64, len: usize) {
        let _ = write!(self.sent, "*3\r\n$3\r\nSET\r\n$12\r\nkey:{key:08}\r\n");
        let _ = write!(self.sent, "${len}\r\n{key:0len$}\r\n");
        self.expected.extend_from_slice(b"+OK\r\n");
    }

    fn exchange(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.sent)?;
        self.received.resize(self.expected.len(), 0);
        self.stream.read_exact(&mut self.received)?;
        if self.received != self.expected {
            let text = String::from_utf8_lossy(&self.received);
            return Err(io::Error::other(format!("a wrong answer among: {text}")));
        }
        self.sent.clear();
        self.expected.clear();
        Ok(())
    }
}

/// xorshift64*: the same requests in every mode.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }
}
