//! Pages of trusted origins (CORS protocol, Fetch standard).

use super::*;

const TRUSTED: &str = "https://Menus.example:443, http://localhost:8080";
const ORIGIN: &str = "https://menus.example";

fn trusting(request: Cgi) -> Cgi {
    request.set("COMEDOR_TRUSTED_ORIGINS", TRUSTED)
}

/// The headers that CORS adds to an answer.
fn headers(answer: &Answer) -> Vec<(&str, &str)> {
    let headers = answer
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    headers
        .filter(|(name, _)| *name == "Vary" || name.starts_with("Access-Control-"))
        .collect()
}

fn preflight(school: &School) -> Cgi {
    let request = school
        .post("save_menu")
        .method("OPTIONS")
        .unset("HTTP_COOKIE");
    request
        .set("HTTP_ORIGIN", ORIGIN)
        .set("HTTP_ACCESS_CONTROL_REQUEST_METHOD", "POST")
}

#[test]
fn trusted_origin_may_read_every_answer() {
    let school = School::new();
    let save = school.post("save_menu").json(&save("x"));
    let read = school.get("get_menu");
    let expected = [
        ("Vary", "Origin"),
        ("Access-Control-Allow-Origin", ORIGIN),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Expose-Headers", "Retry-After"),
    ];
    for (request, status) in [
        (read.clone(), 200),
        (read.clone().method("HEAD"), 200),
        (save.clone(), 200),
        (save.clone().set("HTTP_SEC_FETCH_SITE", "cross-site"), 200),
        (read.clone().unset("HTTP_COOKIE"), 400),
        (read.clone().method("DELETE"), 400),
        (save.clone().session("teacher"), 403),
        (read.clone().aulario("unknown"), 404),
        (save.clone().set("CONTENT_LENGTH", "9999999"), 413),
        (read.clone().set("COMEDOR_DATA_DIR", "/nowhere"), 500),
    ] {
        let answer = trusting(request).set("HTTP_ORIGIN", ORIGIN).run();
        assert_eq!(answer.status, status, "{}", answer.log);
        assert_eq!(headers(&answer), expected, "{status}");
    }
}

#[test]
fn other_origins_learn_only_that_answers_differ_by_origin() {
    let school = School::new();
    for origin in [
        "https://menus.example.evil.example", "http://menus.example", "null", "*", "",
    ] {
        let answer = trusting(school.get("get_menu"))
            .set("HTTP_ORIGIN", origin)
            .run();
        answer.ok();
        assert_eq!(headers(&answer), [("Vary", "Origin")], "{origin}");
        let answer = trusting(preflight(&school))
            .set("HTTP_ORIGIN", origin)
            .run();
        assert_eq!(
            headers(answer.fails("INVALID_SESSION")),
            [("Vary", "Origin")],
            "{origin}"
        );
    }
    let answer = school.get("get_menu").set("HTTP_ORIGIN", ORIGIN).run();
    answer.ok();
    assert_eq!(headers(&answer), [], "no trusted origins");
    preflight(&school).run().fails("INVALID_SESSION");
}

#[test]
fn preflight_of_a_trusted_origin_is_answered_without_a_session() {
    let school = School::new();
    let request = trusting(preflight(&school).aulario("x/y"));
    // A server may not know the length of a body.
    for request in [request.clone(), request.set("CONTENT_LENGTH", "0")] {
        let answer = request.run();
        assert_eq!(
            (answer.status, answer.body.len(), answer.log.as_str()),
            (204, 0, "")
        );
        assert_eq!(answer.header("Content-Length"), None);
        let expected = [
            ("Vary", "Origin"),
            ("Access-Control-Allow-Origin", ORIGIN),
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Allow-Methods", "GET, POST"),
            ("Access-Control-Allow-Headers", "Content-Type"),
            ("Access-Control-Max-Age", "600"),
        ];
        assert_eq!(headers(&answer), expected);
    }
    assert_eq!(school.files(), School::new().files());
    let no_preflight = trusting(preflight(&school)).unset("HTTP_ACCESS_CONTROL_REQUEST_METHOD");
    no_preflight.clone().run().fails("INVALID_SESSION");
    let answer = no_preflight.session("admin").run();
    assert_eq!(answer.fails("INVALID_ACTION").header("Allow"), Some("POST"));
}
