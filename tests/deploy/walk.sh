#!/bin/bash
# Every command of docs/install.md, docs/install-special.md and docs/troubleshooting.md.
set -euo pipefail
. tests/deploy/guide.sh
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
{ run 'By hand.1' || mv '/tmp/blocks/By hand.1' /tmp/done/; } > /tmp/found
grep /DATA/service/Centros /tmp/found
grep /var/www/html/api/comedor.php /tmp/found
inline 'grep -r ProxyPassMatch /etc/apache2/sites-enabled/ /etc/apache2/conf-enabled/' && exit 1

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
run 'Check.2' <<< "$id"
run 'By hand.2'
run 'Start here.1'
run '500 with an HTML page.1'
inline 'sudo tail /var/log/apache2/error.log'
answers /api/comedor.php '"success":true'

inline 'sudo a2disconf comedor'
run 'Apache with FastCGI.1'
run 'Apache with FastCGI.2'
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
inline 'sudo systemctl disable --now comedor.socket comedor.service'
inline 'sudo a2disconf --purge comedor-fastcgi && sudo systemctl restart apache2'
inline 'sudo rm /etc/apache2/conf-available/comedor-fastcgi.conf'
answers /api/comedor.php 'OLD PHP SCRIPT'
again 'By hand.2'
answers /api/comedor.php '"success":true'

day=/DATA/service/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
curl -s -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
run 'Back up.1'
[ "$(stat -c %a /var/backups/comedor-*.tar.gz)" = 600 ]
[ -e /var/backups/comedor-2026-11-22.tar.gz ] || mv /var/backups/comedor-*.tar.gz /var/backups/comedor-2026-11-22.tar.gz
for block in 'Restore.1' 'Restore.2'; do
    echo '{' > "$day"
    run "$block"
    grep Lentejas "$day"
    [ "$(stat -c %U "$day" "$(dirname "$day")/../../../.comedor.lock" | uniq)" = www-data ]
done

echo '# mine' >> /etc/comedor/comedor.conf
echo '# new' >> /tmp/next/etc/comedor/comedor.conf
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
grep '# mine' /etc/comedor/comedor.conf
grep '# new' /etc/comedor/comedor.conf.dpkg-dist
rm $downloads/*
mv /tmp/older/* $downloads/

systemctl stop apache2
run 'lighttpd.1'
run 'lighttpd.3'
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
run 'lighttpd.2'
again 'lighttpd.3'
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
systemctl stop lighttpd
run 'nginx.1'
systemctl start nginx
sed -i 's#^\tserver_name _;#&\n\tinclude snippets/comedor.conf;#' /etc/nginx/sites-available/default
run 'nginx.2'
answers /api/comedor.php '"success":true'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
systemctl stop nginx
cp /usr/share/doc/comedor/examples/nginx-fcgiwrap.conf.example /etc/nginx/snippets/comedor.conf
systemctl start nginx fcgiwrap.socket
again 'nginx.2'
answers /api/comedor.php '"success":true'
systemctl stop nginx
systemctl start comedor.socket
systemctl start caddy
run 'Caddy.1'
printf ':80 {\n\timport comedor.caddyfile\n}\n' > /etc/caddy/Caddyfile
run 'Caddy.2'
answers /api/comedor.php '"success":true'
sed -i '/import comedor.caddyfile/d' /etc/caddy/Caddyfile
inline 'sudo rm /etc/caddy/comedor.caddyfile && sudo gpasswd -d caddy www-data && sudo systemctl restart caddy'
systemctl stop caddy
inline 'sudo systemctl disable --now comedor.socket comedor.service'
sed -i '/include snippets.comedor.conf;/d' /etc/nginx/sites-available/default
systemctl start nginx
inline 'sudo rm /etc/nginx/snippets/comedor.conf /etc/nginx/conf.d/comedor.conf && sudo systemctl reload nginx'
systemctl stop nginx
inline 'sudo rm /etc/lighttpd/conf-available/90-comedor.conf'

systemctl start apache2
run 'Undo.2'
answers /api/comedor.php 'OLD PHP SCRIPT'
use_fastcgi
run 'Undo.3' <<< y
[ "$(systemctl is-active comedor.socket comedor.service | sort -u)" = inactive ]
run 'Undo.4'
rm /var/backups/comedor-*
nothing_remains

with_downloads run 'Without the package.1'
run 'Without the package.2'
again 'By hand.2'
answers /api/comedor.php '"success":true'
again 'Undo.2'
with_downloads run 'Without the package.4'
find /DATA -name .comedor.lock -delete
nothing_remains

application /aulas aulas
rm /var/lib/php/sessions/sess_*
for folder in /etc/php/*/apache2/conf.d; do echo 'date.timezone = Europe/Madrid' > "$folder/99-zone.ini"; done
with_downloads again '1. Install.1'
mv '/tmp/blocks/Settings.1' /etc/comedor/comedor.conf
inline "sudo sed -i 's#\B/api/comedor#/aulas/api/comedor#g' /etc/apache2/conf-available/comedor.conf"
again 'Check.1'
again 'By hand.2'
log_in /aulas
answers /aulas/api/comedor.php '"success":true'
answers /api/comedor.php 'OLD PHP SCRIPT'

[ -z "$(ls /tmp/blocks)" ] || { echo "not run:" && ls /tmp/blocks && exit 1; }
