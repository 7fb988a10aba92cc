//! The installation scripts, with a folder as the root of the system, and the build that they need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::*;

const INSTALL: &str = "cgi-bin/install";
const UNINSTALL: &str = "cgi-bin/uninstall";

/// A system's root with what `cgi-bin/install` installs below `/opt/x`.
struct Root(TempDir);

impl Root {
    fn installed() -> Root {
        let root = Root(tempfile::tempdir().unwrap());
        root.run(INSTALL, &[]);
        root
    }

    fn files(&self) -> Vec<String> {
        files_below(self.0.path(), &["!", "-type", "d"])
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(Path::new(REPOSITORY).join(script));
        command
            .env("DESTDIR", self.0.path())
            .env("PREFIX", "/opt/x");
        command
    }

    /// The output of a script, which must succeed.
    #[track_caller]
    fn run(&self, script: &str, options: &[&str]) -> String {
        String::from_utf8(output(self.command(script).args(options), "dash")).unwrap()
    }
}

/// The documents and every example are below `folder`, and every relative link in the Markdown files leads to a
/// file.
#[track_caller]
pub fn assert_documented(folder: &Path) {
    let examples = files_below(&Path::new(REPOSITORY).join("examples"), &[]);
    for example in examples
        .iter()
        .map(String::as_str)
        .chain(["apache.conf.example"])
    {
        assert!(folder.join("examples").join(example).exists(), "{example}");
    }
    for file in ["README.es.md", "README.md", "openapi.yaml"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    for file in files_below(folder, &["-name", "*.md"]) {
        let file = folder.join(file);
        for link in relative_links(&text_of(&file)) {
            let target = file.with_file_name(link.split('#').next().unwrap());
            assert!(target.exists(), "{file:?}: {target:?} is not installed");
        }
    }
}

#[test]
fn the_script_installs_below_destdir_and_prefix_keeps_settings_and_names_the_next_step() {
    let root = Root(tempfile::tempdir().unwrap());
    root.write("etc/comedor/comedor.conf", "COMEDOR_SERVICE=x\n");
    let said = root.run(INSTALL, &[]);
    let settings = fs::read_to_string(root.path("etc/comedor/comedor.conf")).unwrap();
    assert_eq!(settings, "COMEDOR_SERVICE=x\n");
    output(
        Command::new(root.path("opt/x/lib/cgi-bin/comedor")).arg("--version"),
        "the program",
    );
    let link = fs::read_link(root.path("opt/x/bin/comedor")).unwrap();
    assert_eq!(link, Path::new("/opt/x/lib/cgi-bin/comedor"));
    assert_documented(&root.path("opt/x/share/doc/comedor"));
    for (file, text) in [
        (
            "share/doc/comedor/examples/apache.conf.example",
            "\"/opt/x/lib/cgi-bin/comedor\"",
        ),
        (
            "lib/systemd/system/comedor.service", "ExecStart=/opt/x/lib/cgi-bin/comedor\n",
        ),
        (
            "lib/systemd/system/comedor.socket",
            "ListenStream=/run/comedor/comedor.sock\n",
        ),
        ("share/comedor/comedor-setup.php", "<?php\n"),
        (
            "share/man/man8/comedor.8", "Pa /opt/x/lib/cgi-bin/comedor\n",
        ),
        (
            "share/man/man8/comedor.8",
            "Pa /opt/x/share/comedor/comedor-setup.php\n",
        ),
        (
            "share/man/man8/comedor.8",
            "Pa /opt/x/share/doc/comedor/examples/\n",
        ),
    ] {
        let content = fs::read_to_string(root.path("opt/x").join(file)).unwrap();
        assert!(content.contains(text), "{file} contains {text}");
    }
    let below = |path| root.path(path).display().to_string();
    for text in [
        &below("opt/x/lib/cgi-bin/comedor"),
        &below("etc/comedor/comedor.conf"),
        &below("opt/x/share/doc/comedor/examples"),
        "/opt/x/share/comedor/comedor-setup.php",
        "/opt/x/share/doc/comedor/docs/install.md",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}

#[test]
fn uninstall_keeps_settings_and_names_them_and_purge_removes_them() {
    let root = Root::installed();
    let (program, socket) = (
        "\"/opt/x/lib/cgi-bin/comedor\"", "unix:/run/comedor/comedor.sock;",
    );
    for (copy, content) in [
        ("etc/apache2/conf-available/comedor.conf", program),
        ("etc/apache2/conf-available/comedor-fastcgi.conf", socket),
        ("etc/caddy/comedor.caddyfile", socket),
        ("etc/lighttpd/conf-available/90-comedor.conf", program),
        ("etc/nginx/conf.d/comedor.conf", socket),
        ("etc/nginx/snippets/comedor.conf", "fastcgi_pass comedor;"),
    ] {
        root.write(copy, content);
    }
    let text = root.run(UNINSTALL, &[]);
    let kept = root.files();
    assert_eq!(kept.len(), 7, "{kept:?}");
    for path in kept {
        assert!(
            text.contains(&root.path(&path).display().to_string()),
            "{path} in {text}"
        );
    }
    root.run(UNINSTALL, &["--purge"]);
    assert_eq!(root.files(), [""; 0]);
    for folder in [
        "etc/comedor", "opt/x/lib/cgi-bin", "opt/x/lib/systemd/system",
    ] {
        assert!(!root.path(folder).exists(), "{folder}");
    }
    let of_the_package = "etc/nginx/snippets/comedor.conf";
    root.write(of_the_package, "\"/usr/lib/cgi-bin/comedor\"");
    root.run(UNINSTALL, &["--purge"]);
    assert_eq!(root.files(), [of_the_package]);
}

#[test]
fn uninstall_removes_nothing_while_a_web_server_uses_the_program() {
    let root = Root::installed();
    for (file, content) in [
        (
            "etc/apache2/conf-enabled/comedor.conf", "\"/opt/x/lib/cgi-bin/comedor\"",
        ),
        (
            "etc/apache2/sites-enabled/000-default.conf",
            "\"/opt/x/lib/cgi-bin/comedor\"",
        ),
        (
            "etc/apache2/sites-enabled/school.conf", "Include conf-available/comedor.conf",
        ),
        (
            "etc/lighttpd/conf-enabled/90-comedor.conf",
            "\"/opt/x/lib/cgi-bin/comedor\"",
        ),
        (
            "etc/apache2/conf-enabled/comedor-fastcgi.conf",
            "unix:/run/comedor/comedor.sock|",
        ),
        ("etc/caddy/Caddyfile", "import comedor.caddyfile"),
        (
            "etc/nginx/sites-enabled/default", "include snippets/comedor.conf;",
        ),
        // Of set-up in version 0.4.0
        (
            "etc/nginx/nginx.conf", "include snippets/comedor-setup.conf;",
        ),
        (
            "etc/caddy/Caddyfile",
            "reverse_proxy unix//run/comedor/comedor.sock",
        ),
        ("etc/nginx/conf.d/school.conf", "fastcgi_pass comedor;"),
        ("etc/systemd/system/sockets.target.wants/comedor.socket", ""),
    ] {
        root.write(file, content);
        let before = root.files();
        let result = root.command(UNINSTALL).arg("--purge").output().unwrap();
        assert_eq!(result.status.code(), Some(1));
        let text = String::from_utf8(result.stderr).unwrap();
        assert!(
            text.contains(&root.path(file).display().to_string()),
            "{text}"
        );
        assert_eq!(root.files(), before);
        fs::remove_file(root.path(file)).unwrap();
    }
}

/// The result of `cgi-bin/build` with these scripts in place of Rust's tools.
fn build_with(tools: &[(&str, &str)], architecture: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in tools {
        let tool = folder.path().join(name);
        fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
        chmod(tool, 0o755);
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let mut build = Command::new(Path::new(REPOSITORY).join("cgi-bin/build"));
    build
        .arg(architecture)
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", folder.path());
    build.output().unwrap()
}

#[test]
fn without_musl_the_build_is_for_glibc_and_says_so() {
    let rustc = (
        "rustc",
        "[ $1 = -vV ] && echo host: this-machine || echo /nonexistent",
    );
    let rustup = ("rustup", "echo offline >&2; exit 1");
    let program = "$CARGO_TARGET_DIR/this-machine/release";
    let cargo = format!("mkdir -p {program} && touch {program}/comedor");
    for tools in [
        vec![rustc, ("cargo", &cargo)],
        vec![rustc, rustup, ("cargo", &cargo)],
    ] {
        let built = build_with(&tools, std::env::consts::ARCH);
        let [path, said] =
            [built.stdout, built.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(
            path.ends_with("/this-machine/release/comedor\n"),
            "{path} {said}"
        );
        assert!(said.contains("Building for this-machine instead"), "{said}");
        // Nothing else can be built for another machine.
        let built = build_with(&tools, "riscv64");
        assert_eq!((built.status.code(), built.stdout), (Some(1), Vec::new()));
    }
}
