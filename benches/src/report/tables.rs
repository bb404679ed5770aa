//! The tables, as Markdown with aligned columns, so that a terminal shows them well too.

use super::results::{Results, Spread};
use crate::groups::{Against, Bound, Metric, Role, Setting, Target};

/// One line for each group, setting and target; settings without a target have one line too.
pub(crate) fn ratios(results: &[Results]) -> String {
    let head = [
        "group / setting: metric",
        "ours [range]",
        "best peer",
        "limit",
        "ours / best [range]",
        "ours / limit [range]",
        "target",
        "found",
        "met?",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for one in results {
        for setting in &one.settings {
            let targets: Vec<_> = one.group.targets.iter().filter(|t| t.is_for(setting)).collect();
            let headline = one.group.headline;
            if targets.iter().all(|target| target.metric != headline) {
                rows.push(row(one, setting, headline, None));
            }
            for target in targets {
                rows.push(row(one, setting, target.metric, Some(target)));
            }
        }
    }
    align(&rows)
}

fn row(
    results: &Results,
    setting: &'static Setting,
    metric: Metric,
    target: Option<&Target>,
) -> Vec<String> {
    let label = setting.label;
    let name = format!("{} / {label}: {}", results.group.name, metric.name());
    let ours = results.ours().and_then(|ours| results.spread(label, ours, metric));
    let value = |at: Option<usize>| {
        let spread = at.and_then(|at| results.spread(label, at, metric));
        match (at, spread) {
            (Some(at), Some(spread)) => {
                format!("{}: {}", results.group.subjects[at].name, metric.show(spread.median))
            }
            _ => "-".to_owned(),
        }
    };
    let ratio = |at: Option<usize>| {
        let spread = at.and_then(|at| results.ratio(label, (label, at), metric));
        spread.map_or_else(|| "-".to_owned(), show_ratio)
    };
    let (best, limit) = (results.best_peer(label, metric), results.limit());
    let mut cells = vec![
        name,
        ours.map_or_else(|| "-".to_owned(), |spread| show(metric, spread)),
        value(best),
        value(limit),
        ratio(best),
        ratio(limit),
    ];
    cells.extend(judged(results, setting, target));
    cells
}

fn judged(results: &Results, setting: &Setting, target: Option<&Target>) -> [String; 3] {
    let Some(target) = target else { return ["-"; 3].map(str::to_owned) };
    let judgement = results.judge(setting, target);
    let (sign, factor) = match target.bound {
        Bound::AtLeast(factor) => ("≥", factor),
        Bound::AtMost(factor) => ("≤", factor),
    };
    let Some(judgement) = judgement else {
        return [format!("{sign} {factor}"), "-".to_owned(), "-".to_owned()];
    };
    let (wanted, found) = match judgement.beside {
        None => (
            format!("{sign} {}", target.metric.show(factor)),
            target.metric.show(judgement.found.median),
        ),
        Some(name) => {
            let other = match target.against {
                Against::BestPeer => "best peer".to_owned(),
                Against::BestEvenPeer => format!("best even peer ({name})"),
                _ => name.to_owned(),
            };
            (format!("{sign} {factor} × {other}"), show_ratio(judgement.found))
        }
    };
    [wanted, found, if judgement.met { "yes" } else { "**no**" }.to_owned()]
}

pub(crate) fn show(metric: Metric, spread: Spread) -> String {
    let Spread { median, least, most } = spread;
    format!("{} [{}..{}]", metric.show(median), metric.show(least), metric.show(most))
}

pub(crate) fn show_ratio(spread: Spread) -> String {
    let digits = |value: f64| match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    };
    let Spread { median, least, most } = spread;
    format!("{} [{}..{}]", digits(median), digits(least), digits(most))
}

/// Percentiles, and how evenly callers were served, of every subject that has them. `short`: in the settings of
/// a quick report.
pub(crate) fn latencies(results: &[Results], short: bool) -> String {
    let metrics = [Metric::P50, Metric::P99, Metric::P999, Metric::LeastShare, Metric::CallerCost];
    let mut rows = vec![heading(&metrics)];
    for one in results {
        rows.extend(lines(one, &metrics, Metric::P50, short));
    }
    if rows.len() == 1 { String::new() } else { align(&rows) }
}

/// The headline figure of every subject, and CPU figures where there are some.
pub(crate) fn everything(results: &[Results]) -> String {
    let metrics = [Metric::NsPerCall, Metric::PerSecond, Metric::Cores, Metric::WakeUps];
    let mut rows = vec![heading(&metrics)];
    for one in results {
        rows.extend(metrics[..3].iter().flat_map(|must| lines(one, &metrics, *must, false)));
    }
    if rows.len() == 1 { String::new() } else { align(&rows) }
}

fn heading(metrics: &[Metric]) -> Vec<String> {
    let names = metrics.iter().map(|metric| metric.name().to_owned());
    ["group / setting".to_owned(), "subject".to_owned()].into_iter().chain(names).collect()
}

/// A line for each subject that has `must`.
fn lines(results: &Results, metrics: &[Metric], must: Metric, short: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for setting in results.settings.iter().filter(|setting| setting.quick || !short) {
        for (at, subject) in results.group.subjects.iter().enumerate() {
            if results.series(setting.label, at, must).is_empty() {
                continue;
            }
            let cell = |metric: &Metric| {
                let spread = results.spread(setting.label, at, *metric);
                spread.map_or_else(|| "-".to_owned(), |spread| metric.show(spread.median))
            };
            let mark = if subject.role == Role::Ours { "**" } else { "" };
            let mut row = vec![
                format!("{} / {}", results.group.name, setting.label),
                format!("{mark}{}{mark}", subject.name),
            ];
            row.extend(metrics.iter().map(cell));
            rows.push(row);
        }
    }
    rows
}

/// Rows of cells as a Markdown table; the first is the heading.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("| {cell:<width$} "));
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                text.push_str(&format!("|{:-<1$}", "", width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "µs".to_owned()], vec!["long".to_owned(), "1".to_owned()]];
        let expected = "| a    | µs  |\n|------|-----|\n| long | 1   |\n";
        assert_eq!(align(&rows), expected);
    }

    #[test]
    fn ratios_have_three_digits() {
        let spread = |median| Spread { median, least: 0.0123, most: 123.4 };
        assert_eq!(show_ratio(spread(1.0)), "1.00 [0.012..123]");
        assert_eq!(show_ratio(spread(12.34)), "12.3 [0.012..123]");
    }
}
