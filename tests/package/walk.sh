#!/bin/bash
# Runs every command of docs/install.md and docs/troubleshooting.md. Run by walk.rs in a throw-away copy of this machine.
set -euo pipefail
export CARGO_NET_OFFLINE=true
unset CARGO_TARGET_DIR
# This machine may start no service of a package, and know of newer packages, which it can't download.
rm -rf /usr/sbin/policy-rc.d /var/lib/apt/lists/*

. tests/package/guide.sh
blocks docs/install.md docs/troubleshooting.md
# finds TEXT: the check, which then fails, prints it.
finds() {
    local findings
    findings=$(sudo -u www-data comedor check) || true
    [[ $findings == *"$1"* ]] || { echo "$findings; expected: $1" && return 1; }
}
# Everything of comedor on this machine, but for the repository and the PHP script.
remains() { find /DATA /etc /opt /usr /var -xdev -name '*comedor*' ! -path '/var/www/*'; }

rm -f target/debian/comedor_*.deb
application '' service
remains > /tmp/before
systemctl start apache2
log_in ''
run 'What you need to know.1' | grep '^service:docente'
{ inline "sudo find / -type d -name Centros -not -path '/proc/*'" || true; } | grep /DATA/service/Centros
inline "ps -eo user,comm \\| grep -E 'apache2\\|caddy\\|lighttpd\\|nginx\\|php-fpm'" | grep www-data
{ inline "sudo find / -path '*/api/comedor.php' -not -path '/proc/*'" || true; } | grep /var/www/html/api/comedor.php
inline 'grep -r ProxyPassMatch /etc/apache2/sites-enabled/ /etc/apache2/conf-enabled/' && exit 1

answers /api/comedor.php 'OLD PHP SCRIPT'
run 'With the Debian package.1'
run '3. Check.1'
run '3. Check.2' <<< "$id"
run 'Apache.2'
run '5. Try.1'
run 'Start here.1'
run '500 with an HTML page.1'
inline 'apache2ctl -t -D DUMP_INCLUDES' | grep conf-enabled/comedor.conf
inline 'sudo tail /var/log/apache2/error.log'
answers /api/comedor.php '"success":true'

run 'The socket.1'
inline 'sudo a2disconf comedor'
run 'Apache with FastCGI.1'
run 'Apache with FastCGI.2'
answers /api/comedor.php '"success":true'
# As `systemctl edit` does.
mkdir -p /etc/systemd/system/comedor.service.d /srv/school /srv/sessions
mv '/tmp/blocks/The socket.2' /etc/systemd/system/comedor.service.d/override.conf
systemctl daemon-reload
inline 'sudo systemctl restart comedor.socket comedor.service'
answers /api/comedor.php '"success":true'
systemctl show --property=ReadWritePaths comedor.service | grep -F '/srv/school /srv/sessions'
inline 'sudo systemctl revert comedor.socket comedor.service'
# "Requests that arrive during the restart wait in the socket; none is lost."
touch /tmp/restarting
while [ -e /tmp/restarting ]; do gives /api/comedor.php '"success":true'; done &
mv '/tmp/blocks/Upgrade.2' /tmp/done
for n in 1 2 3; do again 'Upgrade.2'; done
rm /tmp/restarting
wait $!
inline 'sudo journalctl -u comedor' | grep -F 'Stopped comedor.service'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
# The command for containers, with the same socket.
install -d -o www-data /run/comedor
mv /tmp/blocks/Containers.1 /tmp/done
setpriv --reuid=www-data --regid=www-data --clear-groups bash -c "exec $(cat /tmp/done/Containers.1)" &
until [ -S /run/comedor/comedor.sock ]; do kill -0 $! && sleep 0.02; done
answers /api/comedor.php '"success":true'
kill $!
wait $!
inline 'sudo a2disconf --purge comedor-fastcgi && sudo systemctl restart apache2'
inline 'sudo rm /etc/apache2/conf-available/comedor-fastcgi.conf'
answers /api/comedor.php 'OLD PHP SCRIPT'
again 'Apache.2'
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
run 'Upgrade.1' < /dev/null
dpkg-deb -R target/debian/comedor_*.deb /tmp/next
echo '# new' >> /tmp/next/etc/comedor/comedor.conf
sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
dpkg-deb --root-owner-group -b /tmp/next /tmp/next.deb > /dev/null
echo | dpkg -i /tmp/next.deb > /tmp/question 2>&1
while read -r line; do grep -qF "$line" /tmp/question; done < '/tmp/blocks/dpkg asks about a changed settings file.1'
mv '/tmp/blocks/dpkg asks about a changed settings file.1' /tmp/done
grep '# mine' /etc/comedor/comedor.conf
grep '# new' /etc/comedor/comedor.conf.dpkg-dist

systemctl stop apache2
run 'lighttpd.1'
run 'lighttpd.2'
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
run 'lighttpd with FastCGI.1'
again 'lighttpd.2'
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
systemctl stop lighttpd
again 'The socket.1'
run 'nginx.1'
systemctl start nginx
sed -i 's#^\tserver_name _;#&\n\tinclude snippets/comedor.conf;#' /etc/nginx/sites-available/default
run 'nginx.2'
answers /api/comedor.php '"success":true'
systemctl stop nginx
inline 'sudo systemctl disable --now comedor.socket comedor.service'
finds 'does not exist, and /etc/nginx/snippets/comedor.conf names it, so every request fails'
run 'nginx with fcgiwrap.1'
# The package is there already; its installation starts this.
systemctl start nginx fcgiwrap.socket
again 'nginx.2'
answers /api/comedor.php '"success":true'
systemctl stop nginx
again 'The socket.1'
gpasswd -d caddy www-data || true
systemctl start caddy
finds 'caddy runs as caddy without the group www-data and cannot connect, so every request fails'
run 'Caddy.1'
finds 'caddy runs as caddy without the group www-data and cannot connect, so every request fails'
printf ':80 {\n\timport comedor.caddyfile\n}\n' > /etc/caddy/Caddyfile
run 'Caddy.2'
answers /api/comedor.php '"success":true'
sed -i '/import comedor.caddyfile/d' /etc/caddy/Caddyfile
inline 'sudo rm /etc/caddy/comedor.caddyfile && sudo gpasswd -d caddy www-data && sudo systemctl restart caddy'
systemctl stop caddy
inline 'sudo systemctl disable --now comedor.socket comedor.service'
sed -i '/include snippets.comedor.conf;/d' /etc/nginx/sites-available/default
systemctl start nginx
inline 'sudo rm /etc/nginx/snippets/comedor.conf && sudo systemctl reload nginx'
systemctl stop nginx
inline 'sudo rm /etc/lighttpd/conf-available/90-comedor.conf'

systemctl start apache2
inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
answers /api/comedor.php 'OLD PHP SCRIPT'
run 'Undo.1'
run 'Undo.3'
rm /var/backups/comedor-*
diff /tmp/before <(remains)

run 'Without the package.1'
run 'Apache.1'
again 'Apache.2'
answers /api/comedor.php '"success":true'
inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
run 'Undo.2'
find /DATA -name .comedor.lock -delete
diff /tmp/before <(remains)

application /aulas aulas
again 'With the Debian package.1'
mv '/tmp/blocks/Example: an application below aulas.1' /etc/comedor/comedor.conf
run 'Example: an application below aulas.2'
log_in /aulas
answers /aulas/api/comedor.php '"success":true'
answers /api/comedor.php 'OLD PHP SCRIPT'

[ -z "$(ls /tmp/blocks)" ] || { echo "not run:" && ls /tmp/blocks && exit 1; }
