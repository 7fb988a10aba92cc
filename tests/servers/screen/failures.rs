//! What the screen shows when it has not got the menus that it asked for.

use super::*;

impl Screen {
    /// From now on this code changes each `answer`; `asked` has the query. The next timer reads all days.
    #[track_caller]
    fn change_answers(&mut self, code: &str) {
        self.evaluate(&format!(
            "(window.usualFetch = fetch, window.fetch = async (url) => {{
                const answer = await (await usualFetch(url)).json();
                const asked = new URLSearchParams(url.split('?')[1]);
                {code}
                return new Response(JSON.stringify(answer));
            }}, turns = TURNS, true)"
        ));
    }
}

#[test]
fn screen_keeps_the_last_menu_without_a_session_or_a_server_and_says_so() {
    let (mut screen, _) = Screen::with_menus(&usual());
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
    screen.evaluate("realFetch('login.php').then(() => null)");
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
    let (mut screen, today) = Screen::with_menus(&usual());
    // PHP is saving: the file is empty.
    let file = screen.folder().join(file_of(&today));
    let day = fs::read(&file).unwrap();
    fs::write(&file, "").unwrap();
    assert_eq!(screen.run(MINUTE), json!([1000]));
    fs::write(&file, day).unwrap();
    assert_eq!(screen.run(1000), json!([MINUTE]));
    assert_eq!(screen.state(), "");
    // A server that is closed until tomorrow.
    screen.evaluate(
        "(window.usualFetch = fetch, window.fetch = async () => new Response(
            '{\"success\": false, \"code\": \"BUSY\"}', {headers: {'Retry-After': '86400'}}), true)",
    );
    assert_eq!(screen.run(MINUTE), json!([MINUTE]));
    let state = screen.state();
    assert!(state.ends_with("El servidor está ocupado."), "{state}");
    screen.evaluate("(window.fetch = window.usualFetch, true)");

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
    // A new login would not give this user a centre, so the screen shows no link to the login page.
    for file in fs::read_dir(screen.site.path().join("sessions")).unwrap() {
        let file = file.unwrap().path();
        let session = fs::read_to_string(&file).unwrap();
        fs::write(&file, session.replace("s:7:\"centro1\"", "s:0:\"\"")).unwrap();
    }
    screen.open("aulario=aula1");
    assert_eq!(
        screen.state(),
        "El usuario de este navegador no tiene un centro que comedor pueda usar."
    );
}

#[test]
fn menu_that_could_not_be_drawn_is_drawn_with_the_next_read() {
    let (mut screen, today) = Screen::with_menus(&one_plate("Sopa"));
    screen.write_day(&today, &one_plate("Lentejas"));
    screen.evaluate("(document.createElement = () => { throw new Error('memory'); }, true)");
    screen.run(MINUTE);
    assert!(screen.state().starts_with("Menú leído el "));
    assert!(screen.text().contains("Sopa"), "the last menu stays");
    screen.evaluate("delete document.createElement");
    screen.run(MINUTE);
    let text = screen.text();
    assert!(text.contains("Lentejas") && text.ends_with('|'), "{text}");
}

#[test]
fn menu_of_another_type_or_day_is_never_shown() {
    let mut screen = Screen::new(&[]);
    screen.write_week(&usual());
    let other = "for (const plate of Object.values(answer.menu.plates)) plate.name = 'Otro';";
    for query in ["aulario=aula1", "aulario=aula1&dias=5"] {
        for change in [
            "if (asked.get('date')) answer.date = '2026-01-01';",
            "answer.menu_type = 'basal';",
        ] {
            screen.open(query);
            screen.change_answers(&format!("{other} {change}"));
            screen.run(MINUTE);
            let text = screen.text();
            assert!(
                text.contains("Lentejas") && !text.contains("Otro"),
                "{query} {change}: {text}"
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
    screen.write_week(&one_plate("Sopa"));
    screen.open("aulario=aula1&dias=5");
    screen.change_answers("if (asked.has('date') && !asked.has('menu')) answer.menu_types.pop();");
    screen.run(MINUTE);
    let text = screen.text();
    assert!(text.contains("Sopa") && text.ends_with('|'), "{text}");
    assert_eq!(screen.days_and_types(), json!([5, 3]));
}

#[test]
fn week_is_shown_without_a_day_whose_file_is_damaged() {
    let mut screen = Screen::new(&[]);
    screen.write_week(&one_plate("Sopa"));
    let today = screen.today();
    let mut others = screen.week_of(&today);
    others.retain(|day| *day != today);
    screen.write(&file_of(&others[0]), &json!("cut off"));
    screen.open("aulario=aula1&dias=5");
    let text = screen.text();
    assert!(text.contains("Sopa") && text.ends_with('|'), "{text}");
    assert_eq!(text.matches("No se puede leer").count(), 3, "{text}");

    screen.write_day(&others[0], &one_plate("Lentejas"));
    screen.run(MINUTE);
    let text = screen.text();
    assert!(
        !text.contains("No se puede leer") && text.contains("Lentejas"),
        "{text}"
    );
}
