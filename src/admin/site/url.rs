//! The application's address in the browser, and requests to it, which never leave this machine.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::random;
use crate::admin::accounts;
use crate::admin::child::{self, Running};
use crate::admin::command::exec;
use crate::admin::guide;
use crate::cgi::origin::host_and_port;
use crate::error::Error;
use crate::sys::log::printable;

/// The path of the script in the application
pub const SCRIPT: &str = "/api/comedor.php";

/// The limits of a request. curl has a time limit too, but not while it writes.
pub const TIME: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1024 * 1024;

/// Addresses of this machine that are tried.
const MAX_HOSTS: usize = 64;

/// The URL of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct AppUrl {
    scheme: &'static str,
    /// The host without the port
    pub name: String,
    /// `:8443`, or nothing
    port: String,
    /// Of the application: `/entreaulas`
    path: String,
    /// The address of this machine where the requests go
    pub host: IpAddr,
}

impl AppUrl {
    /// From the address of the application, of a page in it, or of the script.
    pub fn parse(text: &str) -> Result<AppUrl, String> {
        AppUrl::of(text.trim()).ok_or_else(|| {
            format!(
                "{text:?} is not an address like https://school.example/entreaulas/, or its path has other characters than [A-Za-z0-9._/~-]"
            )
        })
    }

    fn of(url: &str) -> Option<AppUrl> {
        let has = |text: &str, more: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let (scheme, rest) = url.split_once("://")?;
        let scheme =
            ["http", "https"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
        let rest = rest.split(['?', '#']).next()?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (name, port) = host_and_port(host);
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        let is_host = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
            None => !name.is_empty() && has(name, ".-_"),
        };
        let path = path.strip_suffix(SCRIPT).unwrap_or(path);
        let page = path.find(".php").and_then(|at| path[..at].rfind('/')).unwrap_or(path.len());
        let path = path[..page].trim_end_matches('/');
        let is_folder = |name: &str| !["", ".", ".."].contains(&name) && has(name, "._~-");
        (is_host && is_port && path.split('/').skip(1).all(is_folder)).then(|| AppUrl {
            scheme,
            name: name.to_ascii_lowercase(),
            port: host[name.len()..].to_owned(),
            path: path.to_owned(),
            host: Ipv4Addr::LOCALHOST.into(),
        })
    }

    /// As a browser sends it in the field `Origin`: `https://school.example:8443`
    pub fn origin(&self) -> String {
        format!("{}://{}{}", self.scheme, self.name, self.port)
    }

    /// The path of the script
    pub fn path(&self) -> String {
        format!("{}{SCRIPT}", self.path)
    }

    /// The same script at a host that no school has.
    pub fn at_another_host(&self) -> Result<AppUrl, String> {
        Ok(AppUrl { name: format!("{}.invalid", random()?), ..self.clone() })
    }

    /// The same at each address of this machine, since a site may have one of them only; as long as it is not
    /// `end`, and less time has passed than a request may take: the others would be slow too.
    pub(super) fn on_each_host(&self, end: Instant) -> impl Iterator<Item = AppUrl> {
        let end = end.min(Instant::now() + TIME);
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let hosts = hosts(&read("/proc/net/fib_trie"), &read("/proc/net/if_inet6")).into_iter();
        let hosts = hosts.take_while(move |_| Instant::now() < end);
        hosts.map(|host| AppUrl { host, ..self.clone() })
    }

    /// Reads the menu types; without a login if the cookie is empty.
    pub fn read_types(&self, aulario: &str, cookie: &str) -> Result<Answer, String> {
        // A cache has no answer to this.
        let page = format!("comedor.php?action=get_menu_types&aulario={aulario}&now={}", random()?);
        self.request(&page, &[("header", &format!("Cookie: {cookie}"))])
    }

    /// What the script answers to a save from a page at this address that lacks a body, and so stores nothing.
    pub fn save_nothing(&self, aulario: &str, cookie: &str) -> Result<Answer, String> {
        let page = format!("comedor.php?action=save_menu&aulario={aulario}");
        let [cookie, origin] = [format!("Cookie: {cookie}"), format!("Origin: {}", self.origin())];
        self.request(&page, &[("header", &cookie), ("header", &origin), ("data", "")])
    }

    /// What answers a request without a login: at the first address of this machine where comedor does, else
    /// at the first where anything does. What was not tried at `end` is not tried.
    pub fn who_answers(&self, end: Instant) -> Result<Answer, String> {
        let mut first = Err("there was no time to ask".to_owned());
        for address in self.on_each_host(end) {
            match address.read_types("x", "") {
                Ok(answer) if answer.is_comedors() => return Ok(answer),
                answer if first.is_err() => first = answer,
                _ => {}
            }
        }
        first
    }

    /// Requests a page beside the script, with these options of curl.
    pub(super) fn request(&self, page: &str, options: &[(&str, &str)]) -> Result<Answer, String> {
        let said = self.start(page, options).and_then(Running::finish);
        said.map(|said| Answer::of(&said)).map_err(|error| error.to_string())
    }

