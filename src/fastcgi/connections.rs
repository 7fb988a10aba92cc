//! The open connections, and which of them gives way if all are taken.

use std::collections::BTreeMap;
use std::time::Instant;

use super::connection::{Connection, Standing};

/// Tokens below it are not of connections.
pub const FIRST_TOKEN: u64 = 8;

#[derive(Default)]
pub struct Connections<'l> {
    /// Those that wait for an event. The others are owned by the threads that serve them
    pub waiting: BTreeMap<u64, Connection<'l>>,
    /// The number of all connections
    pub open: usize,
    accepted: u64,
}

impl<'l> Connections<'l> {
    /// Counts a new connection and returns its token.
    pub fn open_one(&mut self) -> u64 {
        self.open += 1;
        self.accepted += 1;
        FIRST_TOKEN + self.accepted
    }

    /// The connection that has been idle longest.
    pub fn longest_idle(&self) -> Option<u64> {
        self.in_order()
            .find(|&(standing, _)| matches!(standing, Standing::Idle(_)))
            .map(|(_, token)| token)
    }

    /// The connection that gives way to a new one.
    pub fn first_to_give_way(&self) -> Option<u64> {
        self.in_order().next().map(|(_, token)| token)
    }

    /// Takes a waiting connection out, to close it.
    pub fn remove(&mut self, token: u64) -> Option<Connection<'l>> {
        let connection = self.waiting.remove(&token)?;
        self.open -= 1;
        Some(connection)
    }

    fn in_order(&self) -> impl Iterator<Item = (Standing, u64)> {
        let now = Instant::now();
        let standing =
            |(&token, connection): (&u64, &Connection)| (connection.standing(now), token);
        let mut all: Vec<_> = self.waiting.iter().map(standing).collect();
        all.sort();
        // Of an idle connection, a request may just have arrived.
        all.into_iter().filter(|(standing, token)| {
            !matches!(standing, Standing::Idle(_)) || self.waiting[token].is_idle()
        })
    }
}
