//! What set-up is going to do, decided before anything is changed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::content::{self, MARK};
use super::files::{APACHE, NGINX, SERVICE, SOCKET, UPSTREAM};
use super::login::{Aulario, Judgement};
use super::settings::{FILE as SETTINGS, SettingsFile};
use super::{Options, asked};
use crate::admin::accounts::user_name;
use crate::admin::check::counted;
use crate::admin::command::run;
use crate::admin::settings::{Wanted, wanted};
use crate::admin::site::{self, AppUrl, KNOWN, Literals, Site, plain, read_as};
use crate::config::{ACCESS, Access, Config};
use crate::model::Id;
use crate::session::SavePath;
use crate::store::layout;
use crate::sys::log::printable;
use crate::sys::process::Credentials;

/// As the package installs it
const GUIDE: &str = "/usr/share/doc/comedor/docs/install.md";
/// A file that takes precedence over the settings
const BESIDE: &str = "/usr/lib/cgi-bin/comedor.conf";
/// The time to read the script.
const READ: Duration = Duration::from_secs(10);
/// The number of aularios and of centres that are counted at most.
const MAX_COUNT: usize = 1000;

/// A file to write, its content (of the settings, what is shown of it), and what is run after that
type Part = (&'static str, String, Vec<&'static str>);

#[derive(Debug)]
pub struct Plan {
    pub site: Site,
    aularios: Vec<Aulario>,
    /// The configuration with the new settings
    pub config: Config,
    pub judgement: Judgement,
    /// The settings with the new lines
    pub settings: SettingsFile,
    /// Whether comedor answers only at the host of the address, for there may be other schools.
    pub is_limited: bool,
    /// Where the web server refuses who has no login of its own
    pub refusing: Vec<AppUrl>,
    /// The last command puts all in force.
    pub parts: Vec<Part>,
    /// What the administrator has to add, and where
    pub by_hand: Option<(String, &'static str)>,
}

impl Plan {
    /// The error says why set-up changes nothing. `is_alone`: there is no other script for sure.
    pub fn new(site: Site, options: &Options, is_alone: bool) -> Result<Plan, String> {
        let guide = |why: String| format!("{:?}: {why}; follow {GUIDE}", site.script);
        let Site { php, address, .. } = &site;
        if php.user.is_root() || php.is_elsewhere() {
            return Err(guide("PHP runs as root, or in a chroot or container".to_owned()));
        }
        // Its path becomes a line of a file, and is shown.
        if site.script.to_str().is_none_or(|path| printable(path) != path) {
            return Err(guide("the path has characters that cannot be shown".to_owned()));
        }
        let handler = php.says("session.save_handler");
        if !["files", "redis"].contains(&handler) {
            return Err(guide(format!("the sessions of PHP are in {handler:?}")));
        }
        if fs::exists(BESIDE).is_ok_and(|exists| exists) {
            return Err(format!("{BESIDE} takes precedence over {SETTINGS}: move it there"));
        }
        let literals = Literals::read(&site, Instant::now() + READ)
            .map_err(|error| guide(error.to_string()))?;
        if let Some(word) = literals.database {
            let why = "comedor works on files, and would show old menus";
            return Err(guide(format!("the script contains {word}: a database; {why}")));
        }
        let choose = |option: &Option<String>, known, what| {
            option.clone().or(known).map_or_else(|| asked(what), Ok)
        };
        let what = "Service, as in '<service>:docente'";
        let service = choose(&options.service, literals.service, what)?;
        let data = choose(&options.data, literals.data_dir, "Folder that contains Centros/")?;
        let mut settings = SettingsFile::read()?;
        for line in wanted(php, Some(&service), Some(&data)) {
            settings.add(line)?;
        }
        let mut config = settings.config()?;
        // PHP's service may have a /tmp of its own.
        let sessions = match &config.session.save_path {
            SavePath::Files(sessions) => &sessions.folder,
            SavePath::Redis(_) => &config.data_dir,
        };
        if let Some(folder) =
            [sessions, &config.data_dir].into_iter().find(|folder| !php.shares(folder))
        {
            let why = "for PHP this is another folder than for other programs (PrivateTmp=yes?)";
            return Err(guide(format!("{folder:?}: {why}")));
        }
        let aularios = aularios(&config, &php.user).map_err(|error| guide(error.to_string()))?;
        if aularios.is_empty() {
            return Err(guide(format!("{:?} has no aularios", config.data_dir)));
        }
        let judgement = Judgement::new(&site, &config, &aularios)?;
        // An administrator may know better.
        if !settings.has_outside(&ACCESS) {
            let value = if judgement.admits_all { "centre" } else { "listed" }.to_owned();
            settings.add(Wanted { setting: &ACCESS, what: judgement.sentence.clone(), value })?;
            config = settings.config()?;
        }
        let (server, web_user, path) = (site.unit()?, site.web_user()?, &address.path());
        let is_limited = server == "apache2" && !is_alone;
        let can_be_cgi = server == "apache2" && php.user.uid == web_user.uid && !is_limited;
        if options.cgi && !can_be_cgi {
            let why = "CGI needs Apache, the user of PHP's pages, and no other script";
            return Err(format!("{why}: use --fastcgi"));
        }
        let refusing = site::refusing(&site)?;
        // By CGI, rules of the script's folder would no longer apply.
        let is_cgi = can_be_cgi && !options.fastcgi && (options.cgi || refusing.is_empty());
        let known = format!("{MARK}{address}\n{}\n", site.script.display());
        let mut parts: Vec<Part> = vec![(KNOWN, known, vec![])];
        if settings.content() != settings.old {
            parts.push((SETTINGS, settings.shown(), vec![]));
        }
        if !is_cgi {
            let service = content::service(&php.user, &config).map_err(guide)?;
            parts.push((SERVICE, service, vec![]));
            let user = user_name(web_user.uid);
            let socket = format!("{MARK}[Socket]\nSocketUser={}\n", plain(&user)?);
            let start = vec![
                "systemctl daemon-reload",
                "systemctl stop comedor.socket comedor.service",
                "systemctl enable --quiet --now comedor.socket",
            ];
            parts.push((SOCKET, socket, start));
        }
        let mut by_hand = None;
        match server {
            // A configuration that is broken already could not be put back.
            "apache2" => {
                run("apache2ctl", &["configtest"])?;
                parts.push(apache(is_cgi, path, is_limited.then_some(&*address.name)));
            }
            "nginx" => {
                run("nginx", &["-t"])?;
                let [upstream, location] = [content::UPSTREAM, content::NGINX]
                    .map(|text| format!("{MARK}{}", content::example(text, path)));
                parts.push((UPSTREAM, upstream, vec![]));
                parts.push((NGINX, location, vec!["nginx -t", "systemctl reload nginx"]));
                by_hand = Some((format!("include {NGINX};"), "to the server { … } of the site"));
            }
            "caddy" => by_hand = Some(content::caddy(path)),
            _ => by_hand = Some(content::lighttpd(path)),
        }
        Ok(Plan {
            site,
            aularios,
            config,
            judgement,
            settings,
            is_limited,
            refusing,
            parts,
            by_hand,
        })
    }

