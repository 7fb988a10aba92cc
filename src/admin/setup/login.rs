//! Tries logins of set-up's own: sessions as PHP's pages write them, which exist for one request. PHP is the judge:
//! its script is asked first, and comedor must answer the same.

use std::fs;
use std::io;
use std::mem::take;
use std::time::Instant;

use rustix::fs::ResolveFlags;

use super::TIME;
use crate::admin::brief_file::BriefFile;
use crate::admin::site::{Answer, Site, answer_of_script, random, read_as};
use crate::config::Config;
use crate::error::Error;
use crate::model::{Id, id_of};
use crate::php::json::Value;
use crate::session::{self, Format, SavePath, SessionId};
use crate::store::layout;

/// The files of an aulario may be damaged: as many are tried.
const AULARIOS: usize = 5;

/// The number of aularios and of centres that are counted at most.
const MAX_COUNT: usize = 1000;

/// The centre and the id of an aulario
type Aulario = (Id, Id);

/// The permissions of a login, `*` for the service, and whether it has a list of aularios
type Login = (&'static [&'static str], bool);

/// The cookie of a session, and its file
type Session = (String, BriefFile);

const TEACHER: Login = (&["*:docente", "*:access"], true);
const WITHOUT_ACCESS: Login = (&["*:docente"], true);
const WITHOUT_LIST: Login = (&["*:docente", "*:access"], false);
const ADMINISTRATOR: Login = (&["*:docente", "*:access", "sysadmin:access"], true);

/// What PHP's script answers to logins.
#[derive(Debug)]
pub struct Judgement {
    /// How many aularios there are
    pub aularios: usize,
    /// The aularios that are tried, and the menu types that the script lists there
    tried: Vec<(Aulario, Option<Vec<Value>>)>,
    /// Whether it needs neither `<service>:access` nor `aulas`
    pub admits_all: bool,
    /// What was found, as a sentence
    pub sentence: String,
}

impl Judgement {
    /// Tries logins on PHP's script.
    pub fn new(site: &Site, config: &Config) -> Result<Judgement, String> {
        let found = aularios(site, config).map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(format!("{:?} has no aularios", config.data_dir));
        }
        let sentence = "no login, since the sessions are in Redis".to_owned();
        let mut judgement =
            Judgement { aularios: found.len(), tried: vec![], admits_all: false, sentence };
        if let SavePath::Redis(_) = config.session.save_path {
            return Ok(judgement);
        }
        let ask = |at: &Aulario, login| {
            let (cookie, _session) = log_in(site, config, at, login)?;
            let query = format!("action=get_menu_types&aulario={}", at.1.as_str());
            answer_of_script(site, &query, &cookie)
        };
        for at in found.into_iter().take(AULARIOS) {
            let answer = ask(&at, TEACHER)?;
            judgement.tried.push((at, menu_types(&answer)));
            judgement.sentence = format!(
                "the script refuses a login, or fails, so answers cannot be compared with its own ({answer})"
            );
        }
        if let Some((at, _)) = judgement.tried.iter().find(|(_, types)| types.is_some()) {
            let admits = |login| ask(at, login).map(|answer| menu_types(&answer).is_some());
            let (by_right, by_list) = (admits(WITHOUT_ACCESS)?, admits(WITHOUT_LIST)?);
            let [right, list] = [by_right, by_list].map(|is| if is { "admits" } else { "refuses" });
            judgement.admits_all = by_right && by_list;
            judgement.sentence = format!(
                "the script {right} a login without {}:access, and {list} one without aulas",
                config.service.as_str()
            );
        }
        Ok(judgement)
    }

    /// Tries the same logins on comedor, through the web server. Returns what was found, as sentences.
    pub fn compare(&self, site: &Site, config: &Config) -> Result<Vec<String>, String> {
        if self.tried.is_empty() {
            return Ok(vec![]);
        }
        let (mut found, mut readable, mut problem) = (Vec::new(), None, String::new());
        for (at, of_php) in &self.tried {
            let aulario = at.1.as_str();
            let (cookie, _session) = log_in(site, config, at, TEACHER)?;
            let answer = site.address.read_types(aulario, &cookie)?;
            let Some(types) = menu_types(&answer) else {
                problem = format!("a login cannot read the aulario {aulario}: {answer}");
                continue;
            };
            readable = Some(at);
            if let Some(of_php) = of_php {
                found.extend(differences(of_php, &types)?);
                found.push(format!("a login reads the menu types of {aulario}, the same as PHP's"));
            }
        }
        let at = readable.ok_or(problem)?;
        let (cookie, _session) = log_in(site, config, at, ADMINISTRATOR)?;
        let answer = site.address.save_nothing(at.1.as_str(), &cookie)?;
        if answer.body.contains(&*Error::another_site().sentence) {
            return Err(format!(
                "every save from a browser would be refused as one from another site: a proxy does not pass the header Host as the browser sent it, with its port (ProxyPreserveHost On; proxy_set_header Host $http_host) ({answer})"
            ));
        }
        found.push(match answer.body.contains(Error::missing_param("").code) {
            true => "a login reaches comedor, with a save without content too".to_owned(),
            false => format!("a save without content is answered by {answer}"),
        });
        Ok(found)
    }
}

