//! The Debian package: its files, its maintainer scripts, its version and its copyright file.

use std::path::Path;
use std::process::Command;

use crate::install::assert_documented;
use crate::support::*;

#[test]
fn the_debian_package_has_the_page_the_documentation_and_no_settings_file() {
    let root = tempfile::tempdir().unwrap();
    output(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(package())
            .arg(root.path()),
        "dpkg",
    );
    assert_documented(&root.path().join("usr/share/doc/comedor"));
    assert!(
        root.path()
            .join("usr/share/comedor/comedor-setup.php")
            .exists()
    );
    // `configure` writes it: as a file of the package, each upgrade would ask.
    assert!(!root.path().join("etc/comedor").exists());
}

/// The output of `packaging/debian/prerm` with this argument, on a machine whose only file in `/etc` has this text. It
/// is enabled by a link if it is in a folder for that.
fn before_removal(argument: &str, file: &str, text: &str) -> String {
    on_a_machine(file, text, &format!("sh packaging/debian/prerm {argument}"))
}

/// The output of a command on this machine, on which systemd does not run.
fn on_a_machine(file: &str, text: &str, command: &str) -> String {
    let mut files = format!("mkdir -p $(dirname {file}); echo '{text}' > {file};");
    let enabled = file.replace("-available/", "-enabled/");
    if enabled != file {
        files += &format!("mkdir -p $(dirname {enabled}); ln -s {file} {enabled};");
    }
    let script = format!("mount -t tmpfs none /etc; mount -t tmpfs none /run; {files} {command}");
    let mut machine = Command::new("unshare");
    machine
        .current_dir(REPOSITORY)
        .args(["--mount", "sh", "-ec", &script]);
    String::from_utf8(output(&mut machine, "a run as root")).unwrap()
}

/// A file of 1.0.0, or of set-up in 0.4.0, that goes on working.
#[test]
fn an_upgrade_names_a_configuration_of_apache_that_keeps_connections() {
    const POSTINST: &str = "sh packaging/debian/postinst configure 1.0.0";
    let keeps = "<Proxy \"fcgi://comedor\" enablereuse=on ttl=30 retry=0>";
    let available = "/etc/apache2/conf-available/comedor-fastcgi.conf";
    for file in [available, "/etc/apache2/sites-available/a.conf"] {
        let said = on_a_machine(file, keeps, POSTINST);
        assert_eq!(said.lines().count(), 1, "{said}");
        let (_, command) = said.split_once("To remove it: sudo ").expect(&said);
        let (command, _) = command.split_once(" && ").unwrap();
        let left = on_a_machine(file, keeps, &format!("{command}; cat {file}; {POSTINST}"));
        assert_eq!(left, "<Proxy \"fcgi://comedor\" ttl=30 retry=0>\n");
    }
    for text in [
        "<Proxy \"fcgi://comedor\" retry=0>",
        "<Proxy \"fcgi://other\" enablereuse=on>",
        "# <Proxy \"fcgi://comedor\" enablereuse=on>",
    ] {
        assert_eq!(on_a_machine(available, text, POSTINST), "", "{text}");
    }
    let first = on_a_machine(available, keeps, "sh packaging/debian/postinst configure");
    assert_eq!(first, "", "an installation");
}

