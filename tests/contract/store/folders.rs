//! The folder that is read and written: through a symbolic link, or of the aulario whose menus are shown.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::*;

/// A symbolic link in the last part of a path is rejected. A folder may be a symbolic link, for
/// example to another disk.
#[test]
fn a_folder_may_be_a_symbolic_link() {
    let school = School::new();
    let other_disk = tempfile::tempdir().unwrap();
    symlink(other_disk.path(), school.path("aula1")).unwrap();
    school.save(save("x"));
    assert!(
        other_disk
            .path()
            .join("Comedor/2026-11/20/_datos.json")
            .is_file()
    );
    assert_eq!(
        school.menu("basal")["menu"]["plates"]["primero"]["name"],
        "x"
    );
}

/// To a disk that is not mounted, for example.
#[test]
fn a_folder_that_is_a_link_to_nothing_is_an_error_for_reads_and_writes() {
    let month = "aula1/Comedor/2026-11";
    for folder in ["", "aula1", "aula1/Comedor", month, &format!("{month}/20")] {
        let school = School::with_menu("x");
        let path = school.path(folder);
        fs::remove_dir_all(&path).unwrap();
        let path = path.to_str().unwrap().trim_end_matches('/');
        symlink("/nonexistent/disk", path).unwrap();
        for request in [
            school.get("get_menu").query("date", DATE),
            school.post("save_menu").json(&save("y")),
        ] {
            let log = request.run().fails("INTERNAL_ERROR").log.clone();
            let cause = format!("{path}: follow the symbolic link: No such file or directory");
            assert!(log.contains(&cause), "{log}");
        }
    }
}

#[test]
fn read_that_fails_at_a_system_call_shows_no_menu_but_that_of_the_source() {
    let school = School::in_memory();
    school.save(save("of the source"));
    let own = school.read(DAY).replace("of the source", "of its own");
    school.write(&DAY.replace("aula1", "compartida"), own);
    let request = school.get("get_menu").aulario("compartida");
    let request = request.query("date", DATE);
    let mut call = 0;
    loop {
        let (mut program, mut made) = (request.trace_calls(), 0);
        while let Some(stop) = program.next() {
            if stop.result.is_none() {
                if made == call {
                    program.skip(-i64::from(libc::EIO));
                }
                made += 1;
            }
        }
        let stdout = program.output().stdout;
        let answer = String::from_utf8_lossy(&stdout);
        assert!(!answer.contains("of its own"), "call {call}: {answer}");
        let is_read = answer.contains(r#""success":true"#);
        assert!(!is_read || answer.contains("of the source"), "{answer}");
        if call >= made {
            assert!(is_read, "{answer}");
            break;
        }
        call += 1;
    }
}

/// The pages show the menus of the source, so those of the aulario itself must not be shown or changed.
#[test]
fn a_source_that_exists_and_cannot_be_used_is_an_error_for_reads_and_writes() {
    let school = School::new();
    school.write(".oculta.json", "{}");
    school.write("Aula de Música.json", "{}");
    symlink("aula1.json", school.path("enlace.json")).unwrap();
    symlink("nothing", school.path("roto.json")).unwrap();
    fs::create_dir(school.path("carpeta.json")).unwrap();
    fs::write(school.data().join("Centros/centro1/fuera.json"), "{}").unwrap();
    let requests = |source: &str| {
        school.write(
            "aula2.json",
            json!({"shared_comedor_from": source}).to_string(),
        );
        [
            school.get("get_menu_types").aulario("aula2"),
            school.get("get_menu").aulario("aula2"),
            school.post("save_menu").aulario("aula2").json(&save("x")),
        ]
    };
    for source in [".oculta", "Aula de Música", "enlace", "roto", "carpeta"] {
        for request in requests(source) {
            let log = request.run().fails("INTERNAL_ERROR").log.clone();
            assert!(
                log.contains("/Aularios/aula2.json: shared_comedor_from names"),
                "{log}"
            );
            assert!(
                log.contains(&format!("/Aularios/{source}.json, wh")),
                "{log}"
            );
        }
        assert!(!school.path("aula2").exists(), "{source}");
    }
    // Nothing outside of the folder is looked up.
    let outside = school.data().join("Centros/centro1/fuera");
    let long = "x".repeat(300);
    for source in [
        "../fuera",
        "aula1/../../fuera",
        outside.to_str().unwrap(),
        "aula1\0",
        "otra",
        &long,
    ] {
        for request in requests(source) {
            request.run().ok();
        }
    }
}
