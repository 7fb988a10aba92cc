#!/bin/bash
# Every command of docs/install.md, docs/install-special.md and docs/troubleshooting.md.
set -euo pipefail
. tests/machines/guide.sh
blocks docs/install.md docs/install-special.md docs/troubleshooting.md
# Everything of comedor on this machine, but for the repository and the PHP script.
everything() { find /DATA /etc /opt /usr /var -xdev -name '*comedor*' ! -path '/var/www/*' | sort; }
nothing_remains() {
    local new
    new=$(comm -13 /tmp/before <(everything))
    [ -z "$new" ] || { echo "left: $new" && return 1; }
}

# A folder with what a reader downloads, for this machine.
downloads=/tmp/downloads
mkdir $downloads
cp "$PACKAGE" $downloads/
dpkg-deb -R "$PACKAGE" /tmp/next
archive=comedor-0-$(uname -m)-linux
git -c safe.directory="$PWD" archive --prefix="$archive/" HEAD | tar -x -C $downloads
cp /tmp/next/usr/lib/cgi-bin/comedor cgi-bin/{install,uninstall} "$downloads/$archive/"
tar -C $downloads -czf "$downloads/$archive.tar.gz" --remove-files "$archive"
(cd $downloads && sha256sum -- * > SHA256SUMS)
# run and again, in that folder.
with_downloads() {
    as=(env --chdir=$downloads)
    "$@"
    as=()
}

application '' service
everything > /tmp/before
systemctl start apache2
log_in ''

answers /api/comedor.php 'OLD PHP SCRIPT'
with_downloads run '1. Install.1'
[ "$(systemctl is-enabled comedor.socket)" = disabled ]
answers /api/comedor.php 'OLD PHP SCRIPT'
run_and_agree '2. Set up.1'
answers /api/comedor.php '"success":true'
run '3. Try.1'
run 'Check.1'
run 'Undo.1'
answers /api/comedor.php 'OLD PHP SCRIPT'
settings() {
    inline 'sudo install -D -m 644 /usr/share/doc/comedor/examples/comedor.conf.example /etc/comedor/comedor.conf'
}
settings
run 'Check.2' <<< "$id"
run 'By hand.1'
run 'Start here.1'
run '500 with an HTML page.1'
sed -i 's#PATH#/DATA/service/Centros#' '/tmp/blocks/Permission denied.1'
run 'Permission denied.1'
inline 'sudo tail /var/log/apache2/error.log'
answers /api/comedor.php '"success":true'

