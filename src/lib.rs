//! The dining-hall menu API of a PHP school application, for CGI and FastCGI.
//!
//! `respond` and then `perform` show the steps of a request. Which error a request gets that has several depends on their
//! order: `openapi.yaml`, "Order of the checks". A save goes on in `store/change.rs`.
//!
//! With CGI a process answers one request (`main.rs`). With FastCGI it answers many: [`fastcgi`]
//! receives them, and [`responder`] passes each to the same function, [`answer`].

mod api;
pub mod cgi;
mod check;
pub mod command_line;
pub mod config;
mod configure;
pub mod error;
pub mod fastcgi;
#[cfg(any(test, fuzzing))]
pub mod invariants;
mod model;
mod php;
pub mod responder;
mod session;
mod store;
pub mod sys;

use std::io::Read;

use api::caller::Caller;
use api::{Call, Fields, Run, Target};
use cgi::input::{self, Body};
use cgi::{Cors, Response, Variables, origin};
use config::Config;
use error::{Error, Reason};
use php::form::Form;
use store::Aulario;
use sys::panics;
use sys::streams::Output;
use sys::waits::Waits;

/// For the differential tests, which compare these with PHP and date(1).
#[doc(hidden)]
pub mod differential {
    pub use crate::api::today::day_at;
    pub use crate::config::Zone;
    pub use crate::php::form::Form;
    pub use crate::php::json::Value as Json;
    pub use crate::session::{Format, PhpValue, Session};
}

/// Answers the request that `variables` describe, with its `body`, and waits for other programs as `waits` allow. Without
/// settings it is refused, and after a panic too: then it is unknown whether a change was stored.
pub fn answer<R: Read>(
    config: Result<&Config, &config::Error>,
    variables: &Variables,
    body: &mut Body<R>,
    waits: Waits,
) -> Output {
    let answered = panics::catch(|| match config {
        Ok(config) => respond(config, variables, body, waits),
        Err(invalid) => refuse(None, variables, invalid.into()),
    });
    answered.unwrap_or_else(|message| Output {
        has_panicked: true,
        ..refuse(config.ok(), variables, Error::perhaps_stored(message))
    })
}

fn respond<R: Read>(
    config: &Config,
    variables: &Variables,
    body: &mut Body<R>,
    waits: Waits,
) -> Output {
    let cors = Cors::new(variables, &config.trusted_origins);
    let mut outcome = || {
        if let Some(script) = &config.script {
            script.check(variables)?;
        }
        if cors.is_preflight(variables) {
            return Ok(Response::preflight());
        }
        input::check_length(variables)?;
        let query = variables.query();
        let target = Target::of(&query);
        perform(config, variables, &query, &target, body, waits)
            .map_err(|error| error.in_context(target.log_context()))
    };
    cgi::output(outcome(), variables.method(), &cors)
}

/// The answer to a request that cannot be processed: without settings, if these are the reason.
fn refuse(config: Option<&Config>, variables: &Variables, error: Error) -> Output {
    let trusted = config.map_or(&[][..], |config| &config.trusted_origins);
    cgi::output(
        Err(error),
        variables.method(),
        &Cors::new(variables, trusted),
    )
}

fn perform<R: Read>(
    config: &Config,
    variables: &Variables,
    query: &Form,
    target: &Target,
    body: &mut Body<R>,
    waits: Waits,
) -> Result<Response, Error> {
    let session = session::open(&config.session, variables.meta("HTTP_COOKIE"), waits)?;
    let caller = Caller::identify(&session, config)?;
    caller.may_read()?;
    caller.may_enter()?;
    let id = target.aulario.as_ref().map_err(Error::clone)?;
    caller.may_use(id)?;
    let action = target.action.as_ref().map_err(Error::clone)?;
    action.agrees_with(variables.last_segment())?;
    let aulario = Aulario::find(&config.data_dir, &caller.centro, id, waits)?
        .ok_or_else(|| Error::not_found("Aulario"))?;
    action.accepts(variables.method())?;
    let call = Call {
        aulario: &aulario,
        zone: &config.zone,
    };
    let answer = match action.run {
        Run::Read(read) => read(&call, query)?,
        Run::Write(write) => {
            caller.may_write()?;
            aulario.may_change()?;
            if aulario.is_shared {
                return Err(Error::forbidden(Reason::Shared));
            }
            if origin::is_another_site(variables, &config.trusted_origins) {
                return Err(Error::forbidden(Reason::Origin));
            }
            let fields = Fields::new(input::parse(variables, &body.read()?)?);
            write(&call, &fields)?
        }
    };
    Ok(Response::ok(answer))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;

    use super::*;
    use crate::config::Settings;
    use crate::fastcgi::Pairs;

    /// A body whose reading is a fault of the program.
    struct Panics;

    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("as asked")
        }
    }

    #[test]
    fn a_panic_is_answered_and_logged_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let session = "auth_ok|b:1;auth_data|a:2:{s:11:\"permissions\";a:2:{i:0;s:15:\"service:docente\";\
             i:1;s:15:\"sysadmin:access\";}s:7:\"service\";a:1:{s:6:\"centro\";s:1:\"c\";}}";
        fs::write(folder.path().join("sess_x"), session).unwrap();
        fs::create_dir_all(folder.path().join("Centros/c/Aularios")).unwrap();
        fs::write(folder.path().join("Centros/c/Aularios/a.json"), "{}").unwrap();
        let settings = format!("COMEDOR_DATA_DIR={path}\nCOMEDOR_SESSION_DIR={path}\n");
        let settings = Settings::default().with_file(folder.path(), settings.as_bytes());
        let config = Config::from_settings(&settings.unwrap()).unwrap();
        let mut params = Vec::new();
        for (name, value) in [
            ("REQUEST_METHOD", "POST"),
            ("QUERY_STRING", "action=save_menu&aulario=a"),
            ("HTTP_COOKIE", "PHPSESSID=x"),
            ("CONTENT_LENGTH", "1"),
        ] {
            params.extend([name.len() as u8, value.len() as u8]);
            params.extend([name, value].concat().bytes());
        }
        let variables = Variables::of_parameters(Pairs(&params));
        let mut body = Body::new(&variables, Panics);
        let output = answer(Ok(&config), &variables, &mut body, Waits::ALWAYS);
        let [stdout, log] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(output.has_panicked);
        assert!(stdout.starts_with("Status: 500 "), "{stdout}");
        assert!(stdout.contains("may have been stored"), "{stdout}");
        assert!(
            log.contains("src/lib.rs:") && log.contains("as asked"),
            "{log}"
        );
    }
}
