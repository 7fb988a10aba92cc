//! A login of set-up's own: a session file as PHP's pages write it, with the permission to read only.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use rustix::process::set_parent_process_death_signal;

use super::plan::{Aulario, Plan};
use crate::config::Config;
use crate::log::printable;
use crate::model::Id;
use crate::session::{self, Format, SavePath, SessionFolder, SessionId};
use crate::site::{read_as, request};

/// Reads the menu types of an aulario through the web server. Returns what was tried.
pub fn try_it(plan: &Plan) -> Result<&'static str, String> {
    let SavePath::Files(folder) = &plan.config.session.save_path else {
        return Ok("a login was not tried: the sessions are in Redis");
    };
    // The files of one may be damaged.
    let mut tries = plan.aularios.iter().take(5).map(|aulario| read_types(plan, folder, aulario));
    let Some(first) = tries.next() else {
        return Ok("a login was not tried: no aulario was found");
    };
    if let Err(problem) = first
        && !tries.any(|other| other.is_ok())
    {
        return Err(problem);
    }
    Ok("a login reads the menu types")
}

fn read_types(
    plan: &Plan,
    folder: &SessionFolder,
    (centro, aulario): &Aulario,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.folder.display());
    let mut random = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random)).map_err(failed)?;
    let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = SessionId::new(id.clone()).and_then(|id| session::path(folder, &id));
    let path = path.ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?;
    let said = read_as(&plan.php.user, |out| {
        // If set-up is killed, this process goes on, and removes the file.
        set_parent_process_death_signal(None)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let written = file.write_all(content(&plan.config, centro).as_bytes());
        let cookie = format!("{}={id}", plan.config.session.name);
        let answer = request(plan.script, None, aulario.as_str(), &cookie);
        fs::remove_file(&path)?;
        written?;
        out.write_all(answer.unwrap_or_else(|problem| problem).as_bytes())
    });
    if said.is_err() {
        _ = read_as(&plan.php.user, |_| fs::remove_file(&path));
    }
    let said = said.map_err(failed)?;
    if said.starts_with("{\"success\":true") {
        return Ok(());
    }
    let said = printable(&said.chars().take(300).collect::<String>());
    Err(format!("a login could not read the aulario {}: {said}", aulario.as_str()))
}

/// The session of a teacher.
fn content(config: &Config, centro: &Id) -> String {
    let string = |text: &str| format!("s:{}:\"{text}\";", text.len());
    let service = config.service.as_str();
    let data = format!(
        "a:2:{{s:11:\"permissions\";a:1:{{i:0;{}}}{}a:1:{{s:6:\"centro\";{}}}}}",
        string(&format!("{service}:docente")),
        string(service),
        string(centro.as_str())
    );
    match config.session.format {
        Format::Php => format!("auth_ok|b:1;auth_data|{data}"),
        Format::PhpSerialize => format!("a:2:{{s:7:\"auth_ok\";b:1;s:9:\"auth_data\";{data}}}"),
        Format::PhpBinary => format!("\u{7}auth_okb:1;\u{9}auth_data{data}"),
    }
}
