//! One plot for each group: bars by setting and subject, with the range over the rounds as a line.

use super::results::Results;
use crate::groups::{Role, Setting};
use std::fmt::Write;

const LEFT: f64 = 250.0;
const WIDTH: f64 = 460.0;
const RIGHT: f64 = 110.0;
const BAR: f64 = 16.0;
const GAP: f64 = 30.0;
const TOP: f64 = 44.0;

/// The plot of the group's headline metric.
pub(crate) fn svg(results: &Results) -> String {
    let group = results.group;
    let of_setting = GAP + BAR * group.subjects.len() as f64;
    let height = TOP + of_setting * results.settings.len() as f64 + 10.0;
    let width = LEFT + WIDTH + RIGHT;
    let better = if group.headline.more_is_better() { "more" } else { "less" };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{}</text>\n\
         <text x=\"10\" y=\"34\">{}; {}, {better} is better</text>\n",
        escaped(group.name),
        escaped(group.question),
        escaped(group.headline.name()),
    );
    for (number, setting) in results.settings.iter().enumerate() {
        let top = TOP + of_setting * number as f64;
        bars(&mut svg, results, setting, top);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The bars of one setting, to a scale of its own.
fn bars(svg: &mut String, results: &Results, setting: &'static Setting, top: f64) {
    let metric = results.group.headline;
    let spread = |at| results.spread(setting.label, at, metric);
    let all = 0..results.group.subjects.len();
    let most = all.filter_map(spread).map(|spread| spread.most).fold(0.0, f64::max);
    let x = |value: f64| LEFT + WIDTH * if most > 0.0 { value / most } else { 0.0 };
    let mut put = |text: String| svg.push_str(&text);
    let title = top + 16.0;
    put(format!(
        "<text x=\"10\" y=\"{title:.0}\" font-weight=\"bold\">{}</text>\n",
        escaped(setting.label)
    ));
    for (at, subject) in results.group.subjects.iter().enumerate() {
        let Some(spread) = spread(at) else { continue };
        let y = top + 22.0 + BAR * at as f64;
        let (text, middle) = (y + 11.0, y + BAR / 2.0 - 1.0);
        let colour = match subject.role {
            Role::Ours => "#c0392b",
            Role::Peer => "#7f8c8d",
            Role::Bare => "#d5dbdb",
        };
        let (name, value) = (escaped(subject.name), escaped(&metric.show(spread.median)));
        let (end, least, most) = (x(spread.median) - LEFT, x(spread.least), x(spread.most));
        put(format!(
            "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{name}</text>\n\
             <rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{end:.1}\" height=\"13\" fill=\"{colour}\"/>\n\
             <line x1=\"{least:.1}\" x2=\"{most:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"black\"/>\n\
             <text x=\"{:.1}\" y=\"{text:.0}\">{value}</text>\n",
            LEFT - 6.0,
            most + 5.0,
        ));
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => write!(out, "{c}").expect("a string takes everything"),
        }
    }
    out
}

#[test]
fn a_plot_has_a_bar_for_each_value() {
    use crate::groups;
    let group = groups::named("choose").expect("it exists");
    let mut results = Results::new(group, false);
    for subject in 0..group.subjects.len() {
        results.add(&group.settings[0], subject, &vec![(group.headline, 1.0 + subject as f64)]);
    }
    let svg = svg(&results);
    assert_eq!(svg.matches("height=\"13\"").count(), group.subjects.len());
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
}
