<?php
// A function for a page of the application, with the session of that page, after session_start(). comedor does not see
// which site sent a form to the page: if it saves, the page itself must refuse those of other sites (CSRF).

class ComedorError extends \RuntimeException
{
    // The code; empty if the answer is not comedor's. If it is empty, unknown or INTERNAL_ERROR, a write may have been
    // stored.
    public string $name = '';
    public string $reason = '';
}

function comedor(array $parameters, ?array $fields = null, int $attempts = 3): array
{
    // Releases the session, for which comedor would wait. Write to $_SESSION before this.
    session_write_close();
    $http = ['header' => 'Cookie: ' . session_name() . '=' . session_id(), 'ignore_errors' => true];
    if ($fields !== null) {
        $http['method'] = 'POST';
        $http['header'] .= "\r\nContent-Type: application/json";
        $http['content'] = json_encode($fields, JSON_THROW_ON_ERROR);
    }
    $url = 'https://school.example/entreaulas/api/comedor.php?' . http_build_query($parameters);
    $answer = json_decode((string) file_get_contents($url, false, stream_context_create(['http' => $http])), true);
    if (($answer['code'] ?? '') === 'BUSY' && $attempts > 1) {
        sleep(1); // Retry-After
        return comedor($parameters, $fields, $attempts - 1);
    }
    if (!($answer['success'] ?? false)) {
        $error = new ComedorError($answer['error'] ?? 'The server did not answer in JSON.');
        $error->name = $answer['code'] ?? '';
        $error->reason = $answer['reason'] ?? '';
        throw $error;
    }
    return $answer;
}

/* Its use. This reads, overwrites a menu and deletes a type:

[$aulario, $date] = ['aula1', '2026-11-23'];
$types = comedor(['action' => 'get_menu_types', 'aulario' => $aulario])['menu_types'];
$asked = ['date' => $date, 'menu_type' => $types[0]['id']];
$day = comedor(['action' => 'get_menu', 'aulario' => $aulario, 'date' => $date, 'menu' => $asked['menu_type']]);
if ([$day['date'], $day['menu_type']] !== array_values($asked)) throw new Exception('the answer is for another menu');
$plates = ['primero' => ['name' => 'Lentejas'], 'postre' => ['name' => 'Piña']];
$saved = comedor(['action' => 'save_menu', 'aulario' => $aulario], $asked + ['plates' => $plates]);
if ([$saved['date'], $saved['menu_type']] !== array_values($asked)) throw new Exception('another menu was saved');
try {
    comedor(['action' => 'delete_menu_type', 'aulario' => $aulario], ['id' => 'sin-sal']);
} catch (ComedorError $error) {
    if ($error->name !== 'NOT_FOUND') throw $error; // already deleted: the aulario was read above
}
*/
