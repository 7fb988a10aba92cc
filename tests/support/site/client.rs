//! The browser of a logged-in user of a site, and the data files as it leaves them.

use std::fs;
use std::process::Command;

use super::Site;
use crate::support::*;

impl Site {
    pub fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    /// The status and body of a request by curl with these arguments and the login's cookie.
    #[track_caller]
    pub fn curl(&self, arguments: &[&str]) -> (u16, String) {
        let jar = self.path().join("cookies").display().to_string();
        let always = ["-s", "-m", "30", "-b", &jar, "-w", "\n%{http_code}"];
        let output = output(Command::new("curl").args(always).args(arguments), "curl");
        let output = String::from_utf8(output).unwrap();
        let (body, status) = output.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    pub fn api(&self, query: &str) -> String {
        self.url(&format!("api/comedor.php?{query}"))
    }

    /// A request to an action of aula1, optionally with a JSON body. It must succeed.
    #[track_caller]
    pub fn call(&self, action: &str, body: Option<Value>) -> Value {
        let url = self.api(&format!("action={action}&aulario=aula1"));
        let body = body.map(|body| body.to_string());
        let mut arguments = vec![url.as_str()];
        if let Some(body) = &body {
            arguments.extend(["-H", "Content-Type: application/json", "-d", body]);
        }
        let (status, answer) = self.curl(&arguments);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{url} {body:?} {answer}");
        answer
    }

    /// Saves the name of a plate with the program.
    #[track_caller]
    pub fn save(&self, date: &str, plate: &str, name: &str) -> Value {
        let plates = json!({plate: {"name": name}});
        self.call("save_menu", Some(json!({"date": date, "menu_type": "basal", "plates": plates})))
    }

    /// Saves the name of a plate with the frontend's PHP page.
    #[track_caller]
    pub fn save_by_php(&self, date: &str, plate: &str, name: &str) {
        let (plate, name) = (format!("plate={plate}"), format!("name={name}"));
        let url = self.url(&format!("day.php?date={date}"));
        assert_eq!(self.curl(&["-d", &plate, "-d", &name, &url]).0, 200);
    }

    /// The plates in the file of this day of the aulario.
    #[track_caller]
    pub fn plates(&self, aulario: &str, date: &str) -> Value {
        let (month, day) = date.split_at(7);
        let path = format!(
            "data/Centros/centro1/Aularios/{aulario}/Comedor/{month}/{}/_datos.json",
            &day[1..]
        );
        let text = fs::read(self.path().join(path)).unwrap();
        let day: Value = serde_json::from_slice(&text).expect("complete JSON");
        day["menus"]["basal"]["plates"].clone()
    }
}
