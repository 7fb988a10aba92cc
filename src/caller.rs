//! Who is calling and what he may do, out of his session. Pure: the session is read already.

use crate::error::Error;
use crate::model;
use crate::session::{Array, Session, Value};

/// A logged-in user of a centre.
#[derive(Debug)]
pub struct Caller<'s> {
    /// The centre, an id that can be a part of a path
    pub centro: String,
    /// Whether he has `<service>:docente`
    is_docente: bool,
    /// Whether he has `sysadmin:access`
    is_sysadmin: bool,
    /// The aularios he may use; `None` is every one of the centre.
    aulas: Option<Value<'s>>,
}

impl<'s> Caller<'s> {
    /// Refuses with INVALID_SESSION where nobody is logged in or the session names no centre.
    ///
    /// In PHP terms: `$_SESSION['auth_ok'] === true`, `$_SESSION['auth_data'][<service>]['centro']`,
    /// beside it `aulas`, and `$_SESSION['auth_data']['permissions']`.
    pub fn identify(session: &'s Session, service: &str) -> Result<Caller<'s>, Error> {
        if !matches!(session.get("auth_ok"), Some(Value::Bool(true))) {
            return Err(Error::invalid_session(
                "There is no session of a logged-in user; please log in.",
                None,
            ));
        }
        let data = session.get("auth_data").and_then(array);
        let unit = data.and_then(|data| data.get(service)).and_then(array);
        let centro = unit
            .and_then(|unit| unit.get("centro"))
            .and_then(|centro| centro.to_text(model::MAX_ID))
            .filter(|centro| model::is_id(centro))
            .ok_or_else(|| Error::invalid_session("The session names no centre.", None))?;

        let permissions = data.and_then(|data| data.get("permissions")).and_then(array);
        let has = |permission: &str| {
            permissions.is_some_and(|list| list.values().any(|value| value.is(permission)))
        };
        Ok(Caller {
            centro,
            is_docente: has(&[service, ":docente"].concat()),
            is_sysadmin: has("sysadmin:access"),
            aulas: unit.and_then(|unit| unit.get("aulas")),
        })
    }

    /// The ids of the aularios he may use; `None` is every one of the centre.
    pub fn aulas(&self) -> Option<Vec<String>> {
        let ids = array(self.aulas?).into_iter().flat_map(Array::values);
        Some(ids.filter_map(|id| id.to_text(model::MAX_ID)).collect())
    }

    /// What every action needs. FORBIDDEN without it.
    pub fn may_read(&self) -> Result<(), Error> {
        if self.is_docente {
            return Ok(());
        }
        Err(Error::forbidden("Your user lacks the permission to see dining-hall menus."))
    }

    /// What writes need besides. FORBIDDEN without it.
    pub fn may_write(&self) -> Result<(), Error> {
        if self.is_sysadmin {
            return Ok(());
        }
        Err(Error::forbidden("Your user lacks the permission to change dining-hall menus."))
    }

    /// Whether `aulario` is open to him. FORBIDDEN where it is not.
    pub fn may_use(&self, aulario: &str) -> Result<(), Error> {
        let Some(aulas) = self.aulas else { return Ok(()) };
        if array(aulas).is_some_and(|ids| ids.values().any(|id| id.is(aulario))) {
            return Ok(());
        }
        Err(Error::forbidden("This aulario is not among those of your user."))
    }
}

fn array(value: Value) -> Option<Array> {
    match value {
        Value::Array(array) => Some(array),
        _ => None,
    }
}
