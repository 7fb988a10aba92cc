//! What set-up is going to do, decided before anything is changed.

use std::collections::BTreeSet;
use std::path::Path;

use super::content::{self, MARK, PROGRAM, apache, nginx, with_lines};
use super::files::{APACHE, NGINX, SERVICE, SETTINGS, SOCKET};
use super::login::{self, Aulario};
use super::{Choice, Options};
use crate::accounts;
use crate::check::{Wanted, counted, equals, wanted};
use crate::config::{Config, Settings};
use crate::log::printable;
use crate::session::SavePath;
use crate::site::{Machine, Php, Script, Server, Value, command, is_plain};

/// The guides, as the package installs them
const GUIDES: &str = "/usr/share/doc/comedor/docs";

pub struct Plan {
    pub script: Script,
    /// The same script in other virtual hosts, such as that of http beside that of https
    others: Vec<Script>,
    choice: Choice,
    pub php: Php,
    pub aularios: Vec<Aulario>,
    /// The configuration with the new settings
    pub config: Config,
    /// Each new setting as `NAME=value`, and its source
    lines: Vec<(String, String)>,
    /// The new content of [`SETTINGS`]
    settings: Option<String>,
    /// Modules of Apache that must be enabled
    modules: Vec<&'static str>,
    /// What the units need beside what the package ships; `None` if set-up need not enable the socket
    units: Option<[String; 2]>,
}

impl Plan {
    /// The error says why set-up changes nothing.
    pub fn new(machine: &Machine, options: &Options) -> Result<Plan, String> {
        if std::env::current_exe().is_ok_and(|exe| exe != Path::new(PROGRAM)) {
            return Err(format!(
                "set-up works only with the Debian package, whose program is {PROGRAM}; follow docs/install.md"
            ));
        }
        let (script, others) = choose(machine, options)?;
        let place = printable(&script.file.display().to_string());
        let guide = |why: &str| Err(format!("{place}: {why}; follow {GUIDES}/install.md"));
        if let Some(place) = &script.database {
            return Err(format!(
                "{place}: the script uses a database; comedor works on files, and would show old menus"
            ));
        }
        let Some(data_dir) = &script.data_dir else {
            return guide(
                "names no folder before /Centros, so it is not known where it keeps its data",
            );
        };
        if script.service.is_none() {
            return guide("names no permission <service>:docente");
        }
        let Some(php) = script.php.clone() else { return guide("its PHP is not understood") };
        if let Some(Value { text, place }) = script.unclear.first() {
            return guide(&format!(
                "the code sets {text} to a value that is not understood ({place})"
            ));
        }
        let choice = choice(&script, &php, options)?;
        let (lines, settings, config) = settings(&script)?;
        let plain = [
            script.path.as_str(),
            script.site.name.as_str(),
            php.user.as_str(),
            php.group.as_str(),
        ];
        if let Some(text) = plain.into_iter().find(|text| !is_plain(text)) {
            return guide(&format!("{text:?} has other characters than [A-Za-z0-9._/-]"));
        }
        let aularios = login::aularios(&config, &php.user)
            .map_err(|error| format!("{}: {error}", data_dir.text))?;
        let units = if choice == Choice::FastCgi { units(&script, &php, &config)? } else { None };
        let modules = match (script.site.server, choice) {
            (Server::Nginx, _) => vec![],
            (_, Choice::FastCgi) => vec!["proxy", "proxy_fcgi"],
            _ if is_enabled("mpm_prefork") => vec!["cgi"],
            _ => vec!["cgid"],
        };
        let modules = modules.into_iter().filter(|module| !is_enabled(module)).collect();
        Ok(Plan { script, others, choice, php, aularios, config, lines, settings, modules, units })
    }
}

fn is_enabled(module: &str) -> bool {
    Path::new("/etc/apache2/mods-enabled").join(module).with_extension("load").exists()
}

