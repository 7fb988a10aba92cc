//! The picture of the screen in the READMEs.

use super::*;
use crate::pictures;

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
