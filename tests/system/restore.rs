//! "To restore everything" of the guides, while PHP's user puts a link in place of a folder.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::support::*;

const AULARIO: &str = "DATA/entreaulas/Centros/colegio/Aularios/aula1";
const BACKUP: &str = "backup/data.tar.gz";
const GUIDES: [&str; 2] = ["docs/install.md", "docs/es/instalar.md"];

/// A machine with data of PHP's user, settings of root, and a backup of both.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let root = open_folder();
        let machine = Machine { root };
        fs::create_dir_all(machine.path(AULARIO)).unwrap();
        for folder in ["etc/comedor", "etc/of-root", "backup"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        fs::write(machine.path("etc/comedor/comedor.conf"), "TZ=UTC\n").unwrap();
        // tar reads the last file after it has unpacked the first one.
        let mut noise = vec![0; 8 << 20];
        File::open("/dev/urandom")
            .unwrap()
            .read_exact(&mut noise)
            .unwrap();
        for (name, content) in [("1", &b"menu"[..]), ("2", &noise), ("3", b"of an attacker")] {
            fs::write(machine.path(AULARIO).join(name), content).unwrap();
        }
        let back_up = "chown -R www-data: DATA/entreaulas; umask 077; \
                       tar --sort=name -czf backup/data.tar.gz DATA/entreaulas; \
                       tar -czf backup/settings.tar.gz etc/comedor";
        output(&mut machine.shell(back_up), "tar");
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Runs a command of a guide on this machine.
    fn shell(&self, line: &str) -> Command {
        let root = self.root.path();
        let mut shell = Command::new("sh");
        shell.current_dir(root).args(["-c", line]);
        shell.env("backup", root.join("backup"));
        shell
    }

    /// Feeds the backup to the command, and puts a link in place of the aulario's folder, as PHP's user, after tar
    /// has entered it.
    fn restore_and_swap(&self, line: &str) -> Child {
        let backup = fs::read(self.path(BACKUP)).unwrap();
        fs::remove_file(self.path(BACKUP)).unwrap();
        output(Command::new("mkfifo").arg(self.path(BACKUP)), "coreutils");
        fs::remove_dir_all(self.path(AULARIO)).unwrap();
        let child = self.shell(line).spawn().unwrap();
        let mut fifo = File::options().write(true).open(self.path(BACKUP)).unwrap();
        let (first, last) = backup.split_at(backup.len() - (1 << 20));
        fifo.write_all(first).unwrap();
        while !self.path(AULARIO).join("1").exists() {
            std::thread::yield_now();
        }
        let link = self.path("etc/of-root");
        let swap = format!(
            "sudo -u www-data sh -c 'mv {AULARIO} {AULARIO}.away && ln -s {} {AULARIO}'",
            link.display()
        );
        output(&mut self.shell(&swap), "sudo");
        fifo.write_all(last).unwrap();
        child
    }
}

/// The commands of a guide that unpack the data, and then the settings, below another root.
fn commands(guide: &str, root: &Path) -> Vec<String> {
    let text = text_of(guide);
    let lines = text
        .lines()
        .filter(|line| line.starts_with("sudo ") && line.contains(" -xz"))
        .filter(|line| line.contains(" -C / "));
    let root = format!("-C {}", root.display());
    let commands: Vec<_> = lines.map(|line| line.replace("-C /", &root)).collect();
    assert_eq!(commands.len(), 2, "{guide}: {commands:?}");
    commands
}

#[test]
fn the_commands_of_the_guides_restore_data_and_settings() {
    for guide in GUIDES {
        let machine = Machine::new();
        let day = machine.path(AULARIO).join("1");
        let settings = machine.path("etc/comedor/comedor.conf");
        fs::write(&day, "lost").unwrap();
        fs::write(&settings, "TZ=Mars\n").unwrap();
        for line in commands(guide, machine.root.path()) {
            output(&mut machine.shell(&line), "tar and sudo");
        }
        assert_eq!(fs::read_to_string(&day).unwrap(), "menu");
        assert_eq!(fs::read_to_string(&settings).unwrap(), "TZ=UTC\n");
        let owners = [day, settings].map(|file| fs::metadata(file).unwrap().uid());
        assert_eq!(owners, [33, 0], "{guide}");
    }
}

#[test]
fn root_restores_nothing_where_the_user_of_php_leads_it_by_a_link() {
    for guide in GUIDES {
        let machine = Machine::new();
        let unpack_data = &commands(guide, machine.root.path())[0];
        machine.restore_and_swap(unpack_data).wait().unwrap();
        let of_root = machine.path("etc/of-root");
        assert_eq!(files_below(&of_root, &[]), [""; 0], "{guide}");
        assert_eq!(fs::metadata(of_root).unwrap().uid(), 0, "{guide}");
    }
}
