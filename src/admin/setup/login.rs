//! Tries what was enabled: a request without a login, then a login of set-up's own, by a session file as PHP's
//! pages write it, with the permission to read only.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::set_parent_process_death_signal;

use super::plan::Plan;
use crate::admin::inferred::{Answer, ask, read_as, request};
use crate::config::Config;
use crate::model::Id;
use crate::session::{self, Format, SavePath, SessionFolder, SessionId};
use crate::sys::log::printable;

/// After a reload, a process with the old configuration may answer once more.
const RELOAD: Duration = Duration::from_secs(5);

/// Reads the menu types of an aulario through the web server. Returns what was tried.
pub fn try_it(plan: &Plan) -> Result<&'static str, String> {
    if !Path::new("/usr/bin/curl").exists() {
        return Ok("not tried through the web server: curl is not installed");
    }
    let end = Instant::now() + RELOAD;
    while let answer = ask(plan.script)
        && !matches!(answer, Answer::Comedor)
    {
        if Instant::now() > end {
            return Err(format!("comedor does not answer {}: {answer}", plan.script.url()));
        }
        sleep(Duration::from_millis(200));
    }
    let SavePath::Files(folder) = &plan.config.session.save_path else {
        return Ok("a login was not tried: the sessions are in Redis");
    };
    let mut tried = Ok("a login was not tried: no aulario was found");
    // The files of one may be damaged.
    for aulario in plan.aularios.iter().take(5) {
        tried = log_in(plan, folder, aulario).map(|()| "a login reads the menu types");
        if tried.is_ok() {
            break;
        }
    }
    tried.map_err(|error| format!("a login with a session in {:?}: {error}", folder.folder))
}

fn log_in(plan: &Plan, folder: &SessionFolder, (centro, aulario): &(Id, Id)) -> io::Result<()> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let id = format!("{:032x}", u128::from_ne_bytes(random));
    let path = SessionId::new(id.clone()).and_then(|id| session::path(folder, &id));
    let path = path.ok_or(ErrorKind::InvalidInput)?;
    let said = read_as(&plan.php.user, || {
        // If set-up is killed, this process goes on, and removes the file.
        set_parent_process_death_signal(None)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let written = file.write_all(content(&plan.config, centro).as_bytes());
        let cookie = format!("{}={id}", plan.config.session.name);
        let answer = request(plan.script, None, aulario.as_str(), &cookie);
        fs::remove_file(&path)?;
        written?;
        Ok(answer.unwrap_or_else(|problem| problem))
    });
    let said = said.inspect_err(|_| {
        _ = read_as(&plan.php.user, || fs::remove_file(&path).map(|()| String::new()));
    })?;
    if said.starts_with("{\"success\":true") {
        return Ok(());
    }
    let said = printable(&said.chars().take(300).collect::<String>());
    Err(io::Error::other(format!("cannot read the aulario {}: {said}", aulario.as_str())))
}

/// The session of a teacher.
fn content(config: &Config, centro: &Id) -> String {
    let service = config.service.as_str();
    let string = |text: &str| format!("s:{}:\"{text}\";", text.len());
    let [docente, service, centro] =
        [&format!("{service}:docente"), service, centro.as_str()].map(string);
    let permissions = format!("s:11:\"permissions\";a:1:{{i:0;{docente}}}");
    let data = format!("a:2:{{{permissions}{service}a:1:{{s:6:\"centro\";{centro}}}}}");
    match config.session.format {
        Format::Php => format!("auth_ok|b:1;auth_data|{data}"),
        Format::PhpSerialize => format!("a:2:{{s:7:\"auth_ok\";b:1;s:9:\"auth_data\";{data}}}"),
        Format::PhpBinary => format!("\u{7}auth_okb:1;\u{9}auth_data{data}"),
    }
}
