//! What `comedor check` says about a GlusterFS mount.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use super::file_system::{Finding, Mount};
use super::report::Level;
use super::user::quoted;
use crate::files::{self, Fault};

/// The settings in use of the client of a Gluster mount, from `.meta` of the mount point.
#[derive(Debug)]
struct Client {
    /// Its command line, as JSON
    command: String,
    /// Its active translators: the name of the volume, a hyphen and the kind
    translators: Vec<String>,
}

impl Client {
    fn at(point: &Path) -> Result<Client, Fault> {
        let meta = point.join(".meta");
        // Another program can claim to be Gluster (FUSE), and have a FIFO or an endless file there.
        let file = files::open(OpenOptions::new().read(true), &meta.join("cmdline"))?;
        let command = String::from_utf8_lossy(&files::read(&file)?.0).into_owned();
        let entries = fs::read_dir(meta.join("graphs/active"))?;
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        Ok(Client { command, translators: entries.map(name).collect::<Result<_, _>>()? })
    }

    /// The volume options that are on and must be off: these translators cache files and attributes
    /// and do not notice changes by other servers.
    fn caches(&self) -> Vec<&'static str> {
        const CACHES: [(&str, &str); 5] = [
            ("-quick-read", "performance.quick-read"),
            ("-md-cache", "performance.stat-prefetch"),
            ("-io-cache", "performance.io-cache"),
            ("-read-ahead", "performance.read-ahead"),
            ("-nl-cache", "performance.nl-cache"),
        ];
        let is_active = |kind: &str| self.translators.iter().any(|name| name.ends_with(kind));
        CACHES.into_iter().filter(|(kind, _)| is_active(kind)).map(|(_, option)| option).collect()
    }

    /// The mount options that differ from the tested ones. The defaults are those of
    /// `glusterfs --help`.
    fn wrong_options(&self) -> Vec<String> {
        const OPTIONS: [(&str, &str, &str); 4] = [
            ("attribute-timeout", "1", "0"),
            ("entry-timeout", "1", "0"),
            ("negative-timeout", "0", "0"),
            ("auto-invalidation", "on", "on"),
        ];
        let value = |name: &str| {
            let mut words = self.command.split([' ', '"']);
            words.find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
        };
        let is_wrong = |(name, default, tested): &(&str, &str, &str)| {
            value(name).unwrap_or(default) != *tested
        };
        let wrong = OPTIONS.into_iter().filter(is_wrong);
        wrong.map(|(name, _, tested)| format!("{name}={tested}")).collect()
    }
}

/// Warns about settings of the mount other than the tested ones.
pub fn check(mount: &Mount) -> Option<Finding> {
    finding(mount, Client::at(&mount.point))
}

