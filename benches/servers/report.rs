//! The results as Markdown.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::contenders::{COMEDOR, FLOOR, MOD_PHP, PHP_CGI, PHP_FPM};
use crate::load::{CLIENTS, Figures};
use crate::start;

/// What was measured under a server: reads, or saves.
pub struct Section {
    pub server: &'static str,
    pub saves: bool,
    pub rows: Vec<Row>,
}

/// One contender, by the number of clients.
pub struct Row {
    pub name: String,
    pub figures: [Figures; 2],
}

const HEAD: &str = "\
# How fast

Measured and written by `benches/run`. Clients and servers share the cores. A client keeps its connection and sends a request when it has the answer to the one before. In each round
every contender has its turn. Medians and p99 are of the requests of all rounds, requests a second the median of the rounds.

- **floor**: a static C program that reads the body, answers as many bytes as comedor, and does nothing else (`benches/floor.c`): what the server and a new process cost.
- **comedor**: as shipped, with a settings file. Under Apache it leaves before end-of-file, and so does the floor; with **LEAVE_EARLY=off** both do without, and where Apache
  still finds the process it waits: 47 ms in mod_cgi, 10 ms in mod_cgid.
- **php-cgi**, **PHP-FPM**, **mod_php**: a script that does the same work (`benches/comedor.php`), with Debian's settings. php-cgi is started for each request, and Apache waits for it as well; the
  others stay in memory, with opcache.
- **Reads** are `get_menu` of a saved menu. Before anything was measured every contender but the floor gave the same JSON.
- **Saves** are `save_menu`, by each client for a day of its own; each turn's first and last save was found in the day's file. comedor flushes the file and its folder before it answers, and takes one save of
  an aulario after the other, so the 8 clients wait for each other. PHP has no lock and writes in place without a flush, as the application's pages do; **flushed** is PHP with a temporary file, `fsync()` and
  `rename()`, still without a lock or a flush of the folder.
";

/// Everything, as one document.
pub fn markdown(
    sections: &[Section],
    starts: &[(&str, Figures)],
    missing: &[(String, String)],
) -> String {
    let mut text = format!("{HEAD}\n{}", machine());
    ratios(&mut text, sections);
    for section in sections {
        writeln!(text, "\n## {}\n", title(section)).unwrap();
        let columns = CLIENTS
            .map(|clients| format!("{}: median | p99 | a second | requests |", count(clients)));
        writeln!(text, "| ms | {}\n|---|{}", columns.join(" "), "--:|".repeat(8)).unwrap();
        for row in &section.rows {
            let cells = row.figures.each_ref().map(|figures| {
                format!(
                    "{} | {} | {:.0} | {} |",
                    digits(figures.quantile(0.5)),
                    digits(figures.quantile(0.99)),
                    figures.rate(),
                    figures.times.len()
                )
            });
            writeln!(text, "| {} | {}", row.name, cells.join(" ")).unwrap();
        }
    }
    if let Some((_, floor)) = starts.first() {
        let floor = floor.quantile(0.5);
        text += "\n## A process alone, without a server\n\nFrom its start until its end was seen; a read.\n\n";
        text += "| ms | median | p99 | ÷ floor |\n|---|--:|--:|--:|\n";
        for (name, figures) in starts {
            let (median, p99) = (figures.quantile(0.5), figures.quantile(0.99));
            let (median, p99, ratio) = (digits(median), digits(p99), digits(median / floor));
            writeln!(text, "| {name} | {median} | {p99} | {ratio} |").unwrap();
        }
    }
    if !missing.is_empty() {
        text += "\n## Could not be started\n\n";
        for (what, why) in missing {
            writeln!(text, "- {what}: {}", why.trim().replace('\n', " ")).unwrap();
        }
    }
    text
}

/// How long comedor takes for each second that another takes.
fn ratios(text: &mut String, sections: &[Section]) {
    let php = [PHP_CGI, PHP_FPM, MOD_PHP].map(|php| [php.to_owned(), format!("{php}, flushed")]);
    let others = [vec![FLOOR.to_owned()], php.concat()].concat();
    text.push_str("\n## comedor's median ÷ that of\n\nBelow 1 comedor is faster.\n\n");
    writeln!(text, "| | {} |\n|---|{}", others.join(" | "), "--:|".repeat(others.len())).unwrap();
    for section in sections {
        for (at, clients) in CLIENTS.into_iter().enumerate() {
            let median = |name: &str| {
                let row = section.rows.iter().find(|row| row.name == name);
                row.map(|row| row.figures[at].quantile(0.5))
            };
            let Some(own) = median(COMEDOR) else { continue };
            let ratio = |other: &String| median(other).map_or(String::new(), |m| digits(own / m));
            let cells: Vec<String> = others.iter().map(ratio).collect();
            let (what, clients) = (title(section), count(clients));
            writeln!(text, "| {what}, {clients} | {} |", cells.join(" | ")).unwrap();
        }
    }
}

fn title(section: &Section) -> String {
    format!("{}: {}", section.server, if section.saves { "saves" } else { "reads" })
}

fn count(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let folder = std::env::temp_dir().display().to_string();
    let file_system = first_line("findmnt", &["-no", "FSTYPE,SOURCE", "-T", &folder]);
    let versions = [
        first_line("/usr/sbin/apache2", &["-v"]).replace("Server version: ", ""),
        first_line("/usr/sbin/lighttpd", &["-v"]),
        first_line("/usr/bin/php-cgi", &["-v"]),
    ];
    format!(
        "| where | |\n|---|---|\n| processor | {cpu}, {cores} cores |\n| kernel | Linux {} |\n\
         | data | {folder} on {}, a flush of a new file takes {} ms |\n| versions | {} |\n",
        kernel.trim(),
        file_system.split_whitespace().collect::<Vec<_>>().join(" "),
        digits(start::flush()),
        versions.join("; "),
    )
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = output.unwrap_or_default().lines().next().unwrap_or_default().trim().to_owned();
    if line.is_empty() { format!("no {program}") } else { line }
}

/// About three digits.
pub fn digits(value: f64) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}
