<?php
// For pages that write the files of the dining hall themselves: they save with comedor's lock, whole files, on disk.
//
//     require_once __DIR__ . '/guardar.php';
//     $lock = \comedor\lock($aulario);    // the folder of the aulario, before the page reads what it will change
//     \comedor\save("$aulario/Comedor/2026-11/23/_datos.json", $day);  // in place of file_put_contents
//
// A save is on disk when `save` returns, and whatever happens the file is the old one or the new one, complete. With the
// lock, no change that comedor or another such page makes meanwhile is lost. Where a file cannot be locked or replaced
// without changing who may read and write it, it is saved in place, as by file_put_contents. comedor's docs/install.md
// says how to change a page ("Pages that save safely"), and what this cannot do.
//
// The page itself checks the login, its rights, the ids and the date: `save` writes to any path. If json_decode gives
// null for a file that exists, the file is damaged or being written: the page must not save, or its other menus are lost.
// A new page does better to save by the API (client.php).
//
// PHP 7.4 or later, on Linux. Before 8.1 PHP has no `fsync`: a power cut can then undo a save, or empty the file.

namespace comedor;

/** The lock of an aulario. It is held until no variable has this value, or until the request ends. */
final class Lock
{
    /** @var resource the lock file */
    private $file;
    private string $path;

    public function __construct($file, string $path)
    {
        $this->file = $file;
        $this->path = $path;
    }

    /** Whether other writers still lock the same file: it may have been deleted or replaced, for example by a backup. */
    public function is_valid(): bool
    {
        clearstatcache(true, $this->path);
        $named = @stat($this->path);
        $own = fstat($this->file);
        return $named && $named['dev'] === $own['dev'] && $named['ino'] === $own['ino'];
    }
}

/**
 * Locks the aulario of this folder or file: the folder in `Aularios` that has it, with `Comedor-MenuTypes.json`. Waits
 * for other writers in the kernel's queue, as a page waits for its session. Keep the value. A second call in the same
 * request returns the same lock. While the request has the lock of another aulario it waits for about a second only,
 * since the writer that it waits for could wait for it.
 *
 * Null if it cannot be locked: then the page saves without it, as before, and PHP's log says what to do.
 */
function lock(string $path): ?Lock
{
    // Those of this request, by device and inode: a folder can have several paths. A second flock(2) of the same
    // process, on the file opened again, would wait for the first one for ever.
    static $held = [];
    $aulario = aulario_of($path);
    if ($aulario === null) {
        return cannot_lock($path, 'its path must have the folder Aularios of a centre');
    }
    // Without its file comedor knows no such aulario. The id may be from a form, so no folder is created for it.
    if (!is_file("$aulario.json")) {
        return cannot_lock($path, 'there must be the file ' . basename($aulario) . '.json beside the folder');
    }
    $path = "$aulario/.comedor.lock";
    try {
        is_dir($aulario) || attempt('mkdir', $aulario);
        $held = array_filter($held, fn ($lock) => $lock->get() !== null && $lock->get()->is_valid());
        for ($attempt = 0; $attempt < 5 && ($file = open_lock($path)); $attempt++) {
            ['dev' => $device, 'ino' => $inode] = fstat($file);
            $lock = isset($held["$device:$inode"]) ? $held["$device:$inode"]->get() : null;
            if ($lock !== null) {
                return $lock;
            }
            if ($held ? !wait_a_second($file) : !flock($file, LOCK_EX)) {
                break;
            }
            $lock = new Lock($file, $path);
            if ($lock->is_valid()) {
                $held["$device:$inode"] = \WeakReference::create($lock);
                return $lock;
            }
        }
    } catch (\Error $error) {
        return cannot_lock($path, $error->getMessage());
    }
    $advice = $held ? 'lock one aulario at a time' : 'allow the user of PHP to create, read and write it';
    return cannot_lock($path, $advice);
}

/**
 * Replaces or creates a file of an aulario. If it fails the old file stays, unless it is written in place; the exception
 * says which, and what to do.
 *
 * Owner, group and mode stay. Where PHP cannot keep them, cannot create a second file in the folder, or cannot lock the
 * aulario, it writes the file in place: then a power cut or a full disk can damage it, as before.
 *
 * Returns the number of bytes, as file_put_contents does, since a page may look at it.
 */
function save(string $path, $value, int $options = JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE): int
{
    error_clear_last();
    if (is_string($value)) {
        // Encoded again, it would be a string, in which no menu is found.
        throw failure($path, 'save the value itself, before json_encode');
    }
    $text = json_encode($value, $options);
    if ($text === false) {
        throw failure($path, json_last_error_msg());
    }
    $folder = dirname($path);
    // The lock of the page, if it has it.
    $lock = lock($folder);
    make_folder($folder);
    clearstatcache(true, $path);
    $old = @lstat($path);
    $is_in_place = $lock === null || $old && (is_link($path) || !is_writable($path));
    if ($is_in_place || !replace($path, $text, $old ?: null)) {
        overwrite($path, $text);
    }
    flush_folder($folder);
    // Folders that were made for it, perhaps by the page.
    while (!$old && basename($folder) !== 'Aularios' && $folder !== dirname($folder)) {
        $folder = dirname($folder);
        flush_folder($folder);
    }
    return strlen($text);
}