/// The aularios, as PHP's user sees them.
fn aularios(site: &Site, config: &Config) -> io::Result<Vec<Aulario>> {
    let centres = layout::centres(&config.data_dir);
    let named = |error| io::Error::other(format!("{}: {error}", centres.display()));
    let said = read_as(&site.php.user, Instant::now() + TIME, || {
        let folders = fs::read_dir(&centres).map_err(named)?.flatten().take(MAX_COUNT);
        let aularios =
            folders.filter_map(|centre| fs::read_dir(layout::aularios(&centre.path())).ok());
        let aularios = aularios.flatten().flatten().take(MAX_COUNT);
        Ok(aularios.map(|aulario| format!("{}\n", aulario.path().display())).collect())
    })?;
    let parse = |path: &str| {
        let mut names = path.rsplit('/');
        let id = Id::parse(layout::configured(names.next()?)?).ok()?;
        Some((Id::parse(names.nth(1)?).ok()?, id))
    };
    Ok(said.lines().filter_map(parse).collect())
}

/// A session. Returns its cookie, which is valid as long as the file exists.
fn log_in(site: &Site, config: &Config, at: &Aulario, login: Login) -> Result<Session, String> {
    let SavePath::Files(sessions) = &config.session.save_path else {
        return Err("the sessions are in Redis".to_owned());
    };
    let id = random()?;
    let path = SessionId::new(id.clone()).and_then(|id| session::path(sessions, &id));
    let path = path.ok_or("a session has no path")?;
    let (user, content) = (site.php.user.clone(), content(config, at, login));
    let file = BriefFile::create(path, user, (&content, 0o600), ResolveFlags::empty(), || Ok(()));
    let folder = sessions.folder.display();
    let file = file.map_err(|error| format!("a session in {folder}: {error}"))?;
    Ok((format!("{}={id}", config.session.name), file))
}

fn content(config: &Config, (centro, aulario): &Aulario, (permissions, has_list): Login) -> String {
    let string = |text: &str| format!("s:{}:\"{text}\";", text.len());
    let array = |entries: &[String]| format!("a:{}:{{{}}}", entries.len(), entries.concat());
    let list = |texts: &[String]| {
        let entries = (0..).zip(texts).map(|(at, text)| format!("i:{at};{}", string(text)));
        array(&entries.collect::<Vec<_>>())
    };
    let mut unit = vec![string("centro") + &string(centro.as_str())];
    unit.extend(has_list.then(|| string("aulas") + &list(&[aulario.as_str().to_owned()])));
    let service = config.service.as_str();
    let permissions: Vec<_> = permissions.iter().map(|name| name.replace('*', service)).collect();
    let permissions = string("permissions") + &list(&permissions);
    let data = array(&[permissions, string(service) + &array(&unit)]);
    match config.session.format {
        Format::Php => format!("auth_ok|b:1;auth_data|{data}"),
        Format::PhpSerialize => format!("a:2:{{s:7:\"auth_ok\";b:1;s:9:\"auth_data\";{data}}}"),
        Format::PhpBinary => format!("\u{7}auth_okb:1;\u{9}auth_data{data}"),
    }
}

