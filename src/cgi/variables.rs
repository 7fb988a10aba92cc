//! The meta-variables of a request (RFC 3875 §4.1) and the settings beside them.

use std::env;
use std::os::unix::ffi::OsStringExt;

/// The meta-variables that a request is made of here. A server sets thirty or more; the others are
/// not looked at.
const META: [&str; 11] = [
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "GATEWAY_INTERFACE",
    "HTTP_COOKIE",
    "HTTP_HOST",
    "HTTP_ORIGIN",
    "HTTP_SEC_FETCH_SITE",
    "QUERY_STRING",
    "REQUEST_METHOD",
    "SERVER_NAME",
    "SERVER_SOFTWARE",
];

/// Variables by their names. Values are bytes: nothing promises UTF-8.
#[derive(Debug)]
pub struct Variables(Vec<(&'static str, Vec<u8>)>);

impl Variables {
    /// The meta-variables and the `settings` out of this process's environment.
    pub fn of_process(settings: impl IntoIterator<Item = &'static str>) -> Variables {
        let names = META.into_iter().chain(settings);
        Variables(names.filter_map(|name| Some((name, env::var_os(name)?.into_vec()))).collect())
    }

    /// An environment made of `pairs`.
    pub fn from_pairs<'v>(pairs: impl IntoIterator<Item = (&'static str, &'v str)>) -> Variables {
        Variables(pairs.into_iter().map(|(name, value)| (name, value.into())).collect())
    }

    /// Adds a variable behind those that are there, which win.
    pub fn add(&mut self, name: &'static str, value: Vec<u8>) {
        self.0.push((name, value));
    }

    /// The value of `name`, where it is set.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_slice())
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
