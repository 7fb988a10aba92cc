//! Looks at the web servers that run, and at the application in their sites.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::application::{self, HTACCESS, USER_INI};
use super::code::{DATA, DATABASE, SERVICE, UNCLEAR};
use super::directive::Directive;
use super::php::{self, Handler, Layer, Passed, SETTINGS, in_force};
use super::{
    Enabled, Fact, Machine, Place, Root, Script, Site, Value, Way, apache, command, nginx,
};
use crate::accounts;
use crate::child::{Child, PATIENCE};

/// How to understand a web server.
struct WebServer {
    unit: &'static str,
    configuration: fn() -> Result<Vec<Directive>, String>,
    sites: fn(&[Directive]) -> Vec<Site>,
    roots: fn(&[Directive], &Site) -> Vec<Root>,
    /// What passes the path of a file to comedor
    comedor: fn(&[Directive], &Site, &str, &Path) -> Option<Way>,
    enabled: fn(&[Directive], &Site) -> Vec<Enabled>,
    /// The PHP that runs a file otherwise, and the settings that the server passes to it
    php: fn(&[Directive], &Site, &str, &Path) -> Passed,
}

const SERVERS: [WebServer; 2] = [
    WebServer {
        unit: "apache2",
        configuration: apache::configuration,
        sites: apache::sites,
        roots: apache::roots,
        comedor: apache::comedor,
        enabled: apache::enabled,
        php: apache::php,
    },
    WebServer {
        unit: "nginx",
        configuration: nginx::configuration,
        sites: nginx::sites,
        roots: nginx::roots,
        comedor: nginx::comedor,
        enabled: nginx::enabled,
        php: nginx::php,
    },
];

/// Web servers whose configuration is not understood.
const OTHERS: [&str; 3] = ["caddy", "frankenphp", "lighttpd"];

/// Looks at the web servers that run. Needs root.
pub fn find() -> Machine {
    let mut machine = Machine::default();
    let units = OTHERS.into_iter().chain(SERVERS.iter().map(|server| server.unit));
    let mut running = Vec::new();
    for unit in units {
        match command::run("systemctl", &["show", "--property=ActiveState", "--value", unit]) {
            Ok(state) if state.trim() == "active" => running.push(unit),
            Ok(_) => {}
            Err(error) => {
                machine.notes.push(error);
                break;
            }
        }
    }
    for name in OTHERS.iter().filter(|name| running.contains(name)) {
        machine.notes.push(format!("{name} runs; its configuration is not understood"));
    }
    for server in SERVERS.iter().filter(|server| running.contains(&server.unit)) {
        match (server.configuration)() {
            Ok(config) => View { server, config: &config, machine: &mut machine }.look(),
            Err(error) => machine.notes.push(error),
        }
    }
    machine.runs = !running.is_empty();
    machine
}

struct View<'m> {
    server: &'m WebServer,
    config: &'m [Directive],
    machine: &'m mut Machine,
}

