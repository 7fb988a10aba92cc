//! The API as a FastCGI handler, in a process that stays in memory.
//!
//! A request has the same result as under CGI. Its parameters are never settings; otherwise every
//! process that can connect to the socket could choose the data folder.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::cgi::Variables;
use crate::cgi::input::Body;
use crate::config::{Setting, Watched};
use crate::error::Error;
use crate::fastcgi::{Handler, Pairs, Refusal};
use crate::sys::streams::Output;
use crate::sys::waits::Waits;
use crate::sys::{log, shared_memory};

/// Answers FastCGI requests.
pub struct Responder {
    settings: Watched,
    /// Whether a worker has logged a parameter with the name of a setting
    has_reported: &'static AtomicBool,
}

impl Handler for Responder {
    fn reload(&mut self) -> bool {
        self.settings.reload()
    }

    fn handle(
        &mut self,
        params: Result<Pairs, Refusal>,
        body: &mut dyn Read,
        waits: Waits,
    ) -> Output {
        let config = self.settings.in_force();
        let params = match params {
            Ok(params) => params,
            Err(refusal) => {
                let variables = Variables::of_parameters(Pairs(&[]));
                return crate::refuse(config.ok(), &variables, refusal.into());
            }
        };
        let variables = Variables::of_parameters(params.clone());
        let mut body = Body::new(&variables, body);
        let mut output = crate::answer(config, &variables, &mut body, waits);
        self.report_setting(params, &mut output);
        output
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::ParamsTooLarge(limit) => Error::too_large(format!(
                "The header fields of the request are larger than {} KiB in total.",
                limit >> 10
            )),
            Refusal::ParamsMalformed => Error::internal("malformed FastCGI parameters"),
        }
    }
}

impl Responder {
    /// Reads the settings.
    pub fn load() -> io::Result<Responder> {
        Ok(Responder {
            settings: Watched::load(),
            has_reported: shared_memory::zeroed()?,
        })
    }

    /// The number of worker processes; `None` if the settings cannot be used.
    pub fn workers(&self) -> Option<usize> {
        let config = self.settings.in_force().ok()?;
        Some(config.workers)
    }

    /// Logs, once for all workers, that a parameter with the name of a setting has no effect: the web server's
    /// configuration may have been written for CGI.
    fn report_setting(&self, mut params: Pairs, output: &mut Output) {
        if let Some(setting) = params.find_map(|(name, _)| Setting::find(name))
            && !self.has_reported.swap(true, Relaxed)
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
