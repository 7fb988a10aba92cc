//! nginx's configuration, as `nginx -T` prints it: each file, with its name in a comment before it.

use std::path::{Path, PathBuf};
use std::slice::Iter;

use super::directive::{Directive, all, last, named, quoted};
use super::php::{self, Handler};
use super::{
    Enabled, Fact, Handlers, Host, Place, Root, Server, Site, Value, Way, command, is_comedor,
};

pub fn configuration() -> Result<Vec<Directive>, String> {
    command::run("nginx", &["-T", "-q"]).map(|dump| parse(&dump))
}

pub fn parse(dump: &str) -> Vec<Directive> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for line in dump.lines() {
        let name = line.strip_prefix("# configuration file ");
        if let Some(name) = name.and_then(|name| name.strip_suffix(':')) {
            files.push((name.into(), String::new()));
        } else if let Some((_, text)) = files.last_mut() {
            *text += &format!("{line}\n");
        }
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_path(), words(text))).collect();
    files.first().map_or_else(Vec::new, |(path, words)| block(&mut words.iter(), path, &files))
}

/// With its line; one in quotes starts with `"`, so that it is not a separator.
type Word = (usize, String);

/// The directives up to the end of a block, with those of the files that it includes.
fn block(words: &mut Iter<Word>, file: &Path, files: &[(&Path, Vec<Word>)]) -> Vec<Directive> {
    let (mut list, mut current) = (Vec::new(), Vec::new());
    while let Some((line, word)) = words.next() {
        if word == "}" {
            break;
        } else if word != ";" && word != "{" {
            current.push(word.strip_prefix('"').unwrap_or(word).to_owned());
            continue;
        }
        // A block has to be read to its end, whatever is before it.
        let inside = if word == "{" { block(words, file, files) } else { Vec::new() };
        let mut current = std::mem::take(&mut current).into_iter();
        let Some(name) = current.next() else { continue };
        let place = Place { file: file.to_owned(), line: *line };
        let directive = Directive { name, words: current.collect(), place, inside };
        if directive.name == "include" {
            let pattern = Path::new("/etc/nginx").join(directive.word(0));
            let pattern = pattern.to_string_lossy();
            let is_included = |path: &Path| is_named(&path.to_string_lossy(), &pattern);
            let included = files.iter().filter(|(path, _)| is_included(path));
            list.extend(included.flat_map(|(path, words)| block(&mut words.iter(), path, files)));
        } else {
            list.push(directive);
        }
    }
    list
}

/// Whether a pattern of an `include`, without other wildcards than `*`, names `path`.
fn is_named(path: &str, pattern: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else { return path == pattern };
    path.strip_prefix(start).is_some_and(|rest| {
        let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        starts.any(|at| !rest[..at].contains('/') && is_named(&rest[at..], end))
    })
}

fn words(text: &str) -> Vec<Word> {
    let (mut words, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        // `${name}` is a variable.
        let ends = |(at, c): &(usize, char)| {
            c.is_whitespace() || *c == ';' || *c == '{' && !rest[..*at].ends_with('$')
        };
        let (word, length) = match first {
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '{' | '}' | ';' => (Some(first.to_string()), 1),
            '"' | '\'' => {
                let (word, length) = quoted(rest);
                (Some(format!("\"{word}")), length)
            }
            c if c.is_whitespace() => (None, c.len_utf8()),
            _ => {
                let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
                (Some(rest[..end].to_owned()), end)
            }
        };
        words.extend(word.map(|word| (line, word)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    words
}

fn http(config: &[Directive]) -> impl Iterator<Item = &Directive> {
    named(config, "http").flat_map(|http| &http.inside)
}

pub fn hosts(config: &[Directive]) -> Vec<Host<'_>> {
    let user = last(config, "user").map_or("nobody", |user| user.word(0));
    let host = |server| {
        let Directive { inside: own, place, .. }: &Directive = server;
        let is_tls = |listen: &&Directive| listen.words.iter().any(|word| word == "ssl");
        let listen = named(own, "listen").min_by_key(|listen| !is_tls(listen));
        let mut names = named(own, "server_name").flat_map(|names| &names.words);
        let name = names.find(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()));
        let (name, is_tls) = (name.map(String::as_str), listen.as_ref().is_some_and(is_tls));
        let listen = listen.map_or("80", |listen| listen.word(0));
        let site = Site::new(Server::Nginx, user, name, listen, is_tls, place);
        Host {
            roots: roots(config, own),
            enabled: enabled(config, own, &site),
            handlers: Box::new(|path, _| handlers(config, own, path)),
            site,
        }
    };
    named(http(config), "server").map(host).collect()
}

fn roots(config: &[Directive], own: &[Directive]) -> Vec<Root> {
    let mut roots = Vec::new();
    for location in named(own, "location") {
        let path = parts(location).1.trim_end_matches('/');
        let root = last(&location.inside, "root")
            .map(|root| Path::new(root.word(0)).join(path.trim_start_matches('/')));
        let folder = last(&location.inside, "alias").map(|alias| alias.word(0).into()).or(root);
        roots.extend(folder.map(|folder| Root { path: path.to_owned(), folder }));
    }
    let root = last(own, "root").or(last(http(config), "root"));
    roots.extend(root.map(|root| Root { path: String::new(), folder: root.word(0).into() }));
    roots
}

/// The modifier of a `location`, after which nginx needs no space, and its path or expression.
fn parts(location: &Directive) -> (&str, &str) {
    let word = location.word(0);
    let modifiers = ["=", "^~", "~*", "~"];
    let modifier = modifiers.into_iter().find(|start| word.starts_with(start)).unwrap_or("");
    let rest = &word[modifier.len()..];
    (modifier, if rest.is_empty() { location.word(1) } else { rest })
}

/// The `location` for a path of PHP, as `ngx_http_core_find_location` chooses it.
fn location<'c>(
    list: &'c [Directive],
    path: &str,
    is_wanted: &dyn Fn(&Directive) -> bool,
) -> Option<&'c Directive> {
    let locations = || named(list, "location").filter(|location| is_wanted(location));
    let is_exact = |location: &&Directive| parts(location) == ("=", path);
    if let Some(exact) = locations().find(is_exact) {
        return Some(exact);
    }
    let is_prefix = |location: &&Directive| match parts(location) {
        ("" | "^~", prefix) => path.starts_with(prefix),
        _ => false,
    };
    let prefix = locations().filter(is_prefix).max_by_key(|location| parts(location).1.len());
    let nested = prefix.and_then(|prefix| location(&prefix.inside, path, is_wanted));
    let is_last = prefix.is_some_and(|prefix| parts(prefix).0 == "^~")
        || nested.is_some_and(|nested| !is_prefix(&nested));
    // No expressions are evaluated; this is that of PHP's files.
    let expression = locations().find(is_expression).filter(|_| !is_last);
    expression.or(nested).or(prefix)
}

