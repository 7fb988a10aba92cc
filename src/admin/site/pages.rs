//! Asks PHP: places a page beside each script for a moment, requests it, and listens to what it says.
//!
//! Who runs the page tells two numbers: the key, which only the request has, so it is the PHP behind the
//! address; and the nonce of the page, so it can read that page, and cannot claim the script of another site.
//! Its user comes from the kernel. All else is data of a party that root does not trust.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{iter, slice};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat, unlinkat};
use rustix::io::Errno;

use super::php::{Php, WebServer};
use super::url::{Answer, AppUrl};
use super::{Site, random};
use crate::admin::brief_file::{BriefFile, LIFE};
use crate::admin::child::Running;
use crate::sys::log::printable;
use crate::sys::process::{Credentials, peer_uid};
use crate::sys::shared_file;

const PAGE: &str = include_str!("page.php");
/// How names of pages start, before 32 hexadecimal digits
const NAME: &str = "comedor-";
/// The time for PHP to say all, after the web server has answered.
const GRACE: Duration = Duration::from_millis(100);
/// How many callers of one user are heard at a time: any process of this machine can be one.
const MAX_CALLERS: usize = 16;
const MAX_SAID: usize = 64 * 1024;
/// The entries of a script's folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Asks the PHP at `address` which of the `scripts` it runs, and with which settings. The administrator may name
/// the web server. What was not tried at `end` is not tried.
pub fn ask_php(
    address: &AppUrl,
    scripts: &[PathBuf],
    server: Option<&str>,
    end: Instant,
) -> Result<Site, String> {
    let pages = Pages::place(scripts, end)?;
    let mut problems = pages.problems.clone();
    for address in address.on_each_quick_host(end) {
        let problem = match pages.request(&address, "", "") {
            Ok((answer, Some((script, php)))) => {
                let url = answer.url.replace(&pages.name, "comedor.php");
                let found = AppUrl::parse(&url)?.by(address.host);
                if !url.contains(&found.to_string()) {
                    return Err(format!("the web server runs the script at {:?}", answer.url));
                }
                let php = php?;
                let software = if php.is_module() { "apache2" } else { php.says("server") };
                let server = WebServer::find(server.unwrap_or(software));
                return Ok(Site { address: found, script: script.to_owned(), php, server });
            }
            Ok((answer, None)) => match cannot_call(&answer.body, &pages.key) {
                Some(problem) => return Err(problem),
                None => answer.explained(),
            },
            Err(error) => error.to_string(),
        };
        problems.push(format!("by {}: {problem}", address.host));
    }
    let problems = problems.join("\n");
    Err(format!("no PHP that runs one of the scripts answers at {address}:\n{problems}"))
}

/// What the script itself answers to this query with this cookie, also while comedor answers in its place: a
/// page beside it runs it.
pub fn answer_of_script(site: &Site, query: &str, cookie: &str) -> Result<Answer, String> {
    let pages = Pages::place(slice::from_ref(&site.script), Instant::now() + LIFE)?;
    let answer = pages.request(&site.address, query, cookie);
    answer.map(|(answer, _)| answer).map_err(|error| error.to_string())
}

/// The addresses of this machine at which the web server refuses a page beside the script to everybody without
/// a login of the web server. Without the key, the page is empty.
pub fn refusing(site: &Site) -> Result<Vec<AppUrl>, String> {
    let end = Instant::now() + LIFE;
    let pages = Pages::place(slice::from_ref(&site.script), end)?;
    let mut refusing = Vec::new();
    for address in site.address.on_each_host() {
        match address.request(&pages.name, &[], "") {
            Ok(answer) if ["401", "403"].contains(&&*answer.status) => refusing.push(address),
            Err(error) if error.kind() == ErrorKind::TimedOut || Instant::now() > end => {
                return Err(format!("{address} (by {}): {error}", address.host));
            }
            _ => {}
        }
    }
    Ok(refusing)
}

/// A page beside each script, and the socket by which PHP tells what it has there
#[derive(Debug)]
struct Pages {
    name: String,
    key: String,
    listener: UnixListener,
    pages: Vec<Page>,
    /// Why there is no page beside some scripts
    problems: Vec<String>,
}

