# The whole way of an administrator on servers of several kinds: package, `comedor setup`, upgrade, undo.
. tests/deploy/server.sh

next_version

# set_up [OPTION]...: sets it up, uses, upgrades and undoes it.
set_up() {
    log_in
    script_answers
    install_package
    comedor setup --yes "$@" > /tmp/setup || [ $web-$? = nginx-3 ]
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
}

lay_out
set_up
lay_out tls=yes
set_up --fastcgi
lay_out php=fpm server='<VirtualHost *:80>
    ServerName other.example
    DocumentRoot /var/www/other
</VirtualHost>'
set_up
lay_out php=fpm data_at=/srv/disk/school
set_up --fastcgi
lay_out php=pool user=maestra data=/home/maestra/entreaulas
set_up
lay_out application=/srv/aulas
set_up --cgi
lay_out php=fpm application=/srv/aulas
set_up --fastcgi
lay_out php=fpm sessions=/srv/sessions ini='session.save_path = /srv/sessions'
set_up --fastcgi
lay_out sessions=/srv/sessions code="
    ini_set('session.save_path', '/srv/sessions');
    session_name('AULAS');
    date_default_timezone_set('Pacific/Auckland');"
set_up
lay_out php=pool sessions=/srv/sessions pool='php_admin_value[session.save_path] = /srv/sessions'
set_up
lay_out web=nginx php=fpm
set_up
lay_out web=nginx php=pool user=maestra data_at=/srv/disk/school
set_up
