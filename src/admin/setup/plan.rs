//! What set-up is going to do, decided before anything is changed.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::Options;
use super::content::{self, MARK};
use super::files::{self, APACHE, NGINX, SERVICE, SETTINGS, SOCKET, UPSTREAM};
use crate::admin::check::{Wanted, counted, equals, wanted};
use crate::admin::inferred::{Machine, Php, Script, Server, entries, plain, read_as};
use crate::config::{Config, Settings};
use crate::model::Id;
use crate::store::layout;
use crate::sys::log::printable;

/// As the package installs it
const GUIDE: &str = "/usr/share/doc/comedor/docs/install.md";

pub struct Plan<'m> {
    pub script: &'m Script,
    pub php: &'m Php,
    /// The centre and the id of each aulario
    pub aularios: Vec<(Id, Id)>,
    /// The configuration with the new settings
    pub config: Config,
    /// The new settings with their sources, as they are shown
    lines: String,
    /// Each file to write, its content, and what is run after that; the last command puts all in force.
    pub parts: Vec<(&'static str, String, Vec<&'static str>)>,
    /// Whether comedor answers already, and set-up has nothing to try
    pub is_done: bool,
    /// Whether the administrator has to add a line to nginx's configuration first
    pub needs_include: bool,
}

impl<'m> Plan<'m> {
    /// The error says why set-up changes nothing.
    pub fn new(machine: &'m Machine, options: &Options) -> Result<Plan<'m>, String> {
        if std::env::current_exe().is_ok_and(|exe| exe != Path::new("/usr/lib/cgi-bin/comedor")) {
            return Err("set-up needs the Debian package; follow docs/install.md".to_owned());
        }
        let script = choose(machine, options)?;
        let guide = |why: String| format!("{:?}: {why}; follow {GUIDE}", script.file);
        if let Some(place) = &script.database {
            let why = "comedor works on files, and would show old menus";
            return Err(guide(format!("the script uses a database ({place}); {why}")));
        }
        if let Some(why) = script.not_understood().into_iter().next() {
            return Err(guide(why));
        }
        let php = script.php.as_ref().ok_or_else(|| guide("cannot determine its PHP".into()))?;
        let (server, user, path) = (script.site.server, &script.site.user, &script.path);
        let by_cgi = server == Server::Apache && php.user == *user && !options.fastcgi;
        if options.cgi && !by_cgi {
            return Err("CGI needs Apache with the user of PHP's pages: use --fastcgi".to_owned());
        }

        let (lines, settings, config) = settings(script)?;
        for text in [path, &script.site.name, user, &php.user, &php.group, &config.session.name] {
            plain(text).map_err(guide)?;
        }
        let aularios = aularios(&config, &php.user).map_err(|error| guide(error.to_string()))?;

        let mut parts = Vec::new();
        if !lines.is_empty() {
            parts.push((SETTINGS, settings, vec![]));
        }
        if !by_cgi {
            parts.push((SERVICE, content::service(php, &config).map_err(guide)?, vec![]));
            let start = vec![
                "systemctl daemon-reload",
                "systemctl stop comedor.socket comedor.service",
                "systemctl enable --quiet --now comedor.socket",
            ];
            parts.push((SOCKET, format!("{MARK}[Socket]\nSocketUser={user}\n"), start));
        }
        let is_included = server == Server::Nginx && files::is_included();
        match server {
            Server::Apache => {
                let folder = Path::new("/etc/apache2/mods-enabled");
                let is_enabled = |name: &str| folder.join(name).with_extension("load").exists();
                let cgi = if is_enabled("mpm_prefork") { "cgi" } else { "cgid" };
                let (example, mut modules) = match by_cgi {
                    true => (content::APACHE_CGI, vec![cgi]),
                    false => (content::APACHE_FASTCGI, vec!["proxy", "proxy_fcgi"]),
                };
                modules.retain(|name| !is_enabled(name));
                let [reload, restart] = ["systemctl reload apache2", "systemctl restart apache2"];
                let last = if modules.is_empty() { reload } else { restart };
                let steps = vec!["a2enconf --quiet comedor-setup", "apache2ctl configtest", last];
                parts.push((APACHE, content::example(example, path, &modules), steps));
            }
            Server::Nginx => {
                parts.push((UPSTREAM, content::example(content::UPSTREAM, path, &[]), vec![]));
                // The upstream is in force with the next start of nginx, and may be there twice.
                let mut steps = vec!["nginx -t"];
                steps.extend(is_included.then_some("systemctl reload nginx"));
                parts.push((NGINX, content::example(content::NGINX, path, &[]), steps));
            }
        }
        let is_done = script.comedor.is_some() && !is_included;
        let needs_include = server == Server::Nginx && !is_included;
        Ok(Plan { script, php, aularios, config, lines, parts, is_done, needs_include })
    }

    /// What was found and what is going to be done.
    pub fn shown(&self) -> String {
        let Php { name, user, .. } = self.php;
        let (server, url) = (self.script.site.server, self.script.url());
        let file = printable(&self.script.file.display().to_string());
        let data = self.config.data_dir.display();
        let centres = self.aularios.chunk_by(|(centre, _), (next, _)| centre == next).count();
        let centres = counted(centres, "centre");
        let aularios = counted(self.aularios.len(), "aulario");
        let mut text = format!(
            "Script      {file}, at {url} ({server:?})\nPHP         {name} as {user}\n\
             Data        {data}: {centres}, {aularios}\n\n"
        );
        if self.is_done {
            return text + "comedor is already enabled. To look for problems: sudo comedor check";
        }
        for (path, content, steps) in &self.parts {
            text += &format!("Will write  {path}\n");
            let lines = if *path == SETTINGS { &self.lines } else { content }.lines();
            let lines = lines.filter(|line| !line.starts_with('#'));
            text.extend(lines.map(|line| format!("              {line}\n")));
            text.extend(steps.iter().map(|step| format!("Will run    {step}\n")));
        }
        text
    }
}

/// The aularios, as PHP's user sees them.
fn aularios(config: &Config, user: &str) -> io::Result<Vec<(Id, Id)>> {
    let centres = layout::centres(&config.data_dir);
    let said = read_as(user, || {
        fs::read_dir(&centres)?;
        let folders = entries(&centres).into_iter().map(|centre| layout::aularios(&centre));
        let files = folders.flat_map(|folder| entries(&folder));
        Ok(files.map(|file| format!("{}\n", file.display())).collect())
    })?;
    let parse = |path: &str| {
        let mut names = path.rsplit('/');
        let id = Id::parse(layout::configured(names.next()?)?).ok()?;
        Some((Id::parse(names.nth(1)?).ok()?, id))
    };
    Ok(said.lines().filter_map(parse).collect())
}

/// The script to replace.
fn choose<'m>(machine: &'m Machine, options: &Options) -> Result<&'m Script, String> {
    if !machine.runs {
        return Err("no web server is running; start it, and run this command again".to_owned());
    }
    let is_wanted = |path: &str| options.path.as_ref().is_none_or(|wanted| wanted == path);
    let found = || machine.scripts.iter().filter(|script| is_wanted(&script.path));
    // http may only redirect to https.
    let Some(script) = found().find(|script| script.site.is_tls).or(found().next()) else {
        let place = "a site of Apache or nginx that is understood";
        return Err(format!("found no …/api/comedor.php in {place}; follow {GUIDE}"));
    };
    if found().any(|other| (&other.path, &other.file) != (&script.path, &script.file)) {
        // What is printed may be pasted into a shell.
        let all = found().filter(|script| plain(&script.path).is_ok());
        let all =
            all.map(|one| format!("\n--path {} ({:?}, {})", one.path, one.file, one.site.name));
        return Err(format!(
            "there are several scripts; choose one:{}\n\
             set-up enables comedor for all sites; to enable it for only one, follow {GUIDE}",
            all.collect::<String>()
        ));
    }
    let is_used = |other: &&Script| other.comedor.is_some() && other.path != script.path;
    match machine.scripts.iter().find(is_used).map(|other| &other.path) {
        Some(path) => Err(format!("comedor answers for {path}, and serves only one application")),
        None => Ok(script),
    }
}

