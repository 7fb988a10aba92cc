//! Both ways to install, with a folder as the root of the system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::support::*;

/// Documentation as users find it, below the folder of the documentation.
const DOCUMENTS: &[&str] = &[
    "README.es.md", "README.md", "openapi.yaml", "examples/Caddyfile.example",
    "examples/apache-fastcgi.conf.example", "examples/apache.conf.example",
    "examples/comedor.conf.example", "examples/htaccess.example",
    "examples/lighttpd-fastcgi.conf.example", "examples/lighttpd.conf.example",
    "examples/nginx-fcgiwrap.conf.example", "examples/nginx-routing.conf.example",
    "examples/nginx-upstream.conf.example", "examples/nginx.conf.example",
];

/// A system's root with what `cgi-bin/install` installs below `/opt/x`.
struct Root(TempDir);

impl Root {
    fn installed() -> Root {
        let root = Root(tempfile::tempdir().unwrap());
        root.install();
        root
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
        command.env("DESTDIR", self.0.path()).env("PREFIX", "/opt/x");
        command
    }

    #[track_caller]
    fn install(&self) -> String {
        String::from_utf8(output(&mut self.command("cgi-bin/install"), "bash")).unwrap()
    }

    fn uninstall(&self, options: &[&str]) -> Output {
        self.command("cgi-bin/uninstall").args(options).output().unwrap()
    }

