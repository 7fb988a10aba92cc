# Servers on which comedor was enabled with a mistake: `comedor check`, as root, finds it.
. tests/deploy/server.sh

missed=0
# finds LEVEL PATTERN: the check has a finding with this text.
finds() {
    comedor check > /tmp/findings || true
    grep -A1 -E "^$1 .*$2" /tmp/findings || { echo "expected: $1 $2" && cat /tmp/findings && missed=1; }
}
# mistake cgi|fastcgi LEVEL PATTERN [NAME=VALUE]...: the check of such a server has a finding with this text.
mistake() {
    enable "$1" "${@:4}"
    finds "$2" "$3"
}

# The shipped configuration, with the path of another script.
mistake cgi error '/entreaulas/api/comedor.php' path=/api/comedor.php
mistake fastcgi error '/entreaulas/api/comedor.php' web=nginx php=fpm path=/api/comedor.php
mistake cgi error '/DATA/entreaulas' settings=COMEDOR_DATA_DIR=/DATA/otro

# CGI runs as Apache's user.
mistake cgi error 'maestra' php=pool user=maestra

# What the sandbox of the service hides.
mistake fastcgi error 'ReadWritePaths=/srv/disk/school' php=fpm data_at=/srv/disk/school
mistake fastcgi error 'ProtectHome=no' php=fpm data=/home/maestra/entreaulas \
    settings=COMEDOR_DATA_DIR=/home/maestra/entreaulas
mistake fastcgi error 'ReadWritePaths=/srv/sessions' php=fpm sessions=/srv/sessions \
    ini='session.save_path = /srv/sessions' settings=COMEDOR_SESSION_DIR=/srv/sessions

# PHP answers before comedor, with the lines of earlier versions.
enable cgi application=/srv/aulas
printf '%s\n' "ScriptAlias $path /usr/lib/cgi-bin/comedor" '<Directory /usr/lib/cgi-bin>' 'Require all granted' \
    '</Directory>' > /etc/apache2/conf-available/comedor.conf
systemctl restart apache2
script_answers
finds error 'Alias'

# Settings of PHP's pages.
mistake cgi error '/srv/sessions.*pool.d/school.conf' php=pool sessions=/srv/sessions \
    pool='php_admin_value[session.save_path] = /srv/sessions'
mistake cgi error '/srv/sessions.*settings.php' sessions=/srv/sessions \
    code="ini_set('session.save_path', '/srv/sessions');"
mistake cgi error 'AULAS.*settings.php' code="session_name('AULAS');"
mistake cgi warning 'Pacific/Auckland.*settings.php' code="date_default_timezone_set('Pacific/Auckland');"

exit $missed
