//! The API as a FastCGI handler, in a process that stays in memory.
//!
//! A request has the same result as under CGI. Its parameters are never settings; otherwise every
//! process that can connect to the socket could choose the data folder.

use std::io::Read;
use std::sync::atomic::Ordering;

use crate::cgi::input::Body;
use crate::cgi::{self, Variables};
use crate::config::{InForce, Setting};
use crate::error::Error;
use crate::fastcgi::{Handler, Output, Pairs, Refusal};
use crate::sys::waits::Waits;
use crate::sys::{log, scoreboard};

/// Answers FastCGI requests.
#[derive(Debug)]
pub struct Responder {
    settings: InForce,
}

impl Handler for Responder {
    fn handle(&mut self, params: Pairs, body: &mut dyn Read, waits: Waits) -> Output {
        let variables = Variables::of_parameters(params.clone());
        let mut output = Output::from(match self.settings.get() {
            Ok(config) => {
                crate::answer(config, &variables, &mut Body::new(&variables, body), waits)
            }
            Err(invalid) => crate::refuse(None, &variables, invalid.into()),
        });
        report_settings(params, &mut output);
        output
    }

    fn refuse(&mut self, params: Pairs, why: Refusal) -> Output {
        let error = match why {
            Refusal::ParamsTooLarge(limit) => Error::too_large(format!(
                "The header fields of the request are larger than {} KiB in total.",
                limit >> 10
            )),
            Refusal::ParamsMalformed => Error::internal("malformed FastCGI parameters"),
            Refusal::Panicked(message) => Error::perhaps_stored(message),
        };
        let config = self.settings.get().ok();
        crate::refuse(config, &Variables::of_parameters(params), error).into()
    }
}

impl Responder {
    /// Reads the settings.
    pub fn load() -> Responder {
        Responder {
            settings: InForce::load(),
        }
    }

    /// The number of worker processes; `None` if the settings cannot be used.
    pub fn workers(&mut self) -> Option<usize> {
        let config = self.settings.get().ok()?;
        Some(config.workers)
    }
}

impl From<cgi::Output> for Output {
    fn from(output: cgi::Output) -> Output {
        Output {
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }
}

/// Logs, once for all workers, that a parameter with the name of a setting has no effect: the web server's
/// configuration may have been written for CGI.
fn report_settings(mut params: Pairs, output: &mut Output) {
    let has_reported = &scoreboard::shared_flags().has_reported_parameter;
    if let Some(setting) = params.find_map(|(name, _)| Setting::find(name))
        && !has_reported.swap(true, Ordering::Relaxed)
    {
        let line = log::line(&format!(
            "the parameter {} has no effect: under FastCGI, settings are in comedor.conf or in the \
             environment of the process",
            setting.name
        ));
        output.stderr.extend_from_slice(line.as_bytes());
    }
}
