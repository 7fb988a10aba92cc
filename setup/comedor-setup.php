<?php
/*
 * The set-up page of comedor. Copy this file beside comedor.php, open it in the browser in which you are logged in to the
 * application as an administrator, and delete it when you have finished. The guide (docs/install.md) says the rest.
 *
 * It shows values, for `sudo comedor configure`, and tries comedor once it is enabled. It shows no command: anyone who can
 * write to PHP's folders can forge this page, so nothing from it is run.
 *
 * How: it runs comedor.php with the browser's own session and a read, and looks in a shutdown function at what PHP has
 * then: the session settings as the application's code has left them, the session's content, the script's answer.
 *
 * It refuses
 *   - to run the script with a query or a body that is not its own (400);
 *   - to show anything to a session without the permission sysadmin:access (403);
 *   - to show anything a day after it was copied (410). chown and mv renew that time: a reminder, not a guarantee.
 * It writes nothing, and contains no secret. Of comedor.conf it shows only for which other application that is. All that
 * it prints is escaped; control and bidirectional characters, which could deceive, are replaced. Choices are made in the
 * browser only, so a link cannot preset a value.
 *
 * One file for PHP 7.4 and later, without extensions. Functions that a host may have disabled are called by `known()`.
 */

namespace ComedorSetup;

const MAX_AGE = 86400;
/** The limits of a look at the files, which others can write: seconds, bytes of a file, names of a folder. */
const MAX_SECONDS = 5;
const MAX_BYTES = 1 << 20;
const MAX_NAMES = 20000;
/** The files of Docker and Podman in a container. */
const CONTAINER_FILES = ['/.dockerenv', '/run/.containerenv'];
/** What `comedor configure` writes. */
const SETTINGS_FILE = '/etc/comedor/comedor.conf';
/** The values that are offered: no character that a terminal or comedor.conf reads as anything else. */
const PLAIN = '/^[\p{L}\p{M}\p{N} .\/_:;,?&=@%+\[\]-]{1,1000}$/Du';
/** The paths that `comedor configure` accepts in a paste (src/configure/unusual.rs), and those that it accepts as a folder:
    none of the system. For PHP and JavaScript. */
const PATH = '(?!.*\/\.\.(?:\/|$))\/[A-Za-z0-9._\/-]*$';
const FOLDER = '^(?!\/[.\/]*(?:(?:bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|root|run|sbin|sys|usr)(?:\/|$)'
    . '|(?:home|opt|srv|var)?\/*$))' . PATH;
/** The headings of the guide that the page names, in English and Spanish. A text has them as {heading_undo}. */
const HEADINGS = [
    'apache' => ['Apache', 'Apache'],
    'apache_fastcgi' => ['Apache with FastCGI', 'Apache con FastCGI'],
    'nginx' => ['nginx', 'nginx'],
    'caddy' => ['Caddy', 'Caddy'],
    'lighttpd' => ['lighttpd', 'lighttpd'],
    'containers' => ['Containers', 'Contenedores'],
    'hosting' => ['Shared hosting', 'Alojamiento compartido'],
    'service' => ['The service', 'El servicio'],
    'enable' => ['4. Enable', '4. Activar'],
    'undo' => ['Undo', 'Desactivar y desinstalar'],
    'error_pages' => ['Site-wide error pages', 'Páginas de error'],
    'another_application' => ['comedor answers for another application', 'comedor answers for another application'],
    'ids' => ['Ids', 'Nombres con espacios o tildes'],
];

if (time() - filectime(__FILE__) > MAX_AGE) {
    refuse(410, 'too_old');
}
if (!is_file(__DIR__ . '/comedor.php')) {
    refuse(404, 'no_script');
}
if (!is_own_request()) {
    refuse(400, 'no_parameters');
}
register_shutdown_function(__NAMESPACE__ . '\answer', $_GET !== []);
take_place_of_script();
ob_start();
include __DIR__ . '/comedor.php';

/** Whether this is a request of a browser that opens the page, or of the page itself for the script's answer. */
function is_own_request(): bool
{
    $is_read = count($_GET) === 2 && ($_GET['action'] ?? '') === 'get_menu_types' && is_string($_GET['aulario'] ?? null);
    return $_SERVER['REQUEST_METHOD'] === 'GET' && (int) ($_SERVER['CONTENT_LENGTH'] ?? 0) === 0
        && ($_GET === [] || $is_read);
}

/** Makes the variables of this request those of a read by comedor.php. */
function take_place_of_script(): void
{
    $_GET = $_REQUEST = ['action' => 'get_menu_types', 'aulario' => $_GET['aulario'] ?? ''];
    $_SERVER['QUERY_STRING'] = http_build_query($_GET);
    foreach ($_SERVER as $name => $value) {
        if (is_string($value)) {
            $_SERVER[$name] = str_replace(basename(__FILE__), 'comedor.php', $value);
        }
    }
}

/** The end of the request: the page, or for `$is_raw` the script's answer as JSON. */
function answer(bool $is_raw): void
{
    // The application's handlers may throw, for each file that cannot be read.
    set_error_handler(function () {
        return true;
    });
    set_exception_handler(null);
    $said = take_output();
    if (headers_sent()) {
        exit("\n" . text('sends_itself') . "\n");
    }
    $status = http_response_code();
    keep_only_cookies();
    if (!is_administrator()) {
        refuse(403, 'log_in');
    }
    try {
        if ($is_raw) {
            send_headers(200, 'application/json');
            $today = zone() === null ? null : date('Y-m-d');
            exit(to_json(['status' => $status ?: 200, 'body' => $said, 'today' => $today]));
        }
        if (session_module_name() !== 'user') {
            // So that other requests of this session need not wait. Code of the application might fail.
            session_write_close();
        }
        show(look());
    } catch (\Throwable $error) {
        refuse(500, 'own_error', ['line' => $error->getLine()]);
    }
    exit;
}

/** What the script has printed, out of every output buffer. */
function take_output(): string
{
    $said = '';
    for ($level = ob_get_level(); $level > 0; $level--) {
        $said = ob_get_clean() . $said;
    }
    return $said;
}

/** Removes the headers of the script. The cookies stay: one may be the session's new id. */
function keep_only_cookies(): void
{
    $cookies = preg_grep('/^Set-Cookie:/i', headers_list());
    header_remove();
    foreach ($cookies as $cookie) {
        header($cookie, false);
    }
}

function is_administrator(): bool
{
    $auth = $_SESSION['auth_data'] ?? null;
    return ($_SESSION['auth_ok'] ?? null) === true && is_array($auth) && has_permission($auth, 'sysadmin:access');
}

function has_permission(array $auth, string $permission): bool
{
    $permissions = $auth['permissions'] ?? null;
    return is_array($permissions) && in_array($permission, $permissions, true);
}

/** Those of these permissions that this login lacks. */
function missing_permissions(array $auth, array $permissions): array
{
    return array_values(array_filter($permissions, function ($permission) use ($auth) {
        return !has_permission($auth, $permission);
    }));
}

/** Sends the status and the headers. Returns the nonce of this page's style and script. */
function send_headers(int $status, string $type): string
{
    $nonce = base64_encode(random_bytes(15));
    http_response_code($status);
    foreach ([
        "Content-Type: $type; charset=utf-8",
        'Cache-Control: no-store',
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-$nonce'; style-src 'nonce-$nonce'; "
            . "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        'Cross-Origin-Opener-Policy: same-origin',
        'X-Frame-Options: DENY',
        'X-Content-Type-Options: nosniff',
        'X-Robots-Tag: noindex',
        'Referrer-Policy: same-origin',
    ] as $line) {
        header($line);
    }
    return $nonce;
}

/** Ends the request with one text, and nothing about the server. */
function refuse(int $status, string $text, array $values = []): void
{
    $nonce = send_headers($status, 'text/html');
    exit('<!doctype html><html lang="' . language() . '"><meta charset="utf-8"><meta name="viewport" '
        . "content=\"width=device-width\"><title>comedor</title><style nonce=\"$nonce\">:root{color-scheme:light dark}"
        . 'body{font:1.2em/1.5 sans-serif;max-width:34em;margin:2em auto;padding:0 1em}</style><p>'
        . escape(text($text, $values)) . '</p>');
}

// What PHP has

/** All that the page shows. */
function look(): array
{
    $script = content(__DIR__ . '/comedor.php');
    $session = session_settings();
    $process = process($session);
    $candidates = candidates($_SESSION['auth_data'], $script);
    $server = web_server($process);
    $zone = zone();
    // In a container and in a chroot, which has no zones, comedor sees other paths than PHP.
    $path = $server['is_in_container'] || $zone === null ? null : script_path();
    $other = other_application($path, $candidates);
    return [
        'session' => $session,
        'process' => $process,
        'server' => $server,
        'script' => $path,
        'other' => $other,
        'candidates' => $candidates,
        'path' => (string) ($_SERVER['SCRIPT_NAME'] ?? ''),
        'refusals' => refusals($session),
        'missing' => missing($candidates, $script),
        'notes' => notes($session, $process, $candidates, $other),
        'zone' => $zone,
    ];
}

/** The session settings, as the application's code has left them. */
function session_settings(): array
{
    $handler = (string) session_module_name();
    $path = session_save_path() ?: sys_get_temp_dir();
    return [
        'handler' => $handler,
        'save_path' => $path,
        'folder' => $handler === 'files' ? substr((string) strrchr(";$path", ';'), 1) : '',
        'name' => (string) session_name(),
        // PHP's defaults if it may not be asked: "Try" shows whether they hold.
        'format' => (string) (known('ini_get', 'session.serialize_handler') ?? 'php'),
        'lifetime' => (string) (known('ini_get', 'session.gc_maxlifetime') ?? '1440'),
    ];
}

