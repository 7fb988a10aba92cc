//! The kinds of write that differ in the files and folders that exist before.

use std::fs;

use super::{Cgi, DATE, DAY, School, TYPES, Value, json, save};

/// A write to `aula1`.
pub struct Write {
    pub kind: &'static str,
    pub action: &'static str,
    body: Value,
    /// The file that it creates or replaces
    pub file: &'static str,
    /// What exists before it, and is on the disk
    flushed: &'static [(&'static str, &'static str)],
    /// What a PHP page or a killed writer has left, without a flush; paths that end with `/` are folders
    unflushed: &'static [&'static str],
}

const TEMPORARY: &str = "aula1/Comedor/2026-11/20/._datos.json.tmp";
const OLD_TYPES: (&str, &str) = (
    TYPES,
    r#"[{"id":"basal","label":"B"},{"id":"alergias","label":"A"}]"#,
);
/// With the spaces of PHP: a page that adds a plate, and none of them, can write as many bytes.
const OLD_DAY: (&str, &str) = (
    DAY,
    r#"{
    "date": "2026-11-20",
    "menus": {
        "basal": {"plates": {"primero": {"name": "old", "pictogram": "p.png"}}},
        "alergias": {"plates": {"primero": {"name": "other", "pictogram": ""}}}
    }
}"#,
);
const DAY_BEFORE: (&str, &str) = (
    "aula1/Comedor/2026-11/19/_datos.json",
    r#"{"date":"2026-11-19","menus":{"basal":{"plates":{"primero":{"name":"before","pictogram":""}}}}}"#,
);
const MONTH_BEFORE: (&str, &str) = ("aula1/Comedor/2026-10/20/_datos.json", r#"{"menus":[]}"#);
const FOLDERS: &[&str] = &[
    "aula1/", "aula1/Comedor/", "aula1/Comedor/2026-11/", "aula1/Comedor/2026-11/20/",
];

pub fn writes() -> [Write; 9] {
    let of_day = |kind, flushed, unflushed| Write {
        kind,
        action: "save_menu",
        body: save("new"),
        file: DAY,
        flushed,
        unflushed,
    };
    let of_types = |kind, action, body, flushed| Write {
        kind,
        action,
        body,
        file: TYPES,
        flushed,
        unflushed: &[],
    };
    let added = || json!({"id": "new", "label": "N"});
    [
        of_day("first save of an aulario", &[], &[]),
        of_day("first save of a month", &[OLD_TYPES, MONTH_BEFORE], &[]),
        of_day("first save of a day", &[OLD_TYPES, DAY_BEFORE], &[]),
        of_day("a day replaced", &[OLD_TYPES, DAY_BEFORE, OLD_DAY], &[]),
        of_day(
            "a day replaced, beside the file of a killed writer",
            &[OLD_DAY],
            &[TEMPORARY],
        ),
        of_day(
            "first save of an aulario, in folders that PHP made",
            &[],
            FOLDERS,
        ),
        of_types(
            "first change of the types",
            "add_menu_type",
            added(),
            &[OLD_DAY],
        ),
        of_types(
            "types replaced",
            "add_menu_type",
            added(),
            &[OLD_TYPES, OLD_DAY],
        ),
        of_types(
            "a type deleted",
            "delete_menu_type",
            json!({"id": "basal"}),
            &[OLD_TYPES, OLD_DAY],
        ),
    ]
}

impl Write {
    /// A school before this write, with only what is on the disk.
    pub fn flushed_school(&self) -> School {
        let school = School::in_memory();
        self.write_flushed(&school);
        school.write("aula2/Comedor/2026-11/20/_datos.json", OLD_DAY.1);
        school
    }

    fn write_flushed(&self, school: &School) {
        for (path, content) in self.flushed {
            school.write(path, content);
        }
    }

    /// Makes `aula1` as it was before this write.
    pub fn reset(&self, school: &School) {
        _ = fs::remove_dir_all(school.path("aula1"));
        self.write_flushed(school);
        self.add_unflushed(school, || {});
    }

    /// Adds what was not flushed, one file or folder at a time, and calls `each` after each.
    pub fn add_unflushed(&self, school: &School, mut each: impl FnMut()) {
        for path in self.unflushed {
            match path.strip_suffix('/') {
                Some(folder) => fs::create_dir(school.path(folder)).unwrap(),
                None => school.write(path, "{\"date\":\"2026-11-20\",\"me"),
            }
            each();
        }
    }

    /// A school before this write.
    pub fn school(&self) -> School {
        let school = self.flushed_school();
        self.add_unflushed(&school, || {});
        school
    }

    pub fn request(&self, school: &School) -> Cgi {
        school.post(self.action).json(&self.body)
    }

    /// A read of what it changes.
    pub fn read(&self, school: &School) -> Cgi {
        let read = school.get("get_menu").query("date", DATE);
        if self.file == DAY {
            read.query("menu", "basal")
        } else {
            read
        }
    }

    /// Another write to the same file.
    pub fn next(&self, school: &School) -> Cgi {
        let (action, body) = match self.file {
            TYPES => (
                "rename_menu_type",
                json!({"id": "alergias", "label": "next"}),
            ),
            _ => {
                let plates = json!({"segundo": {"name": "next"}});
                (
                    "save_menu",
                    json!({"date": DATE, "menu_type": "basal", "plates": plates}),
                )
            }
        };
        school.post(action).json(&body)
    }

    pub fn content(&self, school: &School) -> Option<String> {
        fs::read_to_string(school.path(self.file)).ok()
    }

    /// The content of the file before and after.
    pub fn old_and_new(&self) -> (Option<String>, Option<String>) {
        let school = self.school();
        let old = self.content(&school);
        self.request(&school).run().ok();
        (old, self.content(&school))
    }
}
