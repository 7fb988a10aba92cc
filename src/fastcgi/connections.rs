//! The open connections, and which of them gives way if all are taken.

use std::collections::BTreeMap;
use std::time::Instant;

use super::connection::{Connection, Phase};

/// Tokens below it are not of connections.
const FIRST_TOKEN: u64 = 8;

#[derive(Default)]
pub struct Connections<'l> {
    /// By token; `None` while a thread owns and serves it
    pub open: BTreeMap<u64, Option<Connection<'l>>>,
    accepted: u64,
}

impl<'l> Connections<'l> {
    /// Adds a connection that the caller owns, and returns its token.
    pub fn add(&mut self) -> u64 {
        self.accepted += 1;
        let token = FIRST_TOKEN + self.accepted;
        self.open.insert(token, None);
        token
    }

    /// The waiting connection that gives way to a new one, and what it waits for.
    pub fn first_to_give_way(&self) -> Option<(Phase, u64)> {
        let now = Instant::now();
        let waiting = self.open.iter().filter_map(|(token, open)| Some((token, open.as_ref()?)));
        let mut waiting: Vec<_> =
            waiting.map(|(&token, waiting)| (waiting.standing(now), token)).collect();
        waiting.sort();
        let mut in_order = waiting.into_iter().map(|((phase, _), token)| (phase, token));
        // Of an idle connection, a request may just have arrived.
        let is_idle = |token: &u64| self.open[token].as_ref().is_some_and(Connection::is_idle);
        in_order.find(|(phase, token)| *phase != Phase::Idle || is_idle(token))
    }
}