/// The menu types of a successful answer which have an id: comedor shows no others.
fn menu_types(answer: &Answer) -> Option<Vec<Value>> {
    let mut body = Value::parse(answer.body.trim().as_bytes()).ok()?;
    let body = body.coerce_to_map();
    body.get("success").filter(|success| **success == Value::Bool(true))?;
    // PHP writes a list with gaps as an object.
    let types = take(body.entry("menu_types").as_php_map()?);
    Some(types.into_values().filter(|entry| id_of(entry).is_some()).collect())
}

/// Compares the menu types: the ids and their order must agree. The other differences are sentences.
fn differences(of_php: &[Value], of_comedor: &[Value]) -> Result<Vec<String>, String> {
    let [php, comedor] =
        [of_php, of_comedor].map(|types| types.iter().filter_map(id_of).collect::<Vec<_>>());
    if php != comedor {
        return Err(format!("the script lists the menu types {php:?}, and comedor {comedor:?}"));
    }
    // For serde_json, the order of keys does not matter.
    let content = |entry: &Value| serde_json::from_slice(&entry.to_compact()).unwrap_or_default();
    let pairs = of_php.iter().map(content).zip(of_comedor.iter().map(content));
    let shown = |(php, comedor): (serde_json::Value, _)| {
        format!("the script shows the menu type {php}, and comedor {comedor}")
    };
    Ok(pairs.filter(|(php, comedor)| php != comedor).map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SESSION_FORMAT, Settings};
    use std::path::Path;

    #[test]
    fn ids_and_their_order_must_agree() {
        let types = |list: &str| {
            let answer = format!("{{\"success\":true,\"menu_types\":{list}}}\n200 http://a");
            menu_types(&Answer::of(answer.as_bytes())).unwrap()
        };
        let one = r##"{"id":"basal","label":"Menú","color":"#0d6efd"}"##;
        let other = r##"{"id":7,"label":"Sin sal"}"##;
        let php = types(&format!("[{one},{other},{{\"label\":\"x\"}}]"));
        for (comedor, shown) in [
            (format!("[{one},{other}]"), Some(0)),
            (format!("{{\"3\":{one},\"2\":{other}}}"), Some(0)),
            (format!("[{one},{{\"label\":\"Sin sal\",\"id\":7}}]"), Some(0)),
            (format!("[{one},{}]", other.replace('7', "\"7\"")), Some(1)),
            (format!("[{},{other}]", one.replace("Menú", "Otro")), Some(1)),
            (format!("[{other},{one}]"), None),
            (format!("[{one}]"), None),
        ] {
            let found = differences(&php, &types(&comedor));
            assert_eq!(found.as_ref().ok().map(Vec::len), shown, "{found:?}");
        }
    }

    #[test]
    fn comedor_reads_the_sessions_of_set_up() {
        for format in ["php", "php_serialize", "php_binary"] {
            let line = format!("{}={format}", SESSION_FORMAT.name);
            let settings = Settings::default().with_file(Path::new("x"), line.as_bytes()).unwrap();
            let config = Config::from_settings(&settings).unwrap();
            let at = (Id::parse("colegio").unwrap(), Id::parse("aula1").unwrap());
            for login in [TEACHER, WITHOUT_ACCESS, WITHOUT_LIST, ADMINISTRATOR] {
                let content = content(&config, &at, login);
                let session = session::Session::decode(content.into_bytes(), config.session.format);
                assert!(session.is_ok(), "{format}: {:?}", session.err());
            }
        }
    }
}