/** This session's file: with `N;folder` there are N levels of folders, named after the first characters of the id. */
function session_file(array $session): string
{
    $id = (string) session_id();
    $depth = strpos($session['save_path'], ';') ? (int) $session['save_path'] : 0;
    $levels = $depth > 0 && $depth < strlen($id) ? implode('/', str_split(substr($id, 0, $depth))) . '/' : '';
    return "{$session['folder']}/{$levels}sess_$id";
}

/** User and group: of PHP's functions, else of the kernel, else the owner of this session's file. */
function process(array $session): array
{
    $file = session_file($session);
    $user = known('posix_geteuid') ?? kernel_id('Uid') ?? known('fileowner', $file);
    $group = known('posix_getegid') ?? kernel_id('Gid') ?? known('filegroup', $file);
    // PHP-FPM sets the variable to the user of its pool.
    $of_pool = PHP_SAPI === 'fpm-fcgi' ? ($_SERVER['USER'] ?? null) : null;
    return [
        'uid' => $user,
        'user' => account('/etc/passwd', $user) ?? $of_pool ?? number($user),
        'group' => account('/etc/group', $group) ?? number($group),
        'umask' => mask(),
    ];
}

/** The umask as four octal digits. PHP's own function changes it for a moment, in all threads: the kernel first. */
function mask(): string
{
    if (preg_match('/^Umask:\s+(\d{4})$/m', content('/proc/self/status'), $match)) {
        return $match[1];
    }
    $mask = known('umask');
    return $mask === null ? '–' : sprintf('%04o', $mask);
}

/** The effective id of this process, which is the second of the four. */
function kernel_id(string $kind): ?int
{
    return preg_match("/^$kind:\s+\d+\s+(\d+)/m", content('/proc/self/status'), $match) ? (int) $match[1] : null;
}

/** The name of an id, if open_basedir lets the file be read. */
function account(string $file, $id): ?string
{
    if ($id === null) {
        return null;
    }
    return preg_match("/^([^:\n]+):[^:\n]*:$id:/m", content($file), $match) ? $match[1] : null;
}

/** An id without a name, as sudo takes it. 33 is Debian's and Ubuntu's user of web servers. */
function number($id): string
{
    return $id === null ? '–' : ($id === 33 ? 'www-data' : "#$id");
}

/** The web server, how it runs PHP, and the heading of the guide for both. */
function web_server(array $process): array
{
    $software = (string) ($_SERVER['SERVER_SOFTWARE'] ?? '');
    $is_module = PHP_SAPI === 'apache2handler';
    $name = $is_module ? 'apache' : strtolower((string) strtok($software, '/ '));
    $headings = ['nginx' => 'nginx', 'caddy' => 'caddy', 'frankenphp' => 'caddy', 'lighttpd' => 'lighttpd',
        'litespeed' => 'hosting'];
    // CGI programs run as Apache's own user.
    $is_own_user = $is_module || in_array($process['user'], ['www-data', 'apache'], true);
    $headings['apache'] = $is_own_user ? 'apache' : 'apache_fastcgi';
    // As by suEXEC, or with a pool for each customer.
    $may_be_hosting = $name === 'apache' && !$is_own_user && $process['uid'] !== null
        && $process['uid'] === known('fileowner', __DIR__ . '/comedor.php');
    return [
        'software' => $software,
        'way' => ['apache2handler' => 'mod_php', 'fpm-fcgi' => 'PHP-FPM', 'cgi-fcgi' => 'CGI, FastCGI'][PHP_SAPI] ?? PHP_SAPI,
        'heading' => $headings[$name] ?? null,
        'may_be_hosting' => $may_be_hosting,
        'is_in_container' => array_filter(CONTAINER_FILES, 'is_file') !== [],
    ];
}

/** PHP's time zone as comedor spells it: PHP takes its name in any case. Where PHP has no zones, as in a chroot, its own
    function would end the request. */
function zone(): ?string
{
    try {
        new \DateTimeZone('Europe/Madrid');
        $zone = date_default_timezone_get();
        $same = preg_grep('~^' . preg_quote($zone, '~') . '$~Di', \DateTimeZone::listIdentifiers(\DateTimeZone::ALL_WITH_BC));
        return in_array($zone, $same, true) ? $zone : (reset($same) ?: $zone);
    } catch (\Throwable $error) {
        return null;
    }
}

/** The path of the script as the web server says it, which is what comedor compares: not the target of links. None if
    it says another file, such as a front controller, or if PHP sees another path, as in a chroot: then the folder of
    the site is neither a part of the path nor to be found. (open_basedir can hide the folder, too.) */
function script_path(): ?string
{
    $path = (string) ($_SERVER['SCRIPT_FILENAME'] ?? '');
    $root = (string) ($_SERVER['DOCUMENT_ROOT'] ?? '');
    $is_script = strpos($path, '/') === 0 && basename($path) === 'comedor.php'
        && is_same_file($path, __DIR__ . '/comedor.php');
    $is_below_root = strpos($path, rtrim($root, '/') . '/') === 0;
    return $is_script && ($is_below_root || @is_dir($root)) ? $path : null;
}

/** The other application that comedor.conf is for: its script, or without that (as version 1.0.0 wrote it) its data
    folder. Null if it is for this one, or if PHP cannot read it; comedor's user can. */
function other_application(?string $script, array $candidates): ?string
{
    $line = '/^[ \t]*(COMEDOR_SCRIPT|COMEDOR_DATA_DIR)[ \t]*=[ \t]*(.*?)[ \t\r]*$/m';
    preg_match_all($line, content(SETTINGS_FILE), $lines);
    // An empty value sets the default, which is of no particular application.
    $settings = array_filter(array_combine($lines[1], $lines[2]), 'strlen');
    $other = $settings['COMEDOR_SCRIPT'] ?? null;
    if ($other !== null && $script !== null) {
        return is_same_file($other, $script) ? null : $other;
    }
    $folder = $settings['COMEDOR_DATA_DIR'] ?? null;
    $own = array_filter(array_column($candidates, 'folder'));
    $same = array_filter($own, function ($own) use ($folder) {
        return is_same_file($own, (string) $folder);
    });
    return $folder === null || $own === [] || $same ? null : $folder;
}

/** Whether two paths are of one file or folder. Equal texts are, also of what PHP cannot look at. */
function is_same_file(string $one, string $other): bool
{
    $real = known('realpath', $one);
    return rtrim($one, '/') === rtrim($other, '/') || ($real !== null && $real === known('realpath', $other));
}

/** Each service of the session with each data folder that could be its own, the likeliest first. */
function candidates(array $auth, string $script): array
{
    $candidates = [];
    foreach ($auth as $service => $unit) {
        $centre = is_array($unit) ? $unit['centro'] ?? null : null;
        // An empty one is none, as for comedor.
        if (!is_id($service) || !(is_string($centre) || is_int($centre)) || $centre === '') {
            continue;
        }
        foreach (data_folders($service, $script) ?: [null] as $folder) {
            $candidates[] = candidate($service, (string) $centre, $unit, $folder) + [
                'lacks' => array_merge(missing_permissions($auth, ["$service:access"]),
                    is_array($unit['aulas'] ?? null) ? [] : ['aulas']),
                'to_give' => array_merge(missing_permissions($auth, ["$service:docente", "$service:access"]),
                    ($unit['aulas'] ?? []) === [] ? ['aulas'] : []),
                'is_named' => strpos($script, "$service:docente") !== false,
                'login' => login($auth, $service, (string) $centre),
                'has_usable_centre' => is_id((string) $centre),
            ];
        }
    }
    usort($candidates, function ($one, $other) {
        return [$other['is_named'], $other['aularios']] <=> [$one['is_named'], $one['aularios']];
    });
    return $candidates;
}

/** What this login has of what a request may need. */
function login(array $auth, string $service, string $centre): array
{
    $permissions = array_filter(["$service:access", "$service:docente", 'sysadmin:access'], function ($permission) use ($auth) {
        return has_permission($auth, $permission);
    });
    $list = $auth[$service]['aulas'] ?? null;
    $ids = is_array($list) ? array_filter($list, 'is_scalar') : [];
    return [
        'centre' => $centre,
        'permissions' => implode(', ', $permissions),
        'aulas' => implode(', ', array_slice($ids, 0, 9)) . (count($ids) > 9 ? ' …' : '') ?: '–',
    ];
}

/** The folders with a folder Centros: that of the service, and those which the script names. */
function data_folders(string $service, string $script): array
{
    preg_match_all('~["\'](/[^"\'\n$]*?)/+Centros\b~', $script, $named);
    $folders = array_unique(array_merge($named[1], ["/DATA/$service"]));
    return array_values(array_filter($folders, function ($folder) {
        return is_plain($folder) && @is_dir("$folder/Centros");
    }));
}

/** What is in a data folder, and which of its aularios this login may use. */
function candidate(string $service, string $centre, array $unit, ?string $folder): array
{
    $found = ['service' => $service, 'centre' => $centre, 'folder' => $folder,
        'centres' => 0, 'aularios' => 0, 'days' => 0, 'mine' => [], 'unusable' => []];
    // The login's own centre first: the time for the others may not suffice.
    $names = $folder === null ? [] : array_unique(array_merge(is_id($centre) ? [$centre] : [], entries("$folder/Centros")));
    foreach ($names as $name) {
        $ids = aularios("$folder/Centros/$name");
        if ($ids === null) {
            continue;
        }
        $found['centres']++;
        $found['aularios'] += count($ids);
        $found['unusable'] = array_merge($found['unusable'], array_filter(array_merge([$name], $ids), function ($id) {
            return !is_id($id);
        }));
        if ($name === $centre) {
            $found['mine'] = own_aularios("$folder/Centros/$name/Aularios", $ids, $unit['aulas'] ?? null);
        }
        foreach ($ids as $id) {
            $found['days'] += count(days("$folder/Centros/$name/Aularios/$id/Comedor"));
        }
    }
    return $found;
}

