//! The API as a FastCGI handler, in a process that stays in memory.
//!
//! A request has the same result as under CGI. Its parameters are never settings; otherwise every
//! process that can connect to the socket could choose the data folder.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::cgi::Variables;
use crate::cgi::input::Body;
use crate::config::{InForce, Setting};
use crate::error::Error;
use crate::fastcgi::{Handler, Output, Pairs, Refusal};
use crate::sys::log;

/// Answers FastCGI requests.
#[derive(Debug)]
pub struct Responder {
    settings: InForce,
    /// Whether a parameter with the name of a setting was reported
    has_reported: AtomicBool,
}

impl Handler for Responder {
    fn handle(&self, params: Pairs, body: &[u8]) -> Output {
        let variables = Variables::of_parameters(params.clone());
        let settings = self.settings.get();
        let mut output = match &*settings {
            Ok(config) => crate::answer(config, &variables, &mut Body::new(&variables, body)),
            Err(invalid) => crate::refuse(None, &variables, invalid.into()),
        };
        self.report_settings(params, &mut output);
        logged(output)
    }

    fn refuse(&self, params: Pairs, why: Refusal) -> Output {
        let error = match why {
            Refusal::Overloaded => Error::overloaded(),
            Refusal::ParamsTooLarge(limit) => Error::too_large(format!(
                "The header fields of the request are larger than {} KiB in total.",
                limit >> 10
            )),
            Refusal::ParamsMalformed => Error::internal("malformed FastCGI parameters"),
            Refusal::Panicked(message) => Error::perhaps_stored(message),
        };
        let settings = self.settings.get();
        let config = settings.as_ref().as_ref().ok();
        logged(crate::refuse(config, &Variables::of_parameters(params), error))
    }

    fn log(&self, line: &str) {
        log::log(line);
    }
}

impl Responder {
    /// Reads the settings.
    pub fn load() -> Responder {
        Responder { settings: InForce::load(), has_reported: AtomicBool::new(false) }
    }

    /// Logs once per process that a parameter with the name of a setting has no effect: the web
    /// server's configuration may have been written for CGI.
    fn report_settings(&self, mut params: Pairs, output: &mut Output) {
        let setting = params.find_map(|(name, _)| Setting::find(name));
        if let Some(setting) = setting
            && !self.has_reported.swap(true, Ordering::Relaxed)
        {
            let line = log::line(&format!(
                "the parameter {} has no effect: under FastCGI, settings are in comedor.conf or in the \
                 environment of the process",
                setting.name
            ));
            output.stderr.extend_from_slice(line.as_bytes());
        }
    }
}

/// Writes the lines for the log to standard error too: Caddy 2.6 drops those that it is sent.
fn logged(output: Output) -> Output {
    log::write(&output.stderr);
    output
}