    /// What was found and what is going to be done.
    pub fn shown(&self) -> String {
        let Site { address, script, php, server } = &self.site;
        let (script, name) = (script.display().to_string(), printable(php.says("php")));
        let mut text = format!(
            "Script      {}, at {address} ({}, by {})\nPHP         {name} as {}\n\
             Data        {}: {}\nTried       {}\n",
            printable(&script),
            server.unwrap_or_default(),
            address.host,
            user_name(php.user.uid),
            self.config.data_dir.display(),
            counted(self.aularios.len(), "aulario"),
            printable(&self.judgement.sentence),
        );
        let is_listed = self.config.access == Access::Listed;
        for (is_so, note) in [
            (is_listed, "COMEDOR_ACCESS=listed: users need that permission and list"),
            (
                php.says("session") != "yes",
                "without a login, the script starts no session: its code may change settings later",
            ),
            (
                self.is_limited,
                "other scripts may serve other schools, so comedor answers only at this host",
            ),
        ] {
            text += &if is_so { format!("Note        {note}\n") } else { String::new() };
        }
        text += "\n";
        for (path, content, steps) in &self.parts {
            text += &format!("Will write  {path}\n");
            let lines = content.lines().filter(|line| !line.starts_with('#'));
            text.extend(lines.map(|line| format!("              {line}\n")));
            text.extend(steps.iter().map(|step| format!("Will run    {step}\n")));
        }
        text
    }
}

/// Apache's file, with the modules that are not enabled.
fn apache(is_cgi: bool, path: &str, host: Option<&str>) -> Part {
    let folder = Path::new("/etc/apache2/mods-enabled");
    let is_enabled = |name: &str| folder.join(name).with_extension("load").exists();
    let (example, mut modules) = match is_cgi {
        true if is_enabled("mpm_prefork") => (content::APACHE_CGI, vec!["cgi"]),
        true => (content::APACHE_CGI, vec!["cgid"]),
        false => (content::APACHE_FASTCGI, vec!["proxy", "proxy_fcgi"]),
    };
    modules.retain(|name| !is_enabled(name));
    let [reload, restart] = ["systemctl reload apache2", "systemctl restart apache2"];
    let last = if modules.is_empty() { reload } else { restart };
    let steps = vec!["a2enconf --quiet zz-comedor-setup", "apache2ctl configtest", last];
    (APACHE, content::apache(example, path, &modules, host), steps)
}

/// The aularios, as PHP's user sees them.
fn aularios(config: &Config, user: &Credentials) -> io::Result<Vec<Aulario>> {
    let centres = layout::centres(&config.data_dir);
    let named = |error| io::Error::other(format!("{}: {error}", centres.display()));
    let said = read_as(user, Instant::now() + READ, || {
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
