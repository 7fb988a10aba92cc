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
        if request.is_private {
            // With a place it waits as a request does.
            let place = self.places.enter();
            let answer = guarded(place.as_ref(), || self.handler.answer_privately(peer)).ok()?;
            return Some(match answer {
                Some(answer) => request.answer(&answer, &[]),
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