#[test]
fn a_package_that_is_removed_while_enabled_names_the_command_for_each_web_server() {
    for (file, text, command) in [
        (
            "/etc/apache2/conf-available/comedor.conf",
            "ScriptAlias \"/usr/lib/cgi-bin/comedor\"",
            "sudo a2disconf comedor && sudo apache2ctl configtest && sudo systemctl restart apache2",
        ),
        // Of set-up in version 0.4.0
        (
            "/etc/apache2/conf-available/zz-comedor-setup.conf",
            "SetHandler \"proxy:unix:/run/comedor/comedor.sock|fcgi://comedor\"",
            "sudo a2disconf zz-comedor-setup && ",
        ),
        (
            "/etc/apache2/sites-enabled/a.conf", "/run/comedor/comedor.sock",
            "in /etc/apache2/sites-",
        ),
        (
            "/etc/apache2/sites-available/a.conf",
            "    Include conf-available/comedor.conf",
            "remove the lines of comedor in /etc/apache2/sites-enabled/a.conf, then: sudo apache2ctl configtest && sudo systemctl restart apache2",
        ),
        (
            "/etc/lighttpd/conf-available/90-comedor.conf",
            "/usr/lib/cgi-bin/comedor",
            "lighty-disable-",
        ),
        // Of set-up in version 0.4.0
        (
            "/etc/lighttpd/conf-enabled/90-comedor.conf",
            "\"socket\" => \"/run/comedor/comedor.sock\",",
            "sudo rm /etc/lighttpd/conf-enabled/90-comedor.conf && sudo systemctl restart lighttpd",
        ),
        (
            "/etc/nginx/sites-available/default", "include snippets/comedor.conf;", "reload nginx",
        ),
        // Of set-up in version 0.4.0
        (
            "/etc/nginx/sites-enabled/default",
            "    include /etc/nginx/snippets/comedor-setup.conf;",
            "reload nginx",
        ),
        (
            "/etc/nginx/conf.d/school.conf",
            "include snippets/comedor.conf;",
            "in /etc/nginx/conf.d/school.conf, then: sudo systemctl reload nginx",
        ),
        (
            "/etc/nginx/nginx.conf",
            "fastcgi_pass unix:/run/comedor/comedor.sock;",
            "in /etc/nginx/nginx.conf,",
        ),
        (
            "/etc/caddy/Caddyfile", "import comedor.caddyfile", "restart caddy",
        ),
    ] {
        let said = before_removal("remove", file, text);
        assert!(
            said.contains(command) && said.lines().count() == 1,
            "{said}"
        );
        assert_eq!(before_removal("upgrade", file, text), "");
    }
    for (file, text) in [
        ("/etc/apache2/conf-enabled/other.conf", "x"),
        (
            "/etc/apache2/sites-enabled/a.conf", "# Include conf-available/comedor.conf",
        ),
        // What is left after the line `include` was removed
        (
            "/etc/nginx/conf.d/comedor.conf",
            "upstream comedor { server unix:/run/comedor/comedor.sock; }",
        ),
        (
            "/etc/nginx/conf.d/school.conf.old", "include snippets/comedor.conf;",
        ),
    ] {
        assert_eq!(before_removal("remove", file, text), "");
    }
}

/// No error and no warning but those of `packaging/debian/lintian-overrides`.
#[test]
fn lintian_finds_no_error_in_the_debian_package() {
    let mut lintian = Command::new("lintian");
    lintian.args([
        "--allow-root", "--no-cfg", "--fail-on=none", "--tag-display-limit=0",
    ]);
    let tags = output(lintian.arg("--display-info").arg(package()), "lintian");
    let tags = String::from_utf8(tags).unwrap();
    let is_complaint = |tag: &&str| !tag.starts_with("I: ") || tag.contains("-override");
    assert_eq!(
        tags.lines().filter(is_complaint).collect::<Vec<_>>(),
        [""; 0]
    );
}

#[test]
fn the_package_has_the_version_of_the_program_and_of_the_debian_changelog() {
    let mut field = Command::new("dpkg-deb");
    let version = output(field.arg("--field").arg(package()).arg("Version"), "dpkg");
    let version = String::from_utf8(version).unwrap();
    // Debian sorts 0.3.0~dev before 0.3.0.
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION").replace('-', "~"));
    let changelog = text_of("packaging/debian/changelog");
    let expected = format!("comedor ({}) ", version.trim());
    assert!(
        changelog.starts_with(&expected),
        "packaging/debian/changelog starts with {expected}"
    );
}

/// Rust's standard library, by the names of its parts, and what the program does not use of it.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "alloc", "core", "getopts", "panic_abort", "panic_unwind", "proc_macro", "profiler_builtins", "rust-std",
    "rustc_literal_escaper", "rustc_std_workspace_alloc", "rustc_std_workspace_core", "rustc_std_workspace_std", "std",
    "std_detect", "sysroot", "test", "unwind",
];

#[test]
fn the_copyright_file_names_everything_that_is_linked_in() {
    let copyright = text_of("packaging/debian/copyright").replace('-', "_");
    let names: Vec<&str> = copyright.split([' ', '(', ')', ',', '\n']).collect();

    let bom = output(
        &mut Command::new(Path::new(REPOSITORY).join("packaging/release/sbom")),
        "python3",
    );
    let bom: Value = serde_json::from_slice(&bom).unwrap();
    let components = bom["components"].as_array().unwrap().iter();
    let components = components.map(|component| component["name"].as_str().unwrap().to_owned());

    let mut rustc = Command::new("rustc");
    rustc.args([
        "--print=target-libdir", "--target=x86_64-unknown-linux-musl",
    ]);
    let folder = String::from_utf8(output(&mut rustc, "rustc")).unwrap();
    let libraries = files_below(Path::new(folder.trim_end()), &["-name", "lib*.rlib"]);
    let libraries = libraries
        .iter()
        .map(|name| name[3..].split('-').next().unwrap().to_owned());

    let linked: Vec<String> = components.chain(libraries).collect();
    for name in ["chrono", "musl", "gimli"] {
        assert!(
            linked.iter().any(|linked| linked == name),
            "{name} in {linked:?}"
        );
    }
    for name in linked.iter().filter(|name| !OTHERS.contains(&&***name)) {
        assert!(
            names.contains(&&*name.replace('-', "_")),
            "packaging/debian/copyright does not name {name}"
        );
    }
}
