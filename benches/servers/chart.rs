//! The results as a bar chart of the requests per second of one client.

use std::fmt::Write;

use crate::contenders::FASTCGI;
use crate::report::{Row, Section, digits};

const PANEL: usize = 530;
const MARGIN: usize = 24;
const LABEL: usize = 204;
/// The longest bar, with space for its figures beside it.
const BAR: usize = 190;
const LINE: usize = 21;
const TOP: usize = 90;

const LEGEND: [&str; 3] = [
    "floor: a minimal C program. CGI and php-cgi: a process for each request. FastCGI, PHP-FPM and mod_php: stay in memory.",
    "flushed: PHP calls fsync() before it answers, as comedor does for every save.",
    "LEAVE_EARLY=off: if Apache finds the process alive at end-of-file, it waits 10 ms (mod_cgid) or 47 ms (mod_cgi).",
];

/// Reads on the left, saves on the right, by server.
pub fn svg(sections: &[Section]) -> String {
    let fastest = sections.iter().flat_map(|section| &section.rows).map(rate).fold(1.0, f64::max);
    let (mut bars, mut bottom) = (String::new(), TOP);
    let titles = [(false, "Reads: get_menu"), (true, "Saves: save_menu")];
    for (panel, (saves, title)) in titles.into_iter().enumerate() {
        let (x, mut y) = (MARGIN + panel * PANEL, TOP);
        heading(&mut bars, (x, y), 15, title);
        for section in sections.iter().filter(|section| section.saves == saves) {
            y += LINE + 8;
            heading(&mut bars, (x, y), 13, section.server);
            for row in &section.rows {
                y += LINE;
                bar(&mut bars, row, (x, y), rate(row) / fastest);
            }
        }
        bottom = bottom.max(y);
    }
    for line in LEGEND {
        bottom += LINE;
        writeln!(bars, r##"<text x="{MARGIN}" y="{}" fill="#57606a">{line}</text>"##, bottom + 16)
            .unwrap();
    }
    let (width, height) = (2 * PANEL + MARGIN, bottom + 16 + MARGIN);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="13" fill="#24292f">
<title>Requests per second of one client under Apache, lighttpd and nginx: comedor, a minimal C program and PHP</title>
<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>
<text x="{MARGIN}" y="36" font-size="19" font-weight="bold">Requests per second, one client</text>
<text x="{MARGIN}" y="57" fill="#57606a">Longer is faster; all bars have the same scale. Beside each bar: requests per second, and the median time of a request.</text>
{bars}</svg>
"##
    )
}

fn heading(svg: &mut String, (x, y): (usize, usize), size: usize, text: &str) {
    writeln!(svg, r#"<text x="{x}" y="{y}" font-size="{size}" font-weight="bold">{text}</text>"#)
        .unwrap();
}

fn rate(row: &Row) -> f64 {
    row.figures[0].rate()
}

/// A label, a bar of this share of the longest, and its figures.
fn bar(svg: &mut String, row: &Row, (x, y): (usize, usize), share: f64) {
    let name = &row.name;
    let color = match name.as_str() {
        _ if name.starts_with("comedor") => "#0d6efd",
        _ if name.starts_with("floor") => "#8c959f",
        _ if name.ends_with("flushed") => "#6f5499",
        _ => "#a991d4",
    };
    let weight = if name == FASTCGI { "bold" } else { "normal" };
    let (start, top) = (x + LABEL, y - 12);
    let length = share * BAR as f64;
    let end = start as f64 + length + 6.0;
    let (rate, median) = (rate(row), digits(row.figures[0].quantile(0.5)));
    writeln!(
        svg,
        r##"<text x="{x}" y="{y}" font-weight="{weight}">{name}</text><rect x="{start}" y="{top}" width="{length:.1}" height="15" rx="2" fill="{color}"/><text x="{end:.1}" y="{y}" fill="#57606a"><tspan fill="#24292f">{rate:.0}/s</tspan> · {median} ms</text>"##
    )
    .unwrap();
}
