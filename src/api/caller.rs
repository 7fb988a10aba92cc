//! The caller and their permissions, from the session. Does no I/O.

use crate::config::{Access, Config};
use crate::error::{Error, Reason};
use crate::model::Id;
use crate::session::{PhpArray, PhpValue, Session};

/// A logged-in user of a centre.
#[derive(Debug)]
pub struct Caller<'s> {
    pub centro: Id,
    permissions: Option<PhpArray<'s>>,
    /// The aularios that the user may use, if the session has the key
    aulas: Option<PhpValue<'s>>,
    config: &'s Config,
}

impl<'s> Caller<'s> {
    /// Refuses with INVALID_SESSION a session that is not logged in or has no centre.
    ///
    /// In PHP terms: `$_SESSION['auth_ok'] === true`, `$_SESSION['auth_data'][<service>]['centro']`,
    /// `$_SESSION['auth_data'][<service>]['aulas']`, and `$_SESSION['auth_data']['permissions']`.
    pub fn identify(session: &'s Session, config: &'s Config) -> Result<Caller<'s>, Error> {
        if !is_logged_in(session) {
            return Err(Error::not_logged_in());
        }
        let data = session.get("auth_data").and_then(PhpValue::as_array);
        let unit = data.and_then(|data| data.get(config.service.as_str()));
        let centro = unit.and_then(name_of_centre).ok_or_else(Error::no_centre)?;
        Ok(Caller {
            centro: Id::parse(&centro).map_err(|expected| unusable_centre(&centro, expected))?,
            permissions: data
                .and_then(|data| data.get("permissions"))
                .and_then(PhpValue::as_array),
            aulas: unit
                .and_then(PhpValue::as_array)
                .and_then(|unit| unit.get("aulas")),
            config,
        })
    }

    /// The ids of the aularios in the session, if it has a list of them.
    pub fn aulas(&self) -> Option<Vec<String>> {
        let ids = self
            .aulas?
            .as_array()
            .into_iter()
            .flat_map(PhpArray::values);
        Some(ids.filter_map(|id| id.to_text()).collect())
    }

    /// `<service>:docente`, which every action needs. FORBIDDEN without it.
    pub fn may_read(&self) -> Result<(), Error> {
        let is_docente = self.has(&[self.config.service.as_str(), ":docente"].concat());
        require(is_docente, Reason::Docente)
    }

    /// `<service>:access`, which every action needs if COMEDOR_ACCESS is `listed`. FORBIDDEN without it.
    pub fn may_enter(&self) -> Result<(), Error> {
        let may_enter = self.config.access == Access::Centre
            || self.has(&[self.config.service.as_str(), ":access"].concat());
        require(may_enter, Reason::Access)
    }

    /// `sysadmin:access`, which writes need in addition. FORBIDDEN without it.
    pub fn may_write(&self) -> Result<(), Error> {
        let is_sysadmin = self.has("sysadmin:access");
        require(is_sysadmin, Reason::Sysadmin)
    }

    /// Whether the session has this permission.
    fn has(&self, permission: &str) -> bool {
        self.permissions
            .is_some_and(|list| list.values().any(|value| value.is(permission)))
    }

    /// FORBIDDEN if the user has no access to `aulario`.
    pub fn may_use(&self, aulario: &Id) -> Result<(), Error> {
        let has = |ids: PhpArray| ids.values().any(|id| id.is(aulario.as_str()));
        match self.aulas {
            Some(ids) => require(ids.as_array().is_some_and(has), Reason::Aulario),
            None => require(self.config.access == Access::Centre, Reason::Aulas),
        }
    }
}

fn require(is_allowed: bool, reason: Reason) -> Result<(), Error> {
    if is_allowed {
        Ok(())
    } else {
        Err(Error::forbidden(reason))
    }
}

/// Whether the application has logged a user in.
pub fn is_logged_in(session: &Session) -> bool {
    matches!(session.get("auth_ok"), Some(PhpValue::Bool(true)))
}

/// The name of the centre in the session's data of a service. An empty one is none.
pub fn name_of_centre(unit: PhpValue) -> Option<String> {
    unit.as_array()?
        .get("centro")?
        .to_text()
        .filter(|name| !name.is_empty())
}

/// The characters of a name that are logged: an id has at most 250, but the name can be as long as a session.
const MAX_LOGGED: usize = 300;

/// The error of a centre whose name is not an id.
fn unusable_centre(name: &str, expected: &str) -> Error {
    let start: String = name.chars().take(MAX_LOGGED).collect();
    let cause = format!("the session's centre must be {expected}; it is {start:?}");
    Error::unusable_centre(cause)
}
