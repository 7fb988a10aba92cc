//! Benchmark under real web servers: the program, a minimal C program and PHP. Started by
//! `benches/run`; no test depends on its times.
#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence of steps"
)]

mod client;
mod contenders;
mod load;
mod report;
mod start;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use client::Work;
use contenders::{BASELINE, BASELINE_NEW, FASTCGI, FLOOR_LATE, SERVERS, Server, attempt};
use load::Figures;

use report::{Row, Section};

fn main() {
    let (mut is_quick, mut is_other, mut only) = (false, false, None);
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--bench" => {}
            "--quick" => is_quick = true,
            "--other" => is_other = true,
            _ if SERVERS.iter().any(|(name, _)| name.starts_with(&word)) => only = Some(word),
            _ => {
                eprintln!("usage: benches/run [--quick] [Apache|lighttpd|nginx]");
                std::process::exit(2);
            }
        }
    }
    let (rounds, span, starts) = if is_quick {
        (2, Duration::from_millis(40), 20)
    } else {
        (8, Duration::from_millis(350), 300)
    };

    let (mut sections, mut missing) = (Vec::new(), Vec::new());
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| name.starts_with(only));
    for (name, start) in SERVERS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let server = match attempt(start) {
            Ok(server) => server.checked(),
            Err(why) => {
                missing.push((name.to_owned(), why));
                continue;
            }
        };
        for saves in [false, true] {
            eprintln!("{name}: {}", if saves { "saves" } else { "reads" });
            sections.push(Section {
                server: name,
                saves,
                rows: measure(&server, saves, rounds, span),
            });
        }
        server.assert_no_php_messages();
        let left_out = server.missing.iter();
        missing.extend(left_out.map(|(what, why)| (format!("{name}: {what}"), why.clone())));
    }
    if sections.is_empty() {
        eprintln!("no server could be started: {missing:#?}");
        std::process::exit(1);
    }
    eprintln!("process start");
    let starts = start::measure(starts).unwrap_or_else(|why| {
        missing.push(("process start".to_owned(), why));
        Vec::new()
    });

    let mut text = report::markdown(&sections, &starts, &missing);
    if is_quick {
        text.insert_str(
            0,
            "From --quick: too few requests for reliable figures.\n\n",
        );
    }
    if is_other {
        text.insert_str(
            0,
            "Of the program that COMEDOR_PROGRAM named, not of the commit below.\n\n",
        );
    }
    print!("{text}");
    // The published results are overwritten only by a whole run of this program.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let folder = if is_quick || is_other || only.is_some() {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
    } else {
        &folder
    };
    let results = folder.join("results.md");
    fs::write(&results, text).unwrap();
    eprintln!("written: {}", results.display());
}

/// Measures every contender in each round, starting with a different one each time.
fn measure(server: &Server, saves: bool, rounds: usize, span: Duration) -> Vec<Row> {
    let mut runs = Vec::new();
    let numbers = report::clients(saves);
    for &(name, page) in &server.contenders {
        if !saves {
            runs.push((name.to_owned(), page, Work::Read));
        } else if ![FLOOR_LATE, BASELINE, BASELINE_NEW].contains(&name) {
            // Saves would show the same differences as reads.
            runs.push((name.to_owned(), page, Work::Save));
            if page.ends_with("/comedor.php") && page != contenders::PAGE {
                runs.push((format!("{name}, flushed"), page, Work::FlushedSave));
            }
            if name == FASTCGI {
                runs.push((format!("{name}, 8 aularios"), page, Work::SaveApart));
            }
        }
    }
    let mut figures = vec![vec![Figures::default(); numbers.len()]; runs.len()];
    for round in 0..rounds {
        for (at, &clients) in numbers.iter().enumerate() {
            for turn in 0..runs.len() {
                let index = (round + turn) % runs.len();
                let (_, page, work) = &runs[index];
                figures[index][at].add(&server.site, (page, *work), clients, span);
            }
        }
    }
    let rows = runs.into_iter().zip(figures);
    rows.map(|((name, ..), figures)| Row { name, figures })
        .collect()
}
