//! What set-up is going to do, decided before anything is changed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::content::{self, MARK};
use super::files::{self, APACHE, NGINX, SERVICE, SETTINGS, SOCKET, UPSTREAM};
use super::{Choice, Options};
use crate::check::{Wanted, counted, equals, wanted};
use crate::config::{Config, Settings};
use crate::log::printable;
use crate::model::Id;
use crate::site::{Machine, Php, Script, Server, entries, plain, read_as};
use crate::store::layout;

const PROGRAM: &str = "/usr/lib/cgi-bin/comedor";
/// The guides, as the package installs them
const GUIDES: &str = "/usr/share/doc/comedor/docs";

pub struct Plan<'m> {
    pub script: &'m Script,
    pub php: &'m Php,
    /// The centre and the id of each aulario
    pub aularios: Vec<(Id, Id)>,
    /// The configuration with the new settings
    pub config: Config,
    /// The new settings with their sources, as they are shown
    lines: String,
    /// The files to write
    pub contents: Vec<(&'static str, String)>,
    /// What is run after that; the last one puts it in force.
    pub steps: Vec<&'static str>,
    /// Whether comedor answers already, and set-up has nothing to try
    pub is_done: bool,
    /// Whether the administrator has to add a line to nginx's configuration first
    pub needs_include: bool,
}

impl<'m> Plan<'m> {
    /// The error says why set-up changes nothing.
    pub fn new(machine: &'m Machine, options: &Options) -> Result<Plan<'m>, String> {
        if std::env::current_exe().is_ok_and(|exe| exe != Path::new(PROGRAM)) {
            return Err(format!(
                "it is for {PROGRAM} of the Debian package; follow docs/install.md"
            ));
        }
        let script = choose(machine, options)?;
        let place = printable(&script.file.display().to_string());
        let guide = |why: String| format!("{place}: {why}; follow {GUIDES}/install.md");
        if let Some(place) = &script.database {
            let why = "comedor works on files, and would show old menus";
            return Err(guide(format!("the script uses a database ({place}); {why}")));
        }
        if let Some(why) = script.not_understood().into_iter().next() {
            return Err(guide(why));
        }
        let Some(php) = &script.php else {
            return Err(guide("cannot determine which PHP runs it".into()));
        };
        let (server, user, path) = (script.site.server, &script.site.user, &script.path);
        let can_be_cgi = server == Server::Apache && php.user == *user;
        let default = if can_be_cgi { Choice::Cgi } else { Choice::FastCgi };
        let choice = options.choice.unwrap_or(default);
        if choice == Choice::Cgi && !can_be_cgi {
            let php = &php.user;
            return Err(format!(
                "CGI cannot be used: under {server:?} it runs as {user}, PHP's pages as {php}"
            ));
        }

        let (lines, settings, config) = settings(script)?;
        for text in [path, &script.site.name, user, &php.user, &php.group, &config.session.name] {
            plain(text).map_err(guide)?;
        }
        let aularios = aularios(&config, &php.user);
        let aularios = aularios.map_err(|error| guide(error.to_string()))?;

        let (mut contents, mut steps) = (Vec::new(), Vec::new());
        if choice == Choice::FastCgi {
            contents.push((SERVICE, content::service(php, &config).map_err(guide)?));
            contents.push((SOCKET, format!("{MARK}[Socket]\nSocketUser={user}\n")));
            steps.extend([
                "systemctl daemon-reload",
                "systemctl stop comedor.socket comedor.service",
                "systemctl enable --quiet --now comedor.socket",
            ]);
        }
        let is_included = server == Server::Nginx && files::is_included();
        match server {
            Server::Apache => {
                let folder = Path::new("/etc/apache2/mods-enabled");
                let is_enabled = |name: &str| folder.join(name).with_extension("load").exists();
                let (example, mut modules) = match choice {
                    Choice::FastCgi => (content::APACHE_FASTCGI, vec!["proxy", "proxy_fcgi"]),
                    Choice::Cgi if is_enabled("mpm_prefork") => (content::APACHE_CGI, vec!["cgi"]),
                    Choice::Cgi => (content::APACHE_CGI, vec!["cgid"]),
                };
                modules.retain(|name| !is_enabled(name));
                contents.push((APACHE, content::example(example, path, &modules)));
                steps.extend(["a2enconf --quiet comedor-setup", "apache2ctl configtest"]);
                let [reload, restart] = ["systemctl reload apache2", "systemctl restart apache2"];
                steps.push(if modules.is_empty() { reload } else { restart });
            }
            Server::Nginx => {
                contents.push((UPSTREAM, content::example(content::UPSTREAM, path, &[])));
                contents.push((NGINX, content::example(content::NGINX, path, &[])));
                // The upstream is in force with the next start of nginx, and may be there twice.
                steps.push("nginx -t");
                steps.extend(is_included.then_some("systemctl reload nginx"));
            }
        }
        if !lines.is_empty() {
            contents.push((SETTINGS, settings));
        }
        let is_done = script.comedor.is_some() && !is_included;
        let needs_include = server == Server::Nginx && !is_included;
        Ok(Plan { script, php, aularios, config, lines, contents, steps, is_done, needs_include })
    }
}

/// The aularios, as PHP's user sees them.
fn aularios(config: &Config, user: &str) -> io::Result<Vec<(Id, Id)>> {
    let centres = layout::centres(&config.data_dir);
    let said = read_as(user, |out| {
        fs::read_dir(&centres)?;
        let folders = entries(&centres).into_iter().map(|centre| layout::aularios(&centre));
        let mut files = folders.flat_map(|folder| entries(&folder));
        files.try_for_each(|file| writeln!(out, "{}", file.display()))
    })?;
    let parse = |path: &str| {
        let mut names = Path::new(path).iter().rev().map(|name| name.to_str());
        let id = Id::parse(layout::configured(names.next()??)?).ok()?;
        Some((Id::parse(names.nth(1)??).ok()?, id))
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
        return Err(format!(
            "found no …/api/comedor.php in a site of Apache or nginx that is understood; follow {GUIDES}/install.md"
        ));
    };
    let shown = |script: &Script| {
        printable(&format!("{} ({}, {})", script.path, script.file.display(), script.site.name))
    };
    if found().any(|other| other.path != script.path) {
        // What is printed may be pasted into a shell.
        let all = found().filter(|script| plain(&script.path).is_ok());
        let all: String = all.map(|script| format!("\n--path {}", shown(script))).collect();
        return Err(format!("there are several scripts; choose one:{all}"));
    }
    if let Some(other) = found().find(|other| other.file != script.file) {
        return Err(format!(
            "two sites have a script of their own: {}, and {}; set-up enables comedor for all sites: write the lines \
             of apache.conf.example into the <VirtualHost> of one ({GUIDES}/install.md)",
            shown(script),
            shown(other)
        ));
    }
    let is_used = |other: &&Script| other.comedor.is_some() && other.path != script.path;
    match machine.scripts.iter().find(is_used) {
        Some(other) => Err(format!(
            "comedor already answers for {}; one installation serves only one application",
            other.path
        )),
        None => Ok(script),
    }
}

/// What has to be added to the settings, with the sources, the new file, and the configuration.
fn settings(script: &Script) -> Result<(String, String, Config), String> {
    let old = match fs::read_to_string(SETTINGS) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("{SETTINGS}: {error}"));
        }
        old => old.unwrap_or_default(),
    };
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
        shown += &format!("      {:34} ({source})\n", format!("{name}={value}"));
        config = parse(&new)?;
    }
    Ok((shown, new, config))
}

