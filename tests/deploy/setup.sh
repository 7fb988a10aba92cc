# The whole way of an administrator on servers of several kinds: package, `comedor setup`, upgrade, undo.
. tests/deploy/server.sh

next_version

# whole_way [OPTION]: sets comedor up, uses, upgrades and undoes it.
whole_way() {
    script_answers
    install_package
    comedor setup --yes "$@" &> /tmp/setup || [ $web-$? = nginx-3 ] || { cat /tmp/setup && return 1; }
    if [ $web = nginx ]; then
        # It prints the line for the site.
        script_answers
        line=$(grep -o 'include [^;]*comedor[^;]*;' /tmp/setup)
        sed -i "s#server_name .*#&\n    $line#" /etc/nginx/sites-available/default
        systemctl reload nginx
        comedor setup --yes "$@"
    fi
    comedor_answers
    check_is_clean
    dpkg -i /tmp/next.deb > /dev/null
    comedor_answers
    check_is_clean
    comedor setup --undo
    script_reads_the_menu
    comedor setup --undo
    if [ $web = nginx ]; then
        # The line is still in the site.
        comedor setup --yes "$@"
        comedor_answers
        comedor setup --undo
        script_reads_the_menu
    fi
}
# set_up OPTION [NAME=VALUE]...: on such a server; without an option if it is empty.
set_up() {
    lay_out "${@:2}"
    whole_way ${1:+"$1"}
}

set_up ''
set_up --fastcgi tls=yes
set_up '' php=fpm server='<VirtualHost *:80>
    ServerName other.example
    DocumentRoot /var/www/other
</VirtualHost>'
set_up --fastcgi php=fpm data_at=/srv/disk/school
set_up '' php=pool user=maestra data=/home/maestra/entreaulas
set_up --cgi application=/srv/aulas
set_up --fastcgi php=fpm application=/srv/aulas
set_up --fastcgi php=fpm sessions=/srv/sessions ini='session.save_path = /srv/sessions'
set_up '' sessions=/srv/sessions code="
    ini_set('session.save_path', '/srv/sessions');
    session_name('AULAS');
    date_default_timezone_set('Pacific/Auckland');"
set_up '' php=pool sessions=/srv/sessions pool='php_admin_value[session.save_path] = /srv/sessions'
set_up '' web=nginx php=fpm
set_up '' web=nginx php=pool user=maestra data_at=/srv/disk/school

redis-server --port 6379 --requirepass secret --save '' --daemonize yes > /dev/null
redis=tcp://127.0.0.1:6379?auth=secret
lay_out php=fpm ini=$'session.save_handler = redis\nsession.save_path = "'$redis'"'
install_package
comedor setup --yes --fastcgi &> /tmp/setup && exit 1
expect COMEDOR_SESSION_DIR < /tmp/setup
grep secret /tmp/setup && exit 1
printf '%s\n' '# Our school' COMEDOR_SESSION_DIR=$redis ' COMEDOR_SERVICE =aulas' | tee /tmp/old > /etc/comedor/comedor.conf
chmod 640 /etc/comedor/comedor.conf
chgrp www-data /etc/comedor/comedor.conf
whole_way --fastcgi
diff /tmp/old /etc/comedor/comedor.conf

# Without curl, but for this test.
PATH=$PATH:/opt/curl
install -D /usr/bin/curl /opt/curl/curl
rm /usr/bin/curl
hash -r
set_up ''
