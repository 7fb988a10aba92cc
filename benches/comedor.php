<?php
// api/comedor.php as a PHP script: get_menu and save_menu with the sessions, rules, files and answers of
// the program. It saves in place without a flush, as the application's pages do; with `durable=1` it
// replaces the file atomically and flushes it; with GUARDAR, the path of examples/guardar.php, it saves by that.

function answer(int $status, array $answer): never
{
    http_response_code($status);
    header('Content-Type: application/json; charset=utf-8');
    header('Cache-Control: no-store');
    header('X-Content-Type-Options: nosniff');
    exit(json_encode($answer, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES));
}

function refuse(int $status, string $code, string $error): never
{
    answer($status, ['success' => false, 'error' => $error, 'code' => $code]);
}

function load(string $file): ?array
{
    return is_file($file) ? json_decode(file_get_contents($file), true, flags: JSON_THROW_ON_ERROR) : null;
}

function save(string $file, array $content, bool $durable): void
{
    if (getenv('GUARDAR')) {
        \comedor\save($file, $content);
        return;
    }
    $text = json_encode($content, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);
    if (!is_dir(dirname($file))) {
        mkdir(dirname($file), 0777, true);
    }
    if (!$durable) {
        file_put_contents($file, $text);
        return;
    }
    $temporary = fopen("$file.tmp", 'w');
    fwrite($temporary, $text);
    if (!fsync($temporary) || !rename("$file.tmp", $file)) {
        refuse(500, 'INTERNAL_ERROR', 'The menu could not be stored.');
    }
}

function shown(array $menu): array
{
    $plates = $menu['plates'] ?? [];
    $shown = [];
    foreach (['primero', 'segundo', 'postre', ...array_keys($plates)] as $key) {
        $plate = $plates[$key] ?? [];
        $shown[$key] = ['name' => $plate['name'] ?? '', 'pictogram' => $plate['pictogram'] ?? ''] + $plate;
    }
    return ['plates' => $shown] + $menu;
}

session_start([
    'cache_limiter' => '',
    'read_and_close' => true,
]);
$service = $_SESSION['auth_data']['service'] ?? [];
$centro = $service['centro'] ?? '';
$id = '/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,249}$/D';
if (($_SESSION['auth_ok'] ?? null) !== true || !preg_match($id, $centro)) {
    refuse(400, 'INVALID_SESSION', 'You are not logged in; please log in.');
}
$permissions = $_SESSION['auth_data']['permissions'] ?? [];
if (!in_array('service:docente', $permissions, true)) {
    refuse(403, 'FORBIDDEN', 'Your user may not see dining-hall menus.');
}
$aulario = $_GET['aulario'] ?? '';
if (!preg_match($id, $aulario)) {
    refuse(400, 'INVALID_FORMAT', 'The aulario is not a valid id.');
}
if (!in_array($aulario, $service['aulas'] ?? [$aulario], true)) {
    refuse(403, 'FORBIDDEN', 'Your user may not access this aulario.');
}
$aularios = $_SERVER['DOCUMENT_ROOT'] . "/../data/Centros/$centro/Aularios";
$settings = load("$aularios/$aulario.json") ?? refuse(404, 'NOT_FOUND', 'Unknown aulario.');
$source = $settings['shared_comedor_from'] ?? '';
$isShared = preg_match($id, $source) && $source !== $aulario && is_file("$aularios/$source.json");
$folder = "$aularios/" . ($isShared ? $source : $aulario);

$types = load("$folder/Comedor-MenuTypes.json") ?? [
    ['id' => 'basal', 'label' => 'Menú basal', 'color' => '#0d6efd'],
    ['id' => 'vegetariano', 'label' => 'Menú vegetariano', 'color' => '#198754'],
    ['id' => 'alergias', 'label' => 'Menú alergias', 'color' => '#dc3545'],
];
$isSave = ($_GET['action'] ?? '') === 'save_menu' && $_SERVER['REQUEST_METHOD'] === 'POST';
$fields = $_GET;
if ($isSave) {
    if ($isShared || !in_array('sysadmin:access', $permissions, true)) {
        refuse(403, 'FORBIDDEN', 'Your user may not change dining-hall menus.');
    }
    $fields = json_decode(file_get_contents('php://input'), true);
    if (!is_array($fields) || !is_array($fields['plates'] ?? null)) {
        refuse(400, 'INVALID_FORMAT', 'The body must be a JSON object with plates.');
    }
} elseif (($_GET['action'] ?? '') !== 'get_menu') {
    refuse(400, 'INVALID_ACTION', 'Unknown action.');
}
$type = trim($fields[$isSave ? 'menu_type' : 'menu'] ?? $types[0]['id']);
if (!in_array($type, array_column($types, 'id'), true)) {
    refuse(400, 'INVALID_MENU_TYPE', 'Unknown menu type.');
}
$date = $fields['date'] ?? date('Y-m-d');
if (!preg_match('/^(\d{4})-(\d\d)-(\d\d)$/D', $date, $parts) || !checkdate($parts[2], $parts[3], $parts[1])) {
    refuse(400, 'INVALID_FORMAT', 'date must be YYYY-MM-DD.');
}

$file = "$folder/Comedor/" . substr($date, 0, 7) . '/' . substr($date, 8) . '/_datos.json';
if ($isSave && getenv('GUARDAR')) {
    require getenv('GUARDAR');
    $lock = \comedor\lock($folder);
}
$day = load($file) ?? ['date' => $date, 'menus' => []];
if (!$isSave) {
    $menu = shown($day['menus'][$type] ?? []);
    answer(200, ['success' => true, 'date' => $date, 'menu_type' => $type, 'menu_types' => $types, 'menu' => $menu]);
}
$menu = $day['menus'][$type] ?? shown([]);
foreach ($fields['plates'] as $key => $plate) {
    if (!preg_match('/^[A-Za-z0-9_-]{1,64}$/D', $key) || !is_string($plate['name'] ?? '')) {
        refuse(400, 'INVALID_FORMAT', 'plates must map keys to objects with a name.');
    }
    if (isset($plate['name'])) {
        $menu['plates'][$key] ??= ['name' => '', 'pictogram' => ''];
        $menu['plates'][$key]['name'] = trim($plate['name']);
    }
}
$day['menus'][$type] = $menu;
save($file, $day, isset($_GET['durable']));
answer(200, ['success' => true, 'date' => $date, 'menu_type' => $type, 'menu' => shown($menu)]);
