//! The application's address in the browser, and requests to it, which never leave this machine.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::replace;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::random;
use crate::admin::accounts;
use crate::admin::child::{Child, Running};
use crate::admin::command::exec;
use crate::error::Error;
use crate::sys::log::printable;

/// The path of the script in the application
pub const SCRIPT: &str = "/api/comedor.php";

/// The limits of a request. curl has a time limit too, but not while it writes.
const TIME: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1024 * 1024;

/// After an answer that takes as long, no other is waited for.
const SLOW: Duration = Duration::from_secs(2);
/// Addresses of this machine that are tried.
const MAX_HOSTS: usize = 64;

/// The URL of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct AppUrl {
    /// `https://school.example:8443`, as a browser sends it in the field `Origin`
    pub origin: String,
    /// Of the application: `/entreaulas`
    path: String,
    /// The address of this machine where the requests go
    pub host: IpAddr,
}

impl AppUrl {
    /// From the address of the application, of a page in it, or of the script.
    pub fn parse(text: &str) -> Result<AppUrl, String> {
        let refused =
            || format!("{text:?} is not an address like https://school.example/entreaulas/");
        let (origin, path) = split(text.trim()).ok_or_else(refused)?;
        let path = path.strip_suffix(SCRIPT).unwrap_or(path);
        let page = path.find(".php").and_then(|at| path[..at].rfind('/')).unwrap_or(path.len());
        let path = path[..page].trim_end_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/~-".contains(&byte);
        let is_folder = |name: &str| !["", ".", ".."].contains(&name);
        if !path.bytes().all(is_plain) || !path.split('/').skip(1).all(is_folder) {
            return Err(format!("{text:?}: a path with other characters than [A-Za-z0-9._/~-]"));
        }
        Ok(AppUrl { origin, path: path.to_owned(), host: Ipv4Addr::LOCALHOST.into() })
    }

    /// The host without the port
    pub fn name(&self) -> &str {
        name(&self.origin)
    }

    /// The path of the script
    pub fn path(&self) -> String {
        format!("{}{SCRIPT}", self.path)
    }

    /// The same script at a host that no school has.
    pub fn at_another_host(&self) -> Result<AppUrl, String> {
        let (scheme, _) = self.origin.split_once("://").unwrap_or_default();
        let port = &self.origin[without_port(&self.origin).len()..];
        Ok(AppUrl { origin: format!("{scheme}://{}.invalid{port}", random()?), ..self.clone() })
    }

    /// The same at each address of this machine: a site may have one of them only.
    pub(super) fn on_each_host(&self) -> impl Iterator<Item = AppUrl> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let hosts = hosts(&read("/proc/net/fib_trie"), &read("/proc/net/if_inet6"));
        hosts.into_iter().map(|host| self.clone().by(host))
    }

    /// The same until `end`, or until one has taken long: the others would too.
    pub(super) fn on_each_quick_host(&self, end: Instant) -> impl Iterator<Item = AppUrl> {
        let mut start = Instant::now();
        self.on_each_host().take_while(move |_| {
            replace(&mut start, Instant::now()).elapsed() < SLOW && Instant::now() < end
        })
    }

    /// The same at this address of this machine.
    pub(super) fn by(self, host: IpAddr) -> AppUrl {
        AppUrl { host, ..self }
    }

    /// Reads the menu types; without a login if the cookie is empty.
    pub fn read_types(&self, aulario: &str, cookie: &str) -> Result<Answer, String> {
        // A cache has no answer to this.
        let page = format!("comedor.php?action=get_menu_types&aulario={aulario}&now={}", random()?);
        self.request(&page, &[format!("Cookie: {cookie}")], "").map_err(|error| error.to_string())
    }

    /// What the script answers to a save that lacks a body, and so cannot store anything, from a page at this
    /// address.
    pub fn save_nothing(&self, aulario: &str, cookie: &str) -> Result<Answer, String> {
        let page = format!("comedor.php?action=save_menu&aulario={aulario}");
        let fields = [format!("Cookie: {cookie}"), format!("Origin: {}", self.origin)];
        self.request(&page, &fields, "data = \"\"\n").map_err(|error| error.to_string())
    }

    /// What answers a request without a login: at the first address of this machine where comedor does, else
    /// at the first where anything does. What was not tried at `end` is not tried.
    pub fn who_answers(&self, end: Instant) -> Result<Answer, String> {
        let mut first = Err("this machine has no address".to_owned());
        for address in self.on_each_quick_host(end) {
            match address.read_types("x", "") {
                Ok(answer) if answer.is_comedors() => return Ok(answer),
                answer if first.is_err() => first = answer,
                _ => {}
            }
        }
        first
    }

    /// Requests a page beside the script, with these header fields and options of curl.
    pub(super) fn request(
        &self,
        page: &str,
        fields: &[String],
        options: &str,
    ) -> io::Result<Answer> {
        Answer::of(self.start(page, fields, options)?, self)
    }

    /// Starts a request of a page beside the script, by curl, as a user of whom no other process can be: curl
    /// knows a login. It gets its options by its standard input, since its arguments are visible to all users.
    /// The URL of a redirection is requested from this machine too.
    pub(super) fn start(
        &self,
        page: &str,
        fields: &[String],
        options: &str,
    ) -> io::Result<Running> {
        let AppUrl { origin, path, host } = self;
        let host = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
        let mut text = format!(
            "silent\nshow-error\ninsecure\ngloboff\nnoproxy = \"*\"\nproto = \"=http,https\"\n\
             connect-timeout = 3\nlocation\nmax-redirs = 5\nconnect-to = \"::{host}:\"\n\
             url = \"{origin}{path}/api/{page}\"\nwrite-out = \"\\n%{{http_code}} %{{url_effective}}\"\n{options}"
        );
        for field in fields {
            if field.chars().any(|c| c.is_control() || ['"', '\\'].contains(&c)) {
                return Err(io::Error::other(format!("{field:?} cannot be sent")));
            }
            text += &format!("header = \"{field}\"\n");
        }
        let user = accounts::unused()?;
        let child = Child { user: Some(&user), time: TIME, size: MAX_ANSWER };
        let curl = child.start(|out| exec("curl", &["--disable", "--config", "-"], &text, out));
        curl.map_err(|error| io::Error::other(format!("curl: {error}")))
    }
}