/** The ids of the aularios of a centre; null if the folder is not one. */
function aularios(string $centre): ?array
{
    if (!@is_dir("$centre/Aularios")) {
        return null;
    }
    $files = preg_grep('/^[^.].*\.json$/Ds', entries("$centre/Aularios"));
    return array_map(function ($file) {
        return substr($file, 0, -strlen('.json'));
    }, array_values($files));
}

/** The aularios that this login may use, each with a saved menu, which "Try" saves again. */
function own_aularios(string $folder, array $ids, $list): array
{
    $own = [];
    foreach ($ids as $id) {
        $is_listed = !is_array($list) || in_array($id, array_map('strval', array_filter($list, 'is_scalar')), true);
        if (is_id($id) && $is_listed && count($own) < 50) {
            $own[] = ['id' => $id, 'saved' => shares_menus("$folder/$id.json") ? null : saved_menu("$folder/$id")];
        }
    }
    // Aularios with a saved menu first: those can be tried whole.
    usort($own, function ($one, $other) {
        return ($other['saved'] !== null) <=> ($one['saved'] !== null);
    });
    return $own;
}

/** Whether the aulario shows the menus of another one, which cannot be saved here. */
function shares_menus(string $file): bool
{
    $source = json($file)['shared_comedor_from'] ?? 'none';
    return is_string($source) && $source !== '' && $source !== 'none';
}

/** The last saved menu: its day, its type, and the names of plates that a save leaves as they are. */
function saved_menu(string $aulario): ?array
{
    $types = array_column(json("$aulario/Comedor-MenuTypes.json"), 'id') ?: ['basal', 'vegetariano', 'alergias'];
    foreach (array_slice(array_reverse(days("$aulario/Comedor")), 0, 20) as $day) {
        $menus = json("$aulario/Comedor/$day/_datos.json")['menus'] ?? null;
        foreach (is_array($menus) ? $menus : [] as $type => $menu) {
            $names = is_array($menu) ? names_of_plates($menu['plates'] ?? null) : [];
            // A deleted type keeps its menus in the files.
            if ($names && in_array((string) $type, $types, true)) {
                return ['date' => str_replace('/', '-', $day), 'menu_type' => (string) $type, 'names' => (object) $names];
            }
        }
    }
    return null;
}

/** The names of plates that comedor stores as they are sent. */
function names_of_plates($plates): array
{
    $names = array_map(function ($plate) {
        return is_array($plate) ? $plate['name'] ?? null : null;
    }, is_array($plates) ? $plates : []);
    return array_filter($names, function ($name) {
        return is_string($name) && $name === trim($name);
    });
}

/** The saved days of an aulario, as YYYY-MM/DD, in order. */
function days(string $folder): array
{
    $days = [];
    foreach (preg_grep('/^\d{4}-\d\d$/D', entries($folder)) as $month) {
        foreach (preg_grep('/^\d\d$/D', entries("$folder/$month")) as $day) {
            $days[] = "$month/$day";
        }
    }
    return $days;
}

/** Why comedor is not for this application. */
function refusals(array $session): array
{
    $why = [];
    if ($session['handler'] === 'user') {
        $why[] = text('own_sessions');
    } elseif (!in_array($session['handler'], ['files', 'redis'], true)) {
        $why[] = text('other_sessions', ['handler' => $session['handler']]);
    }
    if (!in_array($session['format'], ['php', 'php_serialize', 'php_binary'], true)) {
        $why[] = text('other_format', ['format' => $session['format']]);
    }
    return $why;
}

/** What the application must have before there are values to show. A new one has no centre or no aulario yet. */
function missing(array $candidates, string $script): ?string
{
    if (!$candidates) {
        $service = preg_match('/["\']([A-Za-z0-9._-]+):docente["\']/', $script, $match) ? $match[1] : '<service>';
        return text('no_centre', ['service' => $service]);
    }
    if (count($candidates) === 1 && $candidates[0]['folder'] !== null && $candidates[0]['aularios'] === 0
        && function_exists('opendir') && !is_late()) {
        return text('no_aularios', ['folder' => $candidates[0]['folder'] . '/Centros']);
    }
    return null;
}

/** What the administrator should know beside the values. */
function notes(array $session, array $process, array $candidates, ?string $other): array
{
    $notes = is_late() ? [text('late')] : [];
    if ($other !== null) {
        $notes[] = text('for_another', ['path' => $other]);
    }
    if ($process['uid'] === 0) {
        $notes[] = text('is_root');
    }
    $unusable = array_unique(array_merge([], ...array_column($candidates, 'unusable')));
    if ($unusable) {
        $notes[] = text('unusable_names', ['names' => implode(', ', array_slice($unusable, 0, 9))]);
    }
    $path = (string) ($_SERVER['SCRIPT_NAME'] ?? '');
    if (substr($path, -strlen('/api/comedor.php')) !== '/api/comedor.php') {
        $notes[] = text('other_path', ['path' => $path, 'start' => preg_replace('/\.php$/D', '', $path)]);
    }
    foreach (array_slice(known('get_included_files') ?? [], 0, 100) as $file) {
        $source = $file === __FILE__ ? '' : content($file);
        if (preg_match('/\b(new\s+\\\\?PDO\b|sqlite3\(|mysqli|pg_connect)/i', $source, $match)) {
            $notes[] = text('database', ['call' => $match[1], 'file' => $file]);
        }
    }
    return $notes;
}

// Small things

/** The result of a function that a host may have disabled; null if it has, or if the function fails. */
function known(string $function, ...$arguments)
{
    $result = function_exists($function) ? @$function(...$arguments) : null;
    return $result === false ? null : $result;
}

/** Whether the time for files is over: data can be large, and on a slow network. It starts with the first call. */
function is_late(): bool
{
    static $start = null;
    $start = $start ?? microtime(true);
    return microtime(true) - $start > MAX_SECONDS;
}

/** The names in a folder, in order; none if it cannot be read. */
function entries(string $folder): array
{
    $names = [];
    $handle = is_late() ? null : known('opendir', $folder);
    while ($handle && count($names) < MAX_NAMES && !is_late() && ($name = readdir($handle)) !== false) {
        if ($name !== '.' && $name !== '..') {
            $names[] = $name;
        }
    }
    sort($names, SORT_STRING);
    return $names;
}

/** The content of a regular file, which unlike a FIFO always ends; none if it cannot be read, or if it is too large. */
function content(string $file): string
{
    if (is_late() || !@is_file($file)) {
        return '';
    }
    $content = (string) @file_get_contents($file, false, null, 0, MAX_BYTES + 1);
    return strlen($content) > MAX_BYTES ? '' : $content;
}

function json(string $file): array
{
    $value = json_decode(content($file), true);
    return is_array($value) ? $value : [];
}

/** Whether comedor takes this for the id of a service, a centre or an aulario. */
function is_id($text): bool
{
    return is_string($text) && preg_match('/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,249}$/D', $text) === 1;
}

/** Whether nothing in a value can be read as anything else. */
function is_plain(string $value): bool
{
    return preg_match(PLAIN, $value) === 1 && $value === trim($value);
}

function to_json(array $value): string
{
    return (string) json_encode($value, JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT
        | JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE);
}

/** Text for HTML. Control, format and bidirectional characters, and line separators, become U+FFFD. */
function escape($text): string
{
    $text = htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
    return preg_replace('/[\p{C}\p{Zl}\p{Zp}]/u', "\u{fffd}", $text);
}

/** The browser's language, if it is among these; else English. */
function language(): string
{
    $accepted = $_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? '';
    return preg_match('/\b(es|ca|gl|eu|ast|en)\b/i', $accepted, $match) && strtolower($match[1]) !== 'en' ? 'es' : 'en';
}

/** The place of that language in the tables. */
function column(): int
{
    return language() === 'es' ? 1 : 0;
}

/** A text in that language, with these values, not yet escaped. */
function text(string $key, array $values = []): string
{
    $places = [];
    foreach (HEADINGS as $name => $heading) {
        $places['{heading_' . $name . '}'] = $heading[column()];
    }
    foreach ($values as $name => $value) {
        $places['{' . $name . '}'] = (string) $value;
    }
    return strtr(texts()[$key][column()], $places);
}

