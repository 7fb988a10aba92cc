//! The pictures of the page in README and guides.

use super::*;
use crate::pictures;

/// The pictures of the page in the guides.
const PICTURES: [(&str, &str); 2] = [("en", "docs/setup-page.png"), ("es", "docs/es/pagina.png")];
/// Writes the names of a school over those of this test, and over versions.
const RENAME: &str = r#"
    const names = [["FOLDER/docroot", "/var/www/html"], ["FOLDER/data", "/DATA/entreaulas"],
        ["FOLDER/sessions", "/var/lib/php/sessions"], [/^Apache\/.*/, "Apache/2.4 (Debian)"], [/ \(PHP [^)]*\)$/, ""]];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        for (const [from, to] of names) texts.currentNode.data = texts.currentNode.data.replace(from, to);
    }
    document.body.innerText + document.querySelector("style").textContent
"#;

#[test]
fn pictures_in_the_guides_show_the_page_as_it_is() {
    for (language, file) in PICTURES {
        let mut setup = Setup::new(Server::Apache, language);
        setup.insert("date_default_timezone_set('Europe/Madrid'); umask(0022);");
        setup.name_service("entreaulas");
        setup.move_into("entreaulas/");
        setup.serve(false);
        setup.open();
        setup.enable();
        setup.press_try();
        let folder = setup.site.path().display().to_string();
        let text = setup.browser.text(&RENAME.replace("FOLDER", &folder));
        assert!(!text.contains(&folder), "{text}");
        pictures::shows(&mut setup.browser, file, (700, "out"), &text);
    }
}
