//! Apache's effective configuration, as mod_info prints it: includes, macros, variables and
//! `<IfModule>` are resolved.

use std::path::Path;
use std::str::Lines;

use super::command;
use super::directive::{Directive, is_below, last};
use super::php::{Handler, Layer, Passed};
use super::{Enabled, Place, Root, Server, Site, Way, is_comedor};

/// mod_info is in Apache's own package, and need not be enabled.
const DUMP: &[&str] = &[
    "-t",
    "-D",
    "DUMP_CONFIG",
    "-C",
    "LoadModule info_module /usr/lib/apache2/modules/mod_info.so",
];

pub fn configuration() -> Result<Vec<Directive>, String> {
    let dump = command::run("apache2ctl", DUMP)?;
    Ok(parse(&dump))
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
            let mut words = words(opened.unwrap_or(line)).into_iter();
            let (name, place) = (words.next().unwrap_or_default().to_lowercase(), at.clone());
            let inside = if opened.is_some() { section(lines, at) } else { Vec::new() };
            list.push(Directive { name, words: words.collect(), place, inside });
        }
    }
    list
}

/// The words of a line, which may be in quotes (`ap_getword_conf`, server/util.c).
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = Some(first).filter(|c| matches!(c, '"' | '\''));
        let (mut word, mut end, mut is_escaped) = (String::new(), rest.len(), false);
        for (index, c) in rest.char_indices().skip(quote.iter().count()) {
            let ends = quote.map_or(c.is_whitespace(), |quote| c == quote);
            if ends && !is_escaped {
                end = index + quote.map_or(0, char::len_utf8);
                break;
            }
            if is_escaped && !matches!(c, '"' | '\'' | '\\') {
                word.push('\\');
            }
            is_escaped = c == '\\' && !is_escaped;
            if !is_escaped {
                word.push(c);
            }
        }
        words.push(word);
        rest = rest[end..].trim_start();
    }
    words
}

/// The user that Apache runs as.
fn user(config: &[Directive]) -> &str {
    last(config, "user").map_or("www-data", |user| user.word(0))
}

/// The virtual hosts, else the server itself.
pub fn sites(config: &[Directive]) -> Vec<Site> {
    let hosts: Vec<_> = config.iter().filter(|directive| directive.is("virtualhost")).collect();
    let whole = Directive { name: String::new(), inside: config.to_vec(), ..Directive::default() };
    let port = last(config, "listen").map_or("80", |listen| listen.word(0));
    let hosts = if hosts.is_empty() { vec![&whole] } else { hosts };
    let sites = hosts.into_iter().map(|host| {
        let (address, own) = host.word(0).rsplit_once(':').unwrap_or((host.word(0), port));
        let is_any = matches!(address, "" | "*" | "_default_" | "0.0.0.0" | "[::]");
        let name = last(&host.inside, "servername").or(last(config, "servername"));
        let name = name.map_or("localhost", |name| name.word(0));
        let name = name.rsplit('/').next().unwrap_or_default().split(':').next();
        Site {
            server: Server::Apache,
            user: user(config).to_owned(),
            name: name.unwrap_or_default().to_owned(),
            address: if is_any { "127.0.0.1" } else { address }.to_owned(),
            port: own.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(80),
            is_tls: last(&host.inside, "sslengine")
                .is_some_and(|on| on.word(0).eq_ignore_ascii_case("on")),
            place: host.place.clone(),
        }
    });
    sites.collect()
}

/// The directives of the site itself; the server's are its defaults.
fn own<'c>(config: &'c [Directive], site: &Site) -> &'c [Directive] {
    let is_it = |host: &&Directive| host.is("virtualhost") && host.place == site.place;
    config.iter().find(is_it).map_or(&[], |host| &host.inside)
}

/// The folders whose files the site serves, with their paths.
pub fn roots(config: &[Directive], site: &Site) -> Vec<Root> {
    let own = own(config, site);
    let root = last(own, "documentroot").or(last(config, "documentroot"));
    let root = root.map(|root| Root { path: String::new(), folder: root.word(0).into() });
    let aliases =
        own.iter().chain(config).filter(|alias| alias.is("alias") && alias.words.len() == 2);
    let aliases = aliases.map(|alias| Root {
        path: alias.word(0).trim_end_matches('/').to_owned(),
        folder: alias.word(1).into(),
    });
    aliases.chain(root).collect()
}

