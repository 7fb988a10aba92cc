//! `comedor configure`.

use crate::sys::log::log;

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    pub server: Option<Server>,
    pub yes: bool,
}

#[derive(Debug)]
pub struct Server;

impl Server {
    pub fn find(_name: &str) -> Option<Server> {
        None
    }
}

pub fn run(_options: &Options) -> u8 {
    log("not yet");
    1
}
