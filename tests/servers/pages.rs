//! Pages that make ids from long names, as EntreAulas' do: what a page saves the API shows, and the reverse.

use crate::support::site::{Php, Settings, Site, apache, nginx_with_fastcgi};
use crate::support::{Value, json, text_of};

const CENTRE: &str =
    "Colegio de Educación Infantil y Primaria Nuestra Señora de la Asunción de Elda";
const AULARIO: &str = "Aula de Pedagogía Terapéutica y Audición y Lenguaje del primer ciclo";
const SHARING: &str = "Aula que muestra el menú del aula de Pedagogía Terapéutica";
const DATE: &str = "2026-03-04";

impl Site {
    /// Creates an aulario with the page; returns its id.
    #[track_caller]
    fn create(&self, name: &str, shared_comedor_from: &str) -> String {
        let jar = self.path().join("cookies");
        let fields = [
            ("centro", CENTRE),
            ("aulario", name),
            ("shared_comedor_from", shared_comedor_from),
        ];
        let fields = fields.map(|(field, value)| format!("{field}={value}"));
        let fields: Vec<&str> = fields
            .iter()
            .flat_map(|field| ["--data-urlencode", field])
            .collect();
        let url = self.url("create.php");
        let (status, id) =
            self.curl(&[&["-c", jar.to_str().unwrap()], &fields[..], &[&url]].concat());
        assert_eq!(status, 200, "{id}");
        id
    }

    /// The plates of the aulario that the page shows; with a `name`, it saves this plate first.
    #[track_caller]
    fn page(&self, aulario: &str, saved: Option<(&str, &str)>) -> Value {
        let url = self.url(&format!("menu.php?aulario={aulario}&date={DATE}"));
        let (status, page) = match saved {
            None => self.curl(&[&url]),
            Some((plate, name)) => self.curl(&["-d", &format!("plate={plate}&name={name}"), &url]),
        };
        assert_eq!(status, 200, "{page}");
        serde_json::from_str(&page).expect(&page)
    }

    /// The plates of the aulario that the API shows.
    #[track_caller]
    fn plates_of_api(&self, aulario: &str) -> Value {
        let (status, answer) =
            self.curl(&[&self.api(&format!("action=get_menu&aulario={aulario}&date={DATE}"))]);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str::<Value>(&answer).expect(&answer)["menu"]["plates"].take()
    }

    /// The status and code of a save of a plate by the API.
    fn save_by_api(&self, aulario: &str, plate: &str, name: &str) -> (u16, Value) {
        let body = json!({"date": DATE, "menu_type": "basal", "plates": {plate: {"name": name}}});
        let url = self.api(&format!("action=save_menu&aulario={aulario}"));
        let json = "Content-Type: application/json";
        let (status, answer) = self.curl(&["-H", json, "-d", &body.to_string(), &url]);
        (
            status,
            serde_json::from_str::<Value>(&answer).expect(&answer)["code"].take(),
        )
    }
}

#[test]
fn pages_and_the_api_show_what_the_other_has_saved_in_aularios_and_centres_with_long_names() {
    for site in [
        apache("prefork", Php::Module, "cgi", Settings::File),
        nginx_with_fastcgi(),
    ] {
        for page in ["create.php", "menu.php"] {
            let text = text_of(format!("tests/fixtures/site/{page}"));
            site.write(&format!("docroot/{page}"), &text);
        }
        let aulario = site.create(AULARIO, "");
        let sharing = site.create(SHARING, &aulario);
        assert_eq!((aulario.len(), CENTRE.chars().count()), (68, 78));
        for round in 0..3 {
            let by_api = format!("API {round}");
            let by_page = format!("page {round}");
            assert_eq!(
                site.save_by_api(&aulario, "primero", &by_api),
                (200, Value::Null)
            );
            site.page(&aulario, Some(("segundo", &by_page)));
            site.page(&sharing, Some(("postre", &by_page)));
            let forbidden = (403, "FORBIDDEN".into());
            assert_eq!(site.save_by_api(&sharing, "primero", "lost"), forbidden);
            let plates = json!({
                "primero": {"name": by_api, "pictogram": ""},
                "segundo": {"name": by_page, "pictogram": "fruta.png"},
                "postre": {"name": by_page, "pictogram": "fruta.png"},
            });
            for id in [&aulario, &sharing] {
                assert_eq!(site.page(id, None), plates, "{id}");
                assert_eq!(site.plates_of_api(id), plates, "{id}");
            }
        }
    }
}