    /// Every file and link in it.
    fn files(&self) -> Vec<PathBuf> {
        files_in(self.0.path())
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.flat_map(|entry| {
        let is_folder = entry.file_type().unwrap().is_dir();
        if is_folder { files_in(&entry.path()) } else { vec![entry.path()] }
    });
    files.collect()
}

/// The installed program answers, and knows its version.
#[track_caller]
fn assert_works(program: &Path) {
    let school = School::new();
    // The machine's own settings file counts for it, so each of the folders is set.
    school.get("get_menu").program(program).set("COMEDOR_SERVICE", "service").run().ok();
    let version = output(Command::new(program).arg("--version").env_clear(), "comedor");
    assert_eq!(version, concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

/// Every relative link in the Markdown files below `folder` leads to a file.
#[track_caller]
fn assert_links_resolve(folder: &Path) {
    let files = files_in(folder);
    let is_markdown = |path: &&PathBuf| path.extension().is_some_and(|name| name == "md");
    for file in files.iter().filter(is_markdown) {
        let text = fs::read_to_string(file).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#', ' ']).next().unwrap();
            // The pages of releases and issues are beside the repository's files.
            let is_page = ["/releases/latest", "/issues"].iter().any(|page| target.ends_with(page));
            let is_file = !target.contains("://") && !is_page;
            if !target.is_empty() && is_file {
                let target = file.with_file_name(target);
                assert!(
                    target.exists(),
                    "{}: {} is not installed",
                    file.display(),
                    target.display()
                );
            }
        }
    }
}

#[test]
fn the_script_installs_below_destdir_and_prefix() {
    let root = Root::installed();
    assert_works(&root.path("opt/x/lib/cgi-bin/comedor"));
    let link = fs::read_link(root.path("opt/x/bin/comedor")).unwrap();
    assert_eq!(link, Path::new("/opt/x/lib/cgi-bin/comedor"));
    let documentation = root.path("opt/x/share/doc/comedor");
    for document in DOCUMENTS {
        assert!(documentation.join(document).exists(), "{document}");
    }
    assert_links_resolve(&documentation);
    for (file, text) in [
        ("share/doc/comedor/examples/apache.conf.example", "\"/opt/x/lib/cgi-bin/comedor\""),
        ("lib/systemd/system/comedor.service", "ExecStart=/opt/x/lib/cgi-bin/comedor\n"),
        ("lib/systemd/system/comedor.socket", "ListenStream=/run/comedor/comedor.sock\n"),
        ("share/man/man8/comedor.8", "Pa /opt/x/lib/cgi-bin/comedor\n"),
        ("share/man/man8/comedor.8", "Pa /opt/x/share/doc/comedor/examples/\n"),
    ] {
        let content = fs::read_to_string(root.path("opt/x").join(file)).unwrap();
        assert!(content.contains(text), "{file} contains {text}");
    }
}

#[test]
fn the_script_names_the_files_below_destdir_and_the_next_step() {
    let root = Root::installed();
    root.write("etc/lighttpd/conf-available/10-cgi.conf", "");
    let text = root.install();
    for path in [
        "opt/x/lib/cgi-bin/comedor", "etc/comedor/comedor.conf", "opt/x/share/doc/comedor/examples",
    ] {
        let path = root.path(path).display().to_string();
        assert!(text.contains(&path), "{path} in {text}");
    }
    assert!(text.contains("sudo /opt/x/bin/comedor check"), "{text}");
    assert!(text.contains("lighty-enable-mod comedor"), "{text}");
}

#[test]
fn the_script_keeps_existing_settings() {
    let root = Root::installed();
    root.write("etc/comedor/comedor.conf", "COMEDOR_SERVICE=x\n");
    root.install();
    let settings = fs::read_to_string(root.path("etc/comedor/comedor.conf")).unwrap();
    assert_eq!(settings, "COMEDOR_SERVICE=x\n");
}

#[test]
fn purge_removes_every_installed_file() {
    let root = Root::installed();
    let (program, socket) = ("\"/opt/x/lib/cgi-bin/comedor\"", "unix:/run/comedor/comedor.sock;");
    for (copy, content) in [
        ("etc/apache2/conf-available/comedor.conf", program),
        ("etc/apache2/conf-available/comedor-fastcgi.conf", socket),
        ("etc/caddy/comedor.caddyfile", socket),
        ("etc/lighttpd/conf-available/90-comedor.conf", program),
        ("etc/nginx/conf.d/comedor.conf", socket),
        ("etc/nginx/snippets/comedor.conf", socket),
    ] {
        root.write(copy, content);
    }
    let result = root.uninstall(&["--purge"]);
    assert!(result.status.success(), "{result:?}");
    assert_eq!(root.files(), Vec::<PathBuf>::new());
    for folder in ["etc/comedor", "opt/x/lib/cgi-bin", "opt/x/lib/systemd/system"] {
        assert!(!root.path(folder).exists(), "{folder}");
    }
}

#[test]
fn uninstall_keeps_settings_and_names_them() {
    let root = Root::installed();
    let apache = "etc/apache2/conf-available/comedor.conf";
    root.write(apache, "\"/opt/x/lib/cgi-bin/comedor\"");
    let others = "etc/nginx/snippets/comedor.conf";
    root.write(others, "\"/usr/lib/cgi-bin/comedor\"");
    let result = root.uninstall(&[]);
    assert!(result.status.success(), "{result:?}");
    let mut kept = [apache, "etc/comedor/comedor.conf", others].map(|path| root.path(path));
    let mut files = root.files();
    kept.sort();
    files.sort();
    assert_eq!(files, kept);
    let text = String::from_utf8(result.stdout).unwrap();
    for (path, is_named) in [(apache, true), ("etc/comedor/comedor.conf", true), (others, false)] {
        let path = root.path(path).display().to_string();
        assert_eq!(text.contains(&path), is_named, "{path} in {text}");
    }
}

#[test]
fn uninstall_removes_nothing_while_a_web_server_uses_the_program() {
    for (file, content) in [
        ("etc/apache2/conf-enabled/comedor.conf", "\"/opt/x/lib/cgi-bin/comedor\""),
        ("etc/apache2/sites-enabled/000-default.conf", "\"/opt/x/lib/cgi-bin/comedor\""),
        ("etc/lighttpd/conf-enabled/90-comedor.conf", "\"/opt/x/lib/cgi-bin/comedor\""),
        ("etc/apache2/conf-enabled/comedor-fastcgi.conf", "unix:/run/comedor/comedor.sock|"),
        ("etc/caddy/Caddyfile", "import comedor.caddyfile"),
        ("etc/nginx/sites-enabled/default", "include snippets/comedor.conf;"),
        ("etc/systemd/system/sockets.target.wants/comedor.socket", ""),
    ] {
        let root = Root::installed();
        root.write(file, content);
        let before = root.files();
        let result = root.uninstall(&["--purge"]);
        assert_eq!(result.status.code(), Some(1));
        let text = String::from_utf8(result.stderr).unwrap();
        assert!(text.contains(&root.path(file).display().to_string()), "{text}");
        assert_eq!(root.files(), before);
    }
}

/// The result of `cgi-bin/build` with these scripts in place of Rust's tools.
fn build_with(tools: &[(&str, &str)], architecture: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in tools {
        let tool = folder.path().join(name);
        fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let mut build = Command::new(Path::new(REPOSITORY).join("cgi-bin/build"));
    build.arg(architecture).env("PATH", path).env("CARGO_TARGET_DIR", folder.path());
    build.output().unwrap()
}

#[test]
fn without_musl_the_build_is_for_glibc_and_says_so() {
    let rustc = ("rustc", "[ $1 = -vV ] && echo host: this-machine || echo /nonexistent");
    let rustup = ("rustup", "echo offline >&2; exit 1");
    let program = "$CARGO_TARGET_DIR/this-machine/release";
    let cargo = format!("mkdir -p {program} && touch {program}/comedor");
    for tools in [vec![rustc, ("cargo", &cargo)], vec![rustc, rustup, ("cargo", &cargo)]] {
        let built = build_with(&tools, std::env::consts::ARCH);
        let [path, said] =
            [built.stdout, built.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(path.ends_with("/this-machine/release/comedor\n"), "{path} {said}");
        assert!(said.contains("Building for this-machine instead"), "{said}");
        // Nothing else can be built for another machine.
        let built = build_with(&tools, "riscv64");
        assert_eq!((built.status.code(), built.stdout), (Some(1), Vec::new()));
    }
}

/// The package, built once for all tests.
fn package() -> &'static Path {
    static PACKAGE: LazyLock<PathBuf> = LazyLock::new(|| {
        let mut build = Command::new(Path::new(REPOSITORY).join("cgi-bin/package"));
        let lines = output(&mut build, "cargo-deb (cargo install cargo-deb)");
        String::from_utf8(lines).unwrap().lines().last().unwrap().into()
    });
    &PACKAGE
}

#[test]
fn the_debian_package_has_every_file_and_enables_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).arg("--log=/dev/null");
    // That root has no shell for the package's scripts; the guide's walk runs them.
    dpkg.arg("--unpack").arg(package());
    output(&mut dpkg, "dpkg");

    assert_works(&root.join("usr/lib/cgi-bin/comedor"));
    for path in [
        // Named so until the package is configured.
        "etc/apache2/conf-available/comedor.conf.dpkg-new",
        "etc/comedor/comedor.conf.dpkg-new",
        "usr/bin/comedor",
        "usr/lib/systemd/system/comedor.service",
        "usr/lib/systemd/system/comedor.socket",
        "usr/share/man/man8/comedor.8.gz",
    ] {
        assert!(root.join(path).exists(), "{path}");
    }
    let documentation = root.join("usr/share/doc/comedor");
    for document in DOCUMENTS {
        assert!(documentation.join(document).exists(), "{document}");
    }
    assert_links_resolve(&documentation);
    assert!(!root.join("etc/apache2/conf-enabled").exists());
    assert!(!root.join("etc/systemd").exists());
}

#[test]
fn dpkg_asks_before_it_replaces_changed_settings() {
    let mut conffiles = Command::new("dpkg-deb");
    let conffiles = output(conffiles.arg("--info").arg(package()).arg("conffiles"), "dpkg");
    let conffiles = String::from_utf8(conffiles).unwrap();
    let mut conffiles: Vec<&str> = conffiles.lines().collect();
    conffiles.sort();
    let expected = ["/etc/apache2/conf-available/comedor.conf", "/etc/comedor/comedor.conf"];
    assert_eq!(conffiles, expected);
}

/// No error and no warning but those of `debian/lintian-overrides`, which gives a reason for each.
#[test]
fn lintian_finds_no_error_in_the_debian_package() {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--fail-on=none", "--tag-display-limit=0"]);
    let tags = output(lintian.arg("--display-info").arg(package()), "lintian");
    let tags = String::from_utf8(tags).unwrap();
    let is_complaint = |tag: &&str| !tag.starts_with("I: ") || tag.contains("-override");
    assert_eq!(tags.lines().filter(is_complaint).collect::<Vec<_>>(), [""; 0]);

    let overrides = Path::new(REPOSITORY).join("debian/lintian-overrides");
    let overrides = fs::read_to_string(overrides).unwrap();
    let lines: Vec<&str> = overrides.lines().collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        assert!(index > 0 && lines[index - 1].starts_with("# "), "a reason above {line}");
    }
}

