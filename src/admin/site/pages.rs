//! Asks PHP: places a page beside each script for a moment, requests it, and listens to what it says.
//!
//! Who runs the page tells two numbers: the key, which only the request has, so it is the PHP behind the
//! address; and the nonce of the page, so it can read that page, and cannot claim the script of another site.
//! Its user comes from the kernel. All else is data of a party that root does not trust.

use std::fs;
use std::io::{self, Error, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{iter, slice};

use rustix::fs::{OFlags, ResolveFlags};

use super::files::MAX_ENTRIES;
use super::url::{Answer, AppUrl, TIME};
use super::{Php, Site, random, shown};
use crate::admin::brief_file::{BriefFile, LIFE};
use crate::admin::child::{Running, ready};
use crate::sys::log::printable;
use crate::sys::process::{Credentials, peer};
use crate::sys::shared_file;

const PAGE: &str = include_str!("page.php");
/// How names of pages start, before 32 hexadecimal digits
const NAME: &str = "comedor-";
/// The time for PHP to say all, after the web server has answered.
const GRACE: Duration = Duration::from_millis(100);
/// How many callers of one user are heard at a time: any process of this machine can be one.
const MAX_CALLERS: usize = 16;
const MAX_SAID: usize = 64 * 1024;

/// Asks the PHP at `address` which of the `scripts` it runs, and with which settings, as far as possible until `end`.
pub fn ask_php(address: &AppUrl, scripts: &[PathBuf], end: Instant) -> Result<Site, String> {
    let pages = Pages::place(scripts, end)?;
    let mut problems = pages.problems.clone();
    for address in address.on_each_host(end) {
        let problem = match pages.request(&address, "", "") {
            Ok((answer, Some((script, php)))) => {
                let url = answer.url.replace(&pages.name, "comedor.php");
                let mut found = AppUrl::parse(&url)?;
                if !url.contains(&found.to_string()) {
                    return Err(format!("the web server runs the script at {:?}", answer.url));
                }
                found.host = address.host;
                let script = script.to_owned();
                return Ok(Site { address: found, script, php: php?, server: None });
            }
            Ok((answer, None)) => match cannot_call(&answer.body, &pages.key) {
                Some(problem) => return Err(problem),
                None => format!("{} ({answer})", answer.meaning(&address).0),
            },
            Err(error) => error.to_string(),
        };
        problems.push(format!("by {}: {problem}", address.host));
    }
    let scripts: Vec<_> = scripts.iter().map(|script| shown(script)).collect();
    Err(format!(
        "no PHP that runs one of the scripts answers at {address}\n{}\n\
         the scripts are {}; to name another one: sudo comedor setup --script FILE",
        problems.join("\n"),
        scripts.join(", ")
    ))
}

/// What the script answers to this query with this cookie, run by a page: comedor may answer in its place already.
pub fn answer_of_script(site: &Site, query: &str, cookie: &str) -> Result<Answer, String> {
    let pages = Pages::place(slice::from_ref(&site.script), Instant::now() + LIFE)?;
    let answer = pages.request(&site.address, query, cookie);
    answer.map(|(answer, _)| answer).map_err(|error| error.to_string())
}

/// The addresses where the web server refuses a page beside the script (empty, without the key) by 401 or 403.
pub fn refusing(site: &Site) -> Result<Vec<AppUrl>, String> {
    let end = Instant::now() + TIME;
    let pages = Pages::place(slice::from_ref(&site.script), end)?;
    let refuses = |address: &AppUrl| {
        let answer = address.request(&pages.name, &[]);
        answer.is_ok_and(|answer| ["401", "403"].contains(&&*answer.status))
    };
    let refusing = site.address.on_each_host(end).filter(refuses).collect();
    // What was not asked could become open.
    let is_complete = Instant::now() < end;
    let refused = || format!("{}: not every address of this machine answers in time", site.address);
    is_complete.then_some(refusing).ok_or_else(refused)
}

/// A page beside each script, and the socket by which PHP tells what it has there
#[derive(Debug)]
struct Pages {
    name: String,
    key: String,
    listener: UnixListener,
    /// Each script, the first lines of who has the key and has read its page, and the page
    pages: Vec<(PathBuf, String, BriefFile)>,
    /// Why there is no page beside some scripts
    problems: Vec<String>,
}

/// What answers, and if PHP has run the page, its script and that PHP, or why it cannot be used
type Asked<'p> = (Answer, Option<(&'p Path, Result<Php, String>)>);