    /// Starts a request of a page beside the script, by curl, as a user of whom no other process can be: curl
    /// knows a login. It gets its options by its standard input, since its arguments are visible to all users.
    /// The URL of a redirection is requested from this machine too.
    pub(super) fn start(&self, page: &str, options: &[(&str, &str)]) -> io::Result<Running> {
        let host = match self.host {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        let (origin, path) = (self.origin(), &self.path);
        let mut text = format!(
            "silent\nshow-error\ninsecure\ngloboff\nnoproxy = \"*\"\nproto = \"=http,https\"\n\
             connect-timeout = 3\nlocation\nmax-redirs = 5\nconnect-to = \"::{host}:\"\n\
             url = \"{origin}{path}/api/{page}\"\nwrite-out = \"\\n%{{http_code}} %{{url_effective}}\"\n"
        );
        for (name, value) in options {
            if value.contains(|c: char| c.is_control() || ['"', '\\'].contains(&c)) {
                return Err(io::Error::other(format!("{value:?} cannot be sent")));
            }
            text += &format!("{name} = \"{value}\"\n");
        }
        let user = accounts::unused()?;
        let run = |out: &mut File| exec("curl", &["--disable", "--config", "-"], &text, out);
        child::start(Some(&user), Instant::now() + TIME, MAX_ANSWER, run)
    }
}

/// The addresses of a machine, from the files `fib_trie` and `if_inet6` of /proc/net.
fn hosts(fib_trie: &str, if_inet6: &str) -> Vec<IpAddr> {
    let first = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let v4 = fib_trie.split("|-- ").filter(|leaf| leaf.contains("/32 host LOCAL"));
    let v4 = v4.filter_map(|leaf| leaf.lines().next()?.parse().ok());
    let of_line = |line: &str| u128::from_str_radix(line.split(' ').next()?, 16).ok();
    let v6 = if_inet6.lines().filter_map(of_line).map(Ipv6Addr::from);
    let v6 = v6.filter(|host| !host.is_unicast_link_local()).map(IpAddr::from);
    let others: BTreeSet<_> = v4.chain(v6).filter(|host| !first.contains(host)).collect();
    first.into_iter().chain(others).take(MAX_HOSTS).collect()
}

impl fmt::Display for AppUrl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path())
    }
}

/// What the web server answers.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: String,
    pub body: String,
    /// After the redirections
    pub url: String,
}

impl Answer {
    /// From what curl writes, which ends with the status and the URL.
    pub fn of(curl: &[u8]) -> Answer {
        let said = String::from_utf8_lossy(curl);
        let (body, last) = said.rsplit_once('\n').unwrap_or_default();
        let (status, url) = last.split_once(' ').unwrap_or_default();
        Answer { status: status.into(), body: body.into(), url: url.into() }
    }

    /// Whether it is comedor's answer to a request without a login.
    pub fn is_comedors(&self) -> bool {
        let sentences = [Error::not_logged_in(), Error::internal("")].map(|error| error.sentence);
        sentences.iter().any(|known| self.body.contains(&**known))
    }

    /// Why neither the script of `asked` nor a page beside it has answered, as a sentence, and the heading of the
    /// guide about that. A login of the web server is no mistake.
    pub fn meaning(&self, asked: &AppUrl) -> (&'static str, &'static str) {
        let own = format!("://{}{}{}/api/comedor", asked.name, asked.port, asked.path);
        let url = self.url.split('?').next().unwrap_or_default();
        match &*self.status {
            _ if !url.contains(&own) => ("the request is redirected elsewhere", guide::OLD_SCRIPT),
            _ if self.body.trim_start().starts_with("<?php") => {
                ("the web server does not run PHP there", guide::OLD_SCRIPT)
            }
            "401" => ("the web server asks for a login of its own", ""),
            "403" => ("the web server denies access", guide::REFUSED),
            "404" => ("the web server does not find it", guide::REFUSED),
            "502" | "503" | "504" => ("the web server cannot reach it", guide::NO_CONNECTION),
            status if status.starts_with('5') => {
                ("the web server cannot run it", guide::NOT_STARTED)
            }
            "200" if self.body.trim().is_empty() => {
                ("the answer is empty: a proxy may drop header fields", guide::OLD_SCRIPT)
            }
            _ => ("another program answers", guide::OLD_SCRIPT),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let line = self.body.lines().map(str::trim).find(|line| line.len() > 2).unwrap_or_default();
        let line = line.chars().take(80).collect::<String>();
        write!(f, "HTTP {} {}: {}", self.status, printable(&self.url), printable(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_the_application_a_page_or_the_script() {
        for (text, script) in [
            ("https://a.example/aulas/", "https://a.example/aulas/api/comedor.php"),
            ("https://a.example/aulas", "https://a.example/aulas/api/comedor.php"),
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
        let own = "://school.example/x/api/comedor-1.php?y";
        for (body, status, url, reason) in [
            ("", 404, "://school.example:444/x/api/comedor.php", "the request is redirected"),
            ("x", 200, "://other.example/x/api/comedor.php", "the request is redirected"),
            ("x", 200, "://a/?://school.example/x/api/comedor.php", "the request is redirected"),
            ("<?php\n// x", 200, own, "the web server does not run PHP there"),
            ("\n", 200, own, "the answer is empty"),
            ("<h1>", 418, own, "another program answers"),
        ] {
            let answer = Answer::of(format!("{body}\n{status} https{url}").as_bytes());
            assert!(answer.meaning(&asked).0.starts_with(reason), "{answer}");
        }
        let answer = Answer::of("a\n\u{1b}[2Jmore\n200 http://a\u{202e}".as_bytes());
        assert_eq!(answer.to_string(), "HTTP 200 http://a\\u{202e}: \\u{1b}[2Jmore");
    }
}
