//! nginx's configuration, as `nginx -T` prints it: each file, with its name in a comment before it.

use std::path::{Path, PathBuf};

use super::directive::{Directive, last};
use super::php::{Handler, Layer, Passed, layers};
use super::{Enabled, Place, Root, Server, Site, Value, Way, command, is_comedor};

pub fn configuration() -> Result<Vec<Directive>, String> {
    command::run("nginx", &["-T", "-q"]).map(|dump| parse(&dump))
}

pub fn parse(dump: &str) -> Vec<Directive> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for line in dump.lines() {
        let name =
            line.strip_prefix("# configuration file ").and_then(|name| name.strip_suffix(':'));
        match (name, files.last_mut()) {
            (Some(name), _) => files.push((name.into(), String::new())),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_path(), words(text))).collect();
    files.first().map_or_else(Vec::new, |(path, words)| block(&mut words.iter(), path, &files))
}

type Words = Vec<(usize, String)>;

/// The directives up to the end of a block, with those of the files that it includes.
fn block<'w>(
    words: &mut impl Iterator<Item = &'w (usize, String)>,
    file: &Path,
    files: &[(&Path, Words)],
) -> Vec<Directive> {
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
        if directive.is("include") {
            let pattern = Path::new("/etc/nginx").join(directive.word(0));
            for (path, words) in files.iter().filter(|(path, _)| is_named(path, &pattern)) {
                list.extend(block(&mut words.iter(), path, files));
            }
        } else {
            list.push(directive);
        }
    }
    list
}

/// Whether a pattern of an `include`, with at most one `*`, names `path`.
fn is_named(path: &Path, pattern: &Path) -> bool {
    let (path, pattern) = (path.to_string_lossy(), pattern.to_string_lossy());
    match pattern.split_once('*') {
        Some((start, end)) => {
            let middle = path.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            middle.is_some_and(|middle| !middle.contains('/'))
        }
        None => path == pattern,
    }
}

/// The words of a file, with their lines; a word in quotes starts with `"`, so that it is no separator.
fn words(text: &str) -> Words {
    let mut words = Vec::new();
    let (mut line, mut rest) = (1, text.chars().peekable());
    while let Some(c) = rest.next() {
        let start = line;
        match c {
            '\n' => line += 1,
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            '{' | '}' | ';' => words.push((start, c.to_string())),
            quote @ ('"' | '\'') => {
                let mut word = "\"".to_owned();
                while let Some(c) = rest.next().filter(|c| *c != quote) {
                    let c = if c == '\\' { rest.next().unwrap_or(c) } else { c };
                    line += usize::from(c == '\n');
                    word.push(c);
                }
                words.push((start, word));
            }
            c if c.is_whitespace() => {}
            c => {
                let mut word = c.to_string();
                // `${name}` is a variable.
                while let Some(c) = rest.next_if(|c| {
                    !c.is_whitespace() && !matches!(c, ';' | '{')
                        || word.ends_with('$') && *c == '{'
                }) {
                    word.push(c);
                }
                words.push((start, word));
            }
        }
    }
    words
}

fn http(config: &[Directive]) -> impl Iterator<Item = &Directive> {
    config.iter().filter(|directive| directive.is("http")).flat_map(|http| &http.inside)
}

fn own<'c>(config: &'c [Directive], site: &Site) -> &'c [Directive] {
    let mut servers = http(config).filter(|directive| directive.is("server"));
    servers.find(|server| server.place == site.place).map_or(&[], |server| &server.inside)
}

pub fn sites(config: &[Directive]) -> Vec<Site> {
    let user = last(config, "user").map_or("nobody", |user| user.word(0));
    let servers = http(config).filter(|directive| directive.is("server"));
    let sites = servers.map(|server| {
        let is_tls = |listen: &&Directive| listen.words.iter().any(|word| word == "ssl");
        let listens = || server.inside.iter().filter(|directive| directive.is("listen"));
        let listen = listens().find(is_tls).or(listens().next());
        let (address, port) = match listen.map_or("80", |listen| listen.word(0)) {
            word if word.bytes().all(|byte| byte.is_ascii_digit()) => ("*", word),
            word => word.rsplit_once(':').filter(|_| !word.ends_with(']')).unwrap_or((word, "80")),
        };
        let is_any = matches!(address, "*" | "0.0.0.0" | "[::]");
        let names = server.inside.iter().filter(|directive| directive.is("server_name"));
        let name = names
            .flat_map(|names| &names.words)
            .find(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()));
        Site {
            server: Server::Nginx,
            user: user.to_owned(),
            name: name.map_or("localhost", String::as_str).to_owned(),
            address: if is_any { "127.0.0.1" } else { address }.to_owned(),
            port: port.parse().unwrap_or(80),
            is_tls: listen.as_ref().is_some_and(is_tls),
            place: server.place.clone(),
        }
    });
    sites.collect()
}