/** Every text, in English and Spanish. Those of the script of the page are in `try_texts`. */
function texts(): array
{
    return try_texts() + [
        'title' => ['Set up comedor', 'Configurar comedor'],
        'intro' => [
            'This page shows values and tries comedor. It changes nothing until you press “Try”. The commands are in the guide; '
                . 'never run a command that a page like this one shows.',
            'Esta página muestra valores y prueba comedor. No cambia nada hasta que pulsas «Probar». Las órdenes están en la guía; '
                . 'nunca ejecutes una orden que muestre una página como esta.',
        ],
        'log_in' => [
            'Log in to the application, in this browser and at this address, as an administrator (with the permission '
                . 'sysadmin:access), and reload this page. (If you are logged in, comedor.php may stop before it reads your login: see PHP’s error log.)',
            'Inicia sesión en la aplicación, en este navegador y con esta dirección, como administrador (con el permiso '
                . 'sysadmin:access), y recarga esta página. (Si ya la has iniciado, quizá comedor.php se detiene antes de leerla: mira el registro de '
                . 'errores de PHP.)',
        ],
        'too_old' => [
            'This page was copied more than a day ago: delete it from the server. To set up comedor now, copy it again.',
            'Esta página se copió hace más de un día: bórrala del servidor. Para configurar comedor ahora, cópiala de nuevo.',
        ],
        'no_script' => [
            'There is no comedor.php in the folder of this page. Copy the page into the folder of comedor.php.',
            'En la carpeta de esta página no está comedor.php. Copia la página en la carpeta de comedor.php.',
        ],
        'no_parameters' => ['Open this page without parameters.', 'Abre esta página sin parámetros.'],
        'sends_itself' => [
            'comedor.php sends its answer without PHP’s output buffers, so this page cannot be shown. Write the settings by hand.',
            'comedor.php envía su respuesta sin los búferes de salida de PHP, así que esta página no puede mostrarse. Escribe '
                . 'los ajustes a mano.',
        ],
        'own_error' => [
            'This page has stopped with an error in its line {line}. Write the settings by hand, and report the line.',
            'Esta página se ha detenido con un error en su línea {line}. Escribe los ajustes a mano e informa de la línea.',
        ],
        'refused' => ['comedor is not for this application:', 'comedor no sirve para esta aplicación:'],
        'own_sessions' => [
            'Its sessions are kept by code of the application, not in files or Redis.',
            'Sus sesiones las guarda código de la aplicación, no ficheros ni Redis.',
        ],
        'other_sessions' => [
            'Its sessions are kept in “{handler}”, not in files or Redis.',
            'Sus sesiones se guardan en «{handler}», no en ficheros ni en Redis.',
        ],
        'other_format' => [
            'Its sessions have the format “{format}”; comedor reads php, php_serialize and php_binary.',
            'Sus sesiones tienen el formato «{format}»; comedor lee php, php_serialize y php_binary.',
        ],
        'no_centre' => [
            'Your user has no centre, like the administrator whom the application’s installer creates, so there are no values yet. '
                . 'On the application’s page for users, give this user a centre, aularios (aulas) and the permissions '
                . '{service}:access and {service}:docente; then log in again, and reload this page. Or log in with another user '
                . 'who has these and sysadmin:access. Only if no user can have a centre, comedor is not for this application.',
            'Tu usuario no tiene centro, como el administrador que crea el instalador de la aplicación, así que todavía no hay '
                . 'valores. En la página de usuarios de la aplicación, dale a este usuario un centro, aularios (aulas) y los '
                . 'permisos {service}:access y {service}:docente; después inicia sesión de nuevo y recarga esta página. O inicia '
                . 'sesión con otro usuario que tenga todo eso y sysadmin:access. Solo si ningún usuario puede tener centro, '
                . 'comedor no sirve para esta aplicación.',
        ],
        'no_aularios' => [
            'There are no aularios below {folder}. Create one in the application, and reload this page. If the application has '
                . 'some, it keeps them elsewhere, and comedor is not for it.',
            'No hay aularios debajo de {folder}. Crea uno en la aplicación y recarga esta página. Si la aplicación ya tiene, los '
                . 'guarda en otro sitio, y comedor no sirve para ella.',
        ],
        'to_give' => [
            'Your user lacks the following: {lacks}. The values are right, but without it “Try” does not work. Give it to your user '
                . 'on the application’s page for users, log in again, and reload this page. Or log in with another user who has all '
                . 'of it and sysadmin:access.',
            'A tu usuario le falta lo siguiente: {lacks}. Los valores son correctos, pero sin eso «Probar» no funciona. Dáselo en la '
                . 'página de usuarios de la aplicación, inicia sesión de nuevo y recarga esta página. O inicia sesión con otro '
                . 'usuario que lo tenga todo, y también sysadmin:access.',
        ],
        'is_root' => [
            'PHP runs as root here. comedor should not.',
            'Aquí PHP se ejecuta como root. comedor no debería.',
        ],
        'unusable_names' => [
            'comedor cannot use these names (only A-Z a-z 0-9 . _ -, at most 250 characters): {names}. Their users would be without '
                . 'the API. Change them before you enable comedor: heading “{heading_ids}” of docs/files.md.',
            'comedor no puede usar estos nombres (solo A-Z a-z 0-9 . _ -, 250 caracteres como máximo): {names}. Sus usuarios se '
                . 'quedarían sin la API. Cámbialos antes de activar comedor: apartado «{heading_ids}» de la guía.',
        ],
        'other_path' => [
            'comedor answers paths that end in /api/comedor.php, and {path} does not. In its configuration for the web server '
                . '(“{heading_enable}” of the guide names the file), write {start} instead of /api/comedor in each line.',
            'comedor responde en las rutas que acaban en /api/comedor.php, y {path} no es una de ellas. En su configuración para el '
                . 'servidor web («{heading_enable}» de la guía dice en qué fichero está), escribe {start} en lugar de /api/comedor en cada '
                . 'línea.',
        ],
        'late' => [
            'Only a part of the data was looked at, for lack of time. Try with an aulario that has a menu.',
            'Solo se ha mirado una parte de los datos, por falta de tiempo. Prueba con un aulario que tenga un menú.',
        ],
        'for_another' => [
            'comedor.conf of this server is for another application ({path}). Do not paste these values into “comedor configure”: '
                . 'they would replace its own. Heading “{heading_another_application}” of the guide. (If it is the same one, which '
                . 'was moved, paste them.)',
            'comedor.conf de este servidor es de otra aplicación ({path}). No pegues estos valores en «comedor configure»: '
                . 'sustituirían a los suyos. Apartado «{heading_another_application}» de la guía. (Si es la misma, que se ha '
                . 'movido, pégalos.)',
        ],
        'database' => [
            'The application uses a database ({call} in {file}). If the menus are in it, comedor is not for this application.',
            'La aplicación usa una base de datos ({call} en {file}). Si los menús están en ella, comedor no sirve.',
        ],
        'compare_user' => [
            'PHP runs as {user}. See which user comedor runs as: with Apache (CGI), that of the web server; with FastCGI, that of '
                . 'the line “user:” of its log. If it is not the same, correct that, not the files: heading “{heading_service}” of '
                . 'the guide.',
            'PHP se ejecuta con {user}. Mira con qué usuario se ejecuta comedor: con Apache (CGI), el del servidor web; con FastCGI, '
                . 'el de la línea «user:» de su registro. Si no es el mismo, corrige eso, no los ficheros: apartado '
                . '«{heading_service}» de la guía.',
        ],
        'paste_again' => [
            'If comedor answers for another application of this server: heading “{heading_another_application}” of the guide. Else '
                . 'paste the values again.',
            'Si comedor responde por otra aplicación de este servidor: apartado «{heading_another_application}» de la guía. Si no, '
                . 'pega los valores de nuevo.',
        ],
        'by_hand' => [
            '“comedor configure” does not accept this value of {name} in a paste. After that command, write this line into '
                . 'comedor.conf by hand: {name}={value}',
            '«comedor configure» no acepta pegado este valor de {name}. Después de esa orden, escribe esta línea a mano en '
                . 'comedor.conf: {name}={value}',
        ],
        'values' => ['Values', 'Valores'],
        'values_intro' => [
            'Copy these lines into “comedor configure”, as the guide says.',
            'Copia estas líneas en «comedor configure», como dice la guía.',
        ],
        'service' => ['Service and data folder:', 'Servicio y carpeta de datos:'],
        'no_folder' => ['folder not found', 'carpeta no encontrada'],
        'found' => [
            '{folder} (centres: {centres}, aularios: {aularios}, saved days: {days})',
            '{folder} (centros: {centres}, aularios: {aularios}, días guardados: {days})',
        ],
        'folder' => [
            'No folder “Centros” was found. Write the folder that contains it:',
            'No se ha encontrado la carpeta «Centros». Escribe la carpeta que la contiene:',
        ],
        'access' => [
            'Your user lacks the following: {lacks}. Which sessions may use comedor?',
            'A tu usuario le falta lo siguiente: {lacks}. ¿Qué sesiones pueden usar comedor?',
        ],
        'access_centre' => [
            'centre: yours too, and the others that lack any of it',
            'centre: también la tuya y las demás a las que les falta algo de esto',
        ],
        'access_listed' => ['listed: only sessions that have all of it', 'listed: solo las que lo tienen todo'],
        'show' => ['Show the address of Redis', 'Mostrar la dirección de Redis'],
        'copy' => ['Copy', 'Copiar'],
        'copied' => ['Copied', 'Copiado'],
        'user' => ['User', 'Usuario'],
        'group' => ['Group', 'Grupo'],
        'umask' => ['umask', 'umask'],
        'server' => ['Web server', 'Servidor web'],
        'way' => ['PHP runs by', 'PHP se ejecuta con'],
        'path' => ['Path', 'Ruta'],
        'heading' => ['Heading of the guide', 'Apartado de la guía'],
        'no_heading' => ['none for this web server', 'ninguno para este servidor web'],
        'if_not_root' => [
            'if you are not root on this server: {heading_hosting}',
            'si no eres root en este servidor: {heading_hosting}',
        ],
        'in_container' => [
            'PHP runs in a container; if comedor is to be in another one: {heading_containers}',
            'PHP está en un contenedor; si comedor va a estar en otro: {heading_containers}',
        ],
        'php_says' => ['What PHP says', 'Lo que dice PHP'],
        'script' => ['Script', 'Script'],
        'php' => ['PHP', 'PHP'],
        'sessions' => ['Sessions', 'Sesiones'],
        'cookie' => ['Cookie', 'Cookie'],
        'format' => ['Format', 'Formato'],
        'zone' => ['Time zone', 'Zona horaria'],
        'centre' => ['Centre', 'Centro'],
        'data' => ['Data', 'Datos'],
        'try' => ['Try', 'Prueba'],
        'try_intro' => [
            'When comedor is enabled, this reads the menu types by comedor and by the script, and saves an existing menu with '
                . 'its own names.',
            'Cuando comedor esté activado, esto lee los tipos de menú con comedor y con el script, y guarda un menú existente '
                . 'con sus mismos nombres.',
        ],
        'aulario' => ['Aulario:', 'Aulario:'],
        'try_button' => ['Try', 'Probar'],
        'no_javascript' => [
            'The buttons do nothing: the web server or the browser refuses the JavaScript of this page (a Content-Security-'
                . 'Policy for the whole site?). Copy the lines by hand; the guide says how to try without the page.',
            'Los botones no hacen nada: el servidor web o el navegador rechaza el JavaScript de esta página (¿una Content-'
                . 'Security-Policy para todo el sitio?). Copia las líneas a mano; la guía dice cómo probar sin la página.',
        ],
        'delete' => ['Delete this page', 'Borra esta página'],
        'delete_text' => [
            'When everything is green, delete this file from the server:',
            'Cuando todo esté en verde, borra este fichero del servidor:',
        ],
    ];
}

