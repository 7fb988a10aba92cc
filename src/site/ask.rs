//! Asks for a script's path through the web server, without a login, or with one.

use std::fmt;

use super::{Script, command};
use crate::accounts;
use crate::error::Error;
use crate::log::printable;

/// What answers.
pub enum Answer {
    /// comedor, with this body
    Comedor(String),
    /// Another program, with this status
    Other(String),
    /// Why there is no answer
    Nothing(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Answer::Comedor(_) => f.write_str("comedor answers"),
            Answer::Other(status) => {
                write!(f, "another program answers: {}", printable(status.trim()))
            }
            Answer::Nothing(cause) => f.write_str(cause),
        }
    }
}

/// Asks for the menu types of `aulario`. The options of curl, with the cookie, are on its standard input: its
/// arguments are visible to all users. It has the rights of the web server's user, since PHP answers what it
/// likes.
pub fn ask(script: &Script, aulario: &str, cookie: Option<&str>) -> Answer {
    let site = &script.site;
    let user = accounts::find(&site.user);
    if user.is_none() || !is_plain(&site.name) || !is_plain(&script.path) {
        return Answer::Nothing(
            "the name of the site or of the path has other characters than [A-Za-z0-9._/-]"
                .to_owned(),
        );
    }
    let mut options = format!(
        "silent\nshow-error\ninsecure\nmax-time = 10\nurl = {}?action=get_menu_types&aulario={aulario}\n\
         resolve = {}:{}:{}\nwrite-out = \"\\n%{{http_code}} %{{redirect_url}}\"\n",
        script.url(),
        site.name,
        site.port,
        site.address
    );
    if let Some(cookie) = cookie {
        options += &format!("cookie = \"{cookie}\"\n");
    }
    match command::run_as(user.as_ref(), "curl", &["--disable", "--config", "-"], &options) {
        Err(error) => Answer::Nothing(error),
        Ok(said) => {
            let (body, status) = said.rsplit_once('\n').unwrap_or_default();
            let of_comedor = [Error::not_logged_in(), Error::internal("")];
            let is_comedor = of_comedor.iter().any(|error| body.contains(&*error.sentence));
            if is_comedor || cookie.is_some() {
                Answer::Comedor(body.to_owned())
            } else {
                Answer::Other(status.to_owned())
            }
        }
    }
}

/// Whether a text needs no quotes in any configuration, and no other characters in a URL.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
}
