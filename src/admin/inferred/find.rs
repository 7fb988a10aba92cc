//! Looks at the web servers that run, and at the application in their sites.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use super::application::{self, MAX_SCRIPTS};
use super::code::{DATA, DATABASE, SERVICE, UNCLEAR};
use super::directive::{Directive, all};
use super::php::{self, Handler, SETTINGS};
use super::{Fact, Host, Machine, Place, Root, Script, Server, Value, apache, command, nginx};
use crate::admin::accounts;
use crate::admin::child::Child;
use crate::admin::inferred::PATIENCE;

type Configuration = fn() -> Result<Vec<Directive>, String>;
type Hosts = for<'c> fn(&'c [Directive]) -> Vec<Host<'c>>;

/// The web servers whose configuration is understood
const SERVERS: [(Server, Configuration, Hosts); 2] = [
    (Server::Apache, apache::configuration, apache::hosts),
    (Server::Nginx, nginx::configuration, nginx::hosts),
];

/// Units of web servers whose configuration is not understood, and whose first process has the user of the
/// server.
const OTHERS: [&str; 3] = ["caddy", "frankenphp", "lighttpd"];

/// Looks at the web servers that run. Needs root.
pub fn find() -> Machine {
    let mut machine = Machine::default();
    let units: Vec<_> = SERVERS.iter().map(|(server, ..)| server.unit()).chain(OTHERS).collect();
    let show = [&["show", "--property=MainPID", "--value"], &units[..]].concat();
    // One number for each unit, 0 if it does not run
    let processes = command::run("systemctl", &show).unwrap_or_else(|error| {
        machine.notes.push(error);
        String::new()
    });
    let running: Vec<_> = units.into_iter().zip(processes.split_whitespace()).collect();
    for (unit, process) in running.into_iter().filter(|(_, process)| *process != "0") {
        machine.runs = true;
        let known = SERVERS.iter().find(|(server, ..)| server.unit() == unit);
        let Some((_, configuration, hosts)) = known else {
            machine.notes.push(format!("{unit} is running; comedor cannot read its configuration"));
            machine.others.extend(accounts::of_process(process).map(|user| (unit.into(), user)));
            continue;
        };
        match configuration() {
            Ok(config) => machine.look(&config, hosts(&config)),
            Err(error) => machine.notes.push(error),
        }
    }
    machine
}

impl Machine {
    fn look(&mut self, config: &[Directive], hosts: Vec<Host>) {
        for line in all(config).into_iter().filter(|line| line.may_match()) {
            self.notes.push(format!("{} {} ({})", line.name, line.word(0), line.place));
        }
        for host in hosts {
            host.roots.iter().for_each(|root| self.look_below(&host, root));
            self.enabled.extend(host.enabled);
        }
    }

    fn look_below(&mut self, host: &Host, root: &Root) {
        // Its pages may be closed to the web server's user.
        let handler = (host.handlers)(&root.path, &root.folder).php;
        let php = php::find(&handler, &host.site.user).unwrap_or_default();
        let scripts = read_as(php.as_ref().map_or(&host.site.user, |php| &php.user), || {
            let scripts = application::scripts(&root.folder).into_iter();
            Ok(scripts.map(|path| format!("{}\0", path.display())).collect())
        });
        let scripts = self.noted(&root.folder, scripts);
        for (number, file) in scripts.split_terminator('\0').map(Path::new).enumerate() {
            let Ok(rest) = file.strip_prefix(&root.folder) else { continue };
            if number == MAX_SCRIPTS {
                let text = format!("more than {MAX_SCRIPTS} files api/comedor.php");
                return self.notes.push(format!("{}: {text}", root.folder.display()));
            }
            self.add(host, root, file, format!("{}/{}", root.path, rest.display()));
        }
    }

    fn add(&mut self, host: &Host, root: &Root, file: &Path, path: String) {
        let site = &host.site;
        // An alias hides what is at its path in the document root.
        if self.scripts.iter().any(|known| known.site.place == site.place && known.path == path) {
            return;
        }
        let handlers = (host.handlers)(&path, file);
        let php = self.noted(file, php::find(&handlers.php, &site.user));
        let folder_file = handlers.php.as_ref().and_then(Handler::folder_file);
        let said = read_as(php.as_ref().map_or(&site.user, |php| &php.user), || {
            let facts = application::facts(file, &root.folder, folder_file).into_iter();
            let lines = facts.map(|Fact { about, value: Value { text, place }, .. }| {
                let (text, file) = (text.replace('\0', ""), place.file.display());
                format!("{about}\0{text}\0{file}\0{}\0", place.line)
            });
            Ok(lines.collect())
        });
        let said = self.noted(file, said);
        let facts: Vec<_> = facts(&said).collect();
        let of = |about| facts.iter().filter(move |fact| fact.0 == about).map(|fact| &fact.1);
        let mut unclear: Vec<Value> = of(UNCLEAR).cloned().collect();
        for name in SETTINGS {
            // Which of several pages runs first is not known.
            let is_code =
                |value: &&Value| folder_file.is_none_or(|name| !value.place.file.ends_with(name));
            let of_code: Vec<_> = of(name).filter(is_code).collect();
            let other = of_code.iter().find(|value| value.text != of_code[0].text);
            unclear.extend(other.map(|other| Value { text: name.to_owned(), ..(*other).clone() }));
        }
        let mut settings: Vec<_> = php.iter().flat_map(|php| php.facts.clone()).collect();
        settings.extend(handlers.settings);
        let of_php =
            |(name, value): &(&str, Value)| Fact::of_php(name, &value.text, &value.place, false);
        settings.extend(facts.iter().filter_map(of_php));
        self.scripts.push(Script {
            comedor: handlers.comedor,
            site: site.clone(),
            file: file.to_owned(),
            path,
            php,
            service: of(SERVICE).next().cloned(),
            data_dir: of(DATA).next().cloned(),
            database: of(DATABASE).next().map(|value| value.place.clone()),
            settings,
            unclear,
        });
    }

    /// The value, or its default with a note.
    fn noted<T: Default>(&mut self, about: &Path, value: Result<T, impl Display>) -> T {
        value.unwrap_or_else(|error| {
            self.notes.push(format!("{}: {error}", about.display()));
            T::default()
        })
    }
}

/// What the child has written: subjects and values.
fn facts(said: &str) -> impl Iterator<Item = (&str, Value)> {
    let mut words = said.split_terminator('\0');
    std::iter::from_fn(move || {
        let (about, text, file) = (words.next()?, words.next()?.to_owned(), words.next()?.into());
        let place = Place { file, line: words.next()?.parse().ok()? };
        Some((about, Value { text, place }))
    })
}

/// What a child with the rights of `user` says.
pub fn read_as(user: &str, say: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    let unknown = || io::Error::other(format!("unknown user {user}"));
    let user = accounts::find(user).ok_or_else(unknown)?;
    let child = Child { user: Some(&user), time: PATIENCE, size: 1024 * 1024 };
    let said = child.output(|out| out.write_all(say()?.as_bytes()))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
