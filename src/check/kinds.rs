//! The kinds of findings: for each its code, which stays the same in every version, and its level.

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
    SettingsInvalid: Error "settings-invalid", "a setting, or its file, cannot be used; every request fails";
    TodayUnknown: Error "today-unknown", "the time zone cannot be used; requests without a date fail";
    FolderUnreachable: Error "folder-unreachable", "the user cannot enter a folder of the settings, or one above it";
    FolderClosed: Error "folder-closed", "the user cannot enter a folder of the data, or create files there";
    ReadOnly: Error "read-only", "the file system is read-only for this process";
    DiskFull: Error "disk-full", "the file system has no space, or no room for another file";
    RedisFails: Error "redis-fails", "the Redis server of the sessions does not answer as needed";
    CapabilitiesMissing: Error "capabilities-missing", "root lacks capabilities to save files of other users";
    FileDamaged: Error "file-damaged", "a data file does not have the expected content";
    FileUnreadable: Error "file-unreadable", "a data file cannot be read";
    LockUnusable: Error "lock-unusable", "the lock file of an aulario is not a regular file";
    NotWritable: Error "not-writable", "the user cannot write what a save in an aulario needs";
    SessionUnusable: Error "session-unusable", "requests with the session fail";
    CentreUnknown: Error "centre-unknown", "the centre of the session has no folder";
    NoAnswer: Error "no-answer", "a path did not answer in time; what comes after it was not checked";
    CheckFailed: Error "check-failed", "the check could not run";
    Root: Warning "root", "checked as root, and the data belongs to another user";
    PasswordReadable: Warning "password-readable", "every user can read the password of Redis";
    FileSystemVolatile: Warning "file-system-volatile", "a restart deletes what the file system holds";
    FileSystemUntested: Warning "file-system-untested", "the file system is of a kind that may lose changes";
    IdInvalid: Warning "id-invalid", "no request can use a file or folder, because of its name";
    SharingIgnored: Warning "sharing-ignored", "shared_comedor_from has another effect than it says";
    FileEmpty: Warning "file-empty", "a data file is empty, as after an interrupted save";
    NotListed: Warning "not-listed", "the user cannot list a folder, so it was not checked";
    FileNotChecked: Warning "file-not-checked", "a file is too large to be checked";
    EntriesNotChecked: Warning "entries-not-checked", "a folder has too many entries to check them all";
    DataNotChecked: Warning "data-not-checked", "a part of the data was not checked, because of time or too many errors";
    NotShown: Warning "not-shown", "too many findings: some were dropped";
    PermissionMissing: Warning "permission-missing", "the session lacks a permission that reading needs";
    NoAularios: Warning "no-aularios", "the session has no access to any aulario";
    RootOwnsData: Hint "root-owns-data", "checked as root, to whom the data belongs";
    FileSystemUnproven: Hint "file-system-unproven", "the file system was not tested with power cuts, or has limits";
    AularioUnused: Hint "aulario-unused", "a folder of an aulario without configuration file";
    AularioCopied: Warning "aulario-copied", "a copy of a configuration by Syncthing counts as an aulario";
    DayNameInvalid: Hint "day-name-invalid", "a folder among the days is not one of a day";
    TypesDeleted: Hint "types-deleted", "saved menus of types that were deleted";
    ReadsOnly: Hint "reads-only", "the session lacks the permission to change menus";
    NotChecked: Hint "not-checked", "what this check does not look at";
    User: Ok "user", "the user of this process";
    Setting: Ok "setting", "a setting, and where it was set";
    Today: Ok "today", "the date of today";
    FileSystem: Ok "file-system", "the kind of file system";
    Redis: Ok "redis", "the Redis server answers";
    Data: Ok "data", "how much of the data was checked";
    Session: Ok "session", "what the session may do";
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn the_manual_page_lists_every_kind() {
        let table: String = TABLE
            .iter()
            .map(|(code, level, meaning)| {
                let code = code.replace('-', "\\-");
                format!(".TP\n.BR {code} \" (\" {} )\n{meaning}\n", level.name())
            })
            .collect();
        let manual = include_str!("../../man/comedor.8");
        assert!(manual.contains(&table), "the section FINDINGS of man/comedor.8 must be:\n{table}");
    }
}
