//! Reading and saving menus.

use super::*;

#[test]
fn an_aulario_without_files_has_three_types_and_empty_menus_and_a_read_creates_nothing() {
    let school = School::new();
    let before = school.files();
    let types = json!([
        {"id": "basal", "label": "Menú basal", "color": "#0d6efd"},
        {"id": "vegetariano", "label": "Menú vegetariano", "color": "#198754"},
        {"id": "alergias", "label": "Menú alergias", "color": "#dc3545"},
    ]);
    assert_eq!(
        school.get("get_menu_types").run().ok(),
        json!({"success": true, "menu_types": types})
    );
    assert_eq!(
        school.get("get_menu").query("date", DATE).run().ok(),
        json!({
            "success": true, "date": DATE, "menu_type": "basal", "menu_types": types,
            "menu": {"plates": plates("", "", "")},
        })
    );
    assert_eq!(school.files(), before);
}

#[test]
fn a_saved_menu_is_stored_with_three_plates_and_read_back_by_date_and_type() {
    let school = School::new();
    let saved = school.save(json!({
        "date": DATE, "menu_type": "alergias",
        "plates": {"primero": {"name": " Sopa\n"}, "extra-1": {"name": "Pan", "pictogram": "x.png"}},
    }));
    let mut expected = plates("Sopa", "", "");
    expected["extra-1"] = plate("Pan");
    assert_eq!(saved["menu"], json!({"plates": expected}));
    assert_eq!(
        serde_json::from_str::<Value>(&school.read(DAY)).unwrap(),
        json!({"date": DATE, "menus": {"alergias": {"plates": expected}}})
    );
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
    assert_eq!(school.menu("basal")["menu"]["plates"], plates("", "", ""));
    let other_day = school
        .get("get_menu")
        .query("date", "2026-11-19")
        .query("menu", "alergias");
    assert_eq!(other_day.run().ok()["menu"]["plates"], plates("", "", ""));

    // A later save changes only the names in its body.
    school.save(json!({
        "date": DATE, "menu_type": "alergias",
        "plates": {"segundo": {"name": "Pollo"}, "primero": {}, "postre": null, "extra-1": {"name": null},
                   "never": {}, "neither": []},
    }));
    expected["segundo"] = plate("Pollo");
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
    // An empty name replaces a name.
    school.save(json!({
        "date": DATE, "menu_type": "alergias", "plates": {"segundo": {"name": "  "}},
    }));
    expected["segundo"] = plate("");
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
}

#[test]
fn the_default_date_is_today_but_an_empty_date_saves_nothing() {
    let school = School::new();
    let before = today(None);
    let body = json!({"menu_type": "basal", "plates": {"primero": {"name": "Hoy"}}});
    let saved = school.save(body)["date"].clone();
    for empty in ["", " ", "\t"] {
        let body =
            json!({"date": empty, "menu_type": "basal", "plates": {"primero": {"name": "X"}}});
        school
            .post("save_menu")
            .json(&body)
            .run()
            .fails("INVALID_FORMAT");
    }
    let form = "date=&menu_type=basal&plates[primero][name]=X";
    school
        .post("save_menu")
        .body(FORM, form)
        .run()
        .fails("INVALID_FORMAT");
    school.save(json!({"date": null, "menu_type": "basal", "plates": {}}));
    let read = school.get("get_menu").query("date", "").run().ok();
    assert!(
        [before.clone(), today(None)]
            .map(Value::from)
            .contains(&saved),
        "{saved}"
    );
    if before == today(None) {
        assert_eq!(read["date"], before);
        assert_eq!(read["menu"]["plates"], plates("Hoy", "", ""));
    }
}

#[test]
fn only_calendar_dates_are_valid() {
    let school = School::new();
    for date in ["2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"] {
        assert_eq!(
            school.get("get_menu").query("date", date).run().ok()["date"],
            date
        );
    }
    for date in [
        "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "2026-1-1",
        "2026-01-011", "+026-01-01", "2026/01/01", "%202026-01-01", "2026-01-01%0A", "0000-01-01",
        "%2B10000-01-01", "10000-01-01", "%2B2026-01-01", "today", "٢٠٢٦-٠١-٠١",
    ] {
        let answer = school
            .get("get_menu")
            .query("date", date)
            .query("menu", "no")
            .run();
        println!("{date}");
        answer.fails("INVALID_FORMAT");
    }
}

#[test]
fn a_shared_aulario_shows_the_menus_of_its_source_and_rejects_writes() {
    let school = School::with_menu("A1");
    let name = |aulario: &str| {
        let read = school.get("get_menu").query("date", DATE).aulario(aulario);
        read.run().ok()["menu"]["plates"]["primero"]["name"].clone()
    };
    assert_eq!(name("compartida"), "A1");
    assert_eq!(name("aula2"), "");
    let write = school
        .post("delete_menu_type")
        .aulario("compartida")
        .json(&json!({"id": "basal"}));
    write.run().fails("FORBIDDEN");
    assert!(!school.path("compartida").exists());

    // A source that is not another aulario of the same centre is ignored.
    for (index, source) in [
        r#""""#, r#""none""#, r#"" aula1 ""#, r#""x/aula1""#, r#""missing""#,
        r#""../centro1/Aularios/aula1""#, "5", "null", r#"["aula1"]"#,
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("own{index}");
        school.write(
            &format!("{id}.json"),
            format!(r#"{{"shared_comedor_from":{source}}}"#),
        );
        assert_eq!(name(&id), "", "{source}");
        let body = save(&id);
        school.post("save_menu").aulario(&id).json(&body).run().ok();
        assert_eq!(name(&id), id);
    }
    // Only one hop is followed, and not to the aulario itself.
    school.write("chain.json", r#"{"shared_comedor_from":"compartida"}"#);
    school.write("self.json", r#"{"shared_comedor_from":"self"}"#);
    assert_eq!(name("chain"), "");
    let body = json!({"id": "basal"});
    school
        .post("delete_menu_type")
        .aulario("self")
        .json(&body)
        .run()
        .ok();
    school
        .post("delete_menu_type")
        .aulario("chain")
        .json(&body)
        .run()
        .fails("FORBIDDEN");
}
