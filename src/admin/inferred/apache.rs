//! Apache's effective configuration, as mod_info prints it: includes, macros, variables and
//! `<IfModule>` are resolved.

use std::path::Path;
use std::str::Lines;

use super::command;
use super::directive::{Directive, is_below, last, named, quoted};
use super::php::Handler;
use super::{Enabled, Fact, Handlers, Host, Place, Root, Server, Site, Way, is_comedor};

/// mod_info is in Apache's own package, and need not be enabled.
const DUMP: &[&str] = &[
    "-t",
    "-D",
    "DUMP_CONFIG",
    "-C",
    "LoadModule info_module /usr/lib/apache2/modules/mod_info.so",
];

pub fn configuration() -> Result<Vec<Directive>, String> {
    command::run("apache2ctl", DUMP).map(|dump| parse(&dump))
}

/// Parses the output of `apache2ctl -D DUMP_CONFIG`.
pub fn parse(dump: &str) -> Vec<Directive> {
    section(&mut dump.lines(), &mut Place::default())
}

/// The directives up to the end of a section. Comments name the file and, before each directive, its line.
fn section(lines: &mut Lines, at: &mut Place) -> Vec<Directive> {
    let mut list = Vec::new();
    while let Some(line) = lines.next().map(str::trim) {
        if let Some(file) = line.strip_prefix("# In file: ") {
            at.file = file.into();
        } else if let Some(number) = line.strip_prefix('#') {
            at.line = number.trim_matches([' ', ':']).parse().unwrap_or(at.line);
        } else if line.starts_with("</") {
            break;
        } else {
            let opened = line.strip_prefix('<').and_then(|line| line.strip_suffix('>'));
            let mut words = words(opened.unwrap_or(line)).into_iter().peekable();
            let (mut name, place) = (words.next().unwrap_or_default().to_lowercase(), at.clone());
            // `<Files ~ …>` is `<FilesMatch …>`.
            name += words.next_if_eq("~").map_or("", |_| "match");
            let inside = if opened.is_some() { section(lines, at) } else { Vec::new() };
            list.push(Directive { name, words: words.collect(), place, inside });
        }
    }
    list
}

/// The words of a line, which may be in quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, length) = match rest.starts_with(['"', '\'']) {
            true => quoted(rest),
            false => (rest[..end].to_owned(), end),
        };
        words.push(word);
        rest = rest[length..].trim_start();
    }
    words
}

/// The virtual hosts, else the server itself.
pub fn hosts<'c>(config: &'c [Directive]) -> Vec<Host<'c>> {
    // The first of Debian, before that of TLS
    let listen = named(config, "listen").next().map_or("80", |listen| listen.word(0));
    let host = |address: &str, place: &Place, own: &'c [Directive]| {
        let lines = || config.iter().chain(own);
        let word = |name| last(lines(), name).map_or("", |line| line.word(0));
        let user = if word("user").is_empty() { "www-data" } else { word("user") };
        // `https://NAME:PORT`
        let name = word("servername").rsplit('/').next().and_then(|name| name.split(':').next());
        let listen = match address {
            "" => listen.to_owned(),
            address if address.contains(':') => address.to_owned(),
            address => format!("{address}:{}", listen.rsplit(':').next().unwrap_or(listen)),
        };
        let is_tls = word("sslengine").eq_ignore_ascii_case("on");
        let site = Site::new(Server::Apache, user, name, &listen, is_tls, place);
        Host {
            roots: roots(config, own),
            enabled: enabled(config, own, &site),
            handlers: Box::new(|path, file| handlers(config, own, path, file)),
            site,
        }
    };
    let own = named(config, "virtualhost");
    let mut hosts: Vec<_> = own.map(|own| host(own.word(0), &own.place, &own.inside)).collect();
    if hosts.is_empty() {
        hosts.push(host("", &Place::default(), &[]));
    }
    hosts
}

/// The folders whose files the site serves, with their paths.
fn roots(config: &[Directive], own: &[Directive]) -> Vec<Root> {
    let root = last(config.iter().chain(own), "documentroot");
    let root = root.map(|root| Root { path: String::new(), folder: root.word(0).into() });
    let aliases = own.iter().chain(config);
    let aliases = aliases.filter(|alias| alias.name == "alias" && alias.words.len() == 2);
    let aliases = aliases.map(|alias| Root {
        path: alias.word(0).trim_end_matches('/').to_owned(),
        folder: alias.word(1).into(),
    });
    aliases.chain(root).collect()
}

