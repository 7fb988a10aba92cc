//! Where the data files are.

use std::path::{Path, PathBuf};

use crate::model::{Date, Id};

/// The file of an aulario's menu types.
pub const TYPES: &str = "Comedor-MenuTypes.json";
/// The file of a day's menus.
pub const DAY: &str = "_datos.json";
/// The file that writers lock.
pub const LOCK: &str = ".comedor.lock";

/// `names` below `folder`, in a buffer of the usual length, which does not grow with each of them.
pub fn below(folder: &Path, names: &[&str]) -> PathBuf {
    let mut path = PathBuf::with_capacity(256);
    path.push(folder);
    path.extend(names);
    path
}

const CENTRES: &str = "Centros";
const AULARIOS: &str = "Aularios";

/// The folder of the centres.
pub fn centres(data_dir: &Path) -> PathBuf {
    data_dir.join(CENTRES)
}

/// The folder of the aularios of the centre in `folder`.
pub fn aularios(folder: &Path) -> PathBuf {
    folder.join(AULARIOS)
}

/// The folder of the aularios of a centre.
pub fn aularios_of(data_dir: &Path, centre: &Id) -> PathBuf {
    below(data_dir, &[CENTRES, centre.as_str(), AULARIOS])
}

/// The configuration of an aulario in the folder `aularios`.
pub fn configuration(aularios: &Path, id: &Id) -> PathBuf {
    below(aularios, &[&[id.as_str(), CONFIGURATION].concat()])
}

/// The same for a name that may not be an id. `None` if it would be in another folder.
pub fn configuration_named(aularios: &Path, name: &str) -> Option<PathBuf> {
    let is_segment = !name.contains(['/', '\0']);
    is_segment.then(|| below(aularios, &[&[name, CONFIGURATION].concat()]))
}

/// The id in the name of a configuration, which may be invalid.
pub fn configured(file: &str) -> Option<&str> {
    file.strip_suffix(CONFIGURATION)
}

const CONFIGURATION: &str = ".json";

/// The folder in an aulario's folder that has a folder for each month.
pub const MONTHS: &str = "Comedor";

/// The file of a day below an aulario's folder.
pub fn day(date: &Date) -> [&str; 4] {
    [MONTHS, date.month(), date.day(), DAY]
}

/// The day that has its file in the folder `day` of the folder `month`.
pub fn date(month: &str, day: &str) -> Option<Date> {
    Date::parse(&format!("{month}-{day}")).ok()
}

/// The folder that has the file or folder at `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The temporary name of a file.
pub fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