/// A script, and the PHP that runs it or why it cannot be used
type Heard<'p> = (&'p Path, Result<Php, String>);

#[derive(Debug)]
struct Page {
    script: PathBuf,
    nonce: String,
    _file: BriefFile,
}

impl Pages {
    fn place(scripts: &[PathBuf], end: Instant) -> Result<Pages, String> {
        let (key, socket) = (random()?, format!("{NAME}{}", random()?));
        let listener = SocketAddr::from_abstract_name(&socket).and_then(|address| {
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| error.to_string())?;
        let (mut pages, mut problems) = (Vec::new(), Vec::new());
        for script in scripts {
            if Instant::now() > end {
                problems.push("there was no time to ask PHP".to_owned());
                break;
            }
            match Page::place(script, &socket) {
                Ok(page) => pages.push(page),
                Err(error) => problems.push(format!(
                    "cannot place a page beside {}: {error}",
                    printable(&script.display().to_string())
                )),
            }
        }
        if pages.is_empty() {
            return Err(problems.join("\n"));
        }
        Ok(Pages { name: format!("{socket}.php"), key, listener, pages, problems })
    }

    /// Requests the page. Returns what answers, and the PHP that has run the page, with its script.
    fn request(
        &self,
        address: &AppUrl,
        query: &str,
        cookie: &str,
    ) -> io::Result<(Answer, Option<Heard<'_>>)> {
        let fields = [format!("X-Comedor: {}", self.key), format!("Cookie: {cookie}")];
        let mut curl = address.start(&format!("{}?{query}", self.name), &fields, "")?;
        // The page waits until it is heard.
        let heard = self.listen(&mut curl)?;
        Ok((Answer::of(curl, address)?, heard))
    }

    /// Waits for a PHP that knows the key and a nonce, until the web server has answered completely: a script
    /// may send the start of its answer early.
    fn listen(&self, curl: &mut Running) -> io::Result<Option<Heard<'_>>> {
        let (mut callers, mut end) = (Vec::<Caller>::new(), curl.end());
        loop {
            let mut files = vec![PollFd::new(&self.listener, PollFlags::IN)];
            files.extend(callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)));
            files.extend(curl.pipe().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            let rest = Timespec::try_from(end.saturating_duration_since(Instant::now()));
            match poll(&mut files, Some(&rest.map_err(Error::other)?)) {
                Ok(0) if curl.pipe().is_none() => return Ok(None),
                Ok(0) => return Err(Error::new(ErrorKind::TimedOut, "no answer in time")),
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            let ready: Vec<_> = files.iter().map(|file| !file.revents().is_empty()).collect();
            let curl_is_ready = ready.get(callers.len() + 1) == Some(&true);
            for at in (0..callers.len()).rev().filter(|at| ready[at + 1]) {
                let is_heard = callers[at].hear(&self.key);
                if let Ok(false) = is_heard {
                    continue;
                }
                let caller = callers.remove(at);
                let page = self.pages.iter().find(|page| caller.knows(&page.nonce));
                if let Some(page) = page.filter(|_| is_heard.is_ok()) {
                    return Ok(Some((&page.script, Php::of(caller.stream, &caller.said))));
                }
            }
            if ready[0] {
                self.accept(&mut callers);
            }
            if curl_is_ready && curl.hear()? {
                end = end.min(Instant::now() + GRACE);
            }
        }
    }

    /// Takes the connections that wait. Other users can make many, and say nothing: their oldest are closed.
    fn accept(&self, callers: &mut Vec<Caller>) {
        for (stream, _) in iter::from_fn(|| self.listener.accept().ok()).take(MAX_CALLERS) {
            let Ok(uid) = peer_uid(&stream) else { continue };
            let is_same = |caller: &Caller| caller.uid == uid;
            if callers.iter().filter(|caller| is_same(caller)).count() == MAX_CALLERS {
                callers.remove(callers.iter().position(is_same).unwrap_or_default());
            }
            callers.push(Caller { stream, uid, said: Vec::new() });
        }
    }
}

/// A process that has connected: perhaps PHP.
struct Caller {
    stream: UnixStream,
    uid: u32,
    said: Vec<u8>,
}

