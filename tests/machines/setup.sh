# Servers of many kinds on which comedor is set up, used, upgraded and undone. A teacher's login is the application's.
. tests/machines/server.sh

next_version

# works [NAME=VALUE]...: the whole way of an administrator on such a server.
works() {
    lay_out "$@"
    script_answers
    install_package
    whole_way
}
whole_way() {
    state > /tmp/before
    if [ $web = apache ]; then
        set_up 0
    else
        set_up 3
        script_answers
        add_lines
        set_up 0
    fi
    comedor_answers
    check_is_clean
    dpkg -i /tmp/next.deb > /dev/null
    comedor_answers
    check_is_clean
    if [ $web = caddy ] || [ $web = lighttpd ]; then
        # Without the service, the web server would have no answer.
        comedor setup --undo && return 1
        comedor_answers
        remove_lines
    fi
    comedor setup --undo > /tmp/undone
    script_reads_the_menu
    if [ $web = nginx ]; then
        # The line still includes it.
        expect 'Emptied /etc/nginx/snippets' < /tmp/undone
        grep 'Removed /etc/nginx/snippets' /tmp/undone && return 1
        remove_lines
        comedor setup --undo
    fi
    unchanged
}

works options=--cgi
works options=--fastcgi tls=yes data_at=/srv/disk/school
works php=pool user=maestra data=/home/maestra/entreaulas sessions=/srv/sessions \
    pool='php_admin_value[session.save_path] = /srv/sessions'
works php=suexec user=maestra
works php=fpm site="ProxyPassMatch \"^/(.*\.php)\$\" \"unix:/run/php/$fpm.sock|fcgi://localhost/var/www/html\""
works web=nginx php=pool user=maestra pool="
    prefix = /run/php
    listen = school.sock
    php_admin_value[open_basedir] = /var/www/html/entreaulas:/DATA:/var/lib/php/sessions
    php_admin_value[disable_functions] = fsockopen,exec,passthru,popen,proc_open,shell_exec,system"
works web=caddy php=fpm
works web=lighttpd

# Only root may list /home; and there are copies of the script.
copies='cp -r $application /home/maestra/copy; mkdir /var/www/other; cp -r $application /var/www/other'
works php=pool user=maestra application=/home/maestra/aulas also="$copies; chmod 711 /home /home/maestra; chown maestra: /home/maestra"
chmod 755 /home

# By another address of the machine, it is refused as before.
works site='<Directory /var/www/html/entreaulas>
    Require ip 127.0.0.1
</Directory>'

# Settings that no file of PHP has.
works sessions=/srv/sessions code='
    foreach (["name" => "AULAS", "serialize_handler" => "php_serialize", "save_path" => "/srv/sessions"] as $key => $value) {
        ini_set("session.$key", $value);
    }
    date_default_timezone_set("Pacific/Auckland");'
works ini='auto_prepend_file = /var/www/html/prepend.php' also='
    echo "<?php session_name(\"AULAS\");" > /var/www/html/prepend.php
    echo "<?php session_name(\"OTHER\");" > $application/unrelated.php'
works application=/srv/aulas sessions=/srv/sessions site='<Directory /srv/aulas>
    AllowOverride All
</Directory>' also='
    printf "%s\n" "php_value session.name AULAS" "php_value session.save_path /srv/sessions" > $application/.htaccess'

redis-server --port 6379 --requirepass secret --save '' --daemonize yes > /dev/null
redis=tcp://127.0.0.1:6379?auth=secret
lay_out php=fpm options=--fastcgi ini=$'session.save_handler = redis\nsession.save_path = "'$redis'"'
script_answers
install_package
set_up 1
expect COMEDOR_SESSION_DIR < /tmp/output
grep secret /tmp/output && exit 1
mkdir -p /etc/comedor
printf '%s\n' '# Our school' COMEDOR_SESSION_DIR=$redis ' COMEDOR_SERVICE =entreaulas' > /etc/comedor/comedor.conf
chmod 640 /etc/comedor/comedor.conf
chgrp www-data /etc/comedor/comedor.conf
whole_way