/** The texts of "Try". */
function try_texts(): array
{
    return [
        'trying' => ['Trying …', 'Probando …'],
        'empty_aulario' => ['Enter an aulario.', 'Escribe un aulario.'],
        'answers_without_login' => [
            'comedor answers, and refuses a request without a login.',
            'comedor responde, y rechaza una petición sin sesión.',
        ],
        'password_first' => [
            'comedor answers. The web server asks for a password of its own, so a request without a login does not reach it.',
            'comedor responde. El servidor web pide una contraseña propia, así que una petición sin sesión no llega.',
        ],
        'same_types' => [
            'You can read: comedor and the script show the same menu types of {aulario}.',
            'Puedes leer: comedor y el script muestran los mismos tipos de menú de {aulario}.',
        ],
        'script_fails' => [
            'You can read the menu types of {aulario}. The script itself fails, so there is nothing to compare them with.',
            'Puedes leer los tipos de menú de {aulario}. El propio script falla, así que no hay con qué compararlos.',
        ],
        'saved' => [
            'You can save: the menu of {date} in {aulario} was saved with its own names.',
            'Puedes guardar: el menú del {date} de {aulario} se ha guardado con sus mismos nombres.',
        ],
        'with_login' => [
            'Tried with your login: centre {centre}; permissions {permissions}; aulas: {aulas}. Other users may have fewer rights.',
            'Probado con tu usuario: centro {centre}; permisos {permissions}; aulas: {aulas}. Otros pueden tener menos derechos.',
        ],
        'no_password' => [
            'The web server asks for a password for this page, and not for comedor’s address: the rule of the folder does not hold '
                . 'there. Repeat it: heading “{heading_enable}” of the guide.',
            'El servidor web pide una contraseña para esta página, y no para la dirección de comedor: allí no vale la regla de la '
                . 'carpeta. Repítela: apartado «{heading_enable}» de la guía.',
        ],
        'same_today' => [
            'comedor and PHP have the same date today.',
            'comedor y PHP tienen hoy la misma fecha.',
        ],
        'other_today' => [
            'For comedor today is {date}, for PHP {today} ({zone}): TZ in comedor.conf is another time zone. Paste the line TZ of '
                . 'this page.',
            'Para comedor hoy es {date}, para PHP {today} ({zone}): TZ en comedor.conf es otra zona horaria. Pega la línea TZ de '
                . 'esta página.',
        ],
        'another_script' => [
            'This comedor answers for another application of this server, whose script is in COMEDOR_SCRIPT, and refuses this one. '
                . 'Do not paste the values: they would replace those of the other one. Heading “{heading_another_application}” of '
                . 'the guide. (If it is the same one, which was moved, paste them.)',
            'Este comedor responde por otra aplicación de este servidor, la del script de COMEDOR_SCRIPT, y rechaza esta. No pegues '
                . 'los valores: sustituirían a los de la otra. Apartado «{heading_another_application}» de la guía. (Si es la '
                . 'misma, que se ha movido, pégalos.)',
        ],
        'other_settings' => [
            'comedor does not know your session: it uses the settings of another application ({path} in comedor.conf). Do not paste '
                . 'the values: they would replace its own. Heading “{heading_another_application}” of the guide.',
            'comedor no reconoce tu sesión: usa los ajustes de otra aplicación ({path} en comedor.conf). No pegues los valores: '
                . 'sustituirían a los suyos. Apartado «{heading_another_application}» de la guía.',
        ],
        'nothing_to_save' => [
            'No save was tried, since {aulario} has no saved menu of its own. Save one in the application, reload this page, and try again.',
            'No se ha probado el guardado, porque {aulario} no tiene ningún menú propio guardado. Guarda uno en la aplicación, recarga esta página y prueba de nuevo.',
        ],
        'all_green' => [
            'Everything works. Delete this page now.',
            'Todo funciona. Ahora borra esta página.',
        ],
        'disable' => [
            'If users are at work, first disable comedor again, so that the script answers: heading “{heading_undo}” of the guide.',
            'Si hay usuarios trabajando, primero desactiva comedor, para que responda el script: apartado «{heading_undo}» de la guía.',
        ],
        'comedor_says' => ['comedor', 'comedor'],
        'script_says' => ['the script', 'el script'],
        'script_answers' => [
            'The script still answers, not comedor. Repeat the step “enable” of the guide, with the restart of the web server.',
            'Todavía responde el script, no comedor. Repite el paso «activar» de la guía, con el reinicio del servidor web.',
        ],
        'redirects' => [
            'The web server or the script sends the browser to another address, and comedor does not answer. Open this page at '
                . 'the address at which the application ends up; then repeat the step “enable” of the guide.',
            'El servidor web o el script envía al navegador a otra dirección, y comedor no responde. Abre esta página en la '
                . 'dirección en la que acaba la aplicación; después repite el paso «activar» de la guía.',
        ],
        'no_answer' => [
            'There is no answer within 20 seconds. See the error log of the web server.',
            'No hay respuesta en 20 segundos. Mira el registro de errores del servidor web.',
        ],
        'http_401' => [
            'The web server asks for a password of its own, and refuses it to comedor’s address (401). Allow the address like '
                . 'the rest of the application.',
            'El servidor web pide una contraseña propia y rechaza la dirección de comedor (401). Permite la dirección '
                . 'como el resto de la aplicación.',
        ],
        'http_403' => [
            'The web server denies access to the program (403): a part of its configuration is missing or another rule denies '
                . 'it. Compare it with the file of the guide.',
            'El servidor web niega el acceso al programa (403): falta una parte de su configuración u otra regla lo niega. '
                . 'Compárala con el fichero de la guía.',
        ],
        'http_404' => [
            'The web server does not find the program (404). Is the package installed, and the path in the configuration right?',
            'El servidor web no encuentra el programa (404). ¿Está instalado el paquete, y es correcta la ruta de la configuración?',
        ],
        'http_500' => [
            'The web server could not run the program ({status}). Its error log has the cause.',
            'El servidor web no pudo ejecutar el programa ({status}). La causa está en su registro de errores.',
        ],
        'http_502' => [
            'The web server cannot connect to comedor ({status}): is its service started, and may the web server use its socket? '
                . 'See the error log of the web server.',
            'El servidor web no puede conectar con comedor ({status}): ¿está iniciado su servicio, y puede el servidor web usar su '
                . 'socket? Mira el registro de errores del servidor web.',
        ],
        'other_answer' => [
            'Neither comedor nor the script answers, but a page of the web server ({status}). See its error log.',
            'No responde ni comedor ni el script, sino una página del servidor web ({status}). Mira su registro de errores.',
        ],
        'error_pages' => [
            'comedor answers, but the web server replaces its error answers with pages of its own (ProxyErrorOverride of Apache, '
                . 'fastcgi_intercept_errors of nginx). Switch that off for this path: heading “{heading_error_pages}” of the guide.',
            'comedor responde, pero el servidor web sustituye sus respuestas de error por páginas propias (ProxyErrorOverride de '
                . 'Apache, fastcgi_intercept_errors de nginx). Desactívalo para esta ruta: apartado «{heading_error_pages}» de la guía.',
        ],
        'or_error_pages' => [
            'Or it replaces comedor’s error answers with pages of its own: heading “{heading_error_pages}” of the guide.',
            'O sustituye las respuestas de error de comedor por páginas propias: apartado «{heading_error_pages}» de la guía.',
        ],
        'anyone_reads' => [
            'A request without a login was not refused. A cache or a proxy before the web server may answer it.',
            'No se ha rechazado una petición sin sesión. Quizá responde una caché o un proxy delante del servidor web.',
        ],
        'other_session' => [
            'comedor does not find your session. PHP has it in {save_path} ({handler}), with the cookie {name} in the format {format}; '
                . 'comedor.conf says something else, or comedor runs where that folder is another one. {paste_again}',
            'comedor no encuentra tu sesión. PHP la tiene en {save_path} ({handler}), con la cookie {name} en el formato {format}; '
                . 'comedor.conf dice otra cosa, o comedor se ejecuta donde esa carpeta es otra. {paste_again}',
        ],
        'unusable_session' => [
            'comedor finds your session and cannot read it: its format in comedor.conf differs from PHP’s, {format}, or its file '
                . 'belongs to another user. {paste_again}',
            'comedor encuentra tu sesión y no puede leerla: su formato en comedor.conf no es el de PHP, {format}, o su fichero es '
                . 'de otro usuario. {paste_again}',
        ],
        'session_without_centre' => [
            'comedor finds your session, and no usable centre in it for the service of comedor.conf. Here the service is '
                . '{service}. {paste_again}',
            'comedor encuentra tu sesión, y en ella ningún centro que sirva para el servicio de comedor.conf. Aquí el servicio es '
                . '{service}. {paste_again}',
        ],
        'unusable_centre' => [
            'comedor cannot use the name of your centre, {centre}. Change it: heading “{heading_ids}” of docs/files.md.',
            'comedor no puede usar el nombre de tu centro, {centre}. Cámbialo: apartado «{heading_ids}» de la guía.',
        ],
        'lacks_docente' => [
            'Your user lacks the permission {service}:docente. Give it in the application, log in again, and try again.',
            'A tu usuario le falta el permiso {service}:docente. Dáselo en la aplicación, inicia sesión de nuevo y prueba otra vez.',
        ],
        'lacks_access' => [
            'Your user lacks the permission {service}:access, which COMEDOR_ACCESS=listed requires. Give it in the application, log '
                . 'in again, and try again.',
            'A tu usuario le falta el permiso {service}:access, que COMEDOR_ACCESS=listed exige. Dáselo en la aplicación, inicia '
                . 'sesión de nuevo y prueba otra vez.',
        ],
        'lacks_list' => [
            'Your session has no list of aularios (aulas), which COMEDOR_ACCESS=listed requires. Give your user aularios in the '
                . 'application, log in again, and try again.',
            'Tu sesión no tiene lista de aularios (aulas), que COMEDOR_ACCESS=listed exige. Dale aularios a tu usuario en la '
                . 'aplicación, inicia sesión de nuevo y prueba otra vez.',
        ],
        'or_centre' => [
            'Or, since the script admits your user as it is, set COMEDOR_ACCESS=centre.',
            'O, como el script admite a tu usuario tal como está, escribe COMEDOR_ACCESS=centre.',
        ],
        'not_this_aulario' => [
            '{aulario} is not among the aularios of your session. Choose another one.',
            '{aulario} no está entre los aularios de tu sesión. Elige otro.',
        ],
        'another_site' => [
            'comedor takes this page for one of another site: a proxy changes the header Host. Let it pass Host unchanged, or add '
                . 'this line to comedor.conf: {line}',
            'comedor toma esta página por una de otro sitio: un proxy cambia la cabecera Host. Haz que la conserve, o añade '
                . 'esta línea a comedor.conf: {line}',
        ],
        'no_such_aulario' => [
            'comedor does not find the aulario {aulario}: is COMEDOR_DATA_DIR in comedor.conf the folder that is shown here?',
            'comedor no encuentra el aulario {aulario}: ¿es COMEDOR_DATA_DIR en comedor.conf la carpeta que se muestra aquí?',
        ],
        'internal_error' => [
            'comedor answers, and something on the server is wrong. {compare_user} If it is the same, run the check of the guide '
                . '(comedor check) as this user. The error log of the web server or of comedor’s service has the cause too.',
            'comedor responde, pero algo falla en el servidor. {compare_user} Si es el mismo, haz la comprobación de la guía (comedor '
                . 'check) con este usuario. La causa está también en el registro del servidor web o del servicio de comedor.',
        ],
        'cannot_save' => [
            'comedor reads, and cannot save: its user may not write to the data folder, or its service may not (ReadWritePaths). '
                . '{compare_user} If it is the same, run the check of the guide (comedor check) as this user.',
            'comedor lee, pero no puede guardar: su usuario no puede escribir en la carpeta de datos, o su servicio no puede '
                . '(ReadWritePaths). {compare_user} Si es el mismo, haz la comprobación de la guía (comedor check) con este usuario.',
        ],
        'busy' => [
            'The session or the data is in use by another request. Try again.',
            'Otra petición está usando la sesión o los datos. Prueba otra vez.',
        ],
        'other_types' => [
            'comedor and the script show different menu types: is COMEDOR_DATA_DIR in comedor.conf the folder that is shown here?',
            'comedor y el script muestran tipos de menú distintos: ¿es COMEDOR_DATA_DIR en comedor.conf la carpeta que se muestra aquí?',
        ],
        'other_menu' => [
            'No save was tried: comedor shows another menu of {date} than the file in the folder that is shown here. Was it saved '
                . 'just now? Reload this page. Else COMEDOR_DATA_DIR in comedor.conf is another folder.',
            'No se ha probado el guardado: comedor muestra otro menú del {date} que el fichero de la carpeta que se muestra aquí. ¿Se '
                . 'acaba de guardar? Recarga esta página. Si no, COMEDOR_DATA_DIR en comedor.conf es otra carpeta.',
        ],
        'refuses' => ['comedor refuses: {error}', 'comedor lo rechaza: {error}'],
    ];
}