impl Plan<'_> {
    /// What was found and what is going to be done.
    pub fn shown(&self) -> String {
        let Plan { script, php, config, aularios, .. } = self;
        let centres: BTreeSet<_> = aularios.iter().map(|(centro, _)| centro).collect();
        let mut text = format!(
            "Script      {}, at {} ({:?})\nPHP         {} as {}\nData        {}: {}, {}\n",
            printable(&script.file.display().to_string()),
            script.url(),
            script.site.server,
            php.name,
            php.user,
            config.data_dir.display(),
            counted(centres.len(), "centre"),
            counted(aularios.len(), "aulario")
        );
        if self.is_done {
            return text
                + "\ncomedor is already enabled for this path. To look for problems: sudo comedor check";
        }
        text += "\nWill write\n";
        for (path, content) in &self.contents {
            text += &format!("  {path}\n");
            let lines = content.lines().filter(|line| !line.starts_with('#') && *path != SETTINGS);
            text.extend(lines.map(|line| format!("      {line}\n")));
        }
        text += &self.lines;
        text += "Will run\n";
        text.extend(self.steps.iter().map(|step| format!("  {step}\n")));
        text
    }

    /// What the administrator has to do under nginx.
    pub fn include(&self) -> String {
        format!(
            "\nAdd this line to the server {{ … }} that starts at {}:\n\n    include {NGINX};\n\nThen run sudo comedor setup again, to try it.",
            self.script.site.place
        )
    }
}
