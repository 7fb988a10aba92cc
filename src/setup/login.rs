//! A login of set-up's own: a session file as PHP's pages write it, with the permission to read only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::config::Config;
use crate::log::printable;
use crate::model::Id;
use crate::session::{self, SavePath, SessionId};
use crate::shared_file::entries;
use crate::site::{Answer, Script, ask, is_plain, read_as};
use crate::store::layout;

pub struct Aulario {
    pub centro: String,
    pub id: String,
}

/// Enough to count those of a school
const MAX: usize = 10_000;

/// The aularios, as PHP's user sees them.
pub fn aularios(config: &Config, user: &str) -> io::Result<Vec<Aulario>> {
    let centros = layout::centres(&config.data_dir);
    let said = read_as(user, |out| {
        fs::read_dir(&centros)?;
        let files =
            entries(&centros).into_iter().flat_map(|centre| entries(&layout::aularios(&centre)));
        for file in files.take(MAX) {
            let name = file.file_name().and_then(|name| layout::configured(name.to_str()?));
            let centro = file.iter().nth_back(2).and_then(|centro| centro.to_str());
            if let Some((centro, id)) = centro
                .zip(name)
                .filter(|(centro, id)| Id::parse(centro).is_ok() && Id::parse(id).is_ok())
            {
                write!(out, "{centro}\0{id}\0")?;
            }
        }
        Ok(())
    })?;
    let words: Vec<&str> = said.split_terminator('\0').collect();
    let aularios = words.chunks_exact(2).filter(|pair| pair.iter().all(|word| is_plain(word)));
    Ok(aularios
        .map(|pair| Aulario { centro: pair[0].to_owned(), id: pair[1].to_owned() })
        .collect())
}

/// Reads the menu types of an aulario with a session of PHP's `user`, which it removes. Returns why it was not tried.
pub fn read_types(
    script: &Script,
    config: &Config,
    user: &str,
    aulario: &Aulario,
) -> Result<Option<String>, String> {
    let SavePath::Files(folder) = &config.session.save_path else {
        return Ok(Some("the sessions are in Redis".to_owned()));
    };
    let mut random = [0; 16];
    let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = filled.ok().and_then(|()| session::path(folder, &SessionId::new(id.clone())?));
    let Some(path) = path.filter(|_| is_plain(&config.session.name)) else {
        return Ok(Some("it cannot make a session of this kind".to_owned()));
    };
    let written = read_as(user, |_| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        options.open(&path)?.write_all(&content(config, aulario))
    });
    let answer =
        written.map(|_| ask(script, &aulario.id, Some(&format!("{}={id}", config.session.name))));
    let removed = read_as(user, |_| fs::remove_file(&path));
    let failed = |error: io::Error| format!("{}: {error}", folder.folder.display());
    let answer = answer.map_err(failed)?;
    removed.map_err(failed)?;
    match answer {
        Answer::Comedor(body) if body.starts_with("{\"success\":true") => Ok(None),
        Answer::Comedor(body) | Answer::Other(body) | Answer::Nothing(body) => Err(format!(
            "a login could not read the aulario {}: {}",
            aulario.id,
            printable(&body.chars().take(300).collect::<String>())
        )),
    }
}

/// The session of a teacher.
fn content(config: &Config, aulario: &Aulario) -> Vec<u8> {
    let string = |text: &str| format!("s:{}:\"{text}\";", text.len());
    let service = config.service.as_str();
    let data = format!(
        "a:2:{{{}a:1:{{i:0;{}}}{}a:1:{{{}{}}}}}",
        string("permissions"),
        string(&format!("{service}:docente")),
        string(service),
        string("centro"),
        string(&aulario.centro)
    );
    let content = match config.session.format {
        session::Format::Php => format!("auth_ok|b:1;auth_data|{data}"),
        session::Format::PhpSerialize => {
            format!("a:2:{{{}b:1;{}{data}}}", string("auth_ok"), string("auth_data"))
        }
        session::Format::PhpBinary => format!("\u{7}auth_okb:1;\u{9}auth_data{data}"),
    };
    content.into_bytes()
}
