//! The report: all groups in interleaved rounds, one table of ratios, latencies, plots.

mod markdown;
mod options;
mod plot;
pub(crate) mod results;
pub(crate) mod tables;

use crate::groups::{self, Effort, Group, Subject};
use crate::harness::cpu;
use options::{Options, Wanted};
use results::Results;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Does what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)) {
        Ok(Wanted::Text(text)) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Wanted::Report(options)) => match report(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("{}: {error}", options.out.display())),
        },
        Err(message) => fail(&format!("{message}\n\n{}", options::USAGE)),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("report: {message}");
    ExitCode::FAILURE
}

fn report(options: &Options) -> io::Result<()> {
    let meanwhile = Meanwhile::begin();
    let groups: Vec<&'static Group> = match options.only.as_slice() {
        [] => groups::ALL.to_vec(),
        names => names.iter().filter_map(|name| groups::named(name)).collect(),
    };
    let results: Vec<Results> = groups.iter().map(|group| measure(group, options)).collect();
    let meanwhile = meanwhile.end();
    if options.markdown {
        print!("{}", markdown::header(options, &meanwhile));
    }
    println!("{}", tables::ratios(&results));
    println!("{}", tables::latencies(&results, options.markdown));
    if !options.markdown {
        println!("{}", tables::everything(&results));
    }
    write_files(&results, options)?;
    eprintln!("{meanwhile}; plots and samples.csv are in {}", options.out.display());
    Ok(())
}

/// How long it took, and how much other processes took of the machine: what a range can be due to.
struct Meanwhile {
    began: Instant,
    own: Duration,
    machine: Option<Duration>,
}

impl Meanwhile {
    fn begin() -> Self {
        Self { began: Instant::now(), own: cpu::usage().cpu, machine: cpu::machine() }
    }

    fn end(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        let own = cpu::usage().cpu.saturating_sub(self.own).as_secs_f64();
        let others = self.machine.zip(cpu::machine()).map(|(before, after)| {
            let all = after.saturating_sub(before).as_secs_f64();
            format!("; other processes used {:.2} cores meanwhile", (all - own).max(0.0) / seconds)
        });
        format!("{seconds:.0} s{}", others.unwrap_or_default())
    }
}

/// Interleaved: every round measures every subject in every setting, beginning with another subject each time.
fn measure(group: &'static Group, options: &Options) -> Results {
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let mut results = Results::new(group, options.quick);
    let count = group.subjects.len();
    for round in 0..options.rounds {
        for setting in results.settings.clone() {
            for turn in 0..count {
                let subject = (round + turn) % count;
                let Subject { name, sample, .. } = group.subjects[subject];
                progress(&format!(
                    "{} {}/{}: {}, {name}",
                    group.name,
                    round + 1,
                    options.rounds,
                    setting.label
                ));
                let sample = sample(setting, &effort);
                cpu::wait_for_threads_to_end();
                results.add(setting, subject, &sample);
            }
        }
    }
    progress(group.name);
    eprintln!();
    results
}

/// Overwrites the line, so that it says who is at work should something hang.
fn progress(text: &str) {
    eprint!("\r{text:<100}\r{text}");
}

fn write_files(results: &[Results], options: &Options) -> io::Result<()> {
    fs::create_dir_all(&options.out)?;
    let mut samples = String::from("group,setting,subject,metric,round,value\n");
    for one in results {
        one.write_csv(&mut samples);
        fs::write(options.out.join(format!("{}.svg", one.group.name)), plot::svg(one))?;
    }
    fs::write(options.out.join("samples.csv"), samples)
}
