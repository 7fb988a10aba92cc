//! What set-up is going to do, decided before anything is changed.

use std::fs;
use std::time::Instant;

use super::content::{self, MARK, Part};
use super::files::{NGINX, SERVICE, SOCKET, UPSTREAM};
use super::login::Judgement;
use super::settings::{FILE as SETTINGS, SettingsFile};
use super::{Options, TIME, asked, say};
use crate::admin::accounts::user_name;
use crate::admin::check::counted;
use crate::admin::command::run;
use crate::admin::settings::{Wanted, wanted};
use crate::admin::site::{self, AppUrl, KNOWN, Literals, Site, plain, shown};
use crate::config::{ACCESS, Access, Config};
use crate::session::SavePath;
use crate::sys::log::printable;

/// As the package installs it
const GUIDE: &str = "/usr/share/doc/comedor/docs/install.md";
/// A file that takes precedence over the settings
const BESIDE: &str = "/usr/lib/cgi-bin/comedor.conf";

#[derive(Debug)]
pub struct Plan {
    pub site: Site,
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
        let Site { php, address, script, .. } = &site;
        if php.user.is_root() || php.is_elsewhere() {
            return Err(guide("PHP runs as root, or in a chroot or container".to_owned()));
        }
        // It becomes a line of a file.
        if script.to_str() != Some(&shown(script)) {
            return Err(guide("the path has characters that cannot be shown".to_owned()));
        }
        let handler = php.says("session.save_handler");
        if !["files", "redis"].contains(&handler) {
            return Err(guide(format!("the sessions of PHP are in {handler:?}")));
        }
        if fs::exists(BESIDE).is_ok_and(|exists| exists) {
            return Err(format!("{BESIDE} takes precedence over {SETTINGS}: move it there"));
        }
        let literals = Literals::read(&site, Instant::now() + TIME)
            .map_err(|error| guide(error.to_string()))?;
        if let Some(word) = literals.database {
            let why = "comedor works on files, and would show old menus";
            return Err(guide(format!("the script contains {word}: a database; {why}")));
        }
        let service = options.service.clone().or(literals.service);
        let service = service.map_or_else(|| asked("Service, as in '<service>:docente'"), Ok)?;
        let data = options.data.clone().or(literals.data_dir);
        let data = data.map_or_else(|| asked("Folder that contains Centros/"), Ok)?;
        let mut settings = SettingsFile::read()?;
        for line in wanted(php, Some(&service), Some(&data)) {
            settings.add(line)?;
        }
        let mut config = settings.config()?;
        let mut folders = vec![&config.data_dir];
        if let SavePath::Files(sessions) = &config.session.save_path {
            folders.push(&sessions.folder);
        }
        if let Some(folder) = folders.into_iter().find(|folder| !php.shares(folder)) {
            let why = "for PHP this is another folder than for other programs (PrivateTmp=yes?)";
            return Err(guide(format!("{folder:?}: {why}")));
        }
        let judgement = Judgement::new(&site, &config).map_err(guide)?;
        // An administrator may know better.
        if !settings.has_outside(&ACCESS) {
            let value = if judgement.admits_all { "centre" } else { "listed" }.to_owned();
            settings.add(Wanted { setting: &ACCESS, what: judgement.sentence.clone(), value })?;
            config = settings.config()?;
        }
        let (server, path) = (site.unit()?, &address.path());
        let web_user = site.web_user(Instant::now() + TIME)?;
        let is_limited = server == "apache2" && !is_alone;
        let can_be_cgi = server == "apache2" && php.user.uid == web_user.uid && !is_limited;
        if options.cgi && !can_be_cgi {
            let why = "CGI needs Apache, the user of PHP's pages, and no other script";
            return Err(format!("{why}: use --fastcgi"));
        }
        let refusing = site::refusing(&site)?;
        // By CGI, rules of the script's folder would no longer apply.
        let is_cgi = can_be_cgi && !options.fastcgi && (options.cgi || refusing.is_empty());
        let known = format!("{MARK}{address}\n{}\n", script.display());
        let mut parts: Vec<Part> = vec![(KNOWN, known, vec![])];
        if settings.content() != settings.old {
            parts.push((SETTINGS, settings.shown.clone(), vec![]));
        }
        if !is_cgi {
            parts.push((SERVICE, content::service(&php.user, &config).map_err(guide)?, vec![]));
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
                parts.push(content::apache(is_cgi, path, is_limited.then_some(&*address.name)));
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
        Ok(Plan { site, config, judgement, settings, is_limited, refusing, parts, by_hand })
    }

    /// Shows what was found and what is going to be done.
    pub fn show(&self) {
        let Plan { site: Site { address, script, php, .. }, config, judgement, .. } = self;
        let (server, user) = (self.site.unit().unwrap_or_default(), user_name(php.user.uid));
        let (script, host) = (script.display(), address.host);
        say(&format!("Script      {script}, at {address} ({server}, by {host})"));
        say(&format!("PHP         {} as {user}", printable(php.says("php"))));
        let aularios = counted(judgement.aularios, "aulario");
        say(&format!("Data        {}: {aularios}", config.data_dir.display()));
        say(&format!("Tried       {}", printable(&judgement.sentence)));
        if config.access == Access::Listed {
            say("Note        COMEDOR_ACCESS=listed: users need that permission and list");
        }
        if php.says("session") != "yes" {
            say(
                "Note        without a login, the script starts no session: its code may change settings later",
            );
        }
        if self.is_limited {
            say(
                "Note        other scripts may serve other schools, so comedor answers only at this host",
            );
        }
        say("");
        for (path, content, steps) in &self.parts {
            say(&format!("Will write  {path}"));
            for line in content.lines().filter(|line| !line.starts_with('#')) {
                say(&format!("              {line}"));
            }
            for step in steps {
                say(&format!("Will run    {step}"));
            }
        }
    }
}
