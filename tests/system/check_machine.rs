//! What the self-check finds out about the machine: PHP's user and settings, and the web server.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::check::{check, fix, found};
use crate::support::fastcgi::Held;
use crate::support::*;

#[test]
fn a_user_that_is_not_phps_gets_one_error_and_no_command() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    let wrong = |who: &str| {
        let (status, findings) = check(&school, AS_NOBODY, &[], "");
        let [finding] = &findings[..] else { panic!("one finding: {findings:#?}") };
        let text = format!("nobody is not PHP's user; run the check as {who}");
        found(&findings, "error", "user", &text);
        assert_eq!((status, &finding["fix"]), (2, &Value::Null));
        check(&school, AS_NOBODY, &["--session"], "teacher\n")
    };
    let right = || found(&check(&school, AS_NOBODY, &[], "").1, "ok", "user", "nobody").clone();
    let own = |path: &std::path::Path, uid, gid| chown(path, Some(uid), Some(gid)).unwrap();
    let (centros, teacher) =
        (school.data().join("Centros"), school.sessions().join("sess_teacher"));

    // Only root and nobody: nothing says who PHP is.
    right();
    own(&school.aularios(), 33, 33);
    wrong(&format!("www-data (see {})", school.aularios().display()));
    own(&centros, 1, 65534);
    wrong(&format!("daemon (see {})", centros.display()));
    fs::set_permissions(&centros, fs::Permissions::from_mode(0o775)).unwrap();
    right();
    own(&teacher, 33, 33);
    let (_, findings) = wrong("www-data (see its session files)");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    own(&school.sessions().join("sess_admin"), 65534, 65534);
    right();
    // A folder that cannot be listed, as Debian's: the data says it.
    fs::set_permissions(school.sessions(), fs::Permissions::from_mode(0o1733)).unwrap();
    fs::set_permissions(&centros, fs::Permissions::from_mode(0o755)).unwrap();
    wrong("daemon (see ");
    own(&centros, 0, 33);
    fs::set_permissions(&centros, fs::Permissions::from_mode(0o2775)).unwrap();
    wrong("a member of the group www-data (see ");
}

/// What a person copied to the data folder belongs to that person.
#[test]
fn user_of_phps_processes_is_right_whoever_owns_the_data() {
    let (school, folder) = (School::new(), tempfile::tempdir().unwrap());
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    chown(school.data().join("Centros"), Some(65534), Some(65534)).unwrap();
    let fpm = start(folder.path(), "php-fpm8.2", 33, "--clear-groups");
    let findings = check_with(&school, AS_NOBODY, &[], &fpm);
    let text = "caddy is not PHP's user; run the check as 33 (see its processes)";
    found(&findings, "error", "user", text);
    let www_data = ["setpriv", "--reuid=33", "--regid=33", "--clear-groups"];
    let findings = check_with(&school, &www_data, &[], &fpm);
    found(&findings, "error", "/Aularios", "33 cannot write here");
}

#[test]
fn root_is_told_which_user_to_take() {
    let school = School::new();
    let (_, findings) = check(&school, &[], &[], "");
    let text = "the check runs as root, which can access everything; run it as PHP's user";
    assert_eq!(found(&findings, "warning", "user", text)["fix"], Value::Null);
    chown(school.sessions().join("sess_teacher"), Some(33), Some(33)).unwrap();
    for (options, command) in [
        (&[][..], "sudo -u www-data comedor check"),
        (&["--session"], "sudo -u www-data comedor check --session"),
    ] {
        let (_, findings) = check(&school, &[], options, "");
        assert_eq!(found(&findings, "warning", "user", text)["fix"], command);
    }
    let (_, findings) = check(&school, &["setpriv", "--bounding-set=-chown,-lease"], &[], "");
    let text = "root without the capabilities CHOWN, LEASE cannot save files of www-data (see its session files)";
    found(&findings, "error", "user", text);
}

#[test]
fn commands_keep_the_group_that_shares_the_data() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
    let centros = school.data().join("Centros");
    chown(&centros, Some(1), Some(50)).unwrap();
    fs::set_permissions(&centros, fs::Permissions::from_mode(0o775)).unwrap();
    let member = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=50"];
    let (_, findings) = check(&school, &member, &[], "");
    let fix = found(&findings, "error", "/Aularios", "nobody cannot write here")["fix"].clone();
    assert!(fix.as_str().unwrap().starts_with("sudo chgrp staff "), "{fix}");
}

#[test]
fn folder_that_no_request_can_use_is_an_error() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
    for (mode, level, text) in [
        (0o700, "error", "nor open files in it, so requests fail"),
        (0o711, "warning", "so it is not checked"),
    ] {
        fs::set_permissions(school.aularios(), fs::Permissions::from_mode(mode)).unwrap();
        let (_, findings) = check(&school, AS_NOBODY, &[], "");
        found(&findings, level, "/Aularios", text);
    }
}

