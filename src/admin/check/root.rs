//! The check of root: finds out how requests reach comedor, and looks from there. By FastCGI the running
//! process looks, by CGI a child with the user of the web server.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::report::{Level, MAX_DOCUMENT, Report};
use super::{Options, fastcgi, findings, settings, site};
use crate::admin::accounts;
use crate::admin::child;
use crate::admin::command::properties;
use crate::admin::limited::limited;
use crate::admin::site::{AppUrl, Site};
use crate::config::{Config, SETTINGS, Settings, TZ};
use crate::store::layout;
use crate::sys::process::Credentials;

/// The time to ask the site (one request may take 10 seconds more), and at least to compare with PHP
const TIME_TO_ASK: Duration = Duration::from_secs(12);
const TIME_TO_COMPARE: Duration = Duration::from_secs(3);

/// Checks what `options` say, or only `session`.
pub fn check(options: &Options, session: Option<&str>, end: Instant, report: &mut Report) {
    let Some((config, settings)) = settings::load(report) else { return };
    let socket = options.socket.as_deref();
    let path = socket.unwrap_or(Path::new(fastcgi::SOCKET));
    if session.is_none() && socket.is_some() && options.address.is_none() {
        return fastcgi::check(path, None, end, report);
    }
    let asked_until = Instant::now() + TIME_TO_ASK;
    let has_unit =
        || properties("comedor.socket", "UnitFileState", end).as_deref() == Ok("enabled");
    let by_fastcgi = socket.is_some() || path.exists() || has_unit();
    let known = Site::known();
    let (mut is_enabled, mut answers) = (by_fastcgi || known.is_some(), false);
    // What is wrong with the site does not matter for a session.
    let mut aside = Report::default();
    let of_site = if session.is_some() { &mut aside } else { &mut *report };
    let (address, script) = match options.address.as_deref().map(AppUrl::parse) {
        Some(Ok(address)) => (Some(address), None),
        Some(Err(error)) => return report.add(Level::Error, "ADDRESS", error),
        None => known.unzip(),
    };
    let mut site = None;
    if let Some(address) = address {
        answers = site::check_answer(&address, is_enabled, asked_until, of_site);
        is_enabled |= answers;
        let ask = || site::ask_php(&address, script, options.no_page, asked_until, of_site);
        site = is_enabled.then(ask).flatten();
    } else {
        let (level, what) = match is_enabled {
            true => (Level::Warning, "comedor was not requested, nor compared with PHP"),
            false => (Level::Hint, "comedor is not enabled, as far as set-up knows"),
        };
        let text = format!("{what}; give the application's address: sudo comedor check ADDRESS");
        of_site.add(level, "web server", text);
    }
    if is_enabled {
        let own = site.as_ref().map(|site| site.unit().unwrap_or_default());
        site::check_servers(own, answers, end, of_site);
    }
    let client = site.as_ref().and_then(|site| Some((site.unit().ok()?, site.web_user(end).ok()?)));
    // By CGI, requests run as the web server's user.
    let user = match by_fastcgi {
        true if socket.is_some() => None,
        true => accounts::find(&properties("comedor.service", "User", end).unwrap_or_default()),
        false => client.as_ref().filter(|_| answers).map(|(_, user)| user.clone()),
    };
    if let Some(site) = &site {
        let until = end.min(asked_until.max(Instant::now() + TIME_TO_COMPARE));
        site::compare(site, user.as_ref(), &config, &settings, until, of_site);
    }
    match user {
        _ if by_fastcgi && session.is_none() => fastcgi::check(path, client, end, report),
        Some(user) => look_as(&user, session, end, report),
        None if is_enabled || session.is_some() || is_configured(&config, &settings, end) => {
            // The files may be those of another user. After this, no child can be started: its thread may go on.
            let session = session.map(str::to_owned);
            add(limited(end, move || Ok(findings(session.as_deref()))), "root", report);
            let level = if is_enabled { Level::Warning } else { Level::Hint };
            let text = "checked as root, which can access everything: the user of the requests is not known";
            report.add(level, "user", text);
        }
        None => {}
    }
}

/// Whether an administrator has written settings, or the data is where it is without settings.
fn is_configured(config: &Config, settings: &Settings, end: Instant) -> bool {
    let centres = layout::centres(&config.data_dir);
    SETTINGS.iter().any(|setting| *setting != TZ && settings.get(setting).is_some())
        || limited(end, move || Ok(centres.is_dir())).unwrap_or(true)
}

/// Adds what a child of `user` sees.
pub fn look_as(user: &Credentials, session: Option<&str>, end: Instant, report: &mut Report) {
    let document =
        child::output(Some(user), end, MAX_DOCUMENT, |out| out.write_all(&findings(session)));
    add(document, &accounts::user_name(user.uid), report);
}

fn add(document: io::Result<Vec<u8>>, user: &str, report: &mut Report) {
    let merged = document.map_err(|error| error.to_string());
    if let Err(error) = merged.and_then(|document| report.merge(&document)) {
        report.add(Level::Error, user, format!("cannot check as this user: {error}"));
    }
}