pub fn roots(config: &[Directive], site: &Site) -> Vec<Root> {
    let own = own(config, site);
    let mut roots = Vec::new();
    for location in own.iter().filter(|location| location.is("location")) {
        let path = location.words.last().map_or("", |path| path.trim_end_matches('/'));
        let root = last(&location.inside, "root")
            .map(|root| Path::new(root.word(0)).join(path.trim_start_matches('/')));
        let folder = last(&location.inside, "alias").map(|alias| alias.word(0).into()).or(root);
        roots.extend(folder.map(|folder| Root { path: path.to_owned(), folder }));
    }
    let root = last(own, "root").or(last(http(config), "root"));
    roots.extend(root.map(|root| Root { path: String::new(), folder: root.word(0).into() }));
    roots
}

/// The `location` for a path of PHP, as `ngx_http_core_find_location` chooses it.
fn location<'c>(
    list: &'c [Directive],
    path: &str,
    is_wanted: &dyn Fn(&Directive) -> bool,
) -> Option<&'c Directive> {
    let locations =
        || list.iter().filter(|location| location.is("location") && is_wanted(location));
    if let Some(exact) =
        locations().find(|location| location.word(0) == "=" && location.word(1) == path)
    {
        return Some(exact);
    }
    let prefix = |location: &&Directive| match location.word(0) {
        "^~" => path.starts_with(location.word(1)),
        word => path.starts_with(word),
    };
    let prefix =
        locations().filter(prefix).max_by_key(|location| location.words.last().map(String::len));
    let nested = prefix.and_then(|prefix| location(&prefix.inside, path, is_wanted));
    if nested.is_some() || prefix.is_some_and(|prefix| prefix.word(0) == "^~") {
        return nested.or(prefix);
    }
    // No expressions are evaluated; this is that of PHP's files.
    let expression = locations()
        .find(|location| location.word(0).starts_with('~') && location.word(1).contains("php"));
    expression.or(prefix)
}

/// The address that a location passes requests to: that of the upstream, if it names one.
fn address<'c>(config: &'c [Directive], inside: &'c [Directive]) -> Option<&'c str> {
    let pass = last(inside, "fastcgi_pass")?;
    let is_it = |upstream: &&Directive| upstream.is("upstream") && upstream.word(0) == pass.word(0);
    let server = http(config).find(is_it).and_then(|upstream| last(&upstream.inside, "server"));
    Some(server.unwrap_or(pass).word(0))
}

fn way(config: &[Directive], location: &Directive) -> Option<Way> {
    let program = location
        .inside
        .iter()
        .find(|line| line.is("fastcgi_param") && line.word(0) == "SCRIPT_FILENAME");
    if program.is_some_and(|program| is_comedor(program.word(1))) {
        return Some(Way::Cgi);
    }
    let socket = address(config, &location.inside)?.strip_prefix("unix:")?;
    is_comedor(socket).then(|| Way::FastCgi(socket.into()))
}

pub fn comedor(config: &[Directive], site: &Site, path: &str, _: &Path) -> Option<Way> {
    way(config, location(own(config, site), path, &|_| true)?)
}

pub fn enabled(config: &[Directive], site: &Site) -> Vec<Enabled> {
    let mut enabled = Vec::new();
    let mut lists = vec![own(config, site)];
    while let Some(list) = lists.pop() {
        for location in list.iter().filter(|directive| directive.is("location")) {
            lists.push(&location.inside);
            let Some(way) = way(config, location) else { continue };
            let path = location.words.last().cloned().unwrap_or_default();
            enabled.push(Enabled { site: site.clone(), path, way, place: location.place.clone() });
        }
    }
    enabled
}

/// The PHP that runs the script, and the settings that nginx passes to it.
pub fn php(config: &[Directive], site: &Site, path: &str, _: &Path) -> Passed {
    let location = location(own(config, site), path, &|location| way(config, location).is_none());
    let inside = location.map_or(&[][..], |location| &location.inside);
    let handler = address(config, inside).map(|address| {
        Handler::Fpm(
            address.strip_prefix("unix:").unwrap_or(address).trim_end_matches(':').to_owned(),
        )
    });
    let mut settings = Vec::new();
    for line in
        inside.iter().filter(|line| line.is("fastcgi_param") && line.word(0).starts_with("PHP_"))
    {
        let is_admin = line.word(0) == "PHP_ADMIN_VALUE";
        let values = layers(&line.place.file, line.word(1)).into_iter();
        settings.extend(values.map(|layer| Layer {
            is_admin,
            value: Value { place: line.place.clone(), ..layer.value },
            ..layer
        }));
    }
    (handler, settings)
}
