<?php
// The values of comedor's settings on shared hosting. Copy this file beside the application's pages, open it in the
// browser while you are logged in, and delete it. The service is the name "in the session" that is not "permissions".
session_start();
echo 'COMEDOR_SESSION_DIR=', session_save_path() ?: sys_get_temp_dir(), '<br>COMEDOR_SESSION_NAME=', session_name();
echo '<br>TZ=', date_default_timezone_get(), '<br>this folder: ', __DIR__, '<br>in the session: ';
echo htmlspecialchars(implode(', ', array_keys($_SESSION['auth_data'] ?? [])));