/// The directives for `file` at `path`, in the order of their effect: those without a section, of the
/// server and of the site, of a `<Directory>`, of `<Files>`, of a `<Location>`
/// (<https://httpd.apache.org/docs/2.4/sections.html#merging>).
fn applying<'c>(
    config: &'c [Directive],
    site: &Site,
    path: &str,
    file: &Path,
) -> Vec<(Rank, &'c Directive)> {
    let mut found = Vec::new();
    collect(config, Rank::Server, path, file, &mut found);
    collect(own(config, site), Rank::Server, path, file, &mut found);
    found.sort_by_key(|(rank, _)| *rank);
    found
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Server,
    /// The length of its path
    Directory(usize),
    Files,
    Location,
    If,
}

fn collect<'c>(
    list: &'c [Directive],
    rank: Rank,
    path: &str,
    file: &Path,
    found: &mut Vec<(Rank, &'c Directive)>,
) {
    for directive in list {
        let word = directive.word(0);
        let inner = match directive.name.as_str() {
            "directory" if file.starts_with(word) => Rank::Directory(word.len()),
            // No expressions are evaluated; these are those of files of PHP.
            "files" | "filesmatch" if word.contains("ph") && !word.contains("phps") => Rank::Files,
            "location" if is_below(path, word) => Rank::Location,
            "if" if word == "-f %{REQUEST_FILENAME}" => Rank::If,
            _ => {
                found.push((rank, directive));
                continue;
            }
        };
        collect(&directive.inside, inner.max(rank), path, file, found);
    }
}

/// What passes `path` to comedor, if anything does.
pub fn comedor(config: &[Directive], site: &Site, path: &str, file: &Path) -> Option<Way> {
    let applying = applying(config, site, path, file);
    let in_order = || applying.iter().map(|(_, directive)| *directive);
    let handler = last(in_order(), "sethandler");
    if let Some(way) = handler.and_then(way) {
        return Some(way);
    }
    // mod_alias looks at the one of a <Location> first, then at the site's, then at the server's.
    let of_location = in_order().rfind(|alias| alias.is("scriptalias") && alias.words.len() == 1);
    let own = own(config, site);
    let aliases = own.iter().chain(config);
    let mut aliases =
        aliases.filter(|alias| matches!(alias.name.as_str(), "alias" | "scriptalias"));
    let alias = of_location.or_else(|| aliases.find(|alias| is_below(path, alias.word(0))));
    alias.and_then(way)
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
pub fn enabled(config: &[Directive], site: &Site) -> Vec<Enabled> {
    let mut enabled = Vec::new();
    for directive in own(config, site).iter().chain(config) {
        let lines = match directive.name.as_str() {
            "location" => &directive.inside,
            "scriptalias" if directive.words.len() == 2 => std::slice::from_ref(directive),
            _ => continue,
        };
        for line in lines {
            let Some(way) = way(line) else { continue };
            let (path, place) = (directive.word(0).to_owned(), line.place.clone());
            enabled.push(Enabled { site: site.clone(), path, way, place });
        }
    }
    enabled
}

/// The PHP that runs `file`, and the settings that Apache passes to it.
pub fn php(config: &[Directive], site: &Site, path: &str, file: &Path) -> Passed {
    let applying = applying(config, site, path, file);
    let directives = || applying.iter().map(|(_, directive)| *directive);
    let allowed = last(directives(), "allowoverride");
    let reads_htaccess = allowed.is_some_and(|allowed| {
        allowed.words.iter().any(|word| ["all", "options"].contains(&&*word.to_lowercase()))
    });
    let handler = directives().rfind(|directive| match directive.name.as_str() {
        "sethandler" => way(directive).is_none(),
        "addhandler" | "addtype" => directive.words.iter().any(|word| word.ends_with("php")),
        _ => false,
    });
    let handler = handler.and_then(|directive| match directive.word(0) {
        "application/x-httpd-php" => Some(Handler::Module { reads_htaccess }),
        handler => {
            let address = socket(handler).or(handler.strip_prefix("proxy:fcgi://"));
            address.map(|address| Handler::Fpm(address.to_owned()))
        }
    });
    let settings = directives().filter_map(|line| {
        let is_admin = match line.name.as_str() {
            "php_value" => false,
            "php_admin_value" => true,
            _ => return None,
        };
        Layer::new(line.word(0), line.word(1), &line.place, is_admin)
    });
    (handler, settings.collect())
}

/// The settings of PHP in the text of a `.htaccess` file, as if each section applied.
pub fn htaccess(file: &Path, text: &str) -> Vec<Layer> {
    let layers = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let words = words(text);
        let is_value = words.first()?.eq_ignore_ascii_case("php_value");
        let place = Place { file: file.to_owned(), line };
        is_value.then(|| Layer::new(words.get(1)?, words.get(2)?, &place, false))?
    });
    layers.collect()
}
