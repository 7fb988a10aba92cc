//! How the screen looks: names as text, pictograms, and windows of each size.

use super::*;
use crate::support::site::wait_until;

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
        assert_eq!(screen.evaluate(made), 0, "{query}");
    }
    screen.open("aulario=aula1");
    let text = screen.text();
    assert!(text.contains("constructor\nobra"), "{text}");
    let painted = "[...document.querySelectorAll('h2')].map((h) => getComputedStyle(h)).map((s) => [s.backgroundColor, s.color])";
    assert_eq!(
        screen.evaluate(painted),
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
    wait_until("the pictograms", || screen.evaluate(images) == expected);
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
            screen.evaluate(overflow),
            json!([false, false]),
            "{query} {width}"
        );
        let found = screen.evaluate(size).as_f64().unwrap();
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
        assert_eq!(screen.evaluate(overflow)[0], false, "{query} {width}");
        assert!(screen.text().contains("Plato 60"));
        assert!(screen.evaluate(size).as_f64().unwrap() >= 12.0);
    }
    for (scheme, colors) in [
        ("light", ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]),
        ("dark", ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]),
    ] {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        screen.browser.call("Emulation.setEmulatedMedia", features);
        let found = screen.evaluate("(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.body))");
        assert_eq!(found, json!(colors));
    }
}
