//! `examples/pantalla.html` in Chromium, beside the application under Apache. Time does not pass in the page: its timers
//! run when a test says so.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::chromium::Browser;
use crate::pictures;
use crate::support::site::{Php, Settings, Site, apache, wait_until};
use crate::support::{REPOSITORY, Value, json, text_of};

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
        self.browser.evaluate("waits()")
    }

    /// A minute, or what else the page waits for, is over.
    #[track_caller]
    fn run(&mut self, milliseconds: u32) -> Value {
        self.browser.evaluate(&format!("run({milliseconds})"))
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
        self.browser.evaluate("requests.length").as_u64().unwrap() as usize
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
        let week = self.browser.evaluate(&format!("weekOf('{today}')"));
        let week = week.as_array().unwrap().iter();
        for date in week.map(|date| date.as_str().unwrap()).chain([&*today]) {
            self.write_day(date, menus);
        }
    }

    /// The window of a screen or telephone.
    fn resize(&mut self, width: u32, height: u32) {
        let window = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.browser
            .call("Emulation.setDeviceMetricsOverride", window);
        self.browser
            .evaluate("new Promise((done) => requestAnimationFrame(() => realTimeout(done, 0)))");
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

/// The menus of a usual day.
fn usual() -> Value {
    json!({
        "basal": plates(&[("postre", "Piña"), ("primero", "Lentejas con verduras"), ("segundo", "Merluza a la plancha")]),
        "vegetariano": plates(&[("primero", "Lentejas con verduras"), ("segundo", "Tortilla de patata"), ("postre", "Piña")]),
        "alergias": plates(&[("primero", "Crema de calabacín"), ("segundo", "Merluza a la plancha"), ("postre", "Piña")]),
    })
}

#[test]
fn screen_shows_today_s_menus_and_reads_them_again_each_minute_by_one_read_for_each_type() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    screen.write_day(&today, &usual());
    assert_eq!(screen.open("aulario=aula1"), json!([MINUTE]));
    let text = screen.text();
    let order = [
        "Menú basal", "Lentejas", "Merluza", "Piña", "Menú vegetariano", "Tortilla",
        "Menú alergias", "calabacín",
    ];
    let places: Vec<_> = order
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")))
        .into();
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("Primero") && text.ends_with('|'), "{text}");
    assert_eq!(screen.requests(), 3);

    screen.write_day(
        &today,
        &json!({"basal": plates(&[("primero", "Sopa"), ("cena", "Yogur")])}),
    );
    assert_eq!(screen.run(MINUTE), json!([MINUTE]));
    assert_eq!(screen.requests(), 3);
    let text = screen.text();
    for part in ["Sopa", "cena", "Yogur", "Sin menú"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("Lentejas"), "{text}");
    // Nothing is drawn again if nothing has changed.
    screen
        .browser
        .evaluate("document.querySelector('section').id = 'same'");
    screen.run(MINUTE);
    assert_eq!(
        screen
            .browser
            .evaluate("document.getElementById('same') !== null"),
        true
    );
}

