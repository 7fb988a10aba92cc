//! The results as Markdown.

use std::env;
use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::client::{READERS, WRITERS};
use crate::load::Figures;
use crate::start;

/// The reads or the saves under one server.
pub struct Section {
    pub server: &'static str,
    pub saves: bool,
    pub rows: Vec<Row>,
}

/// One contender, for each number of clients.
pub struct Row {
    pub name: String,
    pub figures: Vec<Figures>,
}

/// The numbers of concurrent clients of reads or saves.
pub fn clients(saves: bool) -> &'static [usize] {
    if saves { &WRITERS } else { &READERS }
}

const HEAD: &str = "\
# Benchmark

Measured and written by `benches/run`. Clients and servers share the processor cores. Each client has a persistent connection and sends its next request when it has the answer to the last one. Every contender is measured in every round. Medians and p99 are those of the requests of all rounds; requests per second are the median of the rounds.

- **comedor, FastCGI**: as shipped, with a settings file. 64 processes stay in memory, of which each answers one request at a time. **not kept**: with a connection for each request. Under nginx the shipped configuration keeps connections; under Apache and lighttpd they do not, so the two lines of Apache differ by chance.
- **comedor, CGI**: started for each request; under Apache it exits before end-of-file.
- **baseline**: the executable that COMEDOR_BASELINE named, if any, with the same settings as **comedor**; under Apache its connections are kept, as by the configuration of 1.0.0.
- **floor, CGI**: a static C program with Debian's glibc that reads the body and answers with as many bytes as comedor (`benches/floor.c`), and exits as comedor does: the cost of the server and of a new process with glibc; comedor, with musl, can be below it. **musl**: the same with musl. **late exit**: it exits after end-of-file; if Apache finds the process alive, it waits 47 ms (mod_cgi) or 10 ms (mod_cgid).
- **floor, FastCGI**: the same answer by libfcgi (`benches/floor-fastcgi.c`), by 8 processes: the cost of the server and of FastCGI. **kept**: with a process for each of the kept connections, where comedor's are kept.
- **php-cgi**: a script that does the same work (`benches/comedor.php`), with Debian's settings, started for each request; Apache waits for it too.
- **PHP-FPM**: the same script in 8 processes (`pm = static`; under nginx 40, because each kept connection occupies one) with opcache, which does not check the script's time of change (`opcache.validate_timestamps=0`). **kept**: with kept connections, under nginx.
- **mod_php**: the same script and opcache in Apache's 34 processes. On some machines it answers 8 clients' reads faster than comedor, because Apache passes a request to FastCGI by a proxy: compare the floors.

A connection to PHP-FPM, comedor or the floor is on a Unix socket. No contender makes one of 8 clients wait for a process or thread. PHP logged nothing: a message per request would make it slower.

- **Reads** are `get_menu` of a saved menu. Before the measurement, every contender except the floor gave the same JSON.
- **Saves** are `save_menu`. Each client saves its own day; its first and last save of each round were found in the file. comedor flushes the file and its folder before it answers, and takes one save per aulario at a time, so the 8 clients wait for each other, except with **8 aularios**, one for each client. PHP writes in place, without a lock or a flush, as the application's pages do; **flushed** is PHP with a temporary file, `fsync()` and `rename()`, but without a lock or a flush of the folder.
";

