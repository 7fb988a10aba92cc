//! The browser of a logged-in user of a site, and the data files as it leaves them.

use std::process::Command;

use super::Site;
use crate::support::*;

impl Site {
    pub fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    /// The status and body of a request by curl with these arguments and the login's cookie. Every name is this
    /// machine's. Without an answer the status is 0, and the text curl's.
    #[track_caller]
    pub fn curl(&self, arguments: &[&str]) -> (u16, String) {
        let mut curl = Command::new("curl");
        let resolve = format!("*:{}:127.0.0.1", self.port);
        curl.args([
            "-skS", "-m", "30", "--resolve", &resolve, "-w", "\n%{http_code}", "-b",
        ]);
        let answer = curl
            .arg(self.path().join("cookies"))
            .args(arguments)
            .output()
            .expect("curl");
        if !answer.status.success() {
            return (0, String::from_utf8_lossy(&answer.stderr).into_owned());
        }
        let answer = String::from_utf8(answer.stdout).unwrap();
        let (body, status) = answer.rsplit_once('\n').unwrap();
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
        assert_eq!(status, 200, "{url} {body:?} {answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["success"], true, "{url} {body:?} {answer}");
        answer
    }

    /// Saves the name of a plate with the program.
    #[track_caller]
    pub fn save(&self, date: &str, plate: &str, name: &str) -> Value {
        let plates = json!({plate: {"name": name}});
        self.call(
            "save_menu",
            Some(json!({"date": date, "menu_type": "basal", "plates": plates})),
        )
    }

    /// The plates in the file of this day of the aulario.
    #[track_caller]
    pub fn plates(&self, aulario: &str, date: &str) -> Value {
        let (month, day) = (&date[..7], &date[8..]);
        let text = self
            .school
            .read(&format!("{aulario}/Comedor/{month}/{day}/_datos.json"));
        let day: Value = serde_json::from_str(&text).expect("complete JSON");
        day["menus"]["basal"]["plates"].clone()
    }
}