#[test]
fn screen_shows_the_school_week_and_reads_its_other_days_every_fifteen_minutes() {
    let mut screen = Screen::new(&[]);
    screen.open("aulario=aula1&dias=5");
    for (today, days) in [
        ("2026-11-23", ["2026-11-23", "2026-11-27"]),
        ("2026-11-27", ["2026-11-23", "2026-11-27"]),
        ("2026-11-28", ["2026-11-30", "2026-12-04"]),
        ("2026-11-29", ["2026-11-30", "2026-12-04"]),
    ] {
        let week = screen.browser.evaluate(&format!("weekOf('{today}')"));
        assert_eq!(week.as_array().unwrap().len(), 5);
        assert_eq!([&week[0], &week[4]], days, "{today}");
    }
    let today = screen.today();
    let week = screen.browser.evaluate(&format!("weekOf('{today}')"));
    let others: Vec<String> = week
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day.as_str().unwrap().to_owned())
        .filter(|day| *day != today)
        .collect();
    assert_eq!(screen.requests(), 3 + 3 * others.len());
    let other = others[0].clone();
    assert_eq!(screen.browser.evaluate("[document.querySelectorAll('tbody tr').length, document.querySelectorAll('thead th').length]"), json!([5, 3]));

    screen.write_day(&other, &usual());
    for _ in 1..15 {
        screen.run(MINUTE);
        assert_eq!(screen.requests(), 3);
    }
    assert!(!screen.text().contains("Tortilla"));
    screen.run(MINUTE);
    assert_eq!(screen.requests(), 3 + 3 * others.len());
    assert!(screen.text().contains("Tortilla"));
    screen.run(MINUTE);
    assert_eq!(screen.requests(), 3);
    // A type that was added is in all days at once.
    screen.write(
        "Comedor-MenuTypes.json",
        &json!([{"id": "basal", "label": "Uno", "color": "#ffffff"}]),
    );
    screen.run(MINUTE);
    assert_eq!(screen.requests(), 1 + others.len());
}

#[test]
fn screen_changes_the_day_with_the_server_at_midnight() {
    let mut screen = Screen::new(&[]);
    let before = screen.today();
    screen.write_day(&before, &json!({"basal": plates(&[("primero", "Ayer")])}));
    screen.open("aulario=aula1");
    let heading = "document.getElementById('date').innerText";
    let shown = screen.browser.text(heading);
    screen.set_zone(&zones()[1]);
    screen.run(MINUTE);
    assert_ne!(screen.browser.text(heading), shown);
    assert!(!screen.text().contains("Ayer"));
    assert_ne!(screen.today(), before);
}

#[test]
fn screen_keeps_the_last_menu_without_a_session_or_a_server_and_says_so() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    screen.write_day(&today, &usual());
    screen.open("aulario=aula1");
    for file in fs::read_dir(screen.site.path().join("sessions")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(screen.run(MINUTE), json!([MINUTE]));
        assert_eq!(screen.requests(), 1);
        assert!(screen.text().contains("Lentejas"));
        let state = screen.state();
        assert!(
            state.starts_with("Menú leído el ") && state.ends_with("Iniciar sesión"),
            "{state}"
        );
        assert_eq!(
            screen
                .browser
                .text("document.querySelector('#state a').pathname"),
            "/_login.php"
        );
    }
    screen
        .browser
        .evaluate("realFetch('login.php').then(() => null)");
    screen.run(MINUTE);
    assert_eq!(screen.state(), "");

    screen.site.stop_servers();
    assert_eq!(screen.run(MINUTE), json!([MINUTE]));
    let text = screen.text();
    assert!(
        text.contains("Lentejas") && text.ends_with("Sin respuesta del servidor."),
        "{text}"
    );
    let example = screen.site.fill("apache.conf.example", Settings::File);
    screen
        .site
        .start_apache("prefork", Php::Module, "cgi", &example);
    screen.run(MINUTE);
    assert_eq!(screen.state(), "");
}

#[test]
fn screen_repeats_a_busy_read_as_the_server_says_and_explains_other_answers() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    screen.write_day(&today, &usual());
    screen.open("aulario=aula1");
    // PHP is saving: the file is empty.
    let file = screen.folder().join(file_of(&today));
    let day = fs::read(&file).unwrap();
    fs::write(&file, "").unwrap();
    assert_eq!(screen.run(MINUTE), json!([1000]));
    fs::write(&file, day).unwrap();
    assert_eq!(screen.run(1000), json!([MINUTE]));
    assert_eq!(screen.state(), "");
    // A server that is closed until tomorrow.
    screen.browser.evaluate(
        "(window.usualFetch = fetch, window.fetch = async () => new Response(
            '{\"success\": false, \"code\": \"BUSY\"}', {headers: {'Retry-After': '86400'}}), true)",
    );
    assert_eq!(screen.run(MINUTE), json!([MINUTE]));
    let state = screen.state();
    assert!(state.ends_with("El servidor está ocupado."), "{state}");
    screen
        .browser
        .evaluate("(window.fetch = window.usualFetch, true)");

    for (query, part) in [
        ("aulario=aula2", "no puede ver los menús de este aulario"),
        ("", "debe acabar en ?aulario="),
        ("aulario=<b>x</b>", "debe acabar en ?aulario="),
    ] {
        screen.open(query);
        let text = screen.text();
        assert!(text.contains(part), "{query}: {text}");
    }
    fs::rename(
        screen.folder().with_extension("json"),
        screen.folder().with_extension("old"),
    )
    .unwrap();
    screen.open("aulario=aula1");
    assert_eq!(screen.state(), "No existe el aulario «aula1».");
}

