#!/bin/bash
# Runs every command of docs/install.md and docs/troubleshooting.md on a throw-away copy of this machine:
# its files under an overlay in memory, no network but loopback. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
repository=$PWD
mkdir -p target/install
if [ "${1:-}" != inside ]; then
    exec unshare --mount --net --pid --fork --kill-child "$repository/tests/package/walk.sh" inside
fi

# The copy.
scratch=$(mktemp -d)
mount -t tmpfs none "$scratch"
root=$scratch/root
mkdir "$scratch/upper" "$scratch/work" "$root"
mount -t overlay none -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mount -t proc none "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
# The repository may be below /tmp, or on a file system of its own.
mkdir -p "$root$repository"
mount --bind "$repository" "$root$repository"
mount --bind "$repository/target/install" "$root$repository/target"
ip link set lo up

# What the copy does not have: sudo, which resets the environment, and systemd.
cat > "$root/usr/local/sbin/sudo" << 'END'
#!/bin/bash
shopt -s extglob
as=()
if [ "$1" = -u ]; then as=(runuser -u "$2" --) && shift 2; fi
command=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${as[@]}" "$@")
[ "$*" = "comedor check" ] || exec "${command[@]}"
# One warning is right: the data is on the overlay, as in a container without a volume.
findings=$("${command[@]}" | tee /dev/stderr | grep -E '^(warning|error)')
[[ $findings == 'warning /DATA/'+([^$'\n'])'the file system is overlay,'+([^$'\n']) ]]
END
cat > "$root/usr/local/sbin/systemctl" << 'END'
#!/bin/bash
set -e
stop() {
    [ -e "$1" ] || return 0
    # nginx answers before it writes this file.
    until [ -s "$1" ]; do sleep 0.02; done
    pid=$(cat "$1")
    kill "$pid"
    tail --pid="$pid" -f /dev/null
}
stop_comedor() { stop /run/comedor/pid && rm -f /run/comedor/pid; }
start_comedor() {
    mkdir -p /run/comedor
    chown www-data: /run/comedor
    setpriv --reuid=www-data --regid=www-data --clear-groups bash -c "exec $(cat /tmp/done/Containers.1)" &
    echo $! > /run/comedor/pid
    until [ -S /run/comedor/comedor.sock ]; do sleep 0.02; done
}
case "$*" in
"enable --now comedor.socket") [ -e /run/comedor/pid ] || start_comedor ;;
"try-restart comedor.service") stop_comedor && start_comedor ;;
"disable --now comedor.socket comedor.service") stop_comedor ;;
"daemon-reload") ;;
"restart caddy") HOME=/var/lib/caddy setpriv --reuid=caddy --regid=caddy --init-groups caddy start --config /etc/caddy/Caddyfile ;;
"stop caddy") caddy stop ;;
"stop apache2" | "restart apache2") stop /run/apache2/apache2.pid ;;&
"start apache2" | "restart apache2") apache2ctl start ;;
"restart lighttpd") stop /run/lighttpd.pid && lighttpd -f /etc/lighttpd/lighttpd.conf ;;
"reload nginx") [ -s /run/nginx.pid ] && nginx -s reload || nginx ;;
"stop "*) stop "/run/$2.pid" ;;
*) [ "$*" = "stop apache2" ] ;;
esac
END
cat > "$root/usr/local/sbin/apt-get" << 'END'
#!/bin/bash
# The package is here; this is its service.
[ "$*" = "install fcgiwrap" ]
runuser -u www-data -- fcgiwrap -f -c 4 -s unix:/run/www/fcgiwrap.socket &
while [ ! -S /run/www/fcgiwrap.socket ]; do sleep 0.02; done
ln -s www/fcgiwrap.socket /run/fcgiwrap.socket
END
chmod 755 "$root"/usr/local/sbin/{sudo,systemctl,apt-get}

