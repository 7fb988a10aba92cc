//! The meta-variables of a request (RFC 3875 §4.1) and the settings beside them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The process's environment, read once. Values are bytes: nothing promises UTF-8.
#[derive(Debug)]
pub struct Variables(Vec<(OsString, Vec<u8>)>);

impl Variables {
    /// The environment of this process.
    pub fn of_process() -> Variables {
        let pairs = std::env::vars_os();
        Variables(pairs.map(|(k, v)| (k, v.into_vec())).collect())
    }

    /// An environment made of `pairs`.
    pub fn from_pairs<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Variables {
        let pairs = pairs.into_iter();
        Variables(pairs.map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// Adds a variable behind those that are there, which win.
    pub fn add(&mut self, name: &str, value: Vec<u8>) {
        self.0.push((name.into(), value));
    }

    /// The value of `name`, where it is set.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(key, _)| key.as_bytes() == name.as_bytes())
            .map(|(_, value)| value.as_slice())
    }

    /// The value of `name`, where it is set and not empty: CGI makes no difference between
    /// the two (RFC 3875 §4.1).
    pub fn meta(&self, name: &str) -> Option<&[u8]> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Whether a web server started this process. `REQUEST_METHOD` alone is enough: some
    /// servers leave `GATEWAY_INTERFACE` out.
    pub fn is_cgi(&self) -> bool {
        self.get("GATEWAY_INTERFACE").is_some() || self.get("REQUEST_METHOD").is_some()
    }
}
