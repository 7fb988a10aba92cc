//! The results as a chart of bars: the reads of one client under Apache.

use std::fmt::Write;

use crate::contenders::{APACHE_PREFORK, COMEDOR, FASTCGI, MOD_PHP, PHP_CGI, PHP_FPM};
use crate::report::{Row, Section, digits};

/// As wide as a telephone shows without making the text small.
const WIDTH: usize = 480;
const MARGIN: usize = 20;
const BAR: usize = WIDTH - 2 * MARGIN;
const LINE: usize = 52;
const TOP: usize = 88;

const BARS: [(&str, &str); 5] = [
    (FASTCGI, "comedor, FastCGI"),
    (MOD_PHP, "mod_php with opcache"),
    (PHP_FPM, "PHP-FPM with opcache"),
    (COMEDOR, "comedor, CGI"),
    (PHP_CGI, "PHP, CGI"),
];

pub fn svg(sections: &[Section]) -> String {
    let section = sections
        .iter()
        .find(|one| one.server == APACHE_PREFORK && !one.saves);
    let rows = section.map_or(&[][..], |section| &section.rows);
    let bars = BARS.iter().filter_map(|(name, label)| {
        rows.iter()
            .find(|row| row.name == *name)
            .map(|row| (row, *label))
    });
    let mut bars: Vec<(&Row, &str)> = bars.collect();
    bars.sort_by(|(one, _), (other, _)| rate(other).total_cmp(&rate(one)));
    let fastest = bars.iter().map(|(row, _)| rate(row)).fold(1.0, f64::max);
    let (mut drawn, mut y) = (String::new(), TOP);
    for (row, label) in bars {
        bar(&mut drawn, row, label, y, rate(row) / fastest);
        y += LINE;
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="16" fill="#24292f">
<title>Reads per second of one client under Apache, by comedor and by PHP</title>
<rect width="{WIDTH}" height="{y}" rx="8" fill="#ffffff"/>
<text x="{MARGIN}" y="34" font-size="19" font-weight="bold">Reads per second, one client, Apache</text>
<text x="{MARGIN}" y="58" fill="#57606a">Longer is faster: reads per second · time per read</text>
{drawn}</svg>
"##
    )
}

fn rate(row: &Row) -> f64 {
    row.figures[0].rate()
}

/// A label and figures, and below them a bar of this share of the longest.
fn bar(svg: &mut String, row: &Row, label: &str, y: usize, share: f64) {
    let color = if label.starts_with("comedor") {
        "#0d6efd"
    } else {
        "#a991d4"
    };
    let (top, end, length) = (y + 8, WIDTH - MARGIN, share * BAR as f64);
    let (rate, median) = (rate(row), digits(row.figures[0].quantile(0.5)));
    writeln!(
        svg,
        r##"<text x="{MARGIN}" y="{y}">{label}</text><text x="{end}" y="{y}" text-anchor="end"><tspan font-weight="bold">{rate:.0}</tspan> · {median} ms</text><rect x="{MARGIN}" y="{top}" width="{length:.1}" height="14" rx="2" fill="{color}"/>"##
    )
    .unwrap();
}
