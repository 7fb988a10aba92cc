//! The dining-hall menu API of a PHP school application, as a CGI program.
//!
//! The way of a request, step by step; each step is in the module named after it, and is given
//! what the ones before it made:
//!
//! | step | module | touches the system |
//! |---|---|---|
//! | settings out of the environment, or a file | [`config`] | `comedor.conf` |
//! | request out of the environment | [`cgi`] | |
//! | session that the cookie names | [`session`] | session file |
//! | caller out of the session | [`caller`] | |
//! | action out of the query | [`api`] | |
//! | aulario, types and days | [`store`] | data files |
//! | body, where all before allows a write | [`cgi::body`] | standard input |
//! | types, menus and plates, changed or shown | [`model`] | |
//! | today, where no date is sent | `clock` | clock, zone file |
//! | response | [`cgi`] | |
//! | a word to Apache on leaving | [`leave`] | a process |

pub mod api;
pub mod caller;
pub mod cgi;
pub mod check;
mod clock;
pub mod config;
pub mod error;
#[cfg(test)]
mod fuzz;
pub mod json;
pub mod leave;
pub mod log;
pub mod model;
pub mod session;
pub mod store;
mod system;

use std::io::Read;

use api::{Action, Call, Fields, Kind};
use caller::Caller;
use cgi::{Request, Response, Variables, body, origin};
use config::{Config, SettingsFile};
use error::Error;
use json::Value;
use store::Aulario;

/// Answers the request that `variables` describe, with its body from `input`. Adds the settings
/// of the file to `variables`.
pub fn answer(variables: &mut Variables, input: impl Read) -> Result<Response, Error> {
    if let Some(file) = SettingsFile::find()? {
        file.add_to(variables);
    }
    let config = Config::from_variables(variables)?;
    let request = Request::from_variables(variables)?;
    let session = session::open(&config.session, request.cookie)?;
    let caller = Caller::identify(&session, &config.service)?;
    caller.may_read()?;
    let id = api::aulario(&request)?;
    caller.may_use(id)?;
    let action = Action::find(&request)?;
    let aulario = Aulario::find(&config.data_dir, &caller.centro, id)?
        .ok_or_else(|| Error::not_found("aulario"))?;
    action.takes(request.method)?;
    let fields = match action.kind {
        Kind::Read => Fields::default(),
        Kind::Write => {
            caller.may_write()?;
            if aulario.is_shared() {
                return Err(Error::forbidden(
                    "This aulario shows the dining hall of another; its menus are changed there.",
                ));
            }
            if origin::is_another_site(&request, &config.trusted_origins) {
                return Err(Error::forbidden("Writes from pages of another site are refused."));
            }
            body::fields(&request, input)?.into()
        }
    };
    let mut answer = json::map([("success", Value::Bool(true))]);
    let zone = config.zone.as_deref();
    answer.extend((action.run)(&Call { aulario: &aulario, request: &request, fields, zone })?);
    Ok(Response::ok(&Value::Map(answer)))
}
