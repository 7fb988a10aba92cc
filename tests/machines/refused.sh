# Servers that `comedor setup` refuses, or puts back: the script answers as before.
. tests/machines/server.sh

# refuses TEXT [NAME=VALUE]...: on such a server, with this text, and without a change.
refuses() {
    installed "${@:2}"
    fails "$1"
}
installed() {
    lay_out "$@"
    install_package
    state > /tmp/before
}
# fails TEXT [OPTION]...
fails() {
    local before
    before=$(status)
    set_up 1 "${@:2}"
    expect "$1" < /tmp/output
    unchanged
    [ "$(status)" = "$before" ]
    [ -z "$(find "$application/api" -newer /tmp/before -name 'comedor-*')" ]
}
# What is answered without a login, at each address of the machine.
status() {
    local address
    for address in 127.0.0.1 192.0.2.7; do
        curl -s -m 60 -o /dev/null -w '%{http_code} ' --resolve "school.example:80:$address" http://school.example/entreaulas/api/comedor.php
    done
}
ip address add 192.0.2.7 dev lo
rewrite() { printf '%s\n' 'RewriteEngine on' "RewriteRule $1"; }

refuses 401 site='<Location "/entreaulas/api">
    AuthType Basic
    AuthName school
    AuthUserFile /dev/null
    Require valid-user
</Location>'
# By CGI, another address of the machine would no longer be refused.
refuses 192.0.2.7 options=--cgi site='<Directory /var/www/html/entreaulas>
    Require ip 127.0.0.1
</Directory>'
refuses 503 site="$(rewrite '^ - [R=503]')" also='a2enmod -q rewrite'
refuses 'no PHP' site="$(rewrite '!^/front.php /front.php')" also='a2enmod -q rewrite; echo "<?php echo 1;" > /var/www/html/front.php'
refuses PrivateTmp sessions=/tmp ini='session.save_path = /tmp'
refuses chroot web=nginx php=pool application=/srv/aulas pool='chroot = /srv' site='
    location ^~ /entreaulas/ {
        rewrite ^/entreaulas/(.*) /$1 break;
        include fastcgi_params;
        fastcgi_param SCRIPT_FILENAME /aulas$fastcgi_script_name;
        fastcgi_pass unix:/run/php/school.sock;
    }' also='install -d -m 1777 /srv/tmp /srv/var/lib/php/sessions'
refuses '"user"' code='session_set_save_handler(new SessionHandler(), true);'
refuses disable_functions php=pool pool='php_admin_value[disable_functions] = stream_socket_client,fsockopen'

installed
comedor setup < /dev/null &> /tmp/output && exit 1
expect terminal < /tmp/output
set_up 0 --dry-run
unchanged
set_up 2 --path /entreaulas
sudo -u www-data comedor setup --yes &> /tmp/output && exit 1
expect root < /tmp/output
systemctl stop apache2
set_up 1
unchanged
systemctl start apache2
address=http://school.example/other/ fails "$application/api/comedor.php; to name another one: sudo comedor setup --script"

# The wrong application.
script=$application/api/comedor.php
cp $script /tmp/script
sed -i 's#/Centros/#/centros/#' $script
fails Centros
cp /tmp/script $script
# shellcheck disable=SC2016  # PHP's variable
echo '$db = new PDO("sqlite:/DATA/entreaulas/menus.sqlite");' >> $script
fails database
rm $script
set_up 1
unchanged

# Names that Apache would read as more than a name.
installed
evil=$'/var/www/html/x">\nLoadModule evil evil.so\n#'
mv /var/www/html/entreaulas "$evil"
set_up 1
unchanged
mv "$evil" /var/www/html/entreaulas

# Damaged files, which the PHP script cannot use either.
installed
aularios=$data/Centros/colegio/Aularios
mkdir -p $aularios/{aula0,aula1/Comedor/2024-03/01}
echo '{}' > $aularios/aula0.json
echo '[' | tee $aularios/aula0/Comedor-MenuTypes.json > $aularios/aula1/Comedor/2024-03/01/_datos.json
chown -R www-data: $aularios
set_up 0
comedor_answers
# Settings that were added since are kept.
echo COMEDOR_TRUSTED_ORIGINS=https://other.example >> /etc/comedor/comedor.conf
comedor setup --undo
script_answers
grep other.example /etc/comedor/comedor.conf

# An upstream of the same name, with which nginx would not start again.
installed web=nginx php=fpm
cp /usr/share/doc/comedor/examples/nginx-upstream.conf.example /etc/nginx/conf.d/comedor.conf
state > /tmp/before
fails 'duplicate upstream'

# A configuration that was broken before.
installed
echo NoSuchDirective > /etc/apache2/conf-enabled/broken.conf
state > /tmp/before
fails NoSuchDirective
rm /etc/apache2/conf-enabled/broken.conf

# A web server that does not start or reload with comedor.
installed
enabled=/etc/apache2/conf-enabled/zz-comedor-setup.conf
mkdir -p /run/systemd/system/apache2.service.d
printf '%s\n' '[Service]' "ExecStartPre=/bin/sh -c '! [ -e $enabled ]'" ExecReload= "ExecReload=/bin/sh -c '! [ -e $enabled ]'" \
    'ExecReload=/usr/sbin/apachectl graceful' > /run/systemd/system/apache2.service.d/test.conf
systemctl daemon-reload
fails 'put back'

# A signal in the middle.
installed
mkdir -p /run/systemd/system/apache2.service.d
# shellcheck disable=SC2016  # a shell's substitution in the unit
printf '%s\n' '[Service]' "ExecStartPre=/bin/sh -c 'kill -INT \$(cat /run/setup.pid)'" > /run/systemd/system/apache2.service.d/test.conf
systemctl daemon-reload
bash -c 'echo $$ > /run/setup.pid; exec comedor setup --yes http://school.example/entreaulas/'
comedor_answers
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
    mkdir -p $folder
    cp -a $folder /tmp/folder
    mount -t tmpfs -o size=256k none $folder
    cp -a /tmp/folder/. $folder
    cat /dev/zero > $folder/full 2> /dev/null || true
    state > /tmp/before
    fails 'No space left'
    umount $folder
    rm -r /tmp/folder
done
