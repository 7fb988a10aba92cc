//! Clients of a server, and how long each of their requests takes.

use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;

use crate::contenders::DATE;
use crate::support::json;
use crate::support::site::Site;

/// How many clients there are at a time.
pub const CLIENTS: [usize; 2] = [1, 8];

/// What a request asks for.
#[derive(Clone, Copy, PartialEq)]
pub enum Work {
    Read,
    Save,
    /// A save that PHP flushes; the program always does.
    FlushedSave,
}

/// A client with a connection that is kept, a session and a day of its own.
pub struct Client<'s> {
    site: &'s Site,
    agent: Agent,
    url: String,
    cookie: String,
    day: String,
    work: Work,
}

impl<'s> Client<'s> {
    pub fn new(site: &'s Site, page: &str, work: Work, number: usize) -> Client<'s> {
        let query = match work {
            Work::Read => format!("action=get_menu&aulario=aula1&date={DATE}&menu=basal"),
            Work::Save => "action=save_menu&aulario=aula1".to_owned(),
            Work::FlushedSave => "action=save_menu&aulario=aula1&durable=1".to_owned(),
        };
        Client {
            site,
            // Without a timeout, for which it would start a thread for each request.
            agent: Agent::new_with_defaults(),
            url: site.url(&format!("{page}?{query}")),
            cookie: format!("PHPSESSID={number}"),
            day: format!("2026-05-{number:02}"),
            work,
        }
    }

    /// Reads, or saves this name of a plate. It must succeed.
    pub fn request(&self, name: &str) -> String {
        let response = if self.work == Work::Read {
            self.agent.get(&self.url).header("Cookie", &self.cookie).call()
        } else {
            let plates = json!({"primero": {"name": name}});
            let body = json!({"date": self.day, "menu_type": "basal", "plates": plates});
            let request = self.agent.post(&self.url).header("Cookie", &self.cookie);
            request.content_type("application/json").send(body.to_string())
        };
        let text = response.and_then(|mut response| response.body_mut().read_to_string());
        text.unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }

    fn assert_saved(&self, name: &str) {
        assert_eq!(self.site.plates(&self.day)["primero"]["name"], name, "{}", self.url);
    }
}

/// What was measured of one contender.
#[derive(Default)]
pub struct Figures {
    pub times: Vec<Duration>,
    /// Requests a second, of each round.
    pub rates: Vec<f64>,
}

impl Figures {
    /// Lets so many clients do nothing but `work` for the time of `span`.
    pub fn add(&mut self, site: &Site, page: &str, work: Work, clients: usize, span: Duration) {
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
        let times: Vec<Vec<Duration>> = thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter()
                .map(|client| {
                    scope.spawn(move || {
                        let mut times = Vec::new();
                        loop {
                            let name = format!("{} of {page}", times.len());
                            let sent = Instant::now();
                            client.request(&name);
                            times.push(sent.elapsed());
                            if started.elapsed() > span {
                                return times;
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let elapsed = started.elapsed();
        if saves {
            for (client, times) in clients.iter().zip(&times) {
                client.assert_saved(&format!("{} of {page}", times.len() - 1));
            }
        }
        let count: usize = times.iter().map(Vec::len).sum();
        self.rates.push(count as f64 / elapsed.as_secs_f64());
        self.times.extend(times.into_iter().flatten());
    }

    /// In milliseconds, what this part of the requests took at most.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() as f64 * part).ceil() as usize;
        times[at.clamp(1, times.len()) - 1].as_secs_f64() * 1000.0
    }

    /// Requests a second, the median of the rounds.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    }
}
