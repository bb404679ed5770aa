//! The demonstration: one server a mode in this process, the same clients against each in turn,
//! round after round, and one table. Clients and servers share the machine's processors.

use std::{
    io::{self, Write},
    thread,
    time::Duration,
};

use super::{
    config::Config,
    gate::Mode,
    load::{Load, Sample},
    server::Server,
};

/// Rounds are interleaved, so that a slow moment of the machine meets every mode alike.
const ROUNDS: u32 = 5;
const LOAD: Load =
    Load { connections: 8, pipeline: 16, keys: 10_000, value_len: 64, set_percent: 10 };
/// The mode that the others are compared with; the first of `Mode::ALL`.
const BASE: usize = 0;

/// One mode: its server, and what each round gave.
#[derive(Debug)]
struct Contender {
    mode: Mode,
    server: Server,
    rounds: Vec<Round>,
}

#[derive(Debug)]
struct Round {
    sample: Sample,
    /// Of the commands that the executor ran; the modes without one cannot say.
    inline: Option<f64>,
}

impl Contender {
    fn start(mode: Mode, config: &Config) -> io::Result<Self> {
        let data = config.data.as_ref().map(|directory| directory.join(mode.name()));
        let server = Server::start(Config { mode, data, port: 0, ..config.clone() })?;
        LOAD.fill(server.address())?;
        Ok(Self { mode, server, rounds: Vec::new() })
    }

    fn drive(&self, duration: Duration) -> io::Result<Round> {
        let ran = || self.server.shared().gate.ran();
        let before = ran();
        let sample = LOAD.drive(self.server.address(), duration)?;
        let inline = before.zip(ran()).map(|(before, after)| {
            let (inline, queued) = (after.0 - before.0, after.1 - before.1);
            inline as f64 / (inline + queued).max(1) as f64
        });
        Ok(Round { sample, inline })
    }
}

/// Runs the demonstration and prints its table to `out`.
pub(crate) fn run(config: &Config, out: &mut impl Write) -> io::Result<()> {
    let mut contenders = Mode::ALL
        .into_iter()
        .map(|mode| Contender::start(mode, config))
        .collect::<io::Result<Vec<_>>>()?;
    let slice = config.seconds / ROUNDS;
    for contender in &contenders {
        contender.drive(slice / 4)?;
    }
    for round in 0..ROUNDS as usize {
        for turn in 0..contenders.len() {
            // Who goes first changes from round to round.
            let index = (round + turn) % contenders.len();
            let result = contenders[index].drive(slice)?;
            contenders[index].rounds.push(result);
        }
    }
    header(config, slice, out)?;
    table(&contenders, out)?;
    contenders.into_iter().try_for_each(|contender| contender.server.stop())
}

fn header(config: &Config, slice: Duration, out: &mut impl Write) -> io::Result<()> {
    let processors = thread::available_parallelism().map_or(0, usize::from);
    writeln!(
        out,
        "{} connections x pipeline {}, {} % GET of {} keys, {} byte values ({}); GET work {} us",
        LOAD.connections,
        LOAD.pipeline,
        100 - LOAD.set_percent,
        LOAD.keys,
        LOAD.value_len,
        if config.data.is_some() { "on disk" } else { "in memory" },
        config.work_us,
    )?;
    writeln!(
        out,
        "limit {}, {} network threads, {processors} processors shared with the clients",
        config.limit, config.threads
    )?;
    writeln!(
        out,
        "median of {ROUNDS} interleaved rounds of {} ms [lowest..highest]; p50, p95 and p99 are of \
         a whole pipeline",
        slice.as_millis()
    )
}

fn table(contenders: &[Contender], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:<10} {:>24} {:>9} {:>9} {:>9} {:>8}  {:>20}",
        "mode",
        "thousand ops/s",
        "p50 us",
        "p95 us",
        "p99 us",
        "inline",
        format!("against {}", contenders[BASE].mode.name()),
    )?;
    for contender in contenders {
        let rounds = &contender.rounds;
        let rate = |round: &Round| round.sample.per_second() / 1000.0;
        let latency = |fraction| {
            let micros = |round: &Round| round.sample.percentile(fraction).as_secs_f64() * 1e6;
            format!("{:.0}", Spread::of(rounds.iter().map(micros)).median)
        };
        let inline = rounds.iter().map(|round| round.inline).collect::<Option<Vec<_>>>();
        let share = |shares: Vec<f64>| format!("{:.1} %", Spread::of(shares).median * 100.0);
        // Round by round: what disturbed a round disturbed both of its sides.
        let base = contenders[BASE].rounds.iter().map(rate);
        let ratios = Spread::of(rounds.iter().map(rate).zip(base).map(|(rate, base)| rate / base));
        writeln!(
            out,
            "{:<10} {:>24} {:>9} {:>9} {:>9} {:>8}  {:>20}",
            contender.mode.name(),
            Spread::of(rounds.iter().map(rate)).show(1),
            latency(0.50),
            latency(0.95),
            latency(0.99),
            inline.map_or_else(|| "-".to_owned(), share),
            ratios.show(2),
        )?;
    }
    Ok(())
}

/// The median of some figures, and how far they lie apart.
#[derive(Clone, Copy, Debug)]
struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted = figures.into_iter().collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Self {
            lowest: at(0),
            median: at(sorted.len() / 2),
            highest: at(sorted.len().saturating_sub(1)),
        }
    }

    fn show(&self, digits: usize) -> String {
        let Self { lowest, median, highest } = self;
        format!("{median:.digits$} [{lowest:.digits$}..{highest:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_of_figures_for_each_mode() -> io::Result<()> {
        let seconds = Duration::from_millis(100);
        let mut out = Vec::new();
        run(&Config { seconds, work_us: 1, ..Config::default() }, &mut out)?;
        let text = String::from_utf8_lossy(&out);
        for mode in Mode::ALL {
            let row = text.lines().find(|line| line.split(' ').next() == Some(mode.name()));
            assert!(row.is_some_and(|row| row.contains('[') && !row.contains("NaN")), "{text}");
        }
        Ok(())
    }
}
