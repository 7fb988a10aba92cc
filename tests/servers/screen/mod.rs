//! `examples/pantalla.html` in Chromium, beside the application under Apache. Time does not pass in the page: its timers
//! run when a test says so.

mod appearance;
mod demo;
mod failures;
mod menus;
mod pictures;

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::chromium::Browser;
use crate::support::site::{Php, Settings, Site, apache};
use crate::support::{Value, json, text_of};

/// A zone in which it is noon, and one in which it is another day: in neither does the day change during a test.
fn zones() -> [String; 2] {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let noon = 12 - (seconds / 3600 % 24) as i32;
    let other_day = if noon > 1 { noon - 14 } else { noon + 13 };
    // tzset(3): a zone east of Greenwich has a negative number.
    [noon, other_day].map(|hours| format!("Etc/GMT{:+}", -hours))
}

/// Counts requests, and keeps timers: `run(ms)` runs that of so many milliseconds, and `waits()` is once the page
/// waits for one, apart from the limit of 30 s of a request.
const TIME: &str = r#"
    const realFetch = fetch, realTimeout = setTimeout, timers = new Map(), LIMIT = 30000;
    let count = 0;
    window.requests = [];
    window.fetch = (url, ...options) => { requests.push(String(url)); return realFetch(url, ...options); };
    window.setTimeout = (task, time) => { timers.set(++count, [task, time]); return count; };
    window.clearTimeout = (timer) => timers.delete(timer);
    window.waits = async () => {
        for (;;) {
            const times = [...timers.values()].map(([, time]) => time).filter((time) => time !== LIMIT);
            if (times.length) return times;
            await new Promise((resolve) => realTimeout(resolve, 10));
        }
    };
    window.run = (time) => {
        requests.length = 0;
        const [timer, [task]] = [...timers].find(([, [, of]]) => of === time);
        timers.delete(timer);
        task();
        return waits();
    };
"#;
const MINUTE: u32 = 60_000;

/// The text of the page: heading, cards, and what it says below.
const TEXT: &str =
    "document.querySelector('main').innerText + '|' + document.getElementById('state').innerText";
const STATE: &str = "document.getElementById('state').innerText";

struct Screen {
    site: Site,
    browser: Browser,
}

impl Screen {
    /// The application with this page, with a browser that has logged in.
    fn new(settings: &[(&str, &str)]) -> Screen {
        let site = apache("prefork", Php::Module, "cgi", Settings::File);
        let mut page = text_of("examples/pantalla.html");
        for (from, to) in settings {
            assert!(page.contains(from));
            page = page.replacen(from, to, 1);
        }
        site.write("docroot/pantalla.html", &page);
        let mut browser = Browser::new("es");
        browser.call(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": TIME}),
        );
        let mut screen = Screen { site, browser };
        screen.set_zone(&zones()[0]);
        screen.browser.open(&screen.site.url("login.php"));
        screen
    }

    /// The page opened with these menus of today. Returns the date too.
    #[track_caller]
    fn with_menus(menus: &Value) -> (Screen, String) {
        let mut screen = Screen::new(&[]);
        let today = screen.today();
        screen.write_day(&today, menus);
        screen.open("aulario=aula1");
        (screen, today)
    }

    /// Sets the zone of comedor's "today".
    fn set_zone(&mut self, zone: &str) {
        let settings = self.site.settings();
        let text = fs::read_to_string(&settings).unwrap();
        let kept = text.lines().filter(|line| !line.starts_with("TZ="));
        let lines: String = kept.flat_map(|line| [line, "\n"]).collect();
        fs::write(settings, format!("{lines}TZ={zone}\n")).unwrap();
    }

    /// Opens the page with this query, and waits until it waits. Returns for how long.
    #[track_caller]
    fn open(&mut self, query: &str) -> Value {
        self.browser
            .open(&self.site.url(&format!("pantalla.html?{query}")));
        self.evaluate("waits()")
    }

    /// A minute, or what else the page waits for, is over.
    #[track_caller]
    fn run(&mut self, milliseconds: u32) -> Value {
        self.evaluate(&format!("run({milliseconds})"))
    }

    /// The value of an expression in the page.
    #[track_caller]
    fn evaluate(&mut self, expression: &str) -> Value {
        self.browser.evaluate(expression)
    }

    #[track_caller]
    fn text(&mut self) -> String {
        self.browser.text(TEXT)
    }

    #[track_caller]
    fn state(&mut self) -> String {
        self.browser.text(STATE)
    }

    /// The number of requests since the last timer has run.
    #[track_caller]
    fn requests(&mut self) -> usize {
        self.evaluate("requests.length").as_u64().unwrap() as usize
    }

    /// The day that the page shows.
    #[track_caller]
    fn today(&mut self) -> String {
        self.browser.text("realFetch('api/comedor.php?action=get_menu&aulario=aula1').then(r => r.json()).then(a => a.date)")
    }

    fn folder(&self) -> std::path::PathBuf {
        self.site.path().join("data/Centros/centro1/Aularios/aula1")
    }

    /// Writes a file of the aulario, as a page does.
    fn write(&self, file: &str, content: &Value) {
        let path = self.folder().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
        let mut chown = Command::new("chown");
        crate::output(
            chown.args(["-R", "33:33"]).arg(self.folder()),
            "a run as root",
        );
    }

    /// Writes the menus of a day.
    fn write_day(&self, date: &str, menus: &Value) {
        let file = file_of(date);
        self.write(&file, &json!({"date": date, "menus": menus}));
    }

    /// Writes the menus of today and of the school week.
    fn write_week(&mut self, menus: &Value) {
        self.open("aulario=aula1&dias=5");
        let today = self.today();
        for date in self.week_of(&today).into_iter().chain([today]) {
            self.write_day(&date, menus);
        }
    }

    /// The dates of the school week that the page shows on this day.
    #[track_caller]
    fn week_of(&mut self, today: &str) -> Vec<String> {
        let week = self.evaluate(&format!("weekOf('{today}')"));
        serde_json::from_value(week).unwrap()
    }

    /// Numbers of days and of menu types of the table.
    #[track_caller]
    fn days_and_types(&mut self) -> Value {
        self.evaluate("[document.querySelectorAll('tbody tr').length, document.querySelectorAll('thead th').length]")
    }

    /// The window of a screen or telephone.
    fn resize(&mut self, width: u32, height: u32) {
        let window = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.browser
            .call("Emulation.setDeviceMetricsOverride", window);
        self.evaluate("new Promise((done) => requestAnimationFrame(() => realTimeout(done, 0)))");
    }
}

fn file_of(date: &str) -> String {
    format!("Comedor/{}/{}/_datos.json", &date[..7], &date[8..])
}

fn plates(names: &[(&str, &str)]) -> Value {
    let plates = names
        .iter()
        .map(|(key, name)| ((*key).to_owned(), json!({"name": name, "pictogram": ""})));
    json!({"plates": plates.collect::<serde_json::Map<_, _>>()})
}

/// The menus of a day with one plate.
fn one_plate(name: &str) -> Value {
    json!({"basal": plates(&[("primero", name)])})
}

/// The menus of a usual day.
fn usual() -> Value {
    json!({
        "basal": plates(&[("postre", "Piña"), ("primero", "Lentejas con verduras"), ("segundo", "Merluza a la plancha")]),
        "vegetariano": plates(&[("primero", "Lentejas con verduras"), ("segundo", "Tortilla de patata"), ("postre", "Piña")]),
        "alergias": plates(&[("primero", "Crema de calabacín"), ("segundo", "Merluza a la plancha"), ("postre", "Piña")]),
    })
}
