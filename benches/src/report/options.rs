//! The command line.

use crate::groups;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
report [--rounds N] [--only GROUP[,GROUP]] [--quick] [--markdown] [--out DIR] [--list]

  --rounds N     interleaved rounds, 5 or more (default 5); each figure is a median over rounds
  --only GROUP   these groups only
  --quick        fewer settings, shorter measurements: a first impression
  --markdown     print what the README has: date, commit, machine, the table of ratios, latencies
  --out DIR      where plots and samples.csv go (default target/bench-report)
  --list         print the groups and what they ask; the last is measured only when asked for";

/// What to measure and where to put it.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) only: Vec<&'static str>,
    pub(crate) quick: bool,
    pub(crate) markdown: bool,
    pub(crate) out: PathBuf,
}

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// To print this.
    Text(String),
    Report(Options),
}

pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut options = Options {
        rounds: 5,
        only: Vec::new(),
        quick: false,
        markdown: false,
        out: PathBuf::from("target/bench-report"),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => options.rounds = rounds(&value(&arg, &mut args)?)?,
            "--only" => {
                for name in value(&arg, &mut args)?.split(',') {
                    options.only.push(group(name)?);
                }
            }
            "--quick" => options.quick = true,
            "--markdown" => options.markdown = true,
            "--out" => options.out = PathBuf::from(value(&arg, &mut args)?),
            "--list" => return Ok(Wanted::Text(list())),
            "--help" | "-h" => return Ok(Wanted::Text(USAGE.to_owned())),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(Wanted::Report(options))
}

fn value(name: &str, args: &mut impl Iterator<Item = String>) -> Result<String, String> {
    args.next().ok_or_else(|| format!("{name} wants a value"))
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds) if rounds >= 5 => Ok(rounds),
        _ => Err(format!("--rounds {text}: a number of 5 or more, or the median says little")),
    }
}

fn group(name: &str) -> Result<&'static str, String> {
    let found = groups::named(name).map(|group| group.name);
    found.ok_or_else(|| format!("no group {name}; there are\n{}", list()))
}

fn list() -> String {
    let line = |group: &&groups::Group| format!("  {:<24} {}\n", group.name, group.question);
    groups::ALL.iter().chain(groups::ASKED_FOR).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(line: &str) -> Result<Wanted, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_full_line_is_understood() {
        let line = "--rounds 7 --only inline_free,choose --quick --markdown --out plots";
        let Ok(Wanted::Report(options)) = parse_all(line) else { panic!("refused") };
        assert_eq!((options.rounds, options.quick, options.markdown), (7, true, true));
        assert_eq!(options.only, ["inline_free", "choose"]);
        assert_eq!(options.out, PathBuf::from("plots"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (line, word) in [
            ("--rounds 4", "--rounds 4"),
            ("--rounds", "--rounds"),
            ("--only nothing", "nothing"),
            ("--fast", "--fast"),
        ] {
            let message = parse_all(line).unwrap_err();
            assert!(message.contains(word), "{line}: {message}");
        }
    }

    #[test]
    fn the_list_has_every_group_once() {
        let Ok(Wanted::Text(list)) = parse_all("--list") else { panic!("refused") };
        assert_eq!(list.lines().count(), groups::ALL.len() + groups::ASKED_FOR.len());
    }
}
