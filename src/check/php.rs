//! The settings of PHP's pages, from its configuration files in Debian and Ubuntu. The php command
//! is not asked: it has settings of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::reach::entries;

/// The folders with a configuration for pages: `/etc/php/VERSION/{apache2,cgi,fpm}`.
pub fn servers() -> Vec<PathBuf> {
    let versions = entries(Path::new("/etc/php")).into_iter();
    let servers = versions.flat_map(|path| ["apache2", "cgi", "fpm"].map(|name| path.join(name)));
    servers.filter(|server| server.join("php.ini").is_file()).collect()
}

/// The values of a setting in the folder `server`, each with the file that sets it: those of FPM's pools,
/// else the last one for all pages, which may be the default.
pub fn values(server: &Path, name: &str, default: Option<&str>) -> Vec<(String, PathBuf)> {
    let of_pool = [format!("php_value[{name}]"), format!("php_admin_value[{name}]")];
    let of_pools = assigned(&entries(&server.join("pool.d")), &of_pool);
    if !of_pools.is_empty() {
        return of_pools;
    }
    let ini = server.join("php.ini");
    let files = [vec![ini.clone()], entries(&server.join("conf.d"))].concat();
    let last = assigned(&files, &[name.to_owned()]).pop().filter(|(value, _)| !value.is_empty());
    last.or_else(|| Some((default?.to_owned(), ini))).into_iter().collect()
}

/// The values in lines `name = value` of `files`: in quotes, or up to a comment.
fn assigned(files: &[PathBuf], names: &[String]) -> Vec<(String, PathBuf)> {
    let mut values = Vec::new();
    for file in
        files.iter().filter(|file| file.extension().is_some_and(|e| e == "ini" || e == "conf"))
    {
        // A comment may have another encoding.
        let text = fs::read(file).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = value.trim();
            let value = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
                _ => value.split(';').next().map(str::trim),
            };
            if names.iter().any(|known| known == name.trim()) {
                values.extend(value.map(|value| (value.to_owned(), file.clone())));
            }
        }
    }
    values
}