// The page

/** The lines for `comedor configure`. Service and data folder are those of the first candidate until another is chosen. */
function lines(array $found): array
{
    $session = $found['session'];
    $candidate = $found['candidates'][0];
    // Without a value, as of a server that does not say it, there is no line.
    $known = array_filter(['COMEDOR_SCRIPT' => $found['script'], 'TZ' => $found['zone']]);
    return [
        'COMEDOR_SERVICE' => $candidate['service'],
        'COMEDOR_DATA_DIR' => (string) $candidate['folder'],
        'COMEDOR_SESSION_DIR' => $session['save_path'],
        'COMEDOR_SESSION_NAME' => $session['name'],
        'COMEDOR_SESSION_FORMAT' => $session['format'],
    ] + ($session['handler'] === 'redis' ? ['COMEDOR_SESSION_LIFETIME' => $session['lifetime']] : []) + [
        'COMEDOR_ACCESS' => 'listed',
    ] + $known;
}

/** How a candidate is described. */
function described(array $candidate): string
{
    return $candidate['folder'] === null ? text('no_folder') : text('found', array_filter($candidate, 'is_scalar'));
}

/** The address of Redis without its parameters, one of which is the password. */
function shown_path(array $session): string
{
    return $session['handler'] === 'files' ? $session['save_path'] : (string) preg_replace('~\?.*~s', '', $session['save_path']);
}

/** What the script of the page needs. */
function for_script(array $found): string
{
    $session = $found['session'];
    $keys = array_merge(array_keys(try_texts()), ['copied', 'access', 'by_hand', 'to_give']);
    $in_several = [
        '{paste_again}' => text('paste_again'),
        '{compare_user}' => text('compare_user', ['user' => $found['process']['user']]),
    ];
    $texts = array_map(function ($key) use ($in_several) {
        return strtr(text($key), $in_several);
    }, $keys);
    return to_json([
        'api' => 'comedor.php',
        'page' => basename(__FILE__),
        'folder' => FOLDER,
        'texts' => array_combine($keys, $texts),
        'session' => ['save_path' => shown_path($session), 'handler' => $session['handler'], 'name' => $session['name'],
            'format' => $session['format']],
        'other' => $found['other'],
        'zone' => $found['zone'],
        'candidates' => array_map(function ($candidate) {
            return array_intersect_key($candidate, array_flip(['service', 'folder', 'mine', 'lacks', 'to_give', 'login',
                'has_usable_centre']));
        }, $found['candidates']),
    ]);
}

/** Rows of a table: escaped names and values. */
function rows(array $rows): string
{
    $html = '';
    foreach ($rows as $name => $value) {
        $html .= '<tr><th scope="row">' . t($name) . '<td><bdi>' . escape($value) . '</bdi>';
    }
    return "<table>$html</table>";
}

function heading(array $server): string
{
    $heading = $server['heading'] === null ? text('no_heading') : HEADINGS[$server['heading']][column()];
    $more = array_keys(array_filter([
        'if_not_root' => $server['may_be_hosting'],
        'in_container' => $server['is_in_container'],
    ]));
    return $more ? "$heading (" . implode('; ', array_map(__NAMESPACE__ . '\text', $more)) . ')' : $heading;
}

/** What the guide asks for beside the lines. */
function facts(array $found): string
{
    return rows([
        'user' => $found['process']['user'],
        'group' => $found['process']['group'],
        'umask' => $found['process']['umask'],
        'server' => $found['server']['software'],
        'way' => $found['server']['way'],
        'path' => $found['path'],
        'heading' => heading($found['server']),
    ]);
}

function what_php_says(array $found): string
{
    $session = $found['session'];
    $centres = array_unique(array_column($found['candidates'], 'centre'));
    return rows([
        'script' => __DIR__ . '/comedor.php',
        'php' => PHP_VERSION . ', ' . PHP_SAPI,
        'sessions' => $session['handler'] . ': ' . shown_path($session),
        'cookie' => $session['name'],
        'format' => $session['format'],
        'zone' => $found['zone'] ?? '–',
        'centre' => implode(', ', $centres),
        'data' => implode('; ', array_unique(array_map(__NAMESPACE__ . '\described', $found['candidates']))),
    ]);
}

/** A line `NAME=value`. The address of Redis is shown on demand: it can contain a password. */
function line(string $name, string $value, bool $is_secret): string
{
    $value = '<bdi class="value">' . escape($value) . '</bdi>';
    $value = $is_secret ? '<details><summary>' . t('show') . "</summary>$value</details>" : $value;
    return "<div data-name=\"$name\">$name=$value</div>";
}

/** Whether the value of a line can be pasted. The folder of the data is one of several: the script of the page looks. */
function can_be_pasted(string $name, string $value, array $session): bool
{
    if ($name === 'COMEDOR_SCRIPT') {
        return preg_match('/^' . PATH . '/D', $value) === 1;
    }
    // Without a folder, it is an address of Redis.
    $is_folder = $name === 'COMEDOR_SESSION_DIR' && $session['folder'] !== '';
    return $value === '' || is_plain($value) && (!$is_folder || preg_match('/' . FOLDER . '/D', $session['folder']) === 1);
}

/** Every line. A value that cannot be pasted is in a note instead. */
function all_lines(array $found, array &$notes): string
{
    $html = '';
    foreach (lines($found) as $name => $value) {
        $is_secret = $name === 'COMEDOR_SESSION_DIR' && $found['session']['handler'] === 'redis';
        if (can_be_pasted($name, $value, $found['session'])) {
            $html .= line($name, $value, $is_secret);
        } else {
            $shown = $is_secret ? shown_path($found['session']) : $value;
            $notes[] = text('by_hand', ['name' => $name, 'value' => $shown]);
        }
    }
    return $html;
}