#[test]
fn service_that_no_session_has_is_a_warning() {
    let school = School::new();
    let sessions = school.sessions();
    let about = sessions.to_str().unwrap();
    let (_, findings) = check(&school, &["env", "COMEDOR_SERVICE=aulas"], &[], "");
    let text = "no session has a centre under `aulas` (COMEDOR_SERVICE), but under `service`: set \
                COMEDOR_SERVICE accordingly";
    found(&findings, "warning", about, text);
    let of_service =
        |findings: &[Value]| format!("{findings:?}").contains("no session has a centre under");
    assert!(!of_service(&check(&school, &[], &[], "").1));
    // Nobody is logged in.
    for id in ["teacher", "admin"] {
        school.log_in(id, "");
    }
    assert!(!of_service(&check(&school, &["env", "COMEDOR_SERVICE=aulas"], &[], "").1));

    fs::set_permissions(sessions.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o1733)).unwrap();
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    found(
        &findings,
        "hint",
        about,
        "cannot be listed, so only a login shows whether COMEDOR_SERVICE is right",
    );
}

#[test]
fn database_beside_the_data_is_a_warning() {
    let school = School::new();
    for name in ["menus.sqlite", "app.db", "notes.txt"] {
        fs::write(school.data().join(name), "").unwrap();
    }
    let (_, findings) = check(&school, &[], &[], "");
    for name in ["menus.sqlite", "app.db"] {
        found(&findings, "warning", name, "is a database beside Centros");
    }
    assert!(!format!("{findings:?}").contains("notes.txt"));
}

