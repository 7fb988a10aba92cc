<?php
// The client of openapi-generator for PHP. Arguments: the address, the cookie of a login, one whose session is locked, and
// the address of a later version.

use OpenAPI\Client\Api\ComedorApi;
use OpenAPI\Client\ApiException;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\{AddMenuTypeBody, DeleteMenuTypeBody, ErrorAnswer, PlateChange, RenameMenuTypeBody, SaveMenuBody};

require 'comedor/vendor/autoload.php';

const DATE = '2026-11-23';

function api_with(string $address, string $cookie): ComedorApi
{
    $browser = new GuzzleHttp\Client(['headers' => ['Cookie' => $cookie]]);
    return new ComedorApi($browser, (new Configuration())->setHost($address));
}

function equal(mixed $found, mixed $expected): void
{
    if ($found != $expected) {
        throw new Exception(json_encode([$found, $expected]));
    }
}

function check_error(int $status, string $code, ?string $reason, callable $call): void
{
    try {
        $call();
    } catch (ApiException $error) {
        $answer = $error->getResponseObject();
        equal($answer instanceof ErrorAnswer, true);
        equal([$error->getCode(), $answer->getCode(), $answer->getReason()], [$status, $code, $reason]);
        equal(isset($error->getResponseHeaders()['Retry-After']), $code === 'BUSY');
        return;
    }
    throw new Exception($code);
}

$api = api_with($argv[1], $argv[2]);
$types = $api->getMenuTypes('get_menu_types', 'aula1')->getMenuTypes();
equal(array_map(fn ($type) => $type->getId(), $types), ['basal', 'vegetariano', 'alergias']);

$day = $api->getMenu('get_menu', 'aula1', DATE, 'vegetariano');
equal([$day->getDate(), $day->getMenuType(), count($day->getMenuTypes())], [DATE, 'vegetariano', 3]);
equal($day->getMenu()->getPlates()['primero']->getName(), '');

$plates = ['primero' => new PlateChange(['name' => 'Piñas']), 'extra' => new PlateChange(['name' => 'Pan'])];
equal((new SaveMenuBody(['menu_type' => 'vegetariano', 'plates' => $plates]))->valid(), false);
$body = new SaveMenuBody(['date' => DATE, 'menu_type' => 'vegetariano', 'plates' => $plates]);
equal($body->valid(), true);
$saved = $api->saveMenu('save_menu', 'aula1', $body);
equal($saved->getMenu()->getPlates()['extra']->getName(), 'Pan');
equal($api->getMenu('get_menu', 'aula1', DATE, 'vegetariano')->getMenu(), $saved->getMenu());

$body = new AddMenuTypeBody(['id' => 'sin-sal', 'label' => 'Sin sal', 'color' => '#ffc107']);
equal($api->addMenuType('add_menu_type', 'aula1', $body)->getMenuType()->getId(), 'sin-sal');
$body = new RenameMenuTypeBody(['id' => 'sin-sal', 'label' => 'Bajo en sal']);
$renamed = $api->renameMenuType('rename_menu_type', 'aula1', $body)->getMenuType();
equal([$renamed->getLabel(), $renamed->getColor()], ['Bajo en sal', '#ffc107']);
$body = new DeleteMenuTypeBody(['id' => 'sin-sal']);
equal($api->deleteMenuType('delete_menu_type', 'aula1', $body)->getSuccess(), true);

check_error(400, 'INVALID_FORMAT', null, fn () => $api->getMenu('get_menu', 'aula1', '2026-02-30'));
check_error(403, 'FORBIDDEN', 'aulario', fn () => $api->getMenu('get_menu', 'aula2'));
check_error(404, 'NOT_FOUND', null, fn () => $api->deleteMenuType('delete_menu_type', 'aula1', $body));
check_error(503, 'BUSY', null, fn () => api_with($argv[1], $argv[3])->getMenuTypes('get_menu_types', 'aula1'));

$api = api_with($argv[4], $argv[2]);
equal($api->getMenuTypes('get_menu_types', 'aula1')->getMenuTypes()[0]->getId(), 'basal');
check_error(403, 'CLOSED', 'closed', fn () => $api->getMenu('get_menu', 'aula1'));