impl View<'_> {
    fn look(&mut self) {
        for site in (self.server.sites)(self.config) {
            self.machine.enabled.extend((self.server.enabled)(self.config, &site));
            for root in (self.server.roots)(self.config, &site) {
                // Its pages may be closed to the web server's user.
                let (handler, _) = (self.server.php)(self.config, &site, &root.path, &root.folder);
                let php = handler.and_then(|handler| php::find(&handler, &site.user).ok());
                let user = php.map_or(site.user.clone(), |(php, _)| php.user);
                let scripts = read_as(&user, |out| {
                    let mut scripts = application::scripts(&root.folder)?.into_iter();
                    scripts.try_for_each(|path| write!(out, "{}\0", path.display()))
                });
                for file in self.noted(&root.folder, scripts).split_terminator('\0') {
                    let Ok(rest) = Path::new(file).strip_prefix(&root.folder) else { continue };
                    let path = format!("{}/{}", root.path, rest.display());
                    self.add(&site, &root, Path::new(file), path);
                }
            }
        }
    }

    fn add(&mut self, site: &Site, root: &Root, file: &Path, path: String) {
        // An alias hides what is at its path in the document root.
        let scripts = &self.machine.scripts;
        if scripts.iter().any(|known| known.site.place == site.place && known.path == path) {
            return;
        }
        let (handler, passed) = (self.server.php)(self.config, site, &path, file);
        let unknown = || "its PHP is not understood".to_owned();
        let php = handler.as_ref().ok_or_else(unknown);
        let php = php.and_then(|handler| php::find(handler, &site.user));
        let php = php.map_err(io::Error::other).map(|(php, layers)| (Some(php), layers));
        let (php, mut layers) = self.noted(file, php);
        layers.extend(passed);
        let user = php.as_ref().map_or(&site.user, |php| &php.user);
        let said = read_as(user, |out| {
            let mut facts = application::facts(file, &root.folder).into_iter();
            facts.try_for_each(|Fact { about, value: Value { text, place } }| {
                let (text, file) = (text.replace('\0', ""), place.file.display());
                write!(out, "{about}\0{text}\0{file}\0{}\0", place.line)
            })
        });
        let facts = facts(&self.noted(file, said));
        let (read, unread) = match handler {
            Some(Handler::Module { reads_htaccess: true }) => (HTACCESS, USER_INI),
            _ => (USER_INI, HTACCESS),
        };
        let of =
            |about| facts.iter().filter(move |fact| fact.about == about).map(|fact| &fact.value);
        let mut unclear: Vec<Value> = of(UNCLEAR).cloned().collect();
        for name in SETTINGS {
            let values = || of(name).filter(|value| !value.place.file.ends_with(unread));
            // Which of several pages runs first is not known.
            let mut of_code = values().filter(|value| !value.place.file.ends_with(read));
            let first = of_code.next();
            let other = of_code.find(|value| first.is_some_and(|first| first.text != value.text));
            unclear.extend(other.map(|other| Value { text: name.to_owned(), ..other.clone() }));
            let values =
                values().filter_map(|value| Layer::new(name, &value.text, &value.place, false));
            layers.extend(values);
        }
        let known = |name: &'static str| Some((name, in_force(&layers, name)?.clone()));
        self.machine.scripts.push(Script {
            comedor: (self.server.comedor)(self.config, site, &path, file),
            site: site.clone(),
            file: file.to_owned(),
            path,
            php,
            service: of(SERVICE).next().cloned(),
            data_dir: of(DATA).next().cloned(),
            database: of(DATABASE).next().map(|value| value.place.clone()),
            settings: SETTINGS.into_iter().filter_map(known).collect(),
            unclear,
        });
    }

    /// The value, or its default with a note.
    fn noted<T: Default>(&mut self, about: &Path, value: io::Result<T>) -> T {
        value.unwrap_or_else(|error| {
            self.machine.notes.push(format!("{}: {error}", about.display()));
            T::default()
        })
    }
}

/// Parses what the child has written.
fn facts(said: &str) -> Vec<Fact> {
    let words: Vec<&str> = said.split_terminator('\0').collect();
    let facts = words.chunks_exact(4).filter_map(|fact| {
        let place = Place { file: fact[2].into(), line: fact[3].parse().ok()? };
        Some(Fact { about: fact[0].to_owned(), value: Value { text: fact[1].to_owned(), place } })
    });
    facts.collect()
}

/// What a child with the rights of `user` says.
pub fn read_as(
    user: &str,
    say: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<String> {
    let unknown = || io::Error::other(format!("unknown user {user}"));
    let user = accounts::find(user).ok_or_else(unknown)?;
    let child = Child { user: Some(&user), time: PATIENCE, size: 1024 * 1024 };
    let said = child.ask(|out| {
        let mut out = BufWriter::new(out);
        say(&mut out).and_then(|()| out.flush())
    })?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
