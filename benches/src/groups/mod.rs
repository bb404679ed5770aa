//! The groups: each is one question, asked of every subject in the same way.

pub(crate) mod choose;
mod execute;
mod idle;
mod inline;
mod saturated;
mod spawn_join;
mod tasks;

use std::time::Duration;

/// What a subject is in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This crate.
    Ours,
    /// What a user would otherwise pick.
    Peer,
    /// A limit: nothing, or the least that could do.
    Bare,
}

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Nanoseconds a call, from one thread.
    NsPerCall,
    /// Calls or tasks a second, by all threads together.
    PerSecond,
    /// Latency, nanoseconds.
    Mean,
    /// Latency, nanoseconds.
    P50,
    /// Latency, nanoseconds.
    P95,
    /// Latency, nanoseconds.
    P99,
    /// Latency, nanoseconds.
    P999,
    /// Calls of the caller with the fewest, as a share of the mean.
    LeastShare,
    /// What a submit costs its caller, nanoseconds.
    CallerCost,
    /// CPU time a second, as a number of cores.
    Cores,
    /// Wake-ups a second.
    WakeUps,
}

impl Metric {
    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::NsPerCall => "time a call",
            Metric::PerSecond => "rate",
            Metric::Mean => "avg",
            Metric::P50 => "p50",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::LeastShare => "least share",
            Metric::CallerCost => "cost to the caller, p50",
            Metric::Cores => "cores",
            Metric::WakeUps => "wake-ups",
        }
    }

    /// Whether more is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Metric::PerSecond | Metric::LeastShare)
    }

    /// `value` with its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Metric::PerSecond | Metric::WakeUps => format!("{}/s", scaled(value)),
            Metric::LeastShare => format!("{value:.2}"),
            Metric::Cores => format!("{value:.4}"),
            _ if value < 1e3 => format!("{value:.1} ns"),
            _ if value < 1e6 => format!("{:.2} µs", value / 1e3),
            _ => format!("{:.2} ms", value / 1e6),
        }
    }
}

fn scaled(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0} "),
    }
}

/// What one measurement of one subject gave.
pub type Sample = Vec<(Metric, f64)>;

/// One case of a group.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The parameter, as tables and criterion name it.
    pub label: &'static str,
    /// Callers, producers or choosers.
    pub threads: usize,
    /// Tasks that may run at once.
    pub limit: usize,
    /// Length of the work of a call.
    pub work: Duration,
    /// How far producers may be ahead of the workers; none: as far as they get.
    pub backlog: Option<u64>,
    /// Also measured in a quick report.
    pub quick: bool,
}

impl Setting {
    const fn new(label: &'static str, threads: usize, limit: usize) -> Self {
        Self { label, threads, limit, work: Duration::ZERO, backlog: None, quick: true }
    }

    const fn work_us(self, micros: u64) -> Self {
        Self { work: Duration::from_micros(micros), ..self }
    }

    const fn backlog(self, tasks: u64) -> Self {
        Self { backlog: Some(tasks), ..self }
    }

    const fn only_in_full(self) -> Self {
        Self { quick: false, ..self }
    }
}

/// How much is measured each time.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Length of a closed loop.
    pub window: Duration,
    /// Calls where single calls are timed.
    pub calls: u64,
    /// Tasks where a stream of tasks is timed.
    pub tasks: u64,
    /// Starts after idleness.
    pub starts: u64,
    /// Length of an idle or nearly idle time.
    pub idle: Duration,
}

impl Effort {
    /// For figures to rely on.
    pub const FULL: Self = Self {
        window: Duration::from_millis(150),
        calls: 10_000,
        tasks: 300_000,
        starts: 40,
        idle: Duration::from_millis(700),
    };

    /// For a first impression.
    pub const QUICK: Self = Self {
        window: Duration::from_millis(40),
        calls: 2_000,
        tasks: 100_000,
        starts: 15,
        idle: Duration::from_millis(120),
    };
}

/// One of those that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its name in tables.
    pub name: &'static str,
    /// What it is in the comparison.
    pub role: Role,
    /// Measures it once, for the report.
    pub sample: fn(&Setting, &Effort) -> Sample,
    /// The time that so many calls take, for criterion.
    pub timed: fn(&Setting, u64) -> Duration,
}

/// Callers are served evenly when none has less than this share of the mean. A low latency of a peer that lets some
/// callers starve is paid for by those.
pub const EVEN: f64 = 0.8;

/// Beside what a target is judged.
#[derive(Debug, Clone, Copy)]
pub enum Against {
    /// The subject of this name.
    Named(&'static str),
    /// The peer with the best median.
    BestPeer,
    /// The best of the peers that serve their callers evenly: their least share is [`EVEN`] or more.
    BestEvenPeer,
    /// Ourselves in the setting of this label.
    OursAt(&'static str),
    /// Nothing: the value itself is bounded.
    Nothing,
}

/// A bound.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
}

impl Bound {
    /// Whether `value` keeps it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }
}

/// A speed to reach.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What is judged.
    pub metric: Metric,
    /// In the settings whose label begins with one of these.
    pub at: &'static [&'static str],
    /// Beside what.
    pub against: Against,
    /// How far.
    pub bound: Bound,
}

impl Target {
    /// Whether it is for this setting.
    #[must_use]
    pub fn is_for(&self, setting: &Setting) -> bool {
        self.at.iter().any(|label| setting.label.starts_with(label))
    }
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// What is asked, in one line.
    pub question: &'static str,
    /// The metric that is always in the table.
    pub headline: Metric,
    /// The cases.
    pub settings: &'static [Setting],
    /// Who is asked.
    pub subjects: &'static [Subject],
    /// What is to be reached.
    pub targets: &'static [Target],
}

/// All groups, in the order of the report.
pub const ALL: &[&Group] = &[
    &inline::FREE,
    &inline::CONTENDED,
    &saturated::RUN,
    &saturated::DISPATCH_JOIN,
    &execute::THROUGHPUT,
    &spawn_join::GROUP,
    &idle::START,
    &idle::TRICKLE,
    &choose::GROUP,
    &tasks::SPAWN_MANY,
    &tasks::PING_PONG,
    &tasks::CHAINED_SPAWN,
];

/// Groups that are measured only when they are asked for.
pub const ASKED_FOR: &[&Group] = &[&saturated::OVERTAKES];

/// The group of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Group> {
    ALL.iter().chain(ASKED_FOR).find(|group| group.name == name).copied()
}