/// What has to be added to the settings, with the sources, the new file, and the configuration.
fn settings(script: &Script) -> Result<(String, String, Config), String> {
    let old = fs::read_to_string(SETTINGS).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(String::new()),
        _ => Err(format!("{SETTINGS}: {error}")),
    })?;
    let parse = |text: &str| {
        let settings = Settings::default().with_file(Path::new(SETTINGS), text.as_bytes());
        let config = settings.and_then(|settings| Config::from_settings(&settings));
        config.map_err(|error| format!("{error}; fix this first"))
    };
    let (mut shown, mut config) = (String::new(), parse(&old)?);
    let mut new = format!("{}\n\n{MARK}", old.replace(MARK, "").trim_end());
    for Wanted { setting, value, source, .. } in wanted(script) {
        // The service determines the default of the data folder.
        if equals(&config, setting, value) {
            continue;
        }
        let name = setting.name;
        if plain(value).is_err() {
            // It may have a password.
            return Err(format!(
                "set {name} in {SETTINGS} to the value at {source}, then run this command again; set-up writes only [A-Za-z0-9._/-]"
            ));
        }
        let is_other = |line: &&str| line.split('=').next().map(str::trim) != Some(name);
        let others: String = new.lines().filter(is_other).flat_map(|line| [line, "\n"]).collect();
        new = format!("{others}{name}={value}\n");
        shown += &format!("{:34} ({source})\n", format!("{name}={value}"));
        config = parse(&new)?;
    }
    Ok((shown, new, config))
}
