//! What was measured of one group, and what follows from it.

use crate::groups::{Against, EVEN, Group, Metric, Role, Sample, Setting, Target};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A median and its range over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None`: of nothing.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), least, most })
    }
}

/// The answer to one target.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The value or the ratio that is bounded.
    pub(crate) found: Spread,
    pub(crate) met: bool,
    /// The name of what it was compared with.
    pub(crate) beside: Option<&'static str>,
}

/// The values of one group, by round.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) group: &'static Group,
    pub(crate) settings: Vec<&'static Setting>,
    values: BTreeMap<(&'static str, usize, Metric), Vec<f64>>,
}

impl Results {
    pub(crate) fn new(group: &'static Group, quick: bool) -> Self {
        let settings = group.settings.iter().filter(|setting| setting.quick || !quick).collect();
        Self { group, settings, values: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, setting: &Setting, subject: usize, sample: &Sample) {
        for (metric, value) in sample {
            self.values.entry((setting.label, subject, *metric)).or_default().push(*value);
        }
    }

    /// One value for each round.
    pub(crate) fn series(&self, label: &'static str, subject: usize, metric: Metric) -> &[f64] {
        self.values.get(&(label, subject, metric)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn spread(
        &self,
        label: &'static str,
        subject: usize,
        metric: Metric,
    ) -> Option<Spread> {
        Spread::of(self.series(label, subject, metric).iter().copied())
    }

    fn with_role(&self, role: Role) -> impl Iterator<Item = usize> {
        let subjects = self.group.subjects;
        (0..subjects.len()).filter(move |at| subjects[*at].role == role)
    }

    pub(crate) fn ours(&self) -> Option<usize> {
        self.with_role(Role::Ours).next()
    }

    /// The first limit of the list.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.with_role(Role::Bare).next()
    }

    /// The peer with the best median.
    pub(crate) fn best_peer(&self, label: &'static str, metric: Metric) -> Option<usize> {
        self.best_of(self.with_role(Role::Peer), label, metric)
    }

    fn best_even_peer(&self, label: &'static str, metric: Metric) -> Option<usize> {
        let is_even = |peer: &usize| {
            let share = self.spread(label, *peer, Metric::LeastShare);
            share.is_some_and(|share| share.median >= EVEN)
        };
        self.best_of(self.with_role(Role::Peer).filter(is_even), label, metric)
    }

    fn best_of(
        &self,
        subjects: impl Iterator<Item = usize>,
        label: &'static str,
        metric: Metric,
    ) -> Option<usize> {
        let sign = if metric.more_is_better() { -1.0 } else { 1.0 };
        let medians = subjects.filter_map(|peer| {
            self.spread(label, peer, metric).map(|spread| (peer, sign * spread.median))
        });
        medians.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(peer, _)| peer)
    }

    /// Ours by the other's, round by round.
    pub(crate) fn ratio(
        &self,
        label: &'static str,
        other: (&'static str, usize),
        metric: Metric,
    ) -> Option<Spread> {
        let ours = self.series(label, self.ours()?, metric);
        let other = self.series(other.0, other.1, metric);
        Spread::of(ours.iter().zip(other).map(|(a, b)| a / b).filter(|ratio| ratio.is_finite()))
    }

    pub(crate) fn judge(&self, setting: &Setting, target: &Target) -> Option<Judgement> {
        let (label, metric) = (setting.label, target.metric);
        let subjects = self.group.subjects;
        let other = match target.against {
            Against::Nothing => None,
            Against::BestPeer => Some((label, self.best_peer(label, metric)?)),
            Against::BestEvenPeer => Some((label, self.best_even_peer(label, metric)?)),
            Against::OursAt(at) => Some((at, self.ours()?)),
            Against::Named(name) => {
                Some((label, subjects.iter().position(|subject| subject.name == name)?))
            }
        };
        let found = match other {
            None => self.spread(label, self.ours()?, metric)?,
            Some(other) => self.ratio(label, other, metric)?,
        };
        let beside = match target.against {
            Against::OursAt(at) => Some(at),
            _ => other.map(|(_, at)| subjects[at].name),
        };
        Some(Judgement { found, met: target.bound.holds(found.median), beside })
    }

    pub(crate) fn write_csv(&self, csv: &mut String) {
        for ((label, subject, metric), values) in &self.values {
            let (group, name) = (self.group.name, self.group.subjects[*subject].name);
            for (round, value) in values.iter().enumerate() {
                let metric = metric.name();
                writeln!(csv, "{group},\"{label}\",\"{name}\",\"{metric}\",{round},{value}")
                    .expect("a string takes everything");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups;

    fn filled(name: &str, value: impl Fn(usize, usize) -> f64) -> Results {
        let group = groups::named(name).unwrap();
        let mut results = Results::new(group, false);
        for round in 0..5 {
            for setting in results.settings.clone() {
                for subject in 0..group.subjects.len() {
                    let sample = vec![(group.headline, value(round, subject))];
                    results.add(setting, subject, &sample);
                }
            }
        }
        results
    }

    #[test]
    fn a_spread_is_median_and_range() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread, Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Spread::of([1.0, 2.0].into_iter()).map(|s| s.median), Some(1.5));
        assert_eq!(Spread::of(std::iter::empty()), None);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Every round is twice as slow as the one before it, for all alike.
        let results =
            filled("inline_free", |round, at| f64::powi(2.0, round as i32) * (1 + at) as f64);
        let label = results.settings[0].label;
        let ratio = results.ratio(label, (label, 1), Metric::NsPerCall).unwrap();
        assert_eq!(ratio, Spread { median: 0.5, least: 0.5, most: 0.5 });
    }

    #[test]
    fn the_best_peer_is_no_limit_and_not_ourselves() {
        let results = filled("inline_free", |_, at| (1 + at) as f64);
        let best = results.best_peer("1 thread", Metric::NsPerCall).unwrap();
        assert_eq!(results.group.subjects[best].name, "tokio semaphore");
        let results = filled("execute_throughput", |_, at| (1 + at) as f64);
        let best = results.best_peer("1 producer, unbounded", Metric::PerSecond).unwrap();
        assert_eq!(best, results.group.subjects.len() - 1, "more is better");
    }

    #[test]
    fn peers_that_let_callers_starve_are_passed_over() {
        let group = groups::named("saturated_run").unwrap();
        let (setting, mut results) = (&group.settings[3], Results::new(group, false));
        for at in 0..group.subjects.len() {
            let share = if at == 2 { 0.1 } else { 0.9 };
            let sample = vec![(Metric::P99, (1 + at) as f64), (Metric::LeastShare, share)];
            results.add(setting, at, &sample);
        }
        assert_eq!(results.best_peer(setting.label, Metric::P99), Some(2));
        assert_eq!(results.best_even_peer(setting.label, Metric::P99), Some(3));
    }

    #[test]
    fn targets_are_judged_by_the_median() {
        let results = filled("inline_free", |_, at| if at == 0 { 13.0 } else { 10.0 });
        let (setting, targets) = (results.settings[0], results.group.targets);
        let judgement = results.judge(setting, &targets[0]).unwrap();
        assert!(judgement.met && judgement.beside == Some("CAS + fetch_add"));
        assert!(!results.judge(setting, &targets[2]).unwrap().met, "13 ns are more than 4");
    }

    #[test]
    fn every_target_names_a_subject_and_a_setting() {
        for group in groups::ALL {
            for target in group.targets {
                assert!(group.settings.iter().any(|setting| target.is_for(setting)));
                let found = match target.against {
                    Against::Named(name) => group.subjects.iter().any(|s| s.name == name),
                    Against::OursAt(label) => group.settings.iter().any(|s| s.label == label),
                    Against::BestPeer | Against::BestEvenPeer | Against::Nothing => true,
                };
                assert!(found, "{}: {target:?}", group.name);
            }
        }
    }
}
