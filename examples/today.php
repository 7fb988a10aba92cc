<?php
require 'comedor/vendor/autoload.php';

$site = 'https://school.example';
$school = "$site/entreaulas";
$cookies = new GuzzleHttp\Cookie\CookieJar();
$browser = new GuzzleHttp\Client(['cookies' => $cookies]);
$browser->post("$site/_login.php", ['form_params' => ['user' => '…', 'password' => '…']]);
$session = new GuzzleHttp\Cookie\CookieJar(false, array_filter([$cookies->getCookieByName('PHPSESSID')]));

$configuration = (new OpenAPI\Client\Configuration())->setHost($school);
$api = new OpenAPI\Client\Api\ComedorApi(new GuzzleHttp\Client(['cookies' => $session]), $configuration);
$day = $api->getMenu('get_menu', 'aula1', menu: 'basal');
if ($day->getMenuType() !== 'basal') {
    throw new RuntimeException("the answer is for {$day->getMenuType()}");
}
foreach ($day->getMenu()->getPlates() as $key => $plate) {
    echo "$key: {$plate->getName()}\n";
}