impl Pages {
    fn place(scripts: &[PathBuf], end: Instant) -> Result<Pages, String> {
        let (key, socket) = (random()?, format!("{NAME}{}", random()?));
        let listener = SocketAddr::from_abstract_name(&socket)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(|error| error.to_string())?;
        let name = format!("{socket}.php");
        let (mut pages, mut problems) = (Vec::new(), Vec::new());
        for script in scripts {
            let nonce = random()?;
            let text = PAGE.replace("{socket}", &socket).replace("{nonce}", &nonce);
            match place(&text, script.with_file_name(&name), end) {
                Ok(page) => {
                    let greeting = format!("key={key}\nnonce={nonce}\n");
                    pages.push((script.to_owned(), greeting, page));
                }
                Err(error) => {
                    let script = shown(script);
                    problems.push(format!("cannot place a page beside {script}: {error}"));
                }
            }
        }
        if pages.is_empty() {
            return Err(problems.join("\n"));
        }
        Ok(Pages { name, key, listener, pages, problems })
    }

    /// Requests the page.
    fn request(&self, address: &AppUrl, query: &str, cookie: &str) -> io::Result<Asked<'_>> {
        let [key, cookie] = [format!("X-Comedor: {}", self.key), format!("Cookie: {cookie}")];
        let options = [("header", &*key), ("header", &cookie)];
        let mut curl = address.start(&format!("{}?{query}", self.name), &options)?;
        // The page waits until it is heard.
        let heard = self.listen(&mut curl)?;
        Ok((Answer::of(&curl.finish()?), heard))
    }

    /// Waits for a PHP that knows the key and a nonce, until the answer is complete: a script may start it early.
    fn listen(&self, curl: &mut Running) -> io::Result<Option<(&Path, Result<Php, String>)>> {
        let (mut callers, mut end) = (Vec::<Caller>::new(), curl.end);
        loop {
            let streams = callers.iter().map(|caller| caller.stream.as_fd());
            let files = iter::once(self.listener.as_fd()).chain(streams);
            let mut ready = match ready(files.chain(curl.pipe.as_ref().map(AsFd::as_fd)), end) {
                Err(_) if curl.pipe.is_none() => return Ok(None),
                ready => ready?.into_iter(),
            };
            let is_called = ready.next() == Some(true);
            let is_done = |caller: &mut Caller| ready.next() == Some(true) && caller.has_said_all();
            for Caller { stream, said, .. } in callers.extract_if(.., is_done) {
                for (script, greeting, _) in &self.pages {
                    if said.starts_with(greeting.as_bytes()) {
                        return Ok(Some((script, Php::of(stream, &said))));
                    }
                }
            }
            if is_called {
                let (stream, _) = self.listener.accept()?;
                let uid = peer(&stream)?.uid;
                // Other users can make many connections, and say nothing: their oldest are closed.
                let mut same =
                    callers.iter().enumerate().rev().filter(|(_, caller)| caller.uid == uid);
                if let Some((oldest, _)) = same.nth(MAX_CALLERS - 1) {
                    callers.remove(oldest);
                }
                callers.push(Caller { stream, uid, said: Vec::new() });
            }
            if ready.next() == Some(true) && curl.hear()? {
                end = end.min(Instant::now() + GRACE);
            }
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
    fn has_said_all(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let length = self.stream.read(&mut buffer).unwrap_or(0);
        self.said.extend_from_slice(&buffer[..length]);
        length == 0 || self.said.ends_with(b"\n\n") || self.said.len() > MAX_SAID
    }
}

/// Writes a page as the owner of its folder, without the rights of root.
fn place(text: &str, page: PathBuf, end: Instant) -> io::Result<BriefFile> {
    if Instant::now() > end {
        return Err(ErrorKind::TimedOut.into());
    }
    let found = fs::symlink_metadata(page.parent().ok_or(ErrorKind::NotFound)?)?;
    let owner = Credentials { uid: found.uid(), gid: found.gid(), groups: vec![] };
    let prepare = || {
        let seen = fs::metadata(".")?;
        if (seen.dev(), seen.ino()) != (found.dev(), found.ino()) {
            return Err(Error::other("the folder was replaced"));
        }
        // A hindrance to this is one to the page too.
        _ = remove_left_over();
        Ok(())
    };
    BriefFile::create(page, owner, (text, 0o644), ResolveFlags::NO_SYMLINKS, prepare)
}

/// Removes pages that a power failure has left in the current folder; they may be empty then.
fn remove_left_over() -> io::Result<()> {
    let start = PAGE.split('$').next().unwrap_or_default().as_bytes();
    for entry in fs::read_dir(".")?.take(MAX_ENTRIES) {
        let name = entry?.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.len() == 44 && bytes.starts_with(NAME.as_bytes()) && bytes.ends_with(b".php") {
            let read = |file| shared_file::read(&file);
            let found = shared_file::open_and(OFlags::RDONLY, Path::new(&name), read);
            let Ok((text, metadata)) = found else { continue };
            let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age > LIFE);
            if is_old && start.iter().zip(&text).all(|(one, other)| one == other) {
                fs::remove_file(&name)?;
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
