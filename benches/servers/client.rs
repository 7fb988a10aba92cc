//! A client of a server, and the menu that it reads.

use ureq::Agent;
use ureq::http::StatusCode;

use crate::support::json;
use crate::support::site::Site;

/// The menu that is read.
pub const DATE: &str = "2026-03-04";
pub const MENU: [(&str, &str); 3] = [
    ("primero", "Lentejas con verduras"),
    ("segundo", "Merluza a la plancha"),
    ("postre", "Piña"),
];

/// The numbers of concurrent clients. Of more than 8 saves at once in one aulario, some could be `BUSY`.
pub const READERS: [usize; 3] = [1, 8, 32];
pub const WRITERS: [usize; 2] = [1, 8];

/// What a request does.
#[derive(Clone, Copy, PartialEq)]
pub enum Work {
    Read,
    Save,
    /// A save that PHP flushes. The program flushes every save.
    FlushedSave,
    /// A save in an aulario of the client's own
    SaveApart,
}

/// A client with a persistent connection, its own session and its own day.
pub struct Client<'s> {
    site: &'s Site,
    agent: Agent,
    url: String,
    cookie: String,
    aulario: String,
    day: String,
    work: Work,
}

impl<'s> Client<'s> {
    pub fn new(site: &'s Site, page: &str, work: Work, number: usize) -> Client<'s> {
        let of = if work == Work::SaveApart { number } else { 1 };
        let query = match work {
            Work::Read => format!("action=get_menu&aulario=aula1&date={DATE}&menu=basal"),
            Work::Save | Work::SaveApart => format!("action=save_menu&aulario=aula{of}"),
            Work::FlushedSave => "action=save_menu&aulario=aula1&durable=1".to_owned(),
        };
        Client {
            site,
            // No timeout: ureq would start a thread for each request.
            agent: Agent::config_builder()
                .http_status_as_error(false)
                .build()
                .new_agent(),
            url: site.url(&format!("{page}?{query}")),
            cookie: format!("PHPSESSID={number}"),
            aulario: format!("aula{of}"),
            day: format!("2026-05-{number:02}"),
            work,
        }
    }

    /// Reads, or saves this name of a plate. The request must succeed.
    #[track_caller]
    pub fn request(&self, name: &str) -> String {
        self.try_request(name).unwrap_or_else(|why| panic!("{why}"))
    }

    pub fn try_request(&self, name: &str) -> Result<String, String> {
        let response = if self.work == Work::Read {
            self.agent
                .get(&self.url)
                .header("Cookie", &self.cookie)
                .call()
        } else {
            let plates = json!({"primero": {"name": name}});
            let body = json!({"date": self.day, "menu_type": "basal", "plates": plates});
            let request = self.agent.post(&self.url).header("Cookie", &self.cookie);
            request
                .content_type("application/json")
                .send(body.to_string())
        };
        let answer = response.and_then(|mut response| {
            let text = response.body_mut().read_to_string()?;
            Ok((response.status(), text))
        });
        match answer {
            Ok((StatusCode::OK, text)) => Ok(text),
            Ok((status, text)) => Err(format!("{}: {status} {text}", self.url)),
            Err(error) => Err(format!("{}: {error}", self.url)),
        }
    }

    /// Checks that the data file has this name of the plate.
    #[track_caller]
    pub fn assert_saved(&self, name: &str) {
        let plates = self.site.plates(&self.aulario, &self.day);
        assert_eq!(plates["primero"]["name"], name, "{}", self.url);
    }
}