/// The addresses of a machine, from the files `fib_trie` and `if_inet6` of /proc/net.
fn hosts(fib_trie: &str, if_inet6: &str) -> Vec<IpAddr> {
    let mut hosts: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let mut last = "";
    for line in fib_trie.lines() {
        match line.trim_start().strip_prefix("|-- ") {
            Some(address) => last = address,
            None if line.contains("/32 host LOCAL") => hosts.extend(last.parse::<IpAddr>()),
            None => {}
        }
    }
    let of_line = |line: &str| u128::from_str_radix(line.split(' ').next()?, 16).ok();
    let v6 = if_inet6.lines().filter_map(of_line).map(Ipv6Addr::from);
    hosts.extend(v6.filter(|host| !host.is_unicast_link_local()).map(IpAddr::from));
    let mut known = BTreeSet::new();
    hosts.retain(|host| known.insert(*host));
    hosts.truncate(MAX_HOSTS);
    hosts
}

/// The origin, and the path without what comes after it.
fn split(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let origin = format!("{scheme}://{host}").to_ascii_lowercase();
    let name = without_port(host);
    let port = host[name.len()..].strip_prefix(':').unwrap_or("80");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_host = match v6 {
        Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(is_name),
    };
    let is_known = origin.starts_with("http://") || origin.starts_with("https://");
    (is_known && is_host && port.parse::<u16>().is_ok()).then_some((origin, path))
}

/// A host or an origin without its port.
fn without_port(host: &str) -> &str {
    let is_port = |port: &str| !port.contains([']', '/']);
    host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name)
}

/// The host of an origin
fn name(origin: &str) -> &str {
    without_port(origin).split_once("://").map_or("", |(_, name)| name)
}

/// The URL of the script
impl fmt::Display for AppUrl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path())
    }
}

/// What the web server answers.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: String,
    pub body: String,
    /// After the redirections
    pub url: String,
    /// Whether that is at another host
    is_elsewhere: bool,
}

impl Answer {
    /// Waits for the answer to a request at `url`.
    pub(super) fn of(curl: Running, url: &AppUrl) -> io::Result<Answer> {
        let said = curl.finish().map_err(|error| match error.kind() {
            ErrorKind::Other => io::Error::other(of_curl(&error.to_string())),
            _ => error,
        })?;
        Answer::parse(&String::from_utf8_lossy(&said), url)
            .ok_or_else(|| io::Error::other("curl says no status"))
    }

    fn parse(said: &str, asked: &AppUrl) -> Option<Answer> {
        let (body, last) = said.rsplit_once('\n')?;
        let (status, url) = last.split_once(' ')?;
        let is_elsewhere = split(url).is_none_or(|(origin, _)| name(&origin) != asked.name());
        let (status, body, url) = (status.to_owned(), body.to_owned(), url.to_owned());
        Some(Answer { status, body, url, is_elsewhere })
    }

    /// Whether it is comedor's answer to a request without a login.
    pub fn is_comedors(&self) -> bool {
        let sentences = [Error::not_logged_in(), Error::internal("")].map(|error| error.sentence);
        sentences.iter().any(|known| self.body.contains(&**known))
    }

