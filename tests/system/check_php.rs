//! What the self-check finds by asking PHP, behind the web server of php-cli.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use crate::check::{count, found};
use crate::check_machine::check_after;
use crate::support::*;

/// The findings on a machine whose PHP has these settings in the script. Comedor answers there.
fn check_with_php(school: &School, ini: &[(&str, &str)], before: &str) -> Vec<Value> {
    let site = open_folder();
    let settings = ini.iter().map(|(name, value)| format!("ini_set('{name}', '{value}');\n"));
    let script = format!("<?php\n{}// 'service:docente'\n", settings.collect::<String>());
    let router = "<?php if ($_SERVER['SCRIPT_NAME'] != '/api/comedor.php') return false;\n\
                  echo '{\"error\":\"Not logged in: the request has no valid session.\"}';";
    fs::create_dir(site.path().join("api")).unwrap();
    fs::write(site.path().join("api/comedor.php"), script).unwrap();
    fs::write(site.path().join("router.php"), router).unwrap();
    output(Command::new("chown").args(["-R", "nobody"]).arg(site.path()), "coreutils");
    let port = free_port();
    let (address, folder) = (format!("http://127.0.0.1:{port}"), site.path().display());
    let start = format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups php -n -S 127.0.0.1:{port} -t {folder} {folder}/router.php \
         > /dev/null 2>&1 & until curl -s -o /dev/null {address}; do :; done; {before}"
    );
    let known = format!("{address}\n{folder}/api/comedor.php");
    check_after(school, &start, &known, &[])
}

/// The settings of comedor that the findings name.
fn named(findings: &[Value]) -> Vec<(&str, &str)> {
    let names = findings
        .iter()
        .map(|finding| (finding["level"].as_str().unwrap(), finding["about"].as_str().unwrap()));
    names.filter(|(_, name)| name.starts_with("COMEDOR_") || *name == "TZ").collect()
}

#[test]
fn settings_that_differ_from_those_of_phps_pages_are_found() {
    let school = School::new();
    let sessions = school.sessions().display().to_string();
    chown(school.sessions(), Some(65534), None).unwrap();
    let same = [("session.save_path", &*sessions), ("date.timezone", "UTC")];
    let findings = check_with_php(&school, &same, "true");
    assert_eq!(named(&findings), []);
    found(&findings, "ok", "/api/comedor.php", "comedor answers");
    assert!(!format!("{findings:?}").contains("not compared"), "{findings:#?}");
    let other = [
        ("session.save_path", "/tmp"),
        ("session.name", "SID"),
        ("session.serialize_handler", "php_serialize"),
        ("date.timezone", "Europe/Madrid"),
    ];
    let findings = check_with_php(&school, &other, "export COMEDOR_SERVICE=other");
    for (level, setting, text) in [
        ("error", "COMEDOR_SERVICE", "the script's service is service ("),
        ("error", "COMEDOR_SESSION_DIR", "PHP's session.save_path is /tmp ("),
        ("error", "COMEDOR_SESSION_NAME", "but COMEDOR_SESSION_NAME=PHPSESSID (the default)"),
        ("error", "COMEDOR_SESSION_FORMAT", "is php_serialize ("),
        ("warning", "TZ", "PHP's date.timezone is Europe/Madrid ("),
    ] {
        found(&findings, level, setting, text);
    }
    assert_eq!(named(&findings).len(), 5);
    assert_eq!(count(&findings, "error"), 4, "{findings:#?}");
}

#[test]
fn zone_of_the_system_is_compared_by_its_rules() {
    let school = School::new();
    let sessions = school.sessions().display().to_string();
    let ini = [("session.save_path", &*sessions), ("date.timezone", "Europe/Madrid")];
    let with_zone = |zone: &str| {
        let mount = format!("unset TZ; mount --bind /usr/share/zoneinfo/{zone} /etc/localtime");
        check_with_php(&school, &ini, &mount)
    };
    assert_eq!(named(&with_zone("Atlantic/Canary")), [("warning", "TZ")]);
    assert_eq!(named(&with_zone("Europe/Madrid")), []);
}

#[test]
fn check_never_shows_the_password_in_a_save_path_of_php() {
    let school = School::new();
    for (save_path, shown) in [
        ("tcp://a:1?auth=s3cret", "tcp://a:1?auth=…"),
        ("tcp://a:1?auth=s3cret, tcp://b:2?auth=s3cret", "tcp://…"),
        ("tls://a:1?auth=s3cret", "tls://…"),
        ("seed[]=a:1&seed[]=b:1&auth=s3cret", "seed[]=…"),
        ("host=db password=s3cret", "host=…"),
        ("/run/redis.sock?auth=s3cret", "/run/redis.sock?auth=…"),
        ("2;/srv/sessions", "2;/srv/sessions"),
    ] {
        let findings = check_with_php(&school, &[("session.save_path", save_path)], "true");
        let text = format!("PHP's session.save_path is {shown} (/");
        found(&findings, "error", "COMEDOR_SESSION_DIR", &text);
        assert!(!format!("{findings:?}").contains("s3cret"), "{findings:#?}");
    }
}