function show(array $found): void
{
    $stops = $found['refusals'] ? array_merge([text('refused')], $found['refusals']) : (array) $found['missing'];
    $notes = $found['notes'];
    $lines = $stops ? '' : all_lines($found, $notes);
    $nonce = send_headers(200, 'text/html'); ?>
<!doctype html>
<html lang="<?= language() ?>">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title><?= t('title') ?></title>
<style nonce="<?= $nonce ?>">
<?php show_style() ?>
</style>
<h1><?= t('title') ?></h1>
<p><?= t('intro') ?></p>
<?php if ($stops) { ?>
<div class="note stop"><p><?= implode('<p>', array_map(__NAMESPACE__ . '\escape', $stops)) ?></div>
<?php }
    foreach ($notes as $note) { ?>
<p class="note"><?= escape($note) ?></p>
<?php }
    if (!$stops) {
        show_values($found['candidates'], $lines);
    } ?>
<?= facts($found) ?>
<details><summary><?= t('php_says') ?></summary><?= what_php_says($found) ?></details>
<?php if (!$stops) {
        show_try(); ?>
<script nonce="<?= $nonce ?>">
const page = <?= for_script($found) ?>;
<?php show_script() ?>
</script>
<?php }
}

/** A text for HTML. */
function t(string $key): string
{
    return escape(text($key));
}

function show_style(): void
{ ?>
:root { color-scheme: light dark; --text: #1b1f24; --page: #fff; --box: #f3f5f7; --line: #d5dae0; --weak: #57606a;
  --blue: #0b5cad; --green: #1a7f37; --red: #c62828; --amber: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --page: #14171b; --box: #20252b; --line: #3a414a; --weak: #a2abb5;
  --blue: #2f81d4; --green: #4cc268; --red: #ff7b72; --amber: #e3b341 } }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 46em; margin: 1.5em auto 4em; padding: 0 1em; color: var(--text);
  background: var(--page) }
h1 { font-size: 1.6em; margin-bottom: .2em } h2 { font-size: 1.2em; margin: 2em 0 .3em }
[hidden] { display: none !important } p { margin: .5em 0 } bdi { overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; margin: 1em 0 }
th, td { text-align: left; vertical-align: top; padding: .3em .6em .3em 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600; width: 11em }
.lines, pre { font: .85em/1.6 ui-monospace, monospace; background: var(--box); border-radius: .4em; padding: .8em 1em; margin: .6em 0;
  overflow-wrap: anywhere; white-space: pre-wrap }
details { margin: .4em 0 } .lines details { display: inline-block; margin: 0 } summary { cursor: pointer; color: var(--blue) }
button, select, input { font: inherit; color: inherit; background: var(--page); padding: .3em .8em; border: 1px solid var(--weak);
  border-radius: .4em; max-width: 100% }
button { cursor: pointer } button:disabled { opacity: .5; cursor: default }
#try { background: var(--blue); color: #fff; border-color: transparent; font-weight: 600 }
label { display: block; margin: .4em 0 } .row { display: flex; flex-wrap: wrap; gap: .6em; align-items: center } fieldset { border: 1px solid var(--line); border-radius: .4em; margin: .8em 0 }
.note { border-left: 4px solid var(--amber); background: var(--box); padding: .5em .8em }
.stop { border-left-color: var(--red) }
#out { list-style: none; padding: 0 } #out li { padding-left: 1.6em; margin: .7em 0; position: relative }
#out li::before { position: absolute; left: 0; font-weight: 700 }
#out .green::before { content: "✔"; color: var(--green) } #out .red::before { content: "✘"; color: var(--red) }
#out .amber::before { content: "–"; color: var(--amber) } #out .done { font-weight: 600 }
.sides { display: flex; flex-wrap: wrap; gap: .8em } .sides div { flex: 1 1 16em; min-width: 0 } .sides pre { margin: .2em 0; font-size: .8em }
.sides span { color: var(--weak); font-size: .85em }
<?php
}

/** The choices and the lines. */
function show_values(array $candidates, string $lines): void
{ ?>
<p class="note stop" id="no-javascript"><?= t('no_javascript') ?></p>
<h2>1. <?= t('values') ?></h2>
<p class="note" id="to-give" hidden></p>
<p><?= t('values_intro') ?></p>
<label<?= count($candidates) > 1 ? '' : ' hidden' ?>><?= t('service') ?> <select id="candidate">
<?php foreach ($candidates as $number => $candidate) { ?>
<option value="<?= $number ?>"><?= escape($candidate['service'] . ' – ' . described($candidate)) ?>
<?php } ?>
</select></label>
<label id="no-folder"<?= $candidates[0]['folder'] === null ? '' : ' hidden' ?>><?= t('folder') ?>
<input id="folder" placeholder="/DATA/…" size="30" autocomplete="off"></label>
<p class="note" id="by-hand" hidden></p>
<fieldset id="access" hidden><legend></legend>
<label><input type="radio" name="access" value="centre"> <?= t('access_centre') ?></label>
<label><input type="radio" name="access" value="listed"> <?= t('access_listed') ?></label>
</fieldset>
<div class="lines" id="lines"><?= $lines ?></div>
<p><button type="button" id="copy" disabled><?= t('copy') ?></button></p>
<?php
}

/** "Try", and what comes after it. */
function show_try(): void
{ ?>
<h2>2. <?= t('try') ?></h2>
<p><?= t('try_intro') ?></p>
<div class="row"><label><?= t('aulario') ?> <input id="aulario" list="aularios" autocomplete="off"></label>
<datalist id="aularios"></datalist><button type="button" id="try" disabled><?= t('try_button') ?></button></div>
<ul id="out" aria-live="polite"></ul>
<h2>3. <?= t('delete') ?></h2>
<p><?= t('delete_text') ?></p>
<div class="lines"><bdi><?= escape(__FILE__) ?></bdi></div>
<?php
}

/** The script of the page: choices, copying, and "Try". */
function show_script(): void
{ ?>
const element = id => document.getElementById(id);
const pastedFolder = new RegExp(page.folder);

function text(key, values = {}) {
  return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, () => value), page.texts[key]);
}