/// The script, and the same one in other virtual hosts.
fn choose(machine: &Machine, options: &Options) -> Result<(Script, Vec<Script>), String> {
    let is_wanted =
        |script: &&Script| options.path.as_ref().is_none_or(|path| *path == script.path);
    let mut found: Vec<Script> = machine.scripts.iter().filter(is_wanted).cloned().collect();
    // https first: http may only redirect to it.
    found.sort_by_key(|script| !script.site.is_tls);
    if !machine.runs {
        return Err("no web server is running; start it, and run this again".to_owned());
    }
    if found.is_empty() {
        return Err(format!(
            "no …/api/comedor.php was found in a site of Apache or nginx that is understood; follow {GUIDES}/install.md"
        ));
    }
    let script = found.remove(0);
    let shown =
        |script: &Script| printable(&format!("{} ({})", script.path, script.file.display()));
    if found.iter().any(|other| other.path != script.path) {
        // What is printed may be pasted into a shell.
        let all = [&script].into_iter().chain(&found).filter(|script| is_plain(&script.path));
        let all = all.map(|script| format!("\n--path {}", shown(script)));
        return Err(format!("there are several scripts; choose one:{}", all.collect::<String>()));
    }
    if let Some(other) = found.iter().find(|other| other.file != script.file) {
        return Err(format!(
            "{} has {}, and {} has {}: set-up enables comedor for all sites; write the lines of apache.conf.example \
             into the <VirtualHost> of one ({GUIDES}/install.md)",
            script.site.name,
            shown(&script),
            other.site.name,
            shown(other)
        ));
    }
    let used =
        machine.scripts.iter().find(|other| other.comedor.is_some() && other.path != script.path);
    if let Some(other) = used {
        return Err(format!(
            "comedor is in use for {}, and one installation serves one application",
            other.path
        ));
    }
    Ok((script, found))
}

fn choice(script: &Script, php: &Php, options: &Options) -> Result<Choice, String> {
    let can_be_cgi = script.site.server == Server::Apache && php.user == script.site.user;
    match options.choice {
        Some(Choice::Cgi) if !can_be_cgi => Err(format!(
            "CGI cannot be used: it runs as {}, PHP's pages as {}, under {:?}",
            script.site.user, php.user, script.site.server
        )),
        Some(choice) => Ok(choice),
        None if can_be_cgi => Ok(Choice::Cgi),
        None => Ok(Choice::FastCgi),
    }
}

/// What has to be added to the settings: the lines with their sources, the new file, and the configuration.
type Changes = (Vec<(String, String)>, Option<String>, Config);

fn settings(script: &Script) -> Result<Changes, String> {
    let old = match std::fs::read_to_string(SETTINGS) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{SETTINGS}: {error}"));
        }
        old => old.unwrap_or_default(),
    };
    let parse = |text: &str| {
        let settings = Settings::default().with_file(Path::new(SETTINGS), text.as_bytes());
        let config = settings.and_then(|settings| Config::from_settings(&settings));
        config.map_err(|error| format!("{error}; fix this first"))
    };
    let (mut config, mut new, mut lines) = (parse(&old)?, None, Vec::new());
    for Wanted { setting, value, source, .. } in wanted(script) {
        // The service determines the default of the data folder.
        if equals(&config, setting, value) {
            continue;
        }
        let name = setting.name;
        if !is_plain(value) {
            return Err(format!(
                "set {name} in {SETTINGS} to the value at {source}, then run this again; set-up writes only [A-Za-z0-9._/-]"
            ));
        }
        lines.push((format!("{name}={value}"), source));
        let text = with_lines(&old, lines.iter().map(|(line, _)| line.as_str()));
        config = parse(&text)?;
        new = Some(text);
    }
    Ok((lines, new, config))
}

impl Plan {
    /// Whether comedor answers already, and set-up has nothing to try.
    pub fn is_done(&self) -> bool {
        self.script.comedor.is_some()
            && !(self.script.site.server == Server::Nginx && Path::new(NGINX).exists())
    }

    /// Whether the administrator has to add a line to nginx's configuration first.
    pub fn needs_include(&self) -> bool {
        self.script.site.server == Server::Nginx && self.script.comedor.is_none()
    }

    /// The files to write.
    pub fn contents(&self) -> Vec<(&'static str, String)> {
        let path = &self.script.path;
        let mut contents = Vec::new();
        match self.script.site.server {
            Server::Apache => contents.push((APACHE, apache(path, self.choice, &self.modules))),
            Server::Nginx if self.needs_include() => contents.push((NGINX, nginx(path))),
            Server::Nginx => {}
        }
        if let Some([service, socket]) = &self.units {
            contents.extend((!service.is_empty()).then(|| (SERVICE, service.clone())));
            contents.push((SOCKET, socket.clone()));
        }
        contents.extend(self.settings.clone().map(|settings| (SETTINGS, settings)));
        contents
    }

    /// The script in each of its virtual hosts.
    pub fn scripts(&self) -> impl Iterator<Item = &Script> {
        [&self.script].into_iter().chain(&self.others)
    }

