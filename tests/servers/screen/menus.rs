//! Which menus the screen shows, and when it reads them.

use super::*;

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
    screen.evaluate("document.querySelector('section').id = 'same'");
    screen.run(MINUTE);
    assert_eq!(
        screen.evaluate("document.getElementById('same') !== null"),
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
        let week = screen.week_of(today);
        assert_eq!(week.len(), 5);
        assert_eq!([&week[0], &week[4]], days, "{today}");
    }
    let today = screen.today();
    let mut others = screen.week_of(&today);
    others.retain(|day| *day != today);
    assert_eq!(screen.requests(), 3 + 3 * others.len());
    assert_eq!(screen.days_and_types(), json!([5, 3]));

    screen.write_day(&others[0], &usual());
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
    let (mut screen, before) = Screen::with_menus(&one_plate("Ayer"));
    let heading = "document.getElementById('date').innerText";
    let shown = screen.browser.text(heading);
    screen.set_zone(&zones()[1]);
    screen.run(MINUTE);
    assert_ne!(screen.browser.text(heading), shown);
    assert!(!screen.text().contains("Ayer"));
    assert_ne!(screen.today(), before);
}