/// The findings of the check on a system with these files in `/etc`, without web servers.
pub fn check_with(
    school: &School,
    wrapper: &[&str],
    files: &[(&str, &str)],
    more: &str,
) -> Vec<Value> {
    let etc = tempfile::tempdir().unwrap();
    fs::set_permissions(etc.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (path, text) in
        [("passwd", "caddy:x:65534:65534::/:/\n"), ("group", "web:x:33:\n")].iter().chain(files)
    {
        let path = etc.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let script = format!(
        "export PATH=/usr/sbin:/usr/bin; mount --bind {} /etc; {more}; \"$@\"",
        etc.path().display()
    );
    check(school, &[&["sh", "-c", &script, "sh"], wrapper].concat(), &[], "").1
}

/// Starts a process of that name, in a script for [`check_with`].
fn start(folder: &Path, name: &str, uid: u32, groups: &str) -> String {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.join(name);
    fs::copy("/usr/bin/sleep", &program).unwrap();
    let program = program.display();
    format!(
        "setpriv --reuid={uid} --regid={uid} {groups} {program} 60 & \
         until grep -q {name} /proc/$!/comm; do :; done"
    )
}

#[test]
fn settings_that_differ_from_those_of_phps_pages_are_found() {
    let school = School::new();
    let sessions = school.sessions().display().to_string();
    let ini = |lines: &str| {
        format!("; PHP\n[Session]\nsession.save_path = \"{sessions}\" ; here\n{lines}\n")
    };
    let same = ini("session.name = PHPSESSID\nsession.serialize_handler = php");
    let other = ini(
        "session.name = SID ; theirs\nsession.serialize_handler=php_serialize\ndate.timezone = \"Europe/Madrid\"",
    );
    let about = |findings: &[Value]| -> Vec<String> {
        let names = findings.iter().map(|finding| finding["about"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("COMEDOR_") || name == "TZ").collect()
    };
    let nothing: [String; 0] = [];
    let in_latin1 = r"printf '; \361\n' >> /etc/php/8.2/fpm/php.ini";
    let findings = check_with(&school, &[], &[("php/8.2/fpm/php.ini", &same)], in_latin1);
    assert_eq!(about(&findings), nothing, "{findings:#?}");
    // A pool, or another server's PHP, may be the one of the application.
    let pool = "; pool\n[global]\npid = x\n[www]\nphp_admin_value[session.name] = PHPSESSID\n\
                php_value[session.serialize_handler] = php\nphp_value[date.timezone] = UTC\n;php_value[session.name] = no\n\
                [other]\nphp_value[session.name] = X\n";
    for files in [
        [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.2/fpm/pool.d/www.conf", pool)],
        [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.1/apache2/php.ini", &same)],
    ] {
        let findings = check_with(&school, &["env", "-u", "TZ"], &files, "true");
        let names = about(&findings);
        assert!(names.is_empty() || names == ["TZ"], "{findings:#?}");
    }
    let files = [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.2/cli/php.ini", &same)];
    let findings = check_with(&school, &[], &files, "true");
    let text = "PHP's session.name is SID (/etc/php/8.2/fpm/php.ini line 4); set COMEDOR_SESSION_NAME to it, unless";
    found(&findings, "warning", "COMEDOR_SESSION_NAME", text);
    found(&findings, "warning", "COMEDOR_SESSION_FORMAT", "is php_serialize (");
    found(&findings, "warning", "TZ", "PHP's date.timezone is Europe/Madrid (");
    let set = ["env", "COMEDOR_SESSION_NAME=X", "COMEDOR_SESSION_DIR=/tmp"];
    let findings = check_with(&school, &set, &[("php/8.2/apache2/php.ini", &same)], "true");
    found(&findings, "warning", "COMEDOR_SESSION_NAME", "PHP's session.name is PHPSESSID (");
    found(&findings, "warning", "COMEDOR_SESSION_DIR", "PHP's session.save_path is ");
    // The section [global] is not a pool.
    let pool = "[global]\npid = x\n[www]\nphp_value[session.name] = X\n";
    let files = [("php/8.2/fpm/php.ini", same.as_str()), ("php/8.2/fpm/pool.d/www.conf", pool)];
    let text = "PHP's session.name is X (/etc/php/8.2/fpm/pool.d/www.conf line 4)";
    found(&check_with(&school, &[], &files, "true"), "warning", "COMEDOR_SESSION_NAME", text);
    // Later files take precedence.
    let files = [
        ("php/8.2/fpm/php.ini", same.as_str()),
        ("php/8.2/fpm/conf.d/20-b.ini", "session.name = 'B'"),
        ("php/8.2/fpm/conf.d/10-a.ini", "session.name = A"),
        ("php/8.2/fpm/conf.d/30-c.ini.bak", "session.name = PHPSESSID"),
    ];
    let text = "PHP's session.name is B (/etc/php/8.2/fpm/conf.d/20-b.ini line 1)";
    found(&check_with(&school, &[], &files, "true"), "warning", "COMEDOR_SESSION_NAME", text);
    // The default of Debian.
    let findings = check_with(&school, &[], &[("php/8.2/apache2/php.ini", "")], "true");
    found(&findings, "warning", "COMEDOR_SESSION_DIR", "save_path is /var/lib/php/sessions (");
    let findings = check_with(&school, &[], &[], "true");
    found(&findings, "hint", "settings", "PHP's settings are not in /etc/php");
}

#[test]
fn zone_of_the_system_is_compared_by_its_rules() {
    let school = School::new();
    let ini = "date.timezone = Europe/Madrid\n";
    let zone = |name: &str| {
        let link = format!("ln -s /usr/share/zoneinfo/{name} /etc/localtime");
        check_with(&school, &["env", "-u", "TZ"], &[("php/8.2/fpm/php.ini", ini)], &link)
    };
    found(
        &zone("Atlantic/Canary"),
        "warning",
        "TZ",
        "is Europe/Madrid (/etc/php/8.2/fpm/php.ini line 1); set TZ",
    );
    let findings = zone("Europe/Madrid");
    assert!(!findings.iter().any(|finding| finding["about"] == "TZ"), "{findings:#?}");
}

#[test]
fn socket_that_a_configuration_names_and_that_does_not_exist_is_an_error() {
    let school = School::new();
    let configuration = "fastcgi_pass unix:/run/comedor/comedor.sock;";
    let files = [("nginx/snippets/comedor.conf", configuration)];
    let no_socket = "mount -t tmpfs none /run";
    let findings = check_with(&school, &[], &files, no_socket);
    let text = "does not exist, and /etc/nginx/snippets/comedor.conf names it";
    let finding = found(&findings, "error", "/run/comedor/comedor.sock", text);
    assert_eq!(finding["fix"], "sudo systemctl enable --now comedor.socket");
    let findings = check_with(&school, &[], &[], no_socket);
    assert!(!format!("{findings:?}").contains("comedor.sock"), "CGI needs no socket");
}

#[test]
fn web_server_that_cannot_connect_is_an_error() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let path = socket.path.to_str().unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).unwrap();
    chown(path, Some(1), Some(33)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = "caddy runs as caddy without the group web and cannot connect";
    for (groups, is_found) in [("--clear-groups", true), ("--groups=33", false)] {
        let script = format!(
            "mount -t tmpfs none /run; mkdir /run/comedor; touch /run/comedor/comedor.sock; \
             mount --bind {path} /run/comedor/comedor.sock; {}",
            start(folder.path(), "caddy", 65534, groups)
        );
        let findings = check_with(&school, &[], &[], &script);
        assert_eq!(format!("{findings:?}").contains(text), is_found, "{findings:#?}");
    }
    process.stop();
}

#[test]
fn fastcgi_socket_is_checked_for_its_mode_and_an_answer() {
    let (school, socket) = (School::new(), Held::new());
    let path = socket.path.to_str().unwrap().to_owned();
    let findings = || check(&school, &[], &["--socket", &path], "").1;
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let process = socket.serve(&school);
    mode(0o660);
    let answered = findings();
    found(&answered, "ok", &path, "the user root and the group root can connect");
    found(&answered, "ok", &path, "a FastCGI process answers");
    mode(0o666);
    fix(found(&findings(), "error", &path, "every user of this machine can connect"));
    found(&findings(), "ok", &path, "can connect");
    process.stop();
    drop(socket);
    found(&findings(), "error", &path, "cannot be used");
}