/** Control, format and bidirectional characters become U+FFFD, as in the page. */
function clean(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

// Values

let candidate = page.candidates[0];

function setLine(name, value) {
  const shown = document.querySelector(`[data-name="${name}"] .value`);
  if (shown) shown.textContent = value;
}

function linesToCopy() {
  const lines = [...document.querySelectorAll("#lines [data-name]:not([hidden])")];
  return lines.map(line => `${line.dataset.name}=${line.querySelector(".value").textContent}\n`).join("");
}

function setFolder(folder) {
  const isUsable = folder.startsWith("/");
  const isByHand = isUsable && !pastedFolder.test(folder);
  setLine("COMEDOR_DATA_DIR", isUsable ? folder : "");
  document.querySelector("[data-name=COMEDOR_DATA_DIR]").hidden = isByHand;
  element("by-hand").hidden = !isByHand;
  element("by-hand").textContent = text("by_hand", { name: "COMEDOR_DATA_DIR", value: clean(folder) });
  element("copy").disabled = !isUsable;
}

function setAccess(access) {
  setLine("COMEDOR_ACCESS", access);
}

/** Shows the values of a service and a data folder. */
async function choose(number) {
  const chosen = candidate = page.candidates[number];
  const { service, folder, mine, to_give: toGive } = chosen;
  setLine("COMEDOR_SERVICE", service);
  element("no-folder").hidden = folder !== null;
  element("aulario").value = mine.length ? mine[0].id : "";
  element("aularios").replaceChildren(...mine.map(({ id }) => new Option(id, id)));
  element("copy").disabled = true;
  const script = toGive.length && mine.length ? await askScript(mine[0].id) : null;
  // Another one may have been chosen meanwhile.
  if (candidate !== chosen) return;
  offerAccess(chosen, script);
  setFolder(folder ?? element("folder").value.trim());
  element("try").disabled = false;
}

/** If the login lacks what `listed` requires, and the script does not refuse it, the administrator decides. Else it must be
    given what it lacks. */
function offerAccess({ lacks, to_give: toGive }, script) {
  const isRefused = script?.json?.success === false && script.status === 403;
  const given = isRefused ? toGive : toGive.filter(name => !lacks.includes(name));
  element("to-give").hidden = !given.length;
  element("to-give").textContent = text("to_give", { lacks: given.join(", ") });
  const access = script?.json?.success === true ? "centre" : "listed";
  element("access").hidden = !lacks.length || isRefused;
  element("access").querySelector("legend").textContent = text("access", { lacks: lacks.join(", ") });
  element("access").querySelector(`[value=${access}]`).checked = true;
  setAccess(access);
}

/** Copies without the clipboard's API too, which browsers have only over HTTPS. */
function copy(value) {
  const area = document.createElement("textarea");
  area.value = value;
  document.body.append(area);
  area.focus();
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (isCopied) element("copy").textContent = text("copied");
}

// Try

/** The reasons of INVALID_SESSION by the sentences of comedor 1.0, which does not send them. */
const REASONS_OF_1_0 = new Map([
  ["Not logged in: the request has no valid session.", "session"],
  ["The session has no centre.", "centre"],
  ["The centre in the session cannot be used.", "centre"],
  ["The session is not usable; please log in again.", "format"],
]);
/** The start of the sentence of a comedor whose COMEDOR_SCRIPT is another script. */
const ANOTHER_SCRIPT = "comedor answers for another script";

/** An answer to a request. */
async function ask(url, options = {}) {
  try {
    const signal = AbortSignal.timeout(20000);
    // fetch refuses an address with a name and a password, which this page's own may have.
    const address = new URL(url, location.origin + location.pathname);
    const response = await fetch(address, { redirect: "manual", cache: "no-store", signal, ...options });
    return understood(response.status, await response.text(), {
      isRedirect: response.type === "opaqueredirect",
      isComedor: (response.headers.get("X-Powered-By") ?? "").split(", ").includes("comedor"),
    });
  } catch (error) {
    return understood(0, String(error));
  }
}

function understood(status, body, { isRedirect = false, isComedor = false } = {}) {
  let json = null;
  try { json = JSON.parse(body); } catch { }
  const brief = body.replace(/<(style|script)\b.*?<\/\1>/gs, " ").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
  const reason = json?.reason ?? REASONS_OF_1_0.get(json?.error);
  // The PHP script sends none, so a reason tells comedor also where the web server removes X-Powered-By.
  isComedor ||= json?.code === "INVALID_SESSION" && reason !== undefined;
  return {
    status, body, json, reason, isRedirect, isComedor,
    brief: clean(`HTTP ${status} ${brief.slice(0, 300)}`),
  };
}

function query(action, aulario) {
  return `?action=${action}&aulario=${encodeURIComponent(aulario)}`;
}

/** comedor's answer, or of whatever else is at the address. */
function askComedor(action, aulario, options) {
  // Its own query, for caches.
  return ask(`${page.api}${query(action, aulario)}&_=${Date.now()}${Math.random()}`, options);
}

/** The script's answer, which this page obtains by running it. */
async function askScript(aulario) {
  const { json, status, body } = await ask(page.page + query("get_menu_types", aulario));
  if (!json || typeof json.body !== "string") return understood(status, body);
  return { ...understood(json.status, json.body), today: json.today };
}

/** Adds a failure of comedor. First of all, users must be able to go on with the script. */
function fail(sentence, sides) {
  if (!document.querySelector("#out .red")) addItem("amber", text("disable"));
  say("red", sentence, sides);
}

/** Adds a result: `green`, `amber` or `red`, with the answers side by side. */
function say(colour, sentence, sides = {}) {
  const item = addItem(colour, sentence);
  if (!Object.keys(sides).length) return;
  const row = document.createElement("div");
  row.className = "sides";
  for (const [who, answer] of Object.entries(sides)) {
    const side = document.createElement("div"), name = document.createElement("span"), said = document.createElement("pre");
    name.textContent = text(who);
    said.textContent = answer;
    side.append(name, said);
    row.append(side);
  }
  item.append(row);
}

function addItem(colour, sentence) {
  const item = document.createElement("li");
  item.className = colour;
  item.textContent = clean(sentence);
  element("out").append(item);
  return item;
}

/** The script answers, so that users can work, or something else does. */
function sayWhatAnswers(answer, script) {
  const sides = { comedor_says: answer.brief, script_says: script.brief };
  const isScript = answer.status !== 0 && answer.status === script.status && answer.body === script.body;
  if (answer.json || isScript) say("red", text("script_answers"), sides);
  else fail(whatAnswers(answer), sides);
}

/** What answers if neither comedor nor the script does. */
function whatAnswers(answer) {
  const status = answer.status;
  if (answer.isRedirect) return text("redirects");
  if (status === 0) return text("no_answer");
  if (status === 401) return text("http_401");
  if ([502, 503, 504].includes(status)) return text("http_502", { status });
  const key = [403, 404, 500].includes(status) ? `http_${status}` : "other_answer";
  return `${text(key, { status })} ${text("or_error_pages")}`;
}

/** Whether comedor refuses this login or this aulario, and the script does not admit it either: to disable comedor or to set
    COMEDOR_ACCESS=centre is then of no use. */
function isRefusedByBoth({ reason }, script) {
  return ["docente", "access", "aulas", "aulario"].includes(reason) && !script.json?.success;
}

/** Why comedor refuses: the cause, and the next step. */
function cause(answer, aulario) {
  const { code, error = "" } = answer.json ?? {};
  const { reason } = answer;
  const { service, login, has_usable_centre: hasUsableCentre } = candidate;
  if (!answer.json) return whatAnswers(answer);
  if (error.startsWith(ANOTHER_SCRIPT)) return text("another_script");
  if (code === "INVALID_SESSION" && page.other) return text("other_settings", { path: page.other });
  if (code === "INTERNAL_ERROR") return text("internal_error");
  if (code === "BUSY") return text("busy");
  if (code === "NOT_FOUND") return text("no_such_aulario", { aulario });
  if (reason === "session") return text("other_session", page.session);
  if (reason === "centre" && !hasUsableCentre) return text("unusable_centre", login);
  if (reason === "centre") return text("session_without_centre", { service });
  if (reason === "format") return text("unusable_session", page.session);
  if (reason === "origin") return text("another_site", { line: `COMEDOR_TRUSTED_ORIGINS=${location.origin}` });
  if (reason === "docente") return text("lacks_docente", { service });
  if (reason === "access") return text("lacks_access", { service });
  if (reason === "aulas") return text("lacks_list");
  if (reason === "aulario") return text("not_this_aulario", { aulario });
  return text("refuses", { error: error || answer.brief });
}

/** Id, label and colour of each menu type. */
function types(answer) {
  const list = Array.isArray(answer.json?.menu_types) ? answer.json.menu_types : [];
  return list.map(({ id, label, color }) => clean(`${label} (${id}) ${color}`)).join("\n");
}

/** Whether comedor answers. It is asked again after a second: a server that was just reloaded may still be the old one. */
async function comedorAnswers(aulario, script) {
  let own = await askComedor("get_menu_types", aulario);
  if (!own.isComedor) {
    await new Promise(resolve => setTimeout(resolve, 1000));
    own = await askComedor("get_menu_types", aulario);
  }
  const anonymous = await askComedor("get_menu_types", aulario, { credentials: "omit" });
  const sides = { comedor_says: anonymous.brief };
  own.isComedor ||= anonymous.isComedor && own.json !== null;
  const code = anonymous.json?.code;
  if (!own.isComedor) sayWhatAnswers(own, script);
  else if (code === "INVALID_SESSION") say("green", text("answers_without_login"));
  else if (anonymous.status === 401) say("green", text("password_first"));
  else if (!anonymous.json) fail(text("error_pages"), sides);
  // The cause of these two is said with the next answer.
  else if (code !== "INTERNAL_ERROR" && code !== "BUSY") fail(text("anyone_reads"), sides);
  if (own.isComedor && anonymous.status !== 401) await comparePasswords();
  return own;
}

/** Whether the web server asks for a password for this page, and so for the script, only. */
async function comparePasswords() {
  const { status } = await ask(page.page, { credentials: "omit" });
  if (status === 401) say("amber", text("no_password"));
}

/** Compares the read of comedor with the script's. Returns whether nothing is red. */
function compareTypes(own, script, aulario) {
  const sides = { comedor_says: types(own) || own.brief, script_says: types(script) || script.brief };
  const admitsMore = script.json?.success && ["access", "aulas"].includes(own.reason);
  if (isRefusedByBoth(own, script)) say("red", cause(own, aulario), sides);
  else if (!own.json?.success) fail(cause(own, aulario) + (admitsMore ? ` ${text("or_centre")}` : ""), sides);
  else if (!script.json?.success) say("green", text("script_fails", { aulario }), sides);
  else if (types(own) !== types(script)) fail(text("other_types"), sides);
  else say("green", text("same_types", { aulario }), sides);
  return !document.querySelector("#out .red");
}

/** Compares the dates of today. PHP's is asked again if the day may have ended meanwhile. */
async function compareToday(aulario, script) {
  if (!script.today) return;
  const own = await askComedor("get_menu", aulario);
  const { success, date } = own.json ?? {};
  if (!success) return fail(cause(own, aulario), { comedor_says: own.brief });
  const today = date === script.today ? date : (await askScript(aulario)).today;
  if (date === today) say("green", text("same_today"));
  else fail(text("other_today", { date, today, zone: page.zone }));
}

/** Saves a menu that exists with the names that it has now. Only a real save shows that the folder can be written. */
async function saveMenu(aulario) {
  const saved = candidate.mine.find(({ id }) => id === aulario)?.saved;
  if (!saved) return say("amber", text("nothing_to_save", { aulario }));
  const { date, menu_type, names } = saved;
  const read = await askComedor(`get_menu&date=${date}&menu=${encodeURIComponent(menu_type)}`, aulario);
  const menu = read.json?.menu?.plates;
  if (!menu) return fail(cause(read, aulario), { comedor_says: read.brief });
  const isOther = Object.entries(names).some(([plate, name]) => menu[plate]?.name !== name);
  if (isOther) return fail(text("other_menu", { date }), { comedor_says: read.brief });
  const plates = Object.fromEntries(Object.entries(names).map(([plate, name]) => [plate, { name }]));
  const answer = await askComedor("save_menu", aulario, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ date, menu_type, plates }),
  });
  const why = answer.json?.code === "INTERNAL_ERROR" ? text("cannot_save") : cause(answer, aulario);
  if (answer.json?.success) say("green", text("saved", { date, aulario }));
  else fail(why, { comedor_says: answer.brief });
}

async function tryComedor() {
  const aulario = element("aulario").value.trim();
  element("out").replaceChildren();
  if (!aulario) return say("amber", text("empty_aulario"));
  element("try").disabled = true;
  const trying = addItem("", text("trying"));
  const script = await askScript(aulario);
  const own = await comedorAnswers(aulario, script);
  if (own.isComedor && compareTypes(own, script, aulario)) {
    await compareToday(aulario, script);
    await saveMenu(aulario);
  }
  if (own.isComedor) addItem("", text("with_login", candidate.login));
  if (!document.querySelector("#out .red, #out .amber")) addItem("green done", text("all_green"));
  trying.remove();
  element("try").disabled = false;
}

element("no-javascript").remove();
element("candidate").onchange = event => choose(event.target.value);
element("folder").oninput = event => setFolder(event.target.value.trim());
element("access").onchange = event => setAccess(event.target.value);
element("copy").onclick = () => copy(linesToCopy());
element("try").onclick = tryComedor;
choose(0);
<?php
}