# PHP-FPM that takes the path first.
fpm=php$(basename /etc/php/*)-fpm site=/etc/apache2/sites-available/000-default.conf
cp $site /tmp/site
systemctl start "$fpm"
a2enmod -q proxy_fcgi
match="ProxyPassMatch \"^/(.*[.]php)\$\" \"unix:/run/php/$fpm.sock|fcgi://localhost/var/www/html\""
sed -i "s#^</VirtualHost>#$match\n&#" $site
systemctl restart apache2
answers /api/comedor.php 'OLD PHP SCRIPT'
inline 'grep -R ProxyPassMatch /etc/apache2/sites-enabled/ /etc/apache2/conf-enabled/' | grep fcgi://
exception=$(sed -n 's/^#ProxyPass /ProxyPass /p' /etc/apache2/conf-available/comedor.conf)
sed -i "s#^ProxyPassMatch#$exception\n&#" $site
systemctl restart apache2
answers /api/comedor.php '"success":true'
process() { systemctl show -P MainPID "$fpm"; }
before=$(process)
inline "sudo systemctl restart 'php*-fpm.service'"
[[ $before != 0 && $(process) != "$before" ]]
systemctl stop "$fpm"
cp /tmp/site $site

inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
copy apache-fastcgi.conf /etc/apache2/conf-available/comedor-fastcgi.conf
inline 'sudo systemctl enable --now comedor.socket'
inline 'sudo a2enmod proxy_fcgi'
inline 'sudo a2enconf comedor-fastcgi'
inline 'sudo apache2ctl configtest && sudo systemctl restart apache2'
answers /api/comedor.php '"success":true'
# As `systemctl edit` does.
mkdir -p /etc/systemd/system/comedor.service.d /srv/school /srv/sessions
mv '/tmp/blocks/The socket.1' /etc/systemd/system/comedor.service.d/override.conf
systemctl daemon-reload
inline 'sudo systemctl restart comedor.socket comedor.service'
answers /api/comedor.php '"success":true'
systemctl show --property=ReadWritePaths comedor.service | grep -F '/srv/school /srv/sessions'
inline 'sudo systemctl revert comedor.socket comedor.service'
# Requests that arrive during the restart wait in the socket, and none is lost.
touch /tmp/restarting
while [ -e /tmp/restarting ]; do gives /api/comedor.php '"success":true'; done &
mv '/tmp/blocks/Without the package.3' /tmp/done
for n in 1 2 3; do again 'Without the package.3'; done
rm /tmp/restarting
wait $!
inline 'sudo journalctl -u comedor' | grep -F 'Stopped comedor.service'
inline 'sudo a2disconf --purge comedor-fastcgi && sudo systemctl restart apache2'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
rm /etc/apache2/conf-available/comedor-fastcgi.conf
answers /api/comedor.php 'OLD PHP SCRIPT'
again 'By hand.1'
answers /api/comedor.php '"success":true'

day=/DATA/service/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
curl -s -m 60 -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
# As after a copy by root, and a killed process.
chown -R root: /DATA/service/Centros/colegio
touch -d '1 hour ago' "${day%/*}/._datos.json.tmp"
run 'Wrong owner, group or mode.1'
run 'Leftover temporary files.1'
[ -z "$(find /DATA/service ! -user www-data -o -name '*.tmp')" ]
run 'Back up.1'
[ "$(stat -c %a /var/backups/comedor-*.tar.gz)" = 600 ]
[ -e /var/backups/comedor-2026-11-22.tar.gz ] || mv /var/backups/comedor-*.tar.gz /var/backups/comedor-2026-11-22.tar.gz
for block in 'Restore.1' 'Restore.2'; do
    echo '{' > "$day"
    run "$block"
    grep Lentejas "$day"
    [ "$(stat -c %U "$day" "$(dirname "$day")/../../../.comedor.lock" | uniq)" = www-data ]
done

for file in comedor/comedor.conf apache2/conf-available/comedor.conf; do echo '# mine' >> /etc/$file; done
echo '# new' >> /tmp/next/etc/apache2/conf-available/comedor.conf
sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
mkdir /tmp/older
mv $downloads/* /tmp/older/
dpkg-deb --root-owner-group -b /tmp/next $downloads > /dev/null
(cd $downloads && sha256sum -- * > SHA256SUMS)
# As the first request does, after `systemctl enable`.
use_fastcgi() { systemctl enable --now comedor.socket && systemctl start comedor.service; }
running() { readlink "/proc/$(systemctl show --value --property=MainPID comedor.service)/exe"; }
use_fastcgi
echo | with_downloads again '1. Install.1' > /tmp/question 2>&1
[[ $(running) == */usr/lib/cgi-bin/comedor ]] || { running && exit 1; }
systemctl disable --now comedor.socket comedor.service
grep -F 'What would you like to do about it ?' /tmp/question
grep '# mine' /etc/comedor/comedor.conf /etc/apache2/conf-available/comedor.conf
rm $downloads/*
mv /tmp/older/* $downloads/

systemctl stop apache2
for file in lighttpd lighttpd-fastcgi; do
    copy $file.conf /etc/lighttpd/conf-available/90-comedor.conf
    inline 'sudo lighty-enable-mod comedor'
    inline 'sudo lighttpd -tt -f /etc/lighttpd/lighttpd.conf && sudo systemctl restart lighttpd'
    answers /api/comedor.php '"success":true'
    inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
done
rm /etc/lighttpd/conf-available/90-comedor.conf
systemctl stop lighttpd
copy nginx.conf /etc/nginx/snippets/comedor.conf
copy nginx-upstream.conf /etc/nginx/conf.d/comedor.conf
systemctl start nginx
sed -i 's#^\tserver_name _;#&\n\tinclude snippets/comedor.conf;#' /etc/nginx/sites-available/default
inline 'sudo systemctl enable --now comedor.socket'
inline 'sudo nginx -t && sudo systemctl reload nginx'
answers /api/comedor.php '"success":true'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
systemctl stop nginx
copy nginx-fcgiwrap.conf /etc/nginx/snippets/comedor.conf
systemctl start nginx fcgiwrap.socket
inline 'sudo nginx -t && sudo systemctl reload nginx'
answers /api/comedor.php '"success":true'
sed -i '/include snippets.comedor.conf;/d' /etc/nginx/sites-available/default
rm /etc/nginx/snippets/comedor.conf /etc/nginx/conf.d/comedor.conf
inline 'sudo nginx -t && sudo systemctl reload nginx'
systemctl stop nginx
systemctl start caddy
copy Caddyfile /etc/caddy/comedor.caddyfile
printf ':80 {\n\timport comedor.caddyfile\n}\n' > /etc/caddy/Caddyfile
inline 'sudo usermod -aG www-data caddy'
inline 'sudo systemctl enable --now comedor.socket'
inline 'sudo caddy validate --config /etc/caddy/Caddyfile && sudo systemctl restart caddy'
answers /api/comedor.php '"success":true'
sed -i '/import comedor.caddyfile/d' /etc/caddy/Caddyfile
rm /etc/caddy/comedor.caddyfile
inline 'sudo systemctl restart caddy && sudo systemctl disable --now comedor.socket comedor.service'
inline 'sudo gpasswd -d caddy www-data'
systemctl stop caddy

systemctl start apache2
inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
answers /api/comedor.php 'OLD PHP SCRIPT'
use_fastcgi
run 'Undo.2' <<< y
[ "$(systemctl is-active comedor.socket comedor.service | sort -u)" = inactive ]
run 'Undo.3'
rm /var/backups/comedor-*
nothing_remains

with_downloads run 'Without the package.1'
run 'Without the package.2'
again 'By hand.1'
answers /api/comedor.php '"success":true'
inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
with_downloads run 'Without the package.4'
find /DATA -name .comedor.lock -delete
nothing_remains

application /aulas aulas
rm /var/lib/php/sessions/sess_*
for folder in /etc/php/*/apache2/conf.d; do echo 'date.timezone = Europe/Madrid' > "$folder/99-zone.ini"; done
with_downloads again '1. Install.1'
settings
mv '/tmp/blocks/Settings.1' /etc/comedor/comedor.conf
sed -i 's#\B/api/comedor#/aulas/api/comedor#g' /etc/apache2/conf-available/comedor.conf
again 'Check.1'
again 'By hand.1'
log_in /aulas
answers /aulas/api/comedor.php '"success":true'
answers /api/comedor.php 'OLD PHP SCRIPT'
# A second application, with settings of its own.
cat > /etc/apache2/conf-enabled/second.conf << 'CONF'
<Location "/api/comedor.php">
    ScriptAlias "/usr/lib/cgi-bin/comedor"
    SetEnv COMEDOR_SERVICE service
</Location>
CONF
systemctl restart apache2
log_in ''
answers /api/comedor.php '"success":true'

[ -z "$(ls /tmp/blocks)" ] || { echo "not run:" && ls /tmp/blocks && exit 1; }