#[test]
fn menu_that_could_not_be_drawn_is_drawn_with_the_next_read() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    screen.write_day(&today, &json!({"basal": plates(&[("primero", "Sopa")])}));
    screen.open("aulario=aula1");
    screen.write_day(
        &today,
        &json!({"basal": plates(&[("primero", "Lentejas")])}),
    );
    screen
        .browser
        .evaluate("(document.createElement = () => { throw new Error('memory'); }, true)");
    screen.run(MINUTE);
    assert!(screen.state().starts_with("Menú leído el "));
    assert!(screen.text().contains("Sopa"), "the last menu stays");
    screen.browser.evaluate("delete document.createElement");
    screen.run(MINUTE);
    let text = screen.text();
    assert!(text.contains("Lentejas") && text.ends_with('|'), "{text}");
}

#[test]
fn menu_of_another_type_or_day_is_never_shown() {
    let mut screen = Screen::new(&[]);
    screen.write_week(&usual());
    let answer = |changes: &str| {
        format!(
            "(window.usualFetch ||= fetch, window.fetch = async (url) => {{
                const answer = await (await usualFetch(url)).json();
                const asked = new URLSearchParams(url.split('?')[1]);
                for (const plate of Object.values(answer.menu.plates)) plate.name = 'Otro';
                {changes}
                return new Response(JSON.stringify(answer));
            }}, turns = TURNS, true)"
        )
    };
    for query in ["aulario=aula1", "aulario=aula1&dias=5"] {
        for changes in [
            "if (asked.get('date')) answer.date = '2026-01-01';",
            "answer.menu_type = 'basal';",
        ] {
            screen.open(query);
            screen.browser.evaluate(&answer(changes));
            screen.run(MINUTE);
            let text = screen.text();
            assert!(
                text.contains("Lentejas") && !text.contains("Otro"),
                "{query} {changes}: {text}"
            );
            assert!(
                text.ends_with("El servidor no puede dar los menús."),
                "{text}"
            );
        }
    }
}

/// As if it were deleted after today was read, and before the other days.
#[test]
fn week_is_shown_also_if_a_type_is_deleted_while_it_is_read() {
    let mut screen = Screen::new(&[]);
    screen.write_week(&json!({"basal": plates(&[("primero", "Sopa")])}));
    screen.open("aulario=aula1&dias=5");
    screen.browser.evaluate(
        "(window.usualFetch = fetch, window.fetch = async (url) => {
            const answer = await (await usualFetch(url)).json();
            if (url.includes('date=') && !url.includes('menu=')) answer.menu_types.pop();
            return new Response(JSON.stringify(answer));
        }, turns = TURNS, true)",
    );
    screen.run(MINUTE);
    let text = screen.text();
    assert!(text.contains("Sopa") && text.ends_with('|'), "{text}");
    let shown = "[document.querySelectorAll('tbody tr').length, document.querySelectorAll('thead th').length]";
    assert_eq!(screen.browser.evaluate(shown), json!([5, 3]));
}