/// The whole document.
pub fn markdown(
    sections: &[Section],
    starts: &[(&str, Figures)],
    missing: &[(String, String)],
) -> String {
    let mut text = format!("{HEAD}\n{}", machine());
    for section in sections {
        writeln!(text, "\n## {}\n", title(section)).unwrap();
        let columns = clients(section.saves).iter().map(|&clients| count(clients));
        let columns =
            columns.map(|count| format!(" {count}: median | p99 | per second | requests |"));
        let columns: Vec<String> = columns.collect();
        let rule = "--:|".repeat(4 * columns.len());
        writeln!(text, "| ms |{}\n|---|{rule}", columns.concat()).unwrap();
        for row in &section.rows {
            let cells = row.figures.iter().map(|figures| {
                format!(
                    " {} | {} | {:.0} | {} |",
                    digits(figures.quantile(0.5)),
                    digits(figures.quantile(0.99)),
                    figures.rate(),
                    figures.times.len()
                )
            });
            writeln!(text, "| {} |{}", row.name, cells.collect::<String>()).unwrap();
        }
    }
    if let [(_, floor), (_, musl), ..] = starts {
        let floors = [floor, musl].map(|floor| floor.quantile(0.5));
        text += "\n## A process without a server\n\nA read, from the start of the process until it was reaped.\n\n";
        text += "| ms | median | p99 | ÷ floor | ÷ floor, musl |\n|---|--:|--:|--:|--:|\n";
        for (name, figures) in starts {
            let (median, p99) = (figures.quantile(0.5), figures.quantile(0.99));
            let [ratio, of_musl] = floors.map(|floor| digits(median / floor));
            let (median, p99) = (digits(median), digits(p99));
            writeln!(text, "| {name} | {median} | {p99} | {ratio} | {of_musl} |").unwrap();
        }
    }
    failures(&mut text, sections);
    if !missing.is_empty() {
        text += "\n## Could not be started\n\n";
        for (what, why) in missing {
            writeln!(text, "- {what}: {}", why.trim().replace('\n', " ")).unwrap();
        }
    }
    text
}

/// The requests that failed, and why the first of each contender did.
fn failures(text: &mut String, sections: &[Section]) {
    let mut lines = String::new();
    for section in sections {
        for row in &section.rows {
            for figures in row
                .figures
                .iter()
                .filter(|figures| !figures.failures.is_empty())
            {
                let failed = figures.failures.len();
                let first = figures.failures[0].trim().replace('\n', " ");
                let all = failed + figures.times.len();
                writeln!(
                    lines,
                    "- {}: {}: {failed} of {all}: {first}",
                    title(section),
                    row.name
                )
                .unwrap();
            }
        }
    }
    if !lines.is_empty() {
        writeln!(text, "\n## Failed requests\n\n{}", lines.trim_end()).unwrap();
    }
}

fn title(section: &Section) -> String {
    format!(
        "{}: {}",
        section.server,
        if section.saves { "saves" } else { "reads" }
    )
}

fn count(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let folder = env::temp_dir().display().to_string();
    let file_system = first_line("findmnt", &["-no", "FSTYPE,SOURCE", "-T", &folder]);
    // The last that changed the program.
    let commit = first_line(
        "git",
        &[
            "log", "-1", "--format=%h", "--", "src", "Cargo.lock", "cgi-bin",
        ],
    );
    let baseline = env::var("COMEDOR_BASELINE").unwrap_or_default();
    let baseline = baseline.rsplit_once('/').map_or("none", |(_, name)| name);
    let versions = [
        first_line("/usr/sbin/apache2", &["-v"]).replace("Server version: ", ""),
        first_line("/usr/sbin/lighttpd", &["-v"]),
        first_line("/usr/sbin/nginx", &["-v"]).replace("nginx version: ", ""),
        first_line("/usr/bin/php-cgi", &["-v"]),
    ];
    format!(
        "| system | |\n|---|---|\n| comedor | commit {commit}; baseline: {baseline} |\n| processor | {cpu}, {cores} cores |\n| kernel | Linux {} |\n\
         | data | {folder} on {}, flushing a new file takes {} ms |\n| versions | {} |\n",
        kernel.trim(),
        file_system.split_whitespace().collect::<Vec<_>>().join(" "),
        digits(start::flush()),
        versions.join("; "),
    )
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    // nginx prints its version to standard error.
    let output = output.map(|output| [output.stdout, output.stderr].concat());
    let output = output.map(|output| String::from_utf8_lossy(&output).into_owned());
    let line = output
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    if line.is_empty() {
        format!("{program} is not installed")
    } else {
        line
    }
}

/// Rounds to about three digits.
fn digits(value: f64) -> String {
    let decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.decimals$}")
}