fn finding(mount: &Mount, client: Result<Client, Fault>) -> Option<Finding> {
    const EFFECT: &str = "if several servers mount this volume, ACKNOWLEDGED CHANGES AND SAVES BY PHP \
                          ARE LOST";
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let text = format!(
                "the settings of the Gluster mount {} cannot be read here (.meta: {error}); {EFFECT} \
                 unless performance.quick-read and performance.stat-prefetch are off and it is \
                 mounted with attribute-timeout=0,entry-timeout=0,auto-invalidation=on",
                mount.point.display()
            );
            return Some(Finding::new(Level::Warning, text));
        }
    };
    let (caches, options) = (client.caches(), client.wrong_options());
    let mut changes = Vec::new();
    if !options.is_empty() {
        changes.push(format!("mount it with {}", options.join(",")));
    }
    if !caches.is_empty() {
        changes.push(format!("turn off {} on a Gluster server", caches.join(" and ")));
    }
    if changes.is_empty() {
        return None;
    }
    let text = format!(
        "the Gluster mount {} does not have the tested settings; {EFFECT}, as in tests with Gluster's \
         defaults; {}, unless only one server mounts it",
        mount.point.display(),
        changes.join(", and ")
    );
    // The source is `SERVER:/VOLUME`, or `SERVER:/VOLUME/FOLDER`.
    let volume = mount.source.split_once(":/").and_then(|(_, path)| path.split('/').next());
    let commands = volume.map(|volume| {
        let volume = quoted(Path::new(volume));
        let command = |option| format!("sudo gluster volume set {volume} {option} off");
        caches.into_iter().map(command).collect::<Vec<_>>().join(" && ")
    });
    let fix = commands.filter(|commands| !commands.is_empty());
    Some(Finding { level: Level::Warning, text, fix })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn mount() -> Mount {
        Mount { point: "/srv".into(), source: "gluster1:/menus/school".into(), ..Mount::default() }
    }

    /// The changes and the command in the finding about a Gluster mount
    #[track_caller]
    fn found(options: &str, translators: &[&str]) -> Option<(String, Option<String>)> {
        let command = format!(
            "{{ \n  \"Cmdlinestr\": \"/usr/sbin/glusterfs {options} --volfile-id=/menus /srv\"\n}}"
        );
        let translators = translators.iter().map(|kind| format!("menus-{kind}")).collect();
        let finding = finding(&mount(), Ok(Client { command, translators }))?;
        assert!(finding.text.contains("ACKNOWLEDGED CHANGES AND SAVES BY PHP ARE LOST"));
        let changes = finding.text.rsplit("; ").next().unwrap();
        Some((changes.strip_suffix(", unless only one server mounts it")?.to_owned(), finding.fix))
    }

    #[test]
    fn settings_that_were_not_tested_are_named_with_the_change() {
        const TESTED: &str = "--auto-invalidation=on --attribute-timeout=0 --entry-timeout=0";
        let others = ["client-0", "dht", "open-behind", "write-behind"];
        assert_eq!(found(TESTED, &others), None);
        assert_eq!(found("--attribute-timeout=0 --entry-timeout=0", &others), None);
        for (options, text) in [
            ("", "mount it with attribute-timeout=0,entry-timeout=0"),
            ("--attribute-timeout=0 --entry-timeout=5", "mount it with entry-timeout=0"),
            (&TESTED.replace("=on", "=off"), "mount it with auto-invalidation=on"),
            (&format!("--negative-timeout=9 {TESTED}"), "mount it with negative-timeout=0"),
        ] {
            assert_eq!(found(options, &others), Some((text.to_owned(), None)));
        }
        let (text, fix) = found(TESTED, &["dht", "quick-read", "md-cache"]).unwrap();
        let changes =
            "turn off performance.quick-read and performance.stat-prefetch on a Gluster server";
        assert_eq!(text, changes);
        assert_eq!(
            fix.unwrap(),
            "sudo gluster volume set menus performance.quick-read off && \
             sudo gluster volume set menus performance.stat-prefetch off"
        );
        let (text, _) = found("", &["quick-read"]).unwrap();
        assert!(
            text.starts_with("mount it with attribute-timeout=0,entry-timeout=0, and turn off")
        );
        let missing = Client::at(Path::new("/nowhere"));
        let unreadable = finding(&mount(), missing).unwrap();
        assert!(
            unreadable.text.contains("unless performance.quick-read and"),
            "{}",
            unreadable.text
        );
    }

    #[test]
    fn only_a_regular_file_is_read_in_meta() {
        let folder = tempfile::tempdir().unwrap();
        let graph = folder.path().join(".meta/graphs/active");
        fs::create_dir_all(graph.join("menus-md-cache")).unwrap();
        let command = folder.path().join(".meta/cmdline");
        fs::write(&command, "--entry-timeout=0").unwrap();
        let client = Client::at(folder.path()).unwrap();
        assert_eq!(client.caches(), ["performance.stat-prefetch"]);
        fs::remove_file(&command).unwrap();
        mknodat(CWD, &command, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let fault = Client::at(folder.path()).unwrap_err();
        assert_eq!(fault.to_string(), "it is not a regular file");
    }
}
