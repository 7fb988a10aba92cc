<?php
require 'comedor/vendor/autoload.php';

$school = 'https://school.example';
$browser = new GuzzleHttp\Client(['cookies' => true]);
$browser->post("$school/login.php", ['form_params' => ['user' => '…', 'password' => '…']]);

$configuration = (new OpenAPI\Client\Configuration())->setHost($school);
$api = new OpenAPI\Client\Api\ComedorApi($browser, $configuration);
$day = $api->getMenu('get_menu', 'aula1', menu: 'basal');
if ($day->getMenuType() !== 'basal') {
    throw new RuntimeException("the answer is for {$day->getMenuType()}");
}
foreach ($day->getMenu()->getPlates() as $key => $plate) {
    echo "$key: {$plate->getName()}\n";
}