// The rest is for these two.

/** Puts a new file in the place of the old one. False, with nothing changed, if it cannot or access would change. */
function replace(string $path, string $text, ?array $old): bool
{
    // The name that comedor uses: the next save, by either, removes what a killed one has left.
    $new = dirname($path) . '/.' . basename($path) . '.tmp';
    try {
        @unlink($new);
        $file = @fopen($new, 'x');
        if (!$file || $old !== null && !keeps_access($new, $path, $old)) {
            return false;
        }
        if (!write($file, $text)) {
            throw failure($path, 'the disk must have room for a second file, and work');
        }
        return @rename($new, $path);
    } catch (\Error $error) {
        // A function that it needs is switched off (`disable_functions`).
        return false;
    } finally {
        // After the rename there is none.
        attempt('unlink', $new);
    }
}

/**
 * Gives the new file the owner, group and mode of the old one. False if someone could do with one of them what they
 * cannot do with the other.
 */
function keeps_access(string $new, string $path, array $old): bool
{
    attempt('chown', $new, $old['uid']);
    attempt('chgrp', $new, $old['gid']);
    attempt('chmod', $new, $old['mode'] & 07777);
    clearstatcache(true, $new);
    $now = stat($new);
    [$owner, $group, $others] = [$old['mode'] >> 6 & 7, $old['mode'] >> 3 & 7, $old['mode'] & 7];
    // Another owner is PHP's user, who must be able to save again; the old one becomes one of the others, or of the
    // group. In a sticky folder only the owner can rename a file.
    $is_sticky = (fileperms(dirname($path)) & 01000) !== 0;
    $has_owner = $now['uid'] === $old['uid']
        || !$is_sticky && (($owner | $group) & ~$others) === 0 && (6 & ~$owner) === 0;
    // If the group is another one, some of the others are in it, and the old group is of the others.
    $has_group = $now['gid'] === $old['gid'] || $group === $others;
    if ($now['mode'] !== $old['mode'] || !$has_owner || !$has_group) {
        return false;
    }
    // Without getfacl a list is unlikely: the program that makes lists is in the same package. It could allow more only
    // with these bits of the group, which are its mask (acl(5)); that a list denies something cannot be seen then.
    return has_no_list($path, $new) ?? ($group & ~$others) === 0;
}

/**
 * Whether neither file has an access control list; the new one can have that of its folder. PHP cannot see one: the
 * program `getfacl` of the package `acl` does, in a process for each save, of which a page has one or two. Null without
 * it.
 */
function has_no_list(string $path, string $new): ?bool
{
    if (!function_exists('proc_open')) {
        return null;
    }
    $command = ['getfacl', '--skip-base', '--absolute-names', '--', $path, $new];
    $program = @proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
    if (!$program) {
        return null;
    }
    $lists = stream_get_contents($pipes[1]);
    array_map('fclose', $pipes);
    return proc_close($program) === 0 ? $lists === '' : null;
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
        attempt('chmod', $path, fstat($file)['mode'] & 0660);
    }
    return $file ?: @fopen($path, 'r+e') ?: @fopen($path, 're');
}

/** Locks the file, unless another writer has it for about a second. */
function wait_a_second($file): bool
{
    for ($attempt = 0; $attempt < 20; $attempt++) {
        if (flock($file, LOCK_EX | LOCK_NB)) {
            return true;
        }
        attempt('usleep', 50000);
    }
    return false;
}

/** Says in PHP's log why there is no lock. */
function cannot_lock(string $path, string $advice)
{
    $line = "comedor: cannot lock $path, so this page saves without it: $advice";
    // A path with a line feed must not forge a line of the log.
    attempt('error_log', preg_replace('/[\x00-\x1f\x7f]/', '?', $line));
    return null;
}

/** The folder of the aulario that has what is at `$path`: the one in `Aularios`. Null if the path does not tell it. */
function aulario_of(string $path): ?string
{
    while (basename(dirname($path)) !== 'Aularios') {
        if ($path === dirname($path) || basename($path) === '..') {
            return null;
        }
        $path = dirname($path);
    }
    return in_array(basename($path), ['.', '..'], true) ? null : rtrim($path, '/');
}

/** Calls a function of PHP, unless it is switched off (`disable_functions`). */
function attempt(string $function, ...$arguments): bool
{
    return function_exists($function) && @$function(...$arguments);
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
