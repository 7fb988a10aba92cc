//! Load on a server, and the measured times.

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
}

impl Figures {
    /// Lets `clients` send requests for `span`. The first and the last save of each must be in its file.
    pub fn add(&mut self, site: &Site, (page, work): (&str, Work), clients: usize, span: Duration) {
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

    /// The median of the requests per second of each round.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    }
}