#[test]
fn the_package_has_the_version_of_the_program_and_of_the_debian_changelog() {
    let mut field = Command::new("dpkg-deb");
    let version = output(field.arg("--field").arg(package()).arg("Version"), "dpkg");
    let version = String::from_utf8(version).unwrap();
    // Debian sorts 0.3.0~dev before 0.3.0.
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION").replace('-', "~"));
    let changelog = fs::read_to_string(Path::new(REPOSITORY).join("debian/changelog")).unwrap();
    let expected = format!("comedor ({}) ", version.trim());
    assert!(changelog.starts_with(&expected), "debian/changelog starts with {expected}");
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
    let copyright = fs::read_to_string(Path::new(REPOSITORY).join("debian/copyright")).unwrap();
    let copyright = copyright.replace('-', "_");
    let names: Vec<&str> = copyright.split([' ', '(', ')', ',', '\n']).collect();

    let bom = output(&mut Command::new(Path::new(REPOSITORY).join("release/sbom")), "python3");
    let bom: Value = serde_json::from_slice(&bom).unwrap();
    let components = bom["components"].as_array().unwrap().iter();
    let components = components.map(|component| component["name"].as_str().unwrap().to_owned());

    let mut rustc = Command::new("rustc");
    rustc.args(["--print=target-libdir", "--target=x86_64-unknown-linux-musl"]);
    let folder = String::from_utf8(output(&mut rustc, "rustc")).unwrap();
    let libraries = files_in(Path::new(folder.trim_end())).into_iter().filter_map(|library| {
        let name = library.file_name()?.to_str()?.strip_suffix(".rlib")?;
        name.strip_prefix("lib")?.split('-').next().map(str::to_owned)
    });

    let linked: Vec<String> = components.chain(libraries).collect();
    for name in ["chrono", "musl", "gimli"] {
        assert!(linked.iter().any(|linked| linked == name), "{name} in {linked:?}");
    }
    for name in linked.iter().filter(|name| !OTHERS.contains(&&***name)) {
        assert!(names.contains(&&*name.replace('-', "_")), "debian/copyright does not name {name}");
    }
}
