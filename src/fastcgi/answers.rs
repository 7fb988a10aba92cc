//! The answers to requests: a place for each handler, and refusals.

use std::os::unix::net::UnixStream;

use super::protocol::FcgiRequest;
use super::record::Params;
use super::server::Server;
use super::{Handler, Output, Refusal};
use crate::sys::places::guarded;

impl<H: Handler> Server<'_, H> {
    /// The records that answer a request; `None` if the handler panics for the refusal too.
    pub fn answer(&self, request: &FcgiRequest, peer: &UnixStream) -> Option<Vec<u8>> {
        if request.is_check {
            // With a place, a check waits for a file that PHP may be writing, as a request does.
            let place = self.places.enter();
            let findings = guarded(place.as_ref(), || self.handler.check(peer)).ok()?;
            return Some(match findings {
                Some(findings) => request.answer(&findings, &[]),
                None => request.unknown_role(),
            });
        }
        let params = match &request.params {
            Ok(params) => params,
            Err(unusable) => return self.refuse(request, unusable.clone()),
        };
        let Some(place) = self.places.enter() else {
            return self.refuse(request, Refusal::Overloaded);
        };
        match guarded(Some(&place), || self.handler.handle(params, &request.body)) {
            Ok(Output { stdout, stderr }) => Some(request.answer(&stdout, &stderr)),
            Err(panic) => self.refuse(request, Refusal::Panicked(panic)),
        }
    }

    /// The records that answer a request without handling it.
    pub fn refuse(&self, request: &FcgiRequest, why: Refusal) -> Option<Vec<u8>> {
        let unusable = Params::default();
        let params = request.params.as_ref().unwrap_or(&unusable);
        let Output { stdout, stderr } = guarded(None, || self.handler.refuse(params, why)).ok()?;
        Some(request.answer(&stdout, &stderr))
    }
}
