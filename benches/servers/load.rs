//! Load on a server, and the measured times.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, Work};
use crate::support::site::Site;

/// The measurements of one contender.
#[derive(Clone, Default)]
pub struct Figures {
    pub times: Vec<Duration>,
    /// Requests per second in each round.
    pub rates: Vec<f64>,
    /// The requests that failed, with the reason
    pub failures: Vec<String>,
    /// Processor time of the program, user and system, in seconds
    processor: [f64; 2],
}

impl Figures {
    /// Lets `clients` send requests for `span`. The first and the last save of each must be in its file. `process`
    /// is the name of the program's processes.
    pub fn add(
        &mut self,
        site: &Site,
        (page, process, work): (&str, Option<&str>, Work),
        clients: usize,
        span: Duration,
    ) {
        let saves = work != Work::Read && !page.starts_with("floor");
        let clients = (1..=clients).map(|number| {
            let client = Client::new(site, page, work, number);
            let first = format!("first of {page}");
            client.request(&first);
            if saves {
                client.assert_saved(&first);
            }
            client
        });
        let clients: Vec<Client> = clients.collect();
        let before = process.map(processor_time);
        let started = Instant::now();
        let (times, failures): (Vec<Vec<Duration>>, Vec<Vec<String>>) = thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter()
                .map(|client| {
                    scope.spawn(move || {
                        let mut times = Vec::new();
                        let mut failures = Vec::new();
                        loop {
                            let name = format!("{} of {page}", times.len());
                            let sent = Instant::now();
                            match client.try_request(&name) {
                                Ok(_) => times.push(sent.elapsed()),
                                Err(why) => failures.push(why),
                            }
                            if started.elapsed() > span {
                                return (times, failures);
                            }
                        }
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let elapsed = started.elapsed();
        if let (Some(before), Some(after)) = (before, process.map(processor_time)) {
            for (at, total) in self.processor.iter_mut().enumerate() {
                *total += after[at] - before[at];
            }
        }
        if saves {
            for (client, times) in clients.iter().zip(&times) {
                client.assert_saved(&format!("{} of {page}", times.len() - 1));
            }
        }
        self.failures.extend(failures.into_iter().flatten());
        let count: usize = times.iter().map(Vec::len).sum();
        self.rates.push(count as f64 / elapsed.as_secs_f64());
        self.times.extend(times.into_iter().flatten());
    }

    /// This quantile of the times, in milliseconds.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() as f64 * quantile).ceil() as usize;
        times[at.clamp(1, times.len()) - 1].as_secs_f64() * 1000.0
    }

    /// The processor time of the program for a request, user and system, in microseconds.
    pub fn processor_time(&self) -> [f64; 2] {
        self.processor
            .map(|seconds| seconds * 1e6 / self.times.len() as f64)
    }

    /// The median of the requests per second of each round.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    }
}

/// The processor time of the descendants of this process whose name begins with `name`, and of their children that
/// have ended (proc_pid_stat(5)).
fn processor_time(name: &str) -> [f64; 2] {
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (start, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let number = |at: usize| fields[at].parse::<u32>().unwrap();
        Some((
            process,
            (
                start.split_once('(')?.1.to_owned(),
                number(1),
                [11, 12].map(|own| number(own) + number(own + 2)),
            ),
        ))
    });
    let processes: BTreeMap<_, _> = entries.collect();
    let is_ours = |mut process: u32| loop {
        match processes.get(&process) {
            Some((_, parent, _)) if *parent == std::process::id() => return true,
            Some((_, parent, _)) => process = *parent,
            None => return false,
        }
    };
    let mut total = [0; 2];
    for (&process, (own, _, times)) in &processes {
        if own.starts_with(name) && is_ours(process) {
            total = [total[0] + times[0], total[1] + times[1]];
        }
    }
    // Linux counts them in hundredths of a second (USER_HZ).
    total.map(|time| f64::from(time) / 100.)
}
