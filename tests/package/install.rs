//! Both ways to install, into a folder that stands for the system's root.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::*;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// Where these tests build: the other ones run the program that lies in the usual folder.
const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/install");

/// The installed program answers, and knows its version.
fn works(program: &Path) {
    let school = School::new();
    // The machine's own settings file counts for it, so each of the folders is set.
    school.get("get_menu").program(program).set("COMEDOR_SERVICE", "service").run().ok();
    let version = output(Command::new(program).arg("--version").env_clear(), "comedor");
    assert_eq!(version, concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[test]
fn the_script_installs_below_prefix_and_destdir_and_leaves_settings_alone() {
    let root = tempfile::tempdir().unwrap();
    let install = || {
        let mut command = Command::new(Path::new(REPOSITORY).join("cgi-bin/install"));
        command.env("DESTDIR", root.path()).env("PREFIX", "/opt/x").env("CARGO_TARGET_DIR", TARGET);
        let text = output(&mut command, "bash");
        assert!(String::from_utf8(text).unwrap().contains("comedor check"));
    };
    install();
    works(&root.path().join("opt/x/lib/cgi-bin/comedor"));
    let link = fs::read_link(root.path().join("opt/x/bin/comedor")).unwrap();
    assert_eq!(link, Path::new("/opt/x/lib/cgi-bin/comedor"));
    assert!(root.path().join("opt/x/share/doc/comedor/openapi.yaml").exists());
    let apache = root.path().join("opt/x/share/doc/comedor/examples/apache.conf.example");
    assert!(fs::read_to_string(apache).unwrap().contains("\"/opt/x/lib/cgi-bin/comedor\""));
    let settings = root.path().join("etc/comedor/comedor.conf");
    fs::write(&settings, "COMEDOR_SERVICE=x\n").unwrap();
    install();
    assert_eq!(fs::read_to_string(settings).unwrap(), "COMEDOR_SERVICE=x\n");
}

/// Every line of the shipped settings file is a setting once its `#` is taken away.
#[test]
fn the_settings_that_are_shipped_are_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("comedor");
    fs::copy(PROGRAM, &program).unwrap();
    let shipped = fs::read_to_string(Path::new(REPOSITORY).join("comedor.conf.example")).unwrap();
    let settings: Vec<&str> = shipped.lines().filter_map(|line| line.strip_prefix('#')).collect();
    let settings: Vec<&str> = settings.into_iter().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(settings.len(), 9);
    fs::write(folder.path().join("comedor.conf"), settings.join("\n")).unwrap();
    School::new().get("get_menu").program(&program).run().ok();
}

#[test]
fn the_debian_package_installs_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("comedor.deb");
    let rustc = String::from_utf8(output(Command::new("rustc").arg("-vV"), "rustc")).unwrap();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut build = Command::new("cargo");
    build.args(["deb", "--locked", "--quiet", "--target", host, "--output"]).arg(&package);
    build.current_dir(REPOSITORY).env("CARGO_TARGET_DIR", TARGET);
    output(&mut build, "cargo-deb (cargo install cargo-deb)");

    let root = folder.path().join("root");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).arg("--log=/dev/null");
    dpkg.arg("--install").arg(&package);
    output(&mut dpkg, "dpkg");

    works(&root.join("usr/lib/cgi-bin/comedor"));
    for path in [
        "etc/apache2/conf-available/comedor.conf",
        "etc/comedor/comedor.conf",
        "usr/bin/comedor",
        "usr/share/doc/comedor/openapi.yaml",
    ] {
        assert!(fs::symlink_metadata(root.join(path)).is_ok(), "{path}");
    }
    assert!(!root.join("etc/apache2/conf-enabled").exists(), "nothing is enabled");
    let mut conffiles = Command::new("dpkg-deb");
    let conffiles = output(conffiles.arg("--info").arg(&package).arg("conffiles"), "dpkg");
    let conffiles = String::from_utf8(conffiles).unwrap();
    assert!(conffiles.contains("/etc/comedor/comedor.conf"), "{conffiles}");
}
