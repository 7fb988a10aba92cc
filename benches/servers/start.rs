//! The time that a process takes without a web server.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use crate::client::{DATE, MENU};
use crate::contenders::{
    BASELINE_CGI, COMEDOR, FLOOR, FLOOR_MUSL, PHP_CGI, floor, is_floor, php_cgi, php_script,
    sessions_of_php_cgi,
};
use crate::load::Figures;
use crate::support::{School, Value, json};

/// Starts each of them `rounds` times in turn, with the variables of a server other than Apache.
pub fn measure(rounds: usize) -> Result<Vec<(&'static str, Figures)>, String> {
    let school = School::new();
    let document_root = school.data().with_file_name("docroot");
    fs::create_dir(&document_root).unwrap();
    let plates: Value = MENU
        .iter()
        .map(|(plate, name)| (plate.to_string(), json!({"name": name})))
        .collect();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": plates}));
    let read = school
        .get("get_menu")
        .query("date", DATE)
        .query("menu", "basal");
    let expected = read.run().ok();

    let mut contenders = Vec::new();
    for (name, compiler) in [(FLOOR, "cc"), (FLOOR_MUSL, "musl-gcc")] {
        let nothing = school.data().with_file_name(compiler);
        floor("floor", compiler, expected.to_string().len(), &nothing)?;
        contenders.push((name, read.clone().program(&nothing)));
    }
    contenders.push((COMEDOR, read.clone()));
    if let Some(baseline) = env::var_os("COMEDOR_BASELINE") {
        contenders.push((BASELINE_CGI, read.clone().program(baseline.as_ref())));
    }
    if let Ok(php) = php_cgi() {
        sessions_of_php_cgi(&document_root, &school.sessions());
        let php = read.program(&php).set("REDIRECT_STATUS", "200");
        let php = php.set("SCRIPT_FILENAME", php_script(&document_root));
        contenders.push((PHP_CGI, php.set("DOCUMENT_ROOT", document_root)));
    }
    let mut figures: Vec<_> = contenders
        .iter()
        .map(|(name, _)| (*name, Figures::default()))
        .collect();
    for _ in 0..rounds {
        for ((name, cgi), (_, figures)) in contenders.iter().zip(&mut figures) {
            let mut command = cgi.command();
            let started = Instant::now();
            let output = command
                .stdin(Stdio::null())
                .output()
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            figures.times.push(started.elapsed());
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
            let text = String::from_utf8(output.stdout).unwrap();
            let (_, body) = text.split_once("\r\n\r\n").expect("headers");
            if !is_floor(name) {
                assert_eq!(
                    serde_json::from_str::<Value>(body).expect("JSON"),
                    expected,
                    "{name}"
                );
            }
        }
    }
    Ok(figures)
}

/// The median time of a flush of a small file in the temporary folder, in milliseconds.
pub fn flush() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut figures = Figures::default();
    for number in 0..100 {
        let mut file = File::create(folder.path().join(number.to_string())).unwrap();
        file.write_all(b"a menu").unwrap();
        let started = Instant::now();
        file.sync_all().unwrap();
        figures.times.push(started.elapsed());
    }
    figures.quantile(0.5)
}
