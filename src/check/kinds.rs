//! The kinds of findings: for each its code and its level, which stay the same in every version.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Requests will fail
    Error,
    Warning,
    Hint,
    Ok,
}

impl Level {
    /// All levels, the worst first.
    pub const ALL: [Level; 4] = [Level::Error, Level::Warning, Level::Hint, Level::Ok];

    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Hint => "hint",
            Level::Ok => "ok",
        }
    }

    /// The colour on a terminal (ECMA-48, SGR).
    pub fn color(self) -> u8 {
        match self {
            Level::Error => 31,
            Level::Warning => 33,
            Level::Hint => 36,
            Level::Ok => 32,
        }
    }
}

/// Defines the kinds, and the table of all.
macro_rules! kinds {
    ($($kind:ident: $level:ident $code:literal, $meaning:literal;)*) => {
        /// A kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Kind { $(#[doc = $meaning] $kind),* }

        impl Kind {
            pub fn level(self) -> Level {
                match self { $(Kind::$kind => Level::$level),* }
            }

            pub fn code(self) -> &'static str {
                match self { $(Kind::$kind => $code),* }
            }
        }

        /// Code, level and meaning of every kind, as the manual page lists them
        #[cfg(test)]
        const TABLE: &[(&str, Level, &str)] = &[$(($code, Level::$level, $meaning)),*];
    };
}

kinds! {
    SettingsInvalid: Error "settings-invalid", "A setting, or its file, cannot be used; every request fails.";
    TodayUnknown: Error "today-unknown", "The time zone cannot be used; requests without a date fail.";
    ScriptMissing: Error "script-missing", "The script in whose place comedor answers does not exist.";
    FolderUnreachable: Error "folder-unreachable", "The user cannot enter a folder of the settings, or one above it.";
    FolderClosed: Error "folder-closed", "The user cannot enter a folder of the data, or create files there.";
    ReadOnly: Error "read-only", "The file system is read-only for this process.";
    DiskFull: Error "disk-full", "The file system has no space, or no room for another file.";
    RedisFails: Error "redis-fails", "The Redis server of the sessions does not answer as needed.";
    CapabilitiesMissing: Error "capabilities-missing", "Root lacks capabilities to save files of other users.";
    FileDamaged: Error "file-damaged", "A data file does not have the expected content.";
    FileUnreadable: Error "file-unreadable", "A data file cannot be read.";
    LockUnusable: Error "lock-unusable", "The lock file of an aulario is not a regular file.";
    NotWritable: Error "not-writable", "The user cannot write what a save in an aulario needs.";
    SessionUnusable: Error "session-unusable", "Requests with the session fail.";
    CentreUnknown: Error "centre-unknown", "The centre of the session has no folder.";
    NoAnswer: Error "no-answer", "A path did not answer in time; what comes after it was not checked.";
    CheckFailed: Error "check-failed", "The check could not run.";
    Root: Warning "root", "Checked as root, and the data belongs to another user.";
    PasswordReadable: Warning "password-readable", "Every user can read the password of Redis.";
    ScriptNotChecked: Warning "script-not-checked", "This process cannot look at the script.";
    SetupPageLeft: Warning "setup-page-left", "The set-up page is still beside the script.";
    SessionsExposed: Warning "sessions-exposed", "Every user can replace session files, or list their ids.";
    FileSystemVolatile: Warning "file-system-volatile", "A restart deletes what the file system holds.";
    FileSystemUntested: Warning "file-system-untested", "The file system is of a kind that may lose changes.";
    FolderNotFlushed: Warning "folder-not-flushed", "A power cut can undo saves in a folder.";
    IdInvalid: Warning "id-invalid", "No request can use a file or folder, because of its name.";
    AularioCopied: Warning "aulario-copied", "Syncthing's copy of a configuration counts as an aulario.";
    SharingIgnored: Warning "sharing-ignored", "The key shared_comedor_from has another effect than it says.";
    FileEmpty: Warning "file-empty", "A data file is empty, as after an interrupted save.";
    NotListed: Warning "not-listed", "The user cannot list a folder, so it was not checked.";
    FileNotChecked: Warning "file-not-checked", "A file is too large to be checked.";
    EntriesNotChecked: Warning "entries-not-checked", "A folder has too many entries to check them all.";
    DataNotChecked: Warning "data-not-checked", "A part of the data was not checked, because of time or too many errors.";
    NotShown: Warning "not-shown", "Too many findings: some were dropped.";
    PermissionMissing: Warning "permission-missing", "The session lacks a permission that reading needs.";
    NoAularios: Warning "no-aularios", "The session has no access to any aulario.";
    RootOwnsData: Hint "root-owns-data", "Checked as root, to whom the data belongs.";
    NoSettings: Hint "no-settings", "Nothing is set, so every setting has its default.";
    ServiceDefault: Hint "service-default", "The service is the default, and the data folder has another name.";
    ScriptChanged: Hint "script-changed", "The script was changed after the settings, as by an update of the application.";
    FileSystemUnproven: Hint "file-system-unproven", "The file system was not tested with power cuts, or has limits.";
    UmaskDiffers: Hint "umask-differs", "New files get another mode than most saved days have.";
    AularioUnused: Hint "aulario-unused", "A folder of an aulario without configuration file.";
    DayNameInvalid: Hint "day-name-invalid", "A folder among the days is not one of a day.";
    TypesDeleted: Hint "types-deleted", "Saved menus of types that were deleted.";
    ReadsOnly: Hint "reads-only", "The session lacks the permission to change menus.";
    NotChecked: Hint "not-checked", "What this check does not look at.";
    User: Ok "user", "The user of this process.";
    Setting: Ok "setting", "A setting, and where it was set.";
    Today: Ok "today", "The date of today.";
    FileSystem: Ok "file-system", "The kind of file system.";
    Redis: Ok "redis", "The Redis server answers.";
    Data: Ok "data", "How much of the data was checked.";
    Session: Ok "session", "What the session may do.";
}

#[cfg(test)]
mod tests {
    use super::{Level, TABLE};

    #[test]
    fn the_manual_page_lists_every_kind() {
        let row = |(code, level, meaning): &(&str, Level, &str)| {
            format!(".It Li {code} Pq {}\n{meaning}\n", level.name())
        };
        let table: String = TABLE.iter().map(row).collect();
        let manual = include_str!("../../packaging/man/comedor.8");
        let (_, section) = manual.split_once(".Sh FINDINGS\n").unwrap();
        let (_, listed) = section.split_once(".Bl -tag -width Ds\n").unwrap();
        assert_eq!(listed.split(".El\n").next(), Some(&*table));
    }
}
