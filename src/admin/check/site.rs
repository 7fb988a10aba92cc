//! Requests the script without a login, and compares user and settings of comedor with those of PHP's pages. Asks
//! systemd, which is in Debian's layout, whether the web servers run and can start again.

use std::path::PathBuf;
use std::time::Instant;

use super::report::{Level, Report};
use super::settings::{shown, without_password};
use crate::admin::accounts::user_name;
use crate::admin::command::{ask, properties};
use crate::admin::settings::{Wanted, equals, wanted};
use crate::admin::site::{self, AppUrl, Literals, Site};
use crate::config::{Config, SESSION_LIFETIME, Settings, TZ};
use crate::session::SavePath;
use crate::sys::process::Credentials;

/// The units of web servers, and the command that tests their configuration. That of Caddy has other effects.
const SERVERS: [(&str, &[&str]); 4] = [
    ("apache2", &["apache2ctl", "configtest"]),
    ("nginx", &["nginx", "-t", "-q"]),
    ("lighttpd", &["lighttpd", "-tt", "-f", "/etc/lighttpd/lighttpd.conf"]),
    ("caddy", &[]),
];

/// Returns whether comedor answers at `address`.
pub fn check_answer(address: &AppUrl, is_enabled: bool, end: Instant, report: &mut Report) -> bool {
    let (level, what, heading) = match address.who_answers(end) {
        Ok(answer) if answer.is_comedors() => {
            report.add(Level::Ok, address, "comedor answers");
            return true;
        }
        Ok(answer) => {
            let (sentence, heading) = answer.meaning(address);
            let level = if heading.is_empty() { Level::Warning } else { Level::Error };
            (level, format!("{sentence} ({answer})"), heading)
        }
        Err(error) => (Level::Error, format!("nothing answers ({error})"), ""),
    };
    let text = match is_enabled {
        true => format!("comedor does not answer, although it is enabled: {what}{heading}"),
        false => format!("comedor is not enabled: {what}; to enable it: sudo comedor setup"),
    };
    report.add(level, address, text);
    false
}

/// Reports each running web server whose configuration is broken, with a warning if comedor `answers` by another
/// one. Unless it does, also those that do not run and should.
pub fn check_servers(own: Option<&str>, answers: bool, end: Instant, report: &mut Report) {
    for (unit, test) in SERVERS {
        let names = "ActiveState,UnitFileState";
        let state = properties(unit, names, end).unwrap_or_default();
        let runs = state.starts_with("active") || state.starts_with("reloading");
        if runs
            && let [program, arguments @ ..] = test
            && let Err(error) = ask(program, arguments, end)
        {
            let text = format!("its configuration is broken, so it cannot start again: {error}");
            let is_another = answers && own.is_some_and(|own| own != unit);
            report.add(if is_another { Level::Warning } else { Level::Error }, unit, text);
        }
        if !runs && !answers && state.ends_with(" enabled") {
            let text =
                format!("it does not run: sudo systemctl start {unit}; journalctl -u {unit}");
            report.add(Level::Error, unit, text);
        }
    }
}

/// Asks PHP. Warns if that is not possible.
pub fn ask_php(
    address: &AppUrl,
    script: Option<PathBuf>,
    no_page: bool,
    end: Instant,
    report: &mut Report,
) -> Option<Site> {
    if no_page {
        report.add(Level::Hint, address, "not compared with PHP, because of --no-page");
        return None;
    }
    let scripts = script.map_or_else(|| site::scripts(end).0, |script| vec![script]);
    let not_asked = |problem: String| {
        let text = format!("not compared with PHP: {}", problem.replace('\n', "; "));
        report.add(Level::Warning, address, text);
    };
    site::ask_php(address, &scripts, end).map_err(not_asked).ok()
}

/// Compares the settings with those of the script and of its PHP, and the user of the requests, if it is known.
pub fn compare(
    site: &Site,
    user: Option<&Credentials>,
    config: &Config,
    settings: &Settings,
    end: Instant,
    report: &mut Report,
) {
    if let Some(user) = user.filter(|user| user.uid != site.php.user.uid) {
        compare_users(site, user, config, report);
    }
    let about = site.script.display();
    let literals = Literals::read(site, end).unwrap_or_else(|error| {
        let text = format!("its service and data folder are unknown: {error}");
        report.add(Level::Warning, &about, text);
        Literals::default()
    });
    if let Some(word) = &literals.database {
        let text =
            format!("uses a database ({word}): if the menus are in it, comedor does not see them");
        report.add(Level::Warning, &about, text);
    }
    let handler = site.php.says("session.save_handler");
    if !["files", "redis"].contains(&handler) {
        let text = format!(
            "session.save_handler of PHP's pages is {handler}; comedor supports only files and redis"
        );
        report.add(Level::Error, &about, text);
    }
    if let SavePath::Files(sessions) = &config.session.save_path
        && !site.php.shares(&sessions.folder)
    {
        let text = "PHP's pages see another folder of this name (a chroot, a container or PrivateTmp=yes), so comedor \
                    cannot find their sessions";
        report.add(Level::Error, sessions.folder.display(), text);
    }
    let (service, data_dir) = (literals.service.as_deref(), literals.data_dir.as_deref());
    for Wanted { setting, what, value } in wanted(&site.php, service, data_dir) {
        if !equals(config, setting, &value, end) {
            let level = match *setting {
                TZ | SESSION_LIFETIME => Level::Warning,
                _ => Level::Error,
            };
            let (value, shown) = (without_password(&value), shown(settings, setting));
            report.add(level, setting.name, format!("{what} is {value} ({about}), but {shown}"));
        }
    }
}

/// Reports if requests do not run as PHP's user.
fn compare_users(site: &Site, user: &Credentials, config: &Config, report: &mut Report) {
    let (user, php) = (user_name(user.uid), user_name(site.php.user.uid));
    let (level, effect) = match config.session.save_path {
        SavePath::Files(_) => (
            Level::Error,
            "so comedor cannot read PHP's sessions, and every request of a logged-in user fails",
        ),
        SavePath::Redis(_) => (Level::Warning, "so each needs access to the other's files"),
    };
    let text = format!(
        "requests run as {user} and PHP's pages as {php}, {effect}; use FastCGI with User={php} (docs/install-special.md)"
    );
    report.add(level, &site.address, text);
}
