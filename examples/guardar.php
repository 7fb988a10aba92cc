<?php
// For pages that write the files of the dining hall themselves: their saves become as safe as comedor's.
//
//     require __DIR__ . '/guardar.php';
//     $lock = \comedor\lock("$aularios/$aulario");         // before the page reads what it will change
//     \comedor\save("$folder/_datos.json", $day);          // in place of file_put_contents
//
// A save is on disk when `save` returns, and whatever happens the file is the old one or the new one, complete. With the
// lock, no change that comedor or another such page makes meanwhile is lost. comedor's docs/install.md says how to change
// a page ("Pages that save safely"), and what this cannot do.
//
// PHP 7.4 or later, on Linux. Before 8.1 PHP has no `fsync`: a power cut can then undo a save, or empty the file.

namespace comedor;

/** The lock of an aulario. It is held until no variable has this value, or until the request ends. */
final class Lock
{
    /** @var resource the lock file */
    private $file;

    public function __construct($file)
    {
        $this->file = $file;
    }

    /** Whether other writers still lock the same file: it may have been deleted or replaced, for example by a backup. */
    public function is_at(string $path): bool
    {
        clearstatcache(true, $path);
        $named = @stat($path);
        $own = fstat($this->file);
        return $named && $named['dev'] === $own['dev'] && $named['ino'] === $own['ino'];
    }
}

/**
 * Locks an aulario, whose folder this is: that with `Comedor-MenuTypes.json`. Waits for other writers in the kernel's
 * queue, as a page waits for its session. Keep the value. A second call in the same request returns the same lock.
 *
 * Null if it cannot be locked: then the page saves without it, as before, and PHP's log says what to do.
 */
function lock(string $folder): ?Lock
{
    // A second flock(2) of the same process, on the file opened again, would wait for the first one for ever.
    static $held = [];
    make_folder($folder);
    $path = (realpath($folder) ?: $folder) . '/.comedor.lock';
    $lock = isset($held[$path]) ? $held[$path]->get() : null;
    if ($lock !== null && $lock->is_at($path)) {
        return $lock;
    }
    for ($attempt = 0; $attempt < 5; $attempt++) {
        $file = open_lock($path);
        if (!$file || !flock($file, LOCK_EX)) {
            break;
        }
        $lock = new Lock($file);
        if ($lock->is_at($path)) {
            $held[$path] = \WeakReference::create($lock);
            return $lock;
        }
    }
    error_log("comedor: cannot lock $path, so this page saves without it: allow the user of PHP to read and write it");
    return null;
}

/**
 * Replaces or creates a file of an aulario. If it fails the old file stays, and the exception says what to do.
 *
 * Owner, group and mode stay. Where PHP cannot keep them, or cannot lock the aulario, it writes the file in place: then a
 * power cut or a full disk can damage it, as before.
 */
function save(string $path, $value, int $options = JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE): void
{
    error_clear_last();
    $text = json_encode($value, $options);
    if ($text === false) {
        throw failure($path, json_last_error_msg());
    }
    // The lock of the page, if it has it.
    $lock = lock(aulario_of($path));
    $folder = dirname($path);
    make_folder($folder);
    clearstatcache(true, $path);
    $old = @lstat($path);
    if ($old && !is_writable($path)) {
        throw failure($path, 'allow the user of PHP to write it');
    }
    $is_in_place = $lock === null || $old && (is_link($path) || !is_writable($folder));
    if ($is_in_place || !replace($path, $text, $old ?: null)) {
        overwrite($path, $text);
    }
    flush_folder($folder);
    // Folders that were made for it, perhaps by the page.
    while (!$old && basename($folder) !== 'Aularios') {
        $folder = dirname($folder);
        flush_folder($folder);
    }
}

// The rest is for these two.

/** Puts a new file in the place of the old one. False if that would take away access: then nothing has changed. */
function replace(string $path, string $text, ?array $old): bool
{
    // The name that comedor uses: the next save, by either, removes what a killed one has left.
    $new = dirname($path) . '/.' . basename($path) . '.tmp';
    @unlink($new);
    $file = @fopen($new, 'x');
    if (!$file) {
        throw failure($path, 'its folder must have room for a second file');
    }
    try {
        if ($old !== null && !keeps_access($new, $path, $old)) {
            return false;
        }
        if (!write($file, $text) || !@rename($new, $path)) {
            throw failure($path, 'the disk must have room, and work');
        }
        return true;
    } finally {
        // After the rename there is none.
        @unlink($new);
    }
}