#[test]
fn nothing_that_the_screen_reads_becomes_html_or_style() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    let hostile = "<img src=x onerror=\"window.ran = 1\"><script>window.ran = 1</script>";
    let color = "red;background:url(//evil.example)";
    screen.write("Comedor-MenuTypes.json", &json!([
        {"id": "basal", "label": hostile, "color": color}, {"id": "b", "label": "B", "color": "#FFee00"},
    ]));
    let mut menu = plates(&[
        ("primero", hostile),
        ("__proto__", "prototipo"),
        ("constructor", "obra"),
    ]);
    menu["plates"]["segundo"] = json!({"name": hostile, "pictogram": hostile});
    screen.write_day(&today, &json!({"basal": menu, "b": menu}));
    for query in ["aulario=aula1", "aulario=aula1&dias=7"] {
        screen.open(query);
        let text = screen.text();
        assert!(
            text.contains(hostile) && text.contains("obra") && text.contains("prototipo"),
            "{text}"
        );
        let made = "document.querySelectorAll('#menus img, #menus script, #menus b').length + (window.ran || 0)";
        assert_eq!(screen.browser.evaluate(made), 0, "{query}");
    }
    screen.open("aulario=aula1");
    let text = screen.text();
    assert!(text.contains("constructor\nobra"), "{text}");
    let painted = "[...document.querySelectorAll('h2')].map((h) => getComputedStyle(h)).map((s) => [s.backgroundColor, s.color])";
    assert_eq!(
        screen.browser.evaluate(painted),
        json!([
            ["rgb(85, 85, 85)", "rgb(255, 255, 255)"],
            ["rgb(255, 238, 0)", "rgb(0, 0, 0)"]
        ])
    );
}

/// The address for EntreAulas, as the comment in the page has it.
const FILEFETCH: &str =
    "_filefetch.php?type=comedor_image&centro=colegio&aulario={aulario}&date={date}&file={file}";
const NO_PICTOGRAMS: &str = "const PICTOGRAMS = \"\";";

