//! Where the data files are.

use std::path::{Path, PathBuf};

use crate::model::{Date, Id};

/// The file of an aulario's menu types.
pub const TYPES: &str = "Comedor-MenuTypes.json";
/// The file of a day's menus.
pub const DAY: &str = "_datos.json";
/// The file that writers lock.
pub const LOCK: &str = ".comedor.lock";

/// The folder of the centres.
pub fn centres(data_dir: &Path) -> PathBuf {
    data_dir.join("Centros")
}

/// The folder of the aularios of the centre in `folder`.
pub fn aularios(folder: &Path) -> PathBuf {
    folder.join("Aularios")
}

/// The configuration of an aulario in the folder `aularios`.
pub fn configuration(aularios: &Path, id: &Id) -> PathBuf {
    aularios.join([id.as_str(), CONFIGURATION].concat())
}

/// The id in the name of a configuration, which may be invalid.
pub fn configured(file: &str) -> Option<&str> {
    file.strip_suffix(CONFIGURATION)
}

const CONFIGURATION: &str = ".json";

/// The folder in an aulario's folder that has a folder for each month.
pub const MONTHS: &str = "Comedor";

/// The folders between an aulario's folder and the file of a day.
pub fn day_folders(date: &Date) -> [&str; 3] {
    [MONTHS, date.month(), date.day()]
}

/// The day that has its file in the folder `day` of the folder `month`.
pub fn date(month: &str, day: &str) -> Option<Date> {
    Date::parse(&format!("{month}-{day}")).ok()
}

/// The temporary name of a file.
pub fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{TEMPORARY}"))
}

/// Whether a name is temporary.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

const TEMPORARY: &str = ".tmp";
