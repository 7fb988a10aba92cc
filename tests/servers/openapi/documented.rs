//! The commands of README and docs/api.md, and the clients in JavaScript and PHP.

use super::*;
use crate::LIGHTTPD;
use crate::support::site::{Settings, Site, lighttpd};

/// The text of a file of the repository, for the server at `url`, which has the application at its root.
fn text_for(url: &str, file: &str) -> String {
    let mut text = text_of(file);
    for application in [
        "https://school.example/entreaulas", "https://school.example",
    ] {
        text = text.replace(application, url);
    }
    text
}

/// A client, which does nothing by itself, and the use that its last comment shows.
fn client_and_use(url: &str, file: &str) -> (String, String) {
    let text = text_for(url, file);
    let (client, comment) = text.split_once("\n/* Its use").expect(file);
    let (_, used) = comment.split_once(":\n").expect(file);
    (
        client.to_owned(),
        used.split_once("*/").expect(file).0.to_owned(),
    )
}

/// A site and its address.
fn site() -> (Site, String) {
    let site = lighttpd(LIGHTTPD, "enable", Settings::File);
    let url = site.url("").trim_end_matches('/').to_owned();
    (site, url)
}

/// The answers, one a line.
fn answers(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Runs the commands of the document's blocks that show answers, and gives these.
fn run_curl_lines(document: &str) -> Vec<Value> {
    let (_site, url) = site();
    let text = text_for(&url, document);
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let blocks: String = blocks.filter(|block| block.contains("\n# {")).collect();
    // A long answer continues on lines that start with more spaces.
    let commands = blocks.replace("\n#  ", "");
    let shown: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    // The commands of README read the session; before those of docs/api.md, a sentence does.
    let script = format!(
        "session=admin
        exec <<< admin
        curl() {{ command curl \"$@\" && echo; }}
        {commands}"
    );
    let got = run("bash", &["-euc", &script]);
    assert_eq!(got.lines().collect::<Vec<_>>(), shown, "{document}");
    answers(&got)
}

#[test]
fn documented_commands_of_curl_and_clients_that_repeat_a_busy_request_get_the_documented_answers() {
    assert_eq!(run_curl_lines("README.md").len(), 2);
    let shown = run_curl_lines("docs/api.md");
    assert_eq!(shown.len(), 7);
    // They read, save, and delete a type that does not exist.
    let shown = [&shown[..3], &shown[6..]].concat();

    let (_site, url) = site();
    let (js, used) = client_and_use(&url, "examples/client.js");

    let page = format!(
        "const browser = fetch;
        let isBusy = true;
        globalThis.fetch = async (url, options) => {{
            if (isBusy) {{
                isBusy = false;
                return new Response('{BUSY}', {{ status: 503, headers: {{ 'Retry-After': '1' }} }});
            }}
            const headers = {{ ...options?.headers, Cookie: 'PHPSESSID=admin' }};
            const response = await browser('{url}' + url.replace('/entreaulas', ''), {{ ...options, headers }});
            console.log(await response.clone().text());
            return response;
        }};
        {js}
        (async () => {{ {used} }})();"
    );
    // A classic script, as `<script src>` without `type=module`.
    let js = run("node", &["--input-type=commonjs", "--eval", &page]);
    assert_eq!(answers(&js), shown);

    let (site, url) = site();
    let (php, used) = client_and_use(&url, "examples/client.php");
    let php = php.strip_prefix("<?php\n").unwrap();

    let page = format!(
        "namespace page;
        session_id('admin');
        session_start(['save_path' => '{}/sessions']);
        function file_get_contents(...$arguments) {{
            static $isBusy = true;
            if ($isBusy) {{
                $isBusy = false;
                return '{BUSY}';
            }}
            echo $answer = \\file_get_contents(...$arguments), \"\\n\";
            return $answer;
        }}
        {php}
        {used}",
        site.path().display()
    );
    let php = run("php", &["-d", "display_errors=stderr", "-r", &page]);
    assert_eq!(answers(&php), shown);
}