# Each block of commands as a file, named by its heading and its place below that.
mkdir "$root/tmp/blocks"
awk -v folder="$root/tmp/blocks" '
    /^#/ && !inside { sub(/^#+ /, ""); heading = $0; gsub("/", "", heading); count = 0 }
    inside && /^ *```$/ { inside = 0 }
    inside { sub("^" indent, ""); print > file }
    /^ *```(sh|ini|text)$/ { inside = 1; indent = $0; sub(/`.*/, "", indent); file = folder "/" heading "." ++count }
' docs/install.md docs/troubleshooting.md

cat > "$root/tmp/walk" << 'END'
set -euo pipefail
shopt -s extglob
# run HEADING.N: prints and runs that block.
run() {
    echo "== $1" && cat "/tmp/blocks/$1"
    bash -euo pipefail "/tmp/blocks/$1"
    mv "/tmp/blocks/$1" /tmp/done/
}
again() { cp "/tmp/done/$1" /tmp/blocks/ && run "$1"; }
# Runs a command that is in the text of a document, where a table has \| for |.
inline() {
    grep -qF "\`$1\`" docs/*.md || { echo "not in docs/: $1" >&2; exit 1; }
    echo "== $1"
    bash -euo pipefail -c "${1//\\|/|}"
}
# answers PATH TEXT: the answer must contain the text.
answers() {
    local answer
    answer=$(curl -s -b "PHPSESSID=${id:-}" "http://localhost$1?action=get_menu_types&aulario=aula1")
    [[ $answer == *"$2"* ]] || { echo "$1: $answer; expected: $2" && return 1; }
}
# application FOLDER SERVICE: the PHP application, with one aulario.
application() {
    local docroot=/var/www/html$1 aularios=/DATA/$2/Centros/colegio/Aularios
    mkdir -p "$docroot/api" "$aularios"
    cp tests/fixtures/site/api/comedor.php "$docroot/api/"
    sed "s/'service/'$2/; s/centro1/colegio/" tests/fixtures/site/login.php > "$docroot/login.php"
    echo '{"name":"Aula 1"}' > "$aularios/aula1.json"
    chown -R www-data: "/DATA/$2"
}
log_in() { id=$(curl -si "http://localhost$1/login.php" | sed -n 's/^Set-Cookie: PHPSESSID=\([^;]*\).*/\1/p' | tail -n 1); }
# Everything of comedor on this machine, but for the repository and the PHP script.
remains() { find /DATA /etc /opt /usr /var -xdev -name '*comedor*' ! -path '/var/www/*'; }

rm -f target/debian/comedor_*.deb
mkdir -p /tmp/done /run/www /run/lighttpd /run/lock /var/log/apache2 /var/log/lighttpd /var/log/nginx
chown www-data /run/www /run/lighttpd
sysctl -q net.ipv4.ip_unprivileged_port_start=0
mv /tmp/blocks/Containers.1 /tmp/done/
application '' service
remains > /tmp/before
systemctl start apache2
log_in ''
run 'What you need to know.1' | grep '^service:docente'
run 'What you need to know.2' | tee /dev/stderr | grep '^date.timezone'
{ inline "sudo find / -type d -name Centros -not -path '/proc/*'" || true; } | grep /DATA/service/Centros
inline "ps -eo user,comm \\| grep -E 'apache2\\|lighttpd\\|nginx'" | grep www-data
inline 'grep -r ProxyPassMatch /etc/apache2/sites-enabled/ /etc/apache2/conf-enabled/' && exit 1

answers /api/comedor.php 'OLD PHP SCRIPT'
run 'With the Debian package.1'
run '3. Check.1'
run '3. Check.2' <<< "$id"
run 'Apache.2'
run '5. Try.1'
for n in 1 2; do run "Start here.$n"; done
run '500 with an HTML page.1'
inline 'apache2ctl -t -D DUMP_INCLUDES' | grep conf-enabled/comedor.conf
inline 'sudo tail /var/log/apache2/error.log'
answers /api/comedor.php '"success":true'

run 'The socket.1'
mkdir /etc/systemd/system/comedor.service.d
mv '/tmp/blocks/The socket.2' /etc/systemd/system/comedor.service.d/override.conf
systemd-analyze verify --man=no comedor.service
rm -r /etc/systemd/system/comedor.service.d
inline 'sudo a2disconf comedor'
run 'Apache with FastCGI.1'
answers /api/comedor.php '"success":true'
run 'Upgrade.2'
answers /api/comedor.php '"success":true'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
inline 'sudo a2disconf --purge comedor-fastcgi && sudo systemctl restart apache2'
rm /etc/apache2/conf-available/comedor-fastcgi.conf
answers /api/comedor.php 'OLD PHP SCRIPT'
again 'Apache.2'
answers /api/comedor.php '"success":true'

day=/DATA/service/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
curl -s -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
run 'Back up.1'
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
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
run 'lighttpd with FastCGI.1'
answers /api/comedor.php '"success":true'
inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
systemctl stop lighttpd
again 'The socket.1'
run 'nginx.1'
sed -i 's#^\tserver_name _;#&\n\tinclude snippets/comedor.conf;#' /etc/nginx/sites-available/default
run 'nginx.2'
answers /api/comedor.php '"success":true'
systemctl stop nginx
inline 'sudo systemctl disable --now comedor.socket comedor.service'
run 'nginx with fcgiwrap.1'
again 'nginx.2'
answers /api/comedor.php '"success":true'
systemctl stop nginx
again 'The socket.1'
run 'Caddy.1'
printf ':80 {\n\timport comedor.caddyfile\n}\n' > /etc/caddy/Caddyfile
run 'Caddy.2'
answers /api/comedor.php '"success":true'
systemctl stop caddy
inline 'sudo systemctl disable --now comedor.socket comedor.service'
sed -i '/import comedor.caddyfile/d' /etc/caddy/Caddyfile
rm /etc/caddy/comedor.caddyfile
sed -i '/include snippets.comedor.conf;/d' /etc/nginx/sites-available/default
rm /etc/lighttpd/conf-available/90-comedor.conf /etc/nginx/snippets/comedor.conf

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
END
exec chroot "$root" env --chdir="$repository" CARGO_NET_OFFLINE=true bash /tmp/walk
