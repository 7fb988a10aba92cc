# Set-ups that fail, are refused or are interrupted: the script answers, and nothing remains.
. tests/deploy/server.sh

# Every file in /etc, with its content.
state() {
    find /etc ! -type d -printf '%p %y %#m %u:%g %l\n' | sort
    find /etc -type f -exec sha256sum {} + | sort -k 2
}
unchanged() { diff /tmp/before <(state); }
# set_up STATUS TEXT [OPTION]...: `comedor setup` ends with this status and says this.
set_up() {
    local status=0
    comedor setup "${@:3}" < /dev/null &> /tmp/output || status=$?
    [ "$status" = "$1" ] || { echo "status $status instead of $1" && cat /tmp/output && return 1; }
    expect "$2" < /tmp/output
}
# keeps STATUS TEXT [OPTION]...: the same, and /etc is as before the set-up.
keeps() {
    set_up "$@"
    unchanged
}
# refuses TEXT [OPTION]...: the set-up fails with this text, has changed nothing, and the script answers.
refuses() {
    keeps 1 "$@"
    script_answers
}
installed() {
    lay_out "$@"
    install_package
    state > /tmp/before
}
# A drop-in of the web server's unit.
apache_unit() {
    mkdir -p /run/systemd/system/apache2.service.d
    printf '%s\n' '[Service]' "$@" > /run/systemd/system/apache2.service.d/test.conf
    systemctl daemon-reload
}
link=/etc/apache2/conf-enabled/comedor-setup.conf
# The session files of a teacher; the application's login is one of an administrator.
sessions_of_set_up() { grep -l docente /var/lib/php/sessions/* | xargs -r grep -L sysadmin; }

installed
refuses 'terminal'
keeps 0 /entreaulas/api/comedor.php --dry-run
# An administrator's file.
touch /etc/comedor/comedor.conf.new
set_up 0 '' --undo
rm /etc/comedor/comedor.conf.new
unchanged
set_up 2 'usage' --undo --cgi
sudo -u www-data comedor setup --yes &> /tmp/output && exit 1
expect root < /tmp/output
unchanged
systemctl stop apache2
keeps 1 'no web server is running' --yes
systemctl start apache2

# The wrong application.
script=/var/www/html/entreaulas/api/comedor.php
cp $script /tmp/script
sed -i 's#/Centros/#/centros/#' $script
refuses 'Centros' --yes
cp /tmp/script $script
# shellcheck disable=SC2016  # PHP's variable
echo '$db = new PDO("sqlite:/DATA/entreaulas/menus.sqlite");' >> $script
refuses 'database' --yes
cp /tmp/script $script
rm $script
keeps 1 'api/comedor.php' --yes

# Two scripts: it has to be told which.
installed
cp -r /var/www/html/entreaulas /var/www/html/copia
refuses '/copia/api/comedor.php' --yes
set_up 0 '' --yes --path /entreaulas/api/comedor.php
comedor_answers
keeps 0 '' --undo
rm -r /var/www/html/copia

# Names that Apache would read as more than a name.
evil=$'/var/www/html/x">\nLoadModule evil evil.so\n#'
mv /var/www/html/entreaulas "$evil"
keeps 1 '' --yes
mv "$evil" /var/www/html/entreaulas

# A script of another site at the same path.
installed server='<VirtualHost *:80>
    ServerName other.example
    DocumentRoot /var/www/other
</VirtualHost>'
mkdir -p /var/www/other
cp -r /var/www/html/entreaulas /var/www/other/
refuses 'other.example' --yes --path /entreaulas/api/comedor.php
rm -r /var/www/other

# Damaged files, which the PHP script cannot use either.
installed
aularios=$data/Centros/colegio/Aularios
mkdir -p $aularios/{aula0,aula1/Comedor/2024-03/01}
echo '{}' > $aularios/aula0.json
echo '[' | tee $aularios/aula0/Comedor-MenuTypes.json > $aularios/aula1/Comedor/2024-03/01/_datos.json
chown -R www-data: $aularios
set_up 0 'PHP has too' --yes
comedor_answers
# Settings that were added since are kept.
echo COMEDOR_TRUSTED_ORIGINS=https://other.example >> /etc/comedor/comedor.conf
set_up 0 'comedor.conf.before-setup' --undo
script_answers
grep other.example /etc/comedor/comedor.conf
# So are lines among those of set-up.
installed
comedor setup --yes
sed -i 's/^COMEDOR_SERVICE=.*/&\nCOMEDOR_SESSION_MAX_AGE=900/' /etc/comedor/comedor.conf
set_up 0 'comedor.conf.before-setup' --undo
grep COMEDOR_SESSION_MAX_AGE=900 /etc/comedor/comedor.conf
rm /etc/comedor/comedor.conf.before-setup

# An upstream of the same name, with which nginx would not start again.
installed web=nginx php=fpm
cp /usr/share/doc/comedor/examples/nginx-upstream.conf.example /etc/nginx/conf.d/comedor.conf
state > /tmp/before
refuses 'duplicate upstream' --yes

# Two set-ups, of which the second one adds a setting.
installed web=nginx php=fpm
set_up 3 'include' --yes
echo 'date.timezone = Pacific/Auckland' > "/etc/php/$php_version/fpm/conf.d/99-zone.ini"
set_up 3 'TZ=Pacific/Auckland' --yes
grep COMEDOR_SERVICE=entreaulas /etc/comedor/comedor.conf
set_up 0 '' --undo
rm "/etc/php/$php_version/fpm/conf.d/99-zone.ini"
unchanged

# A configuration that was broken before.
installed
echo NoSuchDirective > /etc/apache2/conf-enabled/broken.conf
state > /tmp/before
refuses 'NoSuchDirective' --yes
rm /etc/apache2/conf-enabled/broken.conf

# A web server that does not start or reload with comedor.
state > /tmp/before
apache_unit "ExecStartPre=/bin/sh -c '! [ -e $link ]'" "ExecReload=" "ExecReload=/bin/sh -c '! [ -e $link ]'" \
    'ExecReload=/usr/sbin/apachectl graceful'
set_up 1 '' --yes
[ ! -e $link ]
script_answers

# A signal in the middle.
installed
apache_unit "ExecStartPre=/bin/sh -c 'kill -INT \$(cat /run/setup.pid)'"
bash -c 'echo $$ > /run/setup.pid; exec comedor setup --yes'
comedor_answers
set_up 0 '' --yes
rm -r /run/systemd/system/apache2.service.d
systemctl daemon-reload
# Removal of the package undoes it too.
dpkg --remove comedor
script_answers
dpkg --purge comedor
left=$(find /etc -name '*comedor*')
[ -z "$left" ] || { echo "left: $left" && exit 1; }

# A full disk.
for folder in /etc/comedor /etc/apache2/conf-available; do
    installed
    cp -a $folder /tmp/folder
    mount -t tmpfs -o size=256k none $folder
    cp -a /tmp/folder/. $folder
    cat /dev/zero > $folder/full 2> /dev/null || true
    state > /tmp/before
    refuses 'No space left' --yes
    umount $folder
    rm -r /tmp/folder
done

# A kill at each step.
calls=rename,renameat,renameat2,symlink,symlinkat,link,linkat,unlink,unlinkat,mkdir,mkdirat,fork,vfork,clone,clone3
installed
step=0 status=137
while [ $status = 137 ]; do
    step=$((step + 1)) status=0
    strace -o /dev/null -e trace=$calls -e inject=$calls:signal=KILL:when=$step comedor setup --yes &> /tmp/output ||
        status=$?
    comedor setup --undo
    unchanged
    script_answers
done
echo "killed $((step - 1)) times"
[ -z "$(sessions_of_set_up)" ]

# A kill during the login.
mv /usr/bin/curl /usr/bin/curl.real
cat > /usr/bin/curl << 'CURL'
#!/bin/sh
[ "$1" = --disable ] || exec curl.real "$@"
options=$(cat)
case $options in *PHPSESSID=*) echo > /run/tried && read -r _ < /run/killed ;; esac
printf '%s\n' "$options" | exec curl.real "$@"
CURL
chmod +x /usr/bin/curl
mkfifo -m 666 /run/tried /run/killed
comedor setup --yes &> /tmp/output &
read -r _ < /run/tried
sessions_of_set_up | grep .
child=$(pgrep -x -u www-data comedor)
kill -KILL $!
wait $! || true
timeout 10 sh -c 'echo > /run/killed'
tail -f --pid="$child" /dev/null
[ -z "$(sessions_of_set_up)" ]
comedor setup --undo
script_answers