    /// Why a page has not answered that was requested, as a sentence.
    pub(super) fn explained(&self) -> String {
        let body = self.body.trim_start();
        let reason = match &*self.status {
            _ if self.is_elsewhere => "the request is redirected to another host",
            _ if body.starts_with("<?php") => "the web server does not run PHP there",
            "401" => "the web server asks for a password of its own",
            "403" => "the web server refuses the request",
            "404" => "there is no script: it is not below this address, or not among those found",
            "502" | "503" | "504" => "the web server cannot reach PHP, or is in maintenance",
            status if status.starts_with('5') => "the web server or PHP fails",
            "200" if body.is_empty() => "the page did not run: a proxy drops the field X-Comedor?",
            _ => "another page answers: of a maintenance mode, a front controller or a cache",
        };
        format!("{reason} ({self})")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let line = self.body.lines().map(str::trim).find(|line| line.len() > 2).unwrap_or_default();
        let line = line.chars().take(80).collect::<String>();
        write!(f, "HTTP {} {}: {}", self.status, printable(&self.url), printable(&line))
    }
}

/// The cause among what curl and the server said, as curl names it.
fn of_curl(said: &str) -> String {
    let line = said.split("; ").find_map(|line| line.strip_prefix("curl: ("));
    let cause = line.and_then(|line| line.split_once(") ")).map(|(_, cause)| cause);
    format!("no answer: {}", cause.unwrap_or(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_the_application_a_page_or_the_script() {
        for (text, script) in [
            (
                "https://school.example/entreaulas/",
                "https://school.example/entreaulas/api/comedor.php",
            ),
            (
                "https://school.example/entreaulas",
                "https://school.example/entreaulas/api/comedor.php",
            ),
            (" HTTP://School.Example ", "http://school.example/api/comedor.php"),
            ("http://a.example:8080/x/day.php?d=1#top", "http://a.example:8080/x/api/comedor.php"),
            ("http://a.example/x/day.php/more", "http://a.example/x/api/comedor.php"),
            ("http://a.example/api/comedor.php?action=x", "http://a.example/api/comedor.php"),
            ("http://[::1]:81/~school/x//", "http://[::1]:81/~school/x/api/comedor.php"),
            ("http://127.0.0.1?x=/y", "http://127.0.0.1/api/comedor.php"),
        ] {
            assert_eq!(AppUrl::parse(text).unwrap().to_string(), script, "{text}");
        }
        for text in [
            "", "school.example", "ftp://a", "http://", "http:///x", "http://a:x",
            "http://a:99999", "http://a b", "http://user@a", "http://a\"\n", "http://[::1",
            "http://[x]", "http://[::1]x", "http://ñ.example", "http://a/x y", "http://a/\"",
            "http://a/../b", "http://a/x/./y", "http://a//x", "http://a/%2e", "http://a/x\ny",
        ] {
            assert!(AppUrl::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn another_host_keeps_scheme_and_port() {
        for (text, start, end) in [
            ("https://school.example/x", "https://", ".invalid/x/api/comedor.php"),
            ("http://[::1]:81", "http://", ".invalid:81/api/comedor.php"),
        ] {
            let other = AppUrl::parse(text).unwrap().at_another_host().unwrap().to_string();
            assert!(other.starts_with(start) && other.ends_with(end), "{other}");
        }
    }

    #[test]
    fn the_hosts_are_the_addresses_of_this_machine() {
        // proc_net_fib_trie(5), and /proc/net/if_inet6: address, index, length of the prefix, scope, flags, name
        let fib_trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.5\n        \
                        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
                        Local:\n     |-- 10.0.0.5\n        /32 host LOCAL\n";
        let if_inet6 = "00000000000000000000000000000001 01 80 10 80       lo\n\
                        fe800000000000000000000000000001 02 40 20 80     eth0\n\
                        20010db8000000000000000000000001 02 40 00 80     eth0\n";
        let known: Vec<_> = hosts(fib_trie, if_inet6).iter().map(IpAddr::to_string).collect();
        assert_eq!(known, ["127.0.0.1", "::1", "10.0.0.5", "2001:db8::1"]);
        assert_eq!(hosts("", "").len(), 2);
    }

    #[test]
    fn an_answer_tells_why_the_page_has_not_answered() {
        let asked = AppUrl::parse("http://school.example/x").unwrap();
        for (said, reason) in [
            ("\n401 http://school.example/x", "the web server asks for a password of its own"),
            ("\n404 https://school.example:444/x?y", "there is no script"),
            ("login\n200 http://other.example/x", "the request is redirected to another host"),
            ("<?php\n// x\n200 http://school.example/x", "the web server does not run PHP there"),
            ("\n200 http://school.example/x", "the page did not run"),
            ("<h1>\n418 http://school.example/x", "another page answers"),
        ] {
            let answer = Answer::parse(said, &asked).unwrap().explained();
            assert!(answer.starts_with(reason), "{answer}");
        }
        let answer = Answer::parse("a\n\u{1b}[2Jmore\n200 http://a\u{202e}", &asked).unwrap();
        assert_eq!(answer.to_string(), "HTTP 200 http://a\\u{202e}: \\u{1b}[2Jmore");
        assert!(Answer::parse("", &asked).is_none());
        let said = "x; curl: (7) Failed to connect to a; 000 http://a";
        assert_eq!(of_curl(said), "no answer: Failed to connect to a");
    }
}