impl Caller {
    /// Reads a part of what it says. Returns whether that was all: it ends with an empty line, or PHP has failed.
    fn hear(&mut self, key: &str) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let length = self.stream.read(&mut buffer)?;
        self.said.extend_from_slice(&buffer[..length]);
        let first = format!("key={key}\n");
        let known = first.len().min(self.said.len());
        if self.said[..known] != first.as_bytes()[..known] || self.said.len() > MAX_SAID {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(length == 0 || self.said.ends_with(b"\n\n"))
    }

    /// Whether it has read the page with this nonce.
    fn knows(&self, nonce: &str) -> bool {
        let line = format!("nonce={nonce}");
        self.said.split(|&byte| byte == b'\n').any(|said| said == line.as_bytes())
    }
}

impl Page {
    /// Writes it as the owner of the script's folder, without the rights of root.
    fn place(script: &Path, socket: &str) -> Result<Page, String> {
        let (nonce, script) = (random()?, script.to_owned());
        let text = PAGE.replace("{socket}", socket).replace("{nonce}", &nonce);
        let place = || {
            let folder = script.parent().ok_or(ErrorKind::NotFound)?;
            let found = fs::symlink_metadata(folder)?;
            let owner = Credentials { uid: found.uid(), gid: found.gid(), groups: vec![] };
            let path = folder.join(format!("{socket}.php"));
            let prepare = |folder: &File| {
                let seen = folder.metadata()?;
                if (seen.dev(), seen.ino()) != (found.dev(), found.ino()) {
                    return Err(Error::other("the folder was replaced"));
                }
                // A hindrance to this is one to the page too.
                _ = remove_left_over(folder);
                Ok(())
            };
            BriefFile::create(path, owner, (&text, 0o644), ResolveFlags::NO_SYMLINKS, prepare)
        };
        let file = place().map_err(|error: io::Error| error.to_string())?;
        Ok(Page { script, nonce, _file: file })
    }
}

/// Removes pages that a power failure has left; they may be empty then.
fn remove_left_over(folder: &File) -> io::Result<()> {
    let open = |name: &CStr, flags| {
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::empty()).map(File::from)
    };
    let start = PAGE.split('$').next().unwrap_or_default().as_bytes();
    for entry in Dir::new(open(c".", OFlags::DIRECTORY)?)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name.len() == 44 && name.starts_with(NAME.as_bytes()) && name.ends_with(b".php") {
            let file = open(entry.file_name(), OFlags::empty())?;
            let (text, metadata) = shared_file::read(&file).map_err(Error::other)?;
            let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age > LIFE);
            if is_old && (text.is_empty() || text.starts_with(start)) {
                unlinkat(folder, entry.file_name(), AtFlags::empty())?;
            }
        }
    }
    Ok(())
}

/// Why a PHP that has run the page cannot call this process, from the page's answer.
fn cannot_call(answer: &str, key: &str) -> Option<String> {
    let (_, error) = answer.split_once(&format!("{key}:"))?;
    let cause = match error.split_once(':')?.0 {
        "" => "its disable_functions has stream_socket_client and fsockopen",
        // ECONNREFUSED: abstract sockets belong to a network (unix(7)).
        "111" => "it has a network of its own, in a container, or by PrivateNetwork=yes",
        // EPERM, EACCES and EAFNOSUPPORT
        "1" | "13" | "97" => {
            "a security module (AppArmor, SELinux) or its service forbids to connect to a Unix socket"
        }
        error => error,
    };
    Some(format!("PHP cannot tell its settings: {}", printable(cause)))
}

#[cfg(test)]
mod tests {
    use super::cannot_call;

    #[test]
    fn a_page_that_cannot_call_says_why() {
        for (answer, cause) in [
            ("<h1>k3y::", "its disable_functions"),
            ("k3y:111:", "a network of its own"),
            ("k3y:13:more", "a security module"),
            ("k3y:\u{1b}[2J:", "settings: \\u{1b}[2J"),
        ] {
            let told = cannot_call(answer, "k3y").unwrap();
            assert!(told.contains(cause), "{told}");
        }
        for answer in ["", "k3y", "k3y:111", "x:111:"] {
            assert_eq!(cannot_call(answer, "k3y"), None, "{answer}");
        }
    }
}
