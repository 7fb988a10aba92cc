//! The settings of PHP's pages, from its configuration files in Debian and Ubuntu. The php command
//! is not asked: it has settings of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::reach::entries;

/// The settings that the pages of one server or FPM pool have, each with the file that sets it.
#[derive(Debug, Default, Clone)]
pub struct Php {
    pub file: PathBuf,
    values: BTreeMap<String, (String, PathBuf)>,
}

impl Php {
    /// Every configuration in `root`, usually `/etc/php`: `VERSION/{apache2,cgi,fpm}/php.ini` and
    /// `conf.d/*.ini`, for FPM once for each pool in `pool.d/*.conf`.
    pub fn configurations(root: &Path) -> Vec<Php> {
        let versions = entries(root).into_iter();
        let servers = versions.flat_map(|path| ["apache2", "cgi", "fpm"].map(|s| path.join(s)));
        let servers = servers.filter(|server| server.join("php.ini").is_file());
        let of_server = |server: PathBuf| {
            let mut php = Php { file: server.join("php.ini"), ..Php::default() };
            let files = [vec![php.file.clone()], entries(&server.join("conf.d"))].concat();
            for (file, text) in files.iter().filter_map(with_text) {
                php.set(file, text.lines().filter_map(assignment));
            }
            let pools = entries(&server.join("pool.d"));
            let pools = pools.iter().filter_map(with_text);
            let pools: Vec<_> = pools.flat_map(|(file, text)| php.pools(file, &text)).collect();
            if pools.is_empty() { vec![php] } else { pools }
        };
        servers.flat_map(of_server).collect()
    }

    /// The value of a setting and the file that sets it.
    pub fn get(&self, name: &str) -> Option<(&str, &Path)> {
        self.values.get(name).map(|(value, file)| (value.as_str(), file.as_path()))
    }

    fn set<'t>(&mut self, file: &Path, settings: impl Iterator<Item = (&'t str, &'t str)>) {
        for (name, value) in settings {
            self.values.insert(name.to_owned(), (value.to_owned(), file.to_owned()));
        }
    }

    /// The pools in `text`: sections with `php_value[name] = value` or `php_admin_value[name] = value`.
    fn pools(&self, file: &Path, text: &str) -> Vec<Php> {
        let sections = text.split("\n[").skip(usize::from(!text.starts_with('[')));
        let sections = sections.map(|section| section.trim_start_matches('['));
        let pools = sections.filter(|section| !section.starts_with("global]")).map(|section| {
            let settings = section.lines().filter_map(assignment).filter_map(|(name, value)| {
                let (kind, name) = name.strip_suffix(']')?.split_once('[')?;
                ["php_value", "php_admin_value"].contains(&kind).then_some((name, value))
            });
            let mut pool = self.clone();
            pool.set(file, settings);
            pool
        });
        pools.collect()
    }
}

/// The name and the value of a line `name = value`: in quotes, or up to a comment.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.starts_with([';', '#']) {
        return None;
    }
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
        _ => value.split(';').next().map(str::trim),
    };
    Some((name, value?))
}

fn with_text(file: &PathBuf) -> Option<(&PathBuf, String)> {
    let is_configuration = file.extension().is_some_and(|e| e == "ini" || e == "conf");
    // A comment may have another encoding.
    let bytes = fs::read(file).ok().filter(|_| is_configuration)?;
    Some((file, String::from_utf8_lossy(&bytes).into_owned()))
}
