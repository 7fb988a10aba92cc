//! Names in requests, sessions and files that look like a path elsewhere.

use std::path::Path;

use crate::support::*;

#[test]
fn no_input_leads_to_a_path_outside_of_the_data_and_session_folders() {
    let school = School::new();
    school.log_in("evil", session_of("../../../../etc", ADMIN));
    school.log_in("dots", session_of("..", ADMIN));
    school.write(
        "evil.json",
        json!({"shared_comedor_from": "../../../../etc/passwd"}).to_string(),
    );
    school.write(
        "etc.json",
        json!({"shared_comedor_from": "/etc/passwd"}).to_string(),
    );
    let settings = format!("{}.conf", program());
    let own = [
        "/proc/self/exe",
        "/proc/self/maps",
        "/etc/localtime",
        program(),
        &settings,
    ];
    let folders = [school.data(), school.sessions()];
    let dots = "..%2f..%2f..%2fetc%2fpasswd";
    let plates = json!({"../../x": {"name": "/etc/passwd"}});
    for request in [
        school.get("get_menu").session("evil"),
        school.get("get_menu").session("dots"),
        school.get("get_menu").session("../../etc/passwd"),
        school.get("get_menu").session("%2e%2e%2fsess_admin"),
        school.get("get_menu").aulario(dots),
        school.get("get_menu").aulario("evil"),
        school.post("save_menu").aulario("etc").json(&save("x")),
        school
            .get("get_menu")
            .query("date", dots)
            .query("menu", dots),
        school.get(dots),
        school
            .get("get_menu")
            .set("PATH_INFO", "/../../etc")
            .set("SCRIPT_FILENAME", "/etc/passwd"),
        school.get("get_menu").set("HTTP_COMEDOR_DATA_DIR", "/etc"),
        school
            .post("save_menu")
            .json(&json!({"date": "../x", "menu_type": "basal", "plates": {}})),
        school
            .post("save_menu")
            .json(&json!({"date": DATE, "menu_type": "../x", "plates": plates})),
        school
            .post("add_menu_type")
            .json(&json!({"id": "../../x", "label": "/etc/passwd"})),
    ] {
        let (_, calls) = request.trace(&["-f", "-e", "trace=%file"]);
        for line in calls.lines() {
            let named = line.split('"').nth(1).filter(|path| !path.is_empty());
            let Some(named) = named else { continue };
            let is_own = own.contains(&named);
            // Of the dynamic linker, if the program is not the one that is released.
            let is_library = named.starts_with("/etc/ld.so.") || named.starts_with("/lib/");
            let is_inside = folders
                .iter()
                .any(|folder| Path::new(named).starts_with(folder));
            assert!(
                is_own || is_library || is_inside && !named.contains(".."),
                "{line}"
            );
        }
    }
}