    /// What is run after the files are written; the last one puts it in force.
    pub fn commands(&self) -> Vec<Vec<&str>> {
        let mut commands = Vec::new();
        if self.units.is_some() {
            commands.push(vec!["systemctl", "daemon-reload"]);
            commands.push(vec!["systemctl", "stop", "comedor.socket", "comedor.service"]);
            commands.push(vec!["systemctl", "enable", "--quiet", "--now", "comedor.socket"]);
        }
        match self.script.site.server {
            Server::Nginx if self.needs_include() => {}
            Server::Nginx => {
                commands.push(vec!["nginx", "-t"]);
                commands.push(vec!["systemctl", "reload", "nginx"]);
            }
            Server::Apache => {
                let restart = if self.modules.is_empty() { "reload" } else { "restart" };
                if !self.modules.is_empty() {
                    commands.push([&["a2enmod", "--quiet"], &self.modules[..]].concat());
                }
                commands.push(vec!["a2enconf", "--quiet", "comedor-setup"]);
                commands.push(vec!["apache2ctl", "configtest"]);
                commands.push(vec!["systemctl", restart, "apache2"]);
            }
        }
        commands
    }

    /// What was found and what is going to be done.
    pub fn shown(&self) -> String {
        let Plan { script, php, config, .. } = self;
        let centres: BTreeSet<&str> =
            self.aularios.iter().map(|aulario| aulario.centro.as_str()).collect();
        let (centres, aularios) =
            (counted(centres.len(), "centre"), counted(self.aularios.len(), "aulario"));
        let mut text = format!(
            "Script      {}, at {} ({:?})\nPHP         {} as {}\nData        {}: {centres}, {aularios}\n",
            printable(&script.file.display().to_string()),
            script.url(),
            script.site.server,
            php.name,
            php.user,
            config.data_dir.display()
        );
        if self.is_done() {
            return text
                + "\ncomedor is enabled for this path already. To look for problems: sudo comedor check";
        }
        text += "\nWill write\n";
        for (path, content) in self.contents() {
            text += &format!("  {path}\n");
            let lines = content.lines().filter(|line| path != SETTINGS && !line.starts_with('#'));
            lines.for_each(|line| text += &format!("      {line}\n"));
            if path == SETTINGS {
                self.lines
                    .iter()
                    .for_each(|(line, source)| text += &format!("      {line:34} ({source})\n"));
            }
        }
        text += "Will run\n";
        self.commands().iter().for_each(|command| text += &format!("  {}\n", command.join(" ")));
        text
    }

    /// What the administrator has to do under nginx.
    pub fn include(&self) -> String {
        format!(
            "\nAdd this line to the server {{ … }} that starts at {}:\n\n    include {};\n\nThen run sudo comedor setup again, which tries it.",
            self.script.site.place, NGINX
        )
    }
}

/// Drop-ins of `comedor.service` and `comedor.socket`. `None` if the administrator has enabled the socket.
fn units(script: &Script, php: &Php, config: &Config) -> Result<Option<[String; 2]>, String> {
    let is_enabled = command::run("systemctl", &["is-enabled", "comedor.socket"]).is_ok();
    if is_enabled && !Path::new(SOCKET).exists() {
        return Ok(None);
    }
    let mut folders = vec![config.data_dir.clone(), config.data_dir.join("Centros")];
    let mut lines = Vec::new();
    match &config.session.save_path {
        SavePath::Files(sessions) => folders.push(sessions.folder.clone()),
        SavePath::Redis(server) => lines.extend(content::network(&server.address)),
    }
    if php.user != "www-data" {
        lines.extend([format!("User={}", php.user), format!("Group={}", php.group)]);
    }
    for folder in folders {
        let path =
            folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let text = path.to_str().filter(|text| is_plain(text)).ok_or_else(|| {
            format!(
                "{path:?} has other characters than [A-Za-z0-9._/-]; follow {GUIDES}/install-special.md"
            )
        })?;
        lines.extend(content::access(text));
    }
    let mut known = BTreeSet::new();
    lines.retain(|line| known.insert(line.clone()));
    let service = if lines.is_empty() {
        String::new()
    } else {
        format!("{MARK}\n[Service]\n{}\n", lines.join("\n"))
    };
    let mut socket = format!("{MARK}\n[Socket]\n");
    let (server, group) = (accounts::find(&script.site.user), accounts::find("www-data"));
    if !server.zip(group).is_some_and(|(server, group)| server.is_member(group.gid)) {
        socket += &format!("SocketUser={}\n", script.site.user);
    }
    Ok(Some([service, socket]))
}