#[test]
fn pictograms_are_shown_from_the_address_in_the_settings_and_absent_ones_are_left_out() {
    assert!(text_of("examples/pantalla.html").contains(FILEFETCH));
    let mut screen = Screen::new(&[(
        NO_PICTOGRAMS,
        &format!("const PICTOGRAMS = \"{FILEFETCH}\";"),
    )]);
    screen.site.write(
        "docroot/_filefetch.php",
        "<?php
        file_put_contents(__DIR__ . '/../tmp/fetched', json_encode($_GET) . \"\\n\", FILE_APPEND);
        if ($_GET['file'] !== 'a b&c.svg') { http_response_code(404); exit; }
        header('Content-Type: image/svg+xml');
        echo '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>';",
    );
    let today = screen.today();
    let plate = |name: &str, pictogram: &str| json!({"name": name, "pictogram": pictogram});
    let plates = json!({"primero": plate("Sopa", "a b&c.svg"), "segundo": plate("Pan", "none.png"), "postre": plate("", "a b&c.svg")});
    screen.write_day(&today, &json!({"basal": {"plates": plates}}));
    screen.open("aulario=aula1");
    let images = "[...document.images].map((image) => [image.complete && image.naturalWidth > 0, image.parentNode.innerText])";
    let expected = json!([[true, "Primero\nSopa"], [true, "Postre"]]);
    wait_until("the pictograms", || {
        screen.browser.evaluate(images) == expected
    });
    let fetched = fs::read_to_string(screen.site.path().join("tmp/fetched")).unwrap();
    let first: Value = serde_json::from_str(fetched.lines().next().unwrap()).unwrap();
    let asked = json!({"type": "comedor_image", "centro": "colegio", "aulario": "aula1", "date": today, "file": "a b&c.svg"});
    assert!(
        fetched
            .lines()
            .any(|line| serde_json::from_str::<Value>(line).unwrap() == asked),
        "{first}"
    );
    assert!(screen.text().contains("Pan"));
}

#[test]
fn screen_fills_a_large_window_and_fits_a_narrow_one() {
    let mut screen = Screen::new(&[]);
    let size = "parseFloat(getComputedStyle(document.querySelector('#menus li')).fontSize)";
    let overflow = "[document.documentElement.scrollWidth > innerWidth, document.documentElement.scrollHeight > innerHeight]";
    screen.write_week(&usual());
    for (query, width, height, least) in [
        ("aulario=aula1", 1920, 1080, 40.0),
        ("aulario=aula1", 1280, 720, 26.0),
        ("aulario=aula1&dias=5", 1920, 1080, 28.0),
        ("aulario=aula1&dias=5", 1280, 720, 18.0),
    ] {
        screen.resize(width, height);
        screen.open(query);
        assert_eq!(
            screen.browser.evaluate(overflow),
            json!([false, false]),
            "{query} {width}"
        );
        let found = screen.browser.evaluate(size).as_f64().unwrap();
        assert!(found >= least, "{query} {width}: letters of {found}");
    }
    // Long names, and as many plates as a menu can have: nothing is cut off at the side.
    let long: Vec<(String, String)> = (0..61)
        .map(|number| (format!("p{number}"), format!("Plato {number}")))
        .collect();
    let mut names: Vec<(&str, &str)> = long.iter().map(|(key, name)| (&**key, &**name)).collect();
    let word = "x".repeat(2000);
    names.push(("primero", &word));
    screen.write_week(&json!({"basal": plates(&names), "alergias": plates(&names)}));
    for (query, width) in [
        ("aulario=aula1", 1280),
        ("aulario=aula1", 360),
        ("aulario=aula1&dias=5", 1280),
        ("aulario=aula1&dias=5", 360),
    ] {
        screen.resize(width, 720);
        screen.open(query);
        assert_eq!(
            screen.browser.evaluate(overflow)[0],
            false,
            "{query} {width}"
        );
        assert!(screen.text().contains("Plato 60"));
        assert!(screen.browser.evaluate(size).as_f64().unwrap() >= 12.0);
    }
    for (scheme, colors) in [
        ("light", ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]),
        ("dark", ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]),
    ] {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        screen.browser.call("Emulation.setEmulatedMedia", features);
        let found = screen.browser.evaluate("(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.body))");
        assert_eq!(found, json!(colors));
    }
}

#[test]
fn picture_of_the_screen_in_the_readmes_shows_the_page_as_it_is() {
    let mut screen = Screen::new(&[]);
    let today = screen.today();
    screen.write_day(&today, &usual());
    screen.resize(1280, 4000);
    screen.open("aulario=aula1");
    let shown = screen.browser.text(
        "document.getElementById('date').textContent = 'lunes, 23 de noviembre';
        document.querySelector('main').innerText + document.querySelector('style').textContent",
    );
    pictures::shows(
        &mut screen.browser,
        "docs/pantalla.png",
        (1280, "state"),
        &shown,
    );
}

/// At a terminal (script(1)); elsewhere it ends before.
#[test]
fn demo_shows_the_screen_until_enter_is_pressed() {
    let mut demo = Command::new("script");
    demo.args(["-qec", "cgi-bin/demo", "/dev/null"])
        .current_dir(REPOSITORY);
    demo.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut demo = demo.spawn().expect("script, of Debian's bsdutils");
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut addresses = lines.map_while(Result::ok).filter_map(|line| {
        let start = line.find("http://127.0.0.1:")?;
        Some(line[start..].trim_end().to_owned())
    });
    let mut browser = Browser::new("es");
    browser.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": TIME}),
    );
    let [today, week] = [(); 2].map(|()| addresses.next().expect("an address"));
    for (address, count) in [(&today, 3), (&week, 15)] {
        browser.open(address);
        browser.evaluate("waits()");
        let lists = "document.querySelectorAll('#menus ul li:nth-child(3)').length";
        assert_eq!(browser.evaluate(lists), count, "{address}");
    }
    demo.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(addresses.next(), None);
    assert!(demo.wait().unwrap().success());
}
