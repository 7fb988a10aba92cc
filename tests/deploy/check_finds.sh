# Servers on which comedor was enabled with a mistake: `comedor check`, as root, finds it.
. tests/deploy/server.sh

missed=0
# finds LEVEL PATTERN: the check has a finding with this text.
finds() {
    comedor check > /tmp/findings || true
    grep -A1 -E "^$1 .*$2" /tmp/findings || { echo "expected: $1 $2" && cat /tmp/findings && missed=1; }
}
# mistake cgi|fastcgi [SETTING]...: enables comedor.
mistake() {
    install_package
    enable_by_hand "$@"
}

# The shipped configuration, with the path of another script.
path=/api/comedor.php
lay_out
mistake cgi
finds error '/entreaulas/api/comedor.php'
lay_out web=nginx php=fpm
mistake fastcgi
finds error '/entreaulas/api/comedor.php'
lay_out
mistake cgi COMEDOR_DATA_DIR=/DATA/otro
finds error '/DATA/entreaulas'
path=/entreaulas/api/comedor.php

# CGI runs as Apache's user.
lay_out php=pool user=maestra
mistake cgi
finds error 'maestra'

# What the sandbox of the service hides.
lay_out php=fpm data_at=/srv/disk/school
mistake fastcgi
finds error 'ReadWritePaths=/srv/disk/school'
lay_out php=fpm data=/home/maestra/entreaulas
mistake fastcgi COMEDOR_DATA_DIR=/home/maestra/entreaulas
finds error 'ProtectHome=no'
lay_out php=fpm sessions=/srv/sessions ini='session.save_path = /srv/sessions'
mistake fastcgi COMEDOR_SESSION_DIR=/srv/sessions
finds error 'ReadWritePaths=/srv/sessions'

# PHP answers before comedor, with the lines of earlier versions.
lay_out application=/srv/aulas
mistake cgi
printf '%s\n' "ScriptAlias $path /usr/lib/cgi-bin/comedor" '<Directory /usr/lib/cgi-bin>' 'Require all granted' \
    '</Directory>' > /etc/apache2/conf-available/comedor.conf
systemctl restart apache2
script_answers
finds error 'Alias'

# Settings of PHP's pages.
lay_out php=pool sessions=/srv/sessions pool='php_admin_value[session.save_path] = /srv/sessions'
mistake cgi
finds error '/srv/sessions.*pool.d/school.conf'
lay_out sessions=/srv/sessions code="ini_set('session.save_path', '/srv/sessions');"
mistake cgi
finds error "/srv/sessions.*settings.php"
lay_out sessions=/srv/sessions code='session_save_path("/srv/sessions");'
mistake cgi
finds error "/srv/sessions.*settings.php"
lay_out code="session_name('AULAS');"
mistake cgi
finds error "AULAS.*settings.php"
lay_out code="date_default_timezone_set('Pacific/Auckland');"
mistake cgi
finds warning "Pacific/Auckland.*settings.php"

# Each level of folders.
lay_out
mistake cgi
mkdir -p /DATA/entreaulas/Centros/ceip1/Aularios
chown -R maestra /DATA/entreaulas/Centros/ceip1
chmod 700 /DATA/entreaulas/Centros/ceip1
finds error '/DATA/entreaulas/Centros/ceip1: '

exit $missed