/// Whether this is a `location` with an expression that passes PHP's files on.
fn is_expression(location: &&Directive) -> bool {
    let (modifier, expression) = parts(location);
    let is_of_php = modifier.starts_with('~') && expression.contains("php");
    is_of_php && last(&location.inside, "fastcgi_pass").is_some()
}

/// The address that a location passes requests to: that of the upstream, if it names one.
fn address<'c>(config: &'c [Directive], location: &'c Directive) -> Option<&'c str> {
    let pass = last(&location.inside, "fastcgi_pass")?;
    let mut upstreams = named(http(config), "upstream");
    let upstream = upstreams.find(|upstream| upstream.word(0) == pass.word(0));
    let server = upstream.and_then(|upstream| last(&upstream.inside, "server"));
    Some(server.unwrap_or(pass).word(0).trim_end_matches(':'))
}

fn way(config: &[Directive], location: &Directive) -> Option<Way> {
    let mut parameters = named(&location.inside, "fastcgi_param");
    let program = parameters.find(|line| line.word(0) == "SCRIPT_FILENAME");
    if program.is_some_and(|program| is_comedor(program.word(1))) {
        return Some(Way::Cgi);
    }
    let socket = address(config, location)?.strip_prefix("unix:")?;
    is_comedor(socket).then(|| Way::FastCgi(socket.into()))
}

fn enabled(config: &[Directive], own: &[Directive], site: &Site) -> Vec<Enabled> {
    let enabled = named(all(own), "location").filter_map(|location| {
        let (path, place) = (parts(location).1.to_owned(), location.place.clone());
        Some(Enabled { site: site.clone(), path, way: way(config, location)?, place })
    });
    enabled.collect()
}

/// What answers `path`.
fn handlers(config: &[Directive], own: &[Directive], path: &str) -> Handlers {
    let comedor = location(own, path, &|_| true).and_then(|location| way(config, location));
    let is_of_php = |location: &Directive| way(config, location).is_none();
    let mut others = named(own, "location").filter(is_expression).filter(|other| is_of_php(other));
    let of_php = location(own, path, &is_of_php);
    // Which of several expressions is that of the path is unknown.
    let of_php = of_php.filter(|first| {
        !is_expression(first)
            || others.all(|other| address(config, other) == address(config, first))
    });
    let php = of_php
        .and_then(|location| address(config, location))
        .map(|address| Handler::Fpm(address.strip_prefix("unix:").unwrap_or(address).to_owned()));
    let inside = of_php.map_or(&[][..], |location| &location.inside);
    let passed = named(inside, "fastcgi_param").filter(|line| line.word(0).starts_with("PHP_"));
    let settings = passed.flat_map(|line| {
        let is_admin = line.word(0) == "PHP_ADMIN_VALUE";
        let value = move |value| Value { place: line.place.clone(), ..value };
        let facts = php::facts(&line.place.file, line.word(1)).into_iter();
        facts.map(move |fact| Fact { value: value(fact.value), is_admin, ..fact })
    });
    Handlers { comedor, php, settings: settings.collect() }
}
