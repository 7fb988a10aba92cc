//! Asks for a script's path through the web server, without a login, or with one.

use std::fmt;
use std::time::Duration;

use super::{Script, command};
use crate::admin::accounts;
use crate::admin::child::Child;
use crate::error::Error;
use crate::store::access::Credentials;
use crate::sys::log::printable;

/// What answers.
pub enum Answer {
    Comedor,
    /// Another program, with this status
    Other(String),
    /// Why there is no answer
    Nothing(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Answer::Comedor => f.write_str("comedor answers"),
            Answer::Other(status) => {
                write!(f, "another program answers: {}", printable(status.trim()))
            }
            Answer::Nothing(cause) => f.write_str(cause),
        }
    }
}

/// Asks without a login, with the rights of the web server's user, since PHP answers what it likes.
pub fn ask(script: &Script) -> Answer {
    let unknown = || format!("unknown user {}", script.site.user);
    let user = accounts::find(&script.site.user).ok_or_else(unknown);
    let of_comedor = [Error::not_logged_in(), Error::internal("")].map(|error| error.sentence);
    match user.and_then(|user| request(script, Some(&user), "x", "")) {
        Err(error) => Answer::Nothing(error),
        Ok(said) if of_comedor.iter().any(|known| said.contains(&**known)) => Answer::Comedor,
        Ok(said) => Answer::Other(said.lines().next_back().unwrap_or_default().to_owned()),
    }
}

/// What the script's path answers to a request for the menu types of `aulario`, then a line with the status
/// and the redirection. curl has the rights of `user`, else of this process, and gets its options, with the
/// cookie, by its standard input: its arguments are visible to all users.
pub fn request(
    script: &Script,
    user: Option<&Credentials>,
    aulario: &str,
    cookie: &str,
) -> Result<String, String> {
    let (url, site) = (script.url(), &script.site);
    plain(&site.name).and(plain(&script.path))?;
    let options = format!(
        "silent\nshow-error\ninsecure\nmax-time = 10\nurl = {url}?action=get_menu_types&aulario={aulario}\n\
         resolve = {}:{}:{}\ncookie = \"{cookie}\"\nwrite-out = \"\\n%{{http_code}} %{{redirect_url}}\"\n",
        site.name, site.port, site.address
    );
    let child = Child { user, time: Duration::from_secs(15), size: 16 * 1024 * 1024 };
    let said =
        child.output(|out| command::exec("curl", &["--disable", "--config", "-"], &options, out));
    let said = said.map_err(|error| format!("curl: {error}"))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The text, if it needs no quotes in any configuration, and has only characters of a URL.
pub fn plain(text: &str) -> Result<&str, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    let refused = || format!("{text:?} has characters other than [A-Za-z0-9._/-]");
    text.bytes().all(is_plain).then_some(text).ok_or_else(refused)
}
