//! What databases measured when they changed who runs the work, done again: each experiment has its source and the
//! figures that were published, and prints ours beside them.
//!
//! Their figures are of their machines, languages and stores. What can be compared is a ratio: the new way by the old.

mod embedded_store;
mod one_of_500;
mod reads;
mod store;

use crate::groups::Metric;
use crate::harness::cpu;
use crate::report::results::Spread;
use crate::report::tables;
use std::process::ExitCode;

const USAGE: &str = "experiments [NAME...] [--rounds N] [--quick]

  NAME      one of: one_of_500, embedded_store, embedded_store_redb, reads; default: all
  --rounds  interleaved rounds; default 5
  --quick   small sizes, to see that it runs";

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Full,
    Quick,
}

/// One of those that are compared: its name, and a run of it, with a value for each column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contender {
    name: &'static str,
    run: fn(Size) -> Vec<f64>,
}

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Experiment {
    name: &'static str,
    /// Who did it first, and what is done here.
    about: &'static str,
    columns: &'static [(&'static str, Metric)],
    contenders: &'static [Contender],
    /// The old way and the new one, in the list of contenders.
    old_new: (usize, usize),
    /// What was published for each column.
    published: &'static [&'static str],
}

const ALL: &[&Experiment] = &[
    &one_of_500::EXPERIMENT,
    &embedded_store::IN_MEMORY,
    &embedded_store::ON_DISK,
    &reads::EXPERIMENT,
];

struct Options {
    rounds: usize,
    size: Size,
    chosen: Vec<&'static Experiment>,
}

/// Does what these arguments ask for.
#[must_use]
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    match parse(args) {
        Ok(Some(options)) => {
            for experiment in &options.chosen {
                println!("{}", experiment.report(&options));
            }
            ExitCode::SUCCESS
        }
        Ok(None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("experiments: {message}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// `None`: only the usage is asked for.
fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options { rounds: 5, size: Size::Full, chosen: Vec::new() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => options.size = Size::Quick,
            "--rounds" => {
                let rounds = args.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
                options.rounds = rounds.ok_or("--rounds wants a number above 0")?;
            }
            "--help" | "-h" => return Ok(None),
            name => {
                let found = ALL.iter().find(|experiment| experiment.name == name);
                options.chosen.push(found.ok_or_else(|| format!("no experiment {name}"))?);
            }
        }
    }
    if options.chosen.is_empty() {
        options.chosen = ALL.to_vec();
    }
    Ok(Some(options))
}

impl Experiment {
    /// Interleaved: every round runs every contender, beginning with another one each time.
    fn report(&self, options: &Options) -> String {
        let count = self.contenders.len();
        let mut values = vec![Vec::new(); count];
        for round in 0..options.rounds {
            for turn in 0..count {
                let at = (round + turn) % count;
                let Contender { name, run } = self.contenders[at];
                eprint!("\r{:<90}\r{} {}/{}: {name}", "", self.name, round + 1, options.rounds);
                let sample = run(options.size);
                assert_eq!(sample.len(), self.columns.len(), "a value for each column");
                values[at].push(sample);
                cpu::wait_for_threads_to_end();
            }
        }
        eprintln!("\r{:<90}\r{}: done", "", self.name);
        let cut = if options.size == Size::Quick { " (quick: small sizes)" } else { "" };
        let rounds = options.rounds;
        let title = format!("### {}{cut}, {rounds} interleaved rounds", self.name);
        format!("{title}\n\n{}\n\n{}", self.about, self.table(&values))
    }

    fn table(&self, values: &[Vec<Vec<f64>>]) -> String {
        let cells = |first: String, cell: &dyn Fn(usize, Metric) -> String| {
            let columns = self.columns.iter().enumerate();
            let rest = columns.map(|(column, (_, metric))| cell(column, *metric));
            std::iter::once(first).chain(rest).collect::<Vec<_>>()
        };
        let (old, new) = self.old_new;
        let mut rows = vec![cells("".to_owned(), &|column, _| self.columns[column].0.to_owned())];
        for (at, contender) in self.contenders.iter().enumerate() {
            let mark = if at == new { "**" } else { "" };
            rows.push(cells(format!("{mark}{}{mark}", contender.name), &|column, metric| {
                let of_rounds = values[at].iter().map(|sample| sample[column]);
                Spread::of(of_rounds)
                    .map_or_else(String::new, |spread| tables::show(metric, spread))
            }));
        }
        let ratio = format!("{} / {}", self.contenders[new].name, self.contenders[old].name);
        rows.push(cells(ratio, &|column, _| {
            let pairs = values[new].iter().zip(&values[old]);
            let ratios = pairs.map(|(new, old)| new[column] / old[column]);
            Spread::of(ratios).map_or_else(String::new, tables::show_ratio)
        }));
        rows.push(cells("published".to_owned(), &|column, _| self.published[column].to_owned()));
        tables::align(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_whole() {
        for experiment in ALL {
            let columns = experiment.columns.len();
            assert_eq!(experiment.published.len(), columns, "{}", experiment.name);
            let (old, new) = experiment.old_new;
            assert!(old != new && old.max(new) < experiment.contenders.len());
            assert!(USAGE.contains(experiment.name));
        }
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let experiment = &one_of_500::EXPERIMENT;
        let (old, new) = experiment.old_new;
        let mut values = vec![vec![vec![1.0]; 3]; experiment.contenders.len()];
        values[old] = vec![vec![10.0], vec![20.0], vec![40.0]];
        values[new] = vec![vec![5.0], vec![5.0], vec![5.0]];
        assert!(experiment.table(&values).contains("0.25 [0.12..0.50]"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let asked = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        assert!(asked("--rounds 0").is_err() && asked("--rounds").is_err());
        assert!(asked("nothing").is_err() && asked("--help").unwrap().is_none());
        let options = asked("reads --quick --rounds 2").unwrap().unwrap();
        assert_eq!((options.rounds, options.size, options.chosen.len()), (2, Size::Quick, 1));
    }
}