/**
 * Gives the new file the owner, group and mode of the old one. False if someone could do with the old one what they
 * cannot do with the new one.
 */
function keeps_access(string $new, string $path, array $old): bool
{
    @chown($new, $old['uid']);
    @chgrp($new, $old['gid']);
    @chmod($new, $old['mode'] & 07777);
    clearstatcache(true, $new);
    $now = stat($new);
    [$owner, $group, $others] = [$old['mode'] >> 6 & 7, $old['mode'] >> 3 & 7, $old['mode'] & 7];
    // What all others may do too, neither owner nor group can lose. In a sticky folder only the owner can rename a file.
    $is_sticky = (fileperms(dirname($path)) & 01000) !== 0;
    $has_owner = $now['uid'] === $old['uid'] || !$is_sticky && (($owner | $group) & ~$others) === 0;
    $has_group = $now['gid'] === $old['gid'] || ($group & ~$others) === 0;
    if ($now['mode'] !== $old['mode'] || !$has_owner || !$has_group) {
        return false;
    }
    // The group's bits are the mask of an access control list, so only with these can a list allow more (acl(5)).
    return ($group & ~$others) === 0 || has_no_list($path, $new);
}

/** Whether neither file has an access control list. PHP cannot see one: the program of the package `acl` does. */
function has_no_list(string $path, string $new): bool
{
    if (!function_exists('proc_open')) {
        return false;
    }
    $command = ['getfacl', '--skip-base', '--absolute-names', '--', $path, $new];
    $program = @proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
    if (!$program) {
        return false;
    }
    $lists = stream_get_contents($pipes[1]);
    array_map('fclose', $pipes);
    return proc_close($program) === 0 && $lists === '';
}

/** Writes the file in place; without cutting it first, so that it is never empty. */
function overwrite(string $path, string $text): void
{
    $file = @fopen($path, 'c');
    if (!$file) {
        throw failure($path, 'allow the user of PHP to write it');
    }
    if (!write($file, $text) || !ftruncate($file, strlen($text)) || !flush_file($file)) {
        throw new \RuntimeException("cannot save $path, which may be damaged now: " . cause('look at it, and save again'));
    }
}

/** Writes the text and flushes it to the disk. */
function write($file, string $text): bool
{
    return @fwrite($file, $text) === strlen($text) && flush_file($file);
}

function flush_file($file): bool
{
    return fflush($file) && (!function_exists('fsync') || @fsync($file));
}

/** Flushes the names in a folder. Some file systems cannot, and PHP does not say why it fails: that is no obstacle. */
function flush_folder(string $folder): void
{
    if (function_exists('fsync') && ($opened = @fopen($folder, 'r'))) {
        @fsync($opened);
    }
}

/** Opens the lock file, which it creates as comedor does: those who may not write the data cannot lock it. */
function open_lock(string $path)
{
    // NFS locks a file exclusively only if it is open for writing. `e`: programs that the page starts do not keep the lock.
    $file = @fopen($path, 'r+e');
    if (!$file && ($file = @fopen($path, 'xe'))) {
        @chmod($path, fstat($file)['mode'] & 0660);
    }
    return $file ?: @fopen($path, 'r+e') ?: @fopen($path, 're');
}

/** The folder of the aulario that has the file at `$path`: the one in `Aularios`. */
function aulario_of(string $path): string
{
    $folder = dirname($path);
    while (basename(dirname($folder)) !== 'Aularios') {
        if ($folder === dirname($folder)) {
            throw new \InvalidArgumentException("$path is not below the folder Aularios of a centre");
        }
        $folder = dirname($folder);
    }
    return $folder;
}

/** Creates a folder, with those above it, unless it exists. */
function make_folder(string $folder): void
{
    if (!is_dir($folder) && !@mkdir($folder, 0777, true) && !is_dir($folder)) {
        throw failure($folder, 'allow the user of PHP to create folders there');
    }
}

function failure(string $path, string $advice): \RuntimeException
{
    return new \RuntimeException("cannot save $path, nothing was changed: " . cause($advice));
}

/** The advice, and what PHP says about the last error. */
function cause(string $advice): string
{
    $error = error_get_last();
    return $error === null ? $advice : "$advice ({$error['message']})";
}