/// Where a directive is, in the order of effect
/// (<https://httpd.apache.org/docs/2.4/sections.html#merging>)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Server,
    /// The length of its path
    Directory(usize),
    Files,
    Location,
    If,
}

/// The directives for `file` at `path`.
fn applying<'c>(
    list: &'c [Directive],
    rank: Rank,
    path: &str,
    file: &Path,
) -> Vec<(Rank, &'c Directive)> {
    let lines = list.iter().flat_map(|line| {
        let word = line.word(0);
        let inner = match line.name.as_str() {
            "directory" if file.starts_with(word) => Rank::Directory(word.len()),
            // No expressions are evaluated; these are those of files of PHP.
            "files" | "filesmatch" if word.contains("ph") && !word.contains("phps") => Rank::Files,
            "location" if is_below(path, word) => Rank::Location,
            "if" if word == "-f %{REQUEST_FILENAME}" => Rank::If,
            _ => return vec![(rank, line)],
        };
        applying(&line.inside, inner.max(rank), path, file)
    });
    lines.collect()
}

/// The way to comedor that a directive opens.
fn way(directive: &Directive) -> Option<Way> {
    let value = directive.words.last()?;
    match directive.name.as_str() {
        "scriptalias" if is_comedor(value) => Some(Way::Cgi),
        "sethandler" => socket(value)
            .filter(|socket| is_comedor(socket))
            .map(|socket| Way::FastCgi(socket.into())),
        _ => None,
    }
}

fn socket(handler: &str) -> Option<&str> {
    handler.strip_prefix("proxy:unix:")?.split('|').next()
}

/// Each path of the site that leads to comedor.
fn enabled(config: &[Directive], own: &[Directive], site: &Site) -> Vec<Enabled> {
    let enabled = own.iter().chain(config).flat_map(|directive| {
        let lines = match directive.name.as_str() {
            "location" => &directive.inside[..],
            "scriptalias" => std::slice::from_ref(directive),
            _ => &[],
        };
        lines.iter().filter_map(|line| {
            let (path, place) = (directive.word(0).to_owned(), line.place.clone());
            Some(Enabled { site: site.clone(), path, way: way(line)?, place })
        })
    });
    enabled.collect()
}

/// What answers `path`, which is that of `file`.
fn handlers(config: &[Directive], own: &[Directive], path: &str, file: &Path) -> Handlers {
    let mut lines = [config, own].map(|list| applying(list, Rank::Server, path, file)).concat();
    lines.sort_by_key(|(rank, _)| *rank);
    let lines = || lines.iter().map(|(_, line)| *line);
    // mod_alias looks at the one of a <Location> first, then at the site's, then at the server's.
    let of_location = lines().rfind(|alias| alias.name == "scriptalias" && alias.words.len() == 1);
    let mut aliases = own.iter().chain(config).filter(|alias| {
        ["alias", "scriptalias"].contains(&&*alias.name) && is_below(path, alias.word(0))
    });
    let alias = || of_location.or_else(|| aliases.next()).and_then(way);
    let comedor = last(lines(), "sethandler").and_then(way).or_else(alias);

    let allowed = last(lines(), "allowoverride").map_or(&[][..], |allowed| &allowed.words);
    let reads_htaccess =
        allowed.iter().any(|word| ["all", "options"].contains(&&*word.to_lowercase()));
    let handler = lines().rfind(|line| match line.name.as_str() {
        "sethandler" => way(line).is_none(),
        "addhandler" | "addtype" => line.words.iter().any(|word| word.ends_with("php")),
        _ => false,
    });
    let php = handler.and_then(|line| match line.word(0) {
        "application/x-httpd-php" => Some(Handler::Module { reads_htaccess }),
        handler => {
            let address = socket(handler).or(handler.strip_prefix("proxy:fcgi://"));
            address.map(|address| Handler::Fpm(address.to_owned()))
        }
    });
    let settings = lines().filter_map(|line| {
        let is_admin = line.name == "php_admin_value";
        let is_value = is_admin || line.name == "php_value";
        is_value.then(|| Fact::of_php(line.word(0), line.word(1), &line.place, is_admin))?
    });
    Handlers { comedor, php, settings: settings.collect() }
}

/// The settings of PHP in the text of a `.htaccess` file, as if each section applied.
pub fn htaccess(file: &Path, text: &str) -> Vec<Fact> {
    let facts = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let words = words(text);
        let is_value = words.first()?.eq_ignore_ascii_case("php_value");
        let place = Place { file: file.to_owned(), line };
        is_value.then(|| Fact::of_php(words.get(1)?, words.get(2)?, &place, false))?
    });
    facts.collect()
}
