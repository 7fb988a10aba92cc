//! Looks at the web servers that run, and at the application in their sites.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::application::{self, HTACCESS, MAX_SCRIPTS, USER_INI};
use super::code::{DATA, DATABASE, SERVICE, UNCLEAR};
use super::directive::{Directive, all};
use super::php::{self, Handler, SETTINGS, in_force};
use super::{
    Enabled, Fact, Handlers, Host, Machine, Place, Root, Script, Server, Value, apache, command,
    nginx,
};
use crate::accounts;
use crate::child::{Child, PATIENCE};

/// How to understand a web server.
struct WebServer {
    server: Server,
    configuration: fn() -> Result<Vec<Directive>, String>,
    hosts: for<'c> fn(&'c [Directive]) -> Vec<Host<'c>>,
    roots: fn(&Host) -> Vec<Root>,
    enabled: fn(&Host) -> Vec<Enabled>,
    /// What answers the path of a file
    handlers: fn(&Host, &str, &Path) -> Handlers,
}

const SERVERS: [WebServer; 2] = [
    WebServer {
        server: Server::Apache,
        configuration: apache::configuration,
        hosts: apache::hosts,
        roots: apache::roots,
        enabled: apache::enabled,
        handlers: apache::handlers,
    },
    WebServer {
        server: Server::Nginx,
        configuration: nginx::configuration,
        hosts: nginx::hosts,
        roots: nginx::roots,
        enabled: nginx::enabled,
        handlers: nginx::handlers,
    },
];

/// Units of web servers whose configuration is not understood, and whose first process has the user of the
/// server.
const OTHERS: [&str; 3] = ["caddy", "frankenphp", "lighttpd"];

/// Looks at the web servers that run. Needs root.
pub fn find() -> Machine {
    let mut machine = Machine::default();
    let units: Vec<_> = SERVERS.iter().map(|server| server.server.unit()).chain(OTHERS).collect();
    let show = [&["show", "--property=MainPID", "--value"], &units[..]].concat();
    // One number for each unit, 0 if it does not run
    let processes = command::run("systemctl", &show).unwrap_or_else(|error| {
        machine.notes.push(error);
        String::new()
    });
    let running: Vec<_> = units.into_iter().zip(processes.split_whitespace()).collect();
    for (unit, process) in running.into_iter().filter(|(_, process)| *process != "0") {
        machine.runs = true;
        let Some(server) = SERVERS.iter().find(|server| server.server.unit() == unit) else {
            machine.notes.push(format!("{unit} is running; comedor cannot read its configuration"));
            machine.others.extend(accounts::of_process(process).map(|user| (unit.into(), user)));
            continue;
        };
        match (server.configuration)() {
            Ok(config) => View { server, machine: &mut machine }.look(&config),
            Err(error) => machine.notes.push(error),
        }
    }
    machine
}

struct View<'m> {
    server: &'m WebServer,
    machine: &'m mut Machine,
}

impl View<'_> {
    fn look(&mut self, config: &[Directive]) {
        for line in all(config).into_iter().filter(|line| line.may_match()) {
            self.machine.notes.push(format!("{} {} ({})", line.name, line.word(0), line.place));
        }
        for host in (self.server.hosts)(config) {
            self.machine.enabled.extend((self.server.enabled)(&host));
            for root in (self.server.roots)(&host) {
                self.look_below(&host, &root);
            }
        }
    }

    fn look_below(&mut self, host: &Host, root: &Root) {
        let site = &host.site;
        // Its pages may be closed to the web server's user.
        let handler = (self.server.handlers)(host, &root.path, &root.folder).php;
        let php = handler.and_then(|handler| php::find(&handler, &site.user).ok());
        let scripts = read_as(php.as_ref().map_or(&site.user, |(php, _)| &php.user), |out| {
            let mut scripts = application::scripts(&root.folder).into_iter();
            scripts.try_for_each(|path| write!(out, "{}\0", path.display()))
        });
        let scripts = self.noted(&root.folder, scripts);
        for (number, file) in scripts.split_terminator('\0').map(Path::new).enumerate() {
            let Ok(rest) = file.strip_prefix(&root.folder) else { continue };
            if number == MAX_SCRIPTS {
                let text = format!("more than {MAX_SCRIPTS} files api/comedor.php");
                return self.machine.notes.push(format!("{}: {text}", root.folder.display()));
            }
            self.add(host, root, file, format!("{}/{}", root.path, rest.display()));
        }
    }

    fn add(&mut self, host: &Host, root: &Root, file: &Path, path: String) {
        let site = &host.site;
        // An alias hides what is at its path in the document root.
        let scripts = &self.machine.scripts;
        if scripts.iter().any(|known| known.site.place == site.place && known.path == path) {
            return;
        }
        let handlers = (self.server.handlers)(host, &path, file);
        let unknown = || "cannot determine which PHP runs it".to_owned();
        let php = handlers.php.as_ref().ok_or_else(unknown);
        let php = php.and_then(|handler| php::find(handler, &site.user));
        let php = php.map_err(io::Error::other).map(|(php, settings)| (Some(php), settings));
        let (php, mut settings) = self.noted(file, php);
        settings.extend(handlers.settings);
        let said = read_as(php.as_ref().map_or(&site.user, |php| &php.user), |out| {
            let mut facts = application::facts(file, &root.folder).into_iter();
            facts.try_for_each(|Fact { about, value: Value { text, place }, .. }| {
                let (text, file) = (text.replace('\0', ""), place.file.display());
                write!(out, "{about}\0{text}\0{file}\0{}\0", place.line)
            })
        });
        let said = self.noted(file, said);
        let facts = values(&said);
        let (read, unread) = match handlers.php {
            Some(Handler::Module { reads_htaccess: true }) => (HTACCESS, USER_INI),
            _ => (USER_INI, HTACCESS),
        };
        let of = |about| facts.iter().filter(move |fact| fact.0 == about).map(|fact| &fact.1);
        let mut unclear: Vec<Value> = of(UNCLEAR).cloned().collect();
        for name in SETTINGS {
            let values = || of(name).filter(|value| !value.place.file.ends_with(unread));
            // Which of several pages runs first is not known.
            let mut of_code = values().filter(|value| !value.place.file.ends_with(read));
            let first = of_code.next();
            let other = of_code.find(|value| first.is_some_and(|first| first.text != value.text));
            unclear.extend(other.map(|other| Value { text: name.to_owned(), ..other.clone() }));
            settings.extend(
                values().filter_map(|value| Fact::of_php(name, &value.text, &value.place, false)),
            );
        }
        let known = |name: &'static str| Some((name, in_force(&settings, name)?.clone()));
        self.machine.scripts.push(Script {
            comedor: handlers.comedor,
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

/// What the child has written: subjects and values.
fn values(said: &str) -> Vec<(&str, Value)> {
    let words: Vec<&str> = said.split_terminator('\0').collect();
    let values = words.chunks_exact(4).filter_map(|fact| {
        let place = Place { file: fact[2].into(), line: fact[3].parse().ok()? };
        Some((fact[0], Value { text: fact[1].to_owned(), place }))
    });
    values.collect()
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
