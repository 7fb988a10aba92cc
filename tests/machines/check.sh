# What `comedor check`, as root, finds on servers where comedor is set up and something is changed, or enabled by hand with
# a mistake; and their service.
. tests/machines/server.sh

# finds PATTERN [OPTION]...: the check has a line with it.
finds() {
    comedor check "${@:2}" > /tmp/findings || true
    grep -E "^($1)" /tmp/findings || { echo "expected: $1" && cat /tmp/findings && return 1; }
}
url=http://school.example/entreaulas/

lay_out php=pool user=maestra data_at=/srv/disk/school
install_package
# Another web server, which cannot start again, does not matter to set-up.
sed -i s/80/81/ /etc/nginx/sites-available/default
systemctl start nginx
echo 'NoSuchDirective;' > /etc/nginx/conf.d/broken.conf
set_up 0
finds 'warning .*nginx.*NoSuchDirective'
systemctl stop nginx
check_is_clean
systemctl stop comedor.socket comedor.service
finds 'error .*502 or 503'
systemctl start comedor.socket
echo NoSuchDirective > /etc/apache2/conf-enabled/broken.conf
finds 'error .*NoSuchDirective'
systemctl stop apache2
finds 'error .*apache2.* not run'
rm /etc/apache2/conf-enabled/broken.conf
systemctl start apache2
rm -r /etc/systemd/system/comedor.service.d
systemctl daemon-reload
systemctl restart comedor.service
finds 'error .*User=maestra'
finds 'error .*Read-only file system'

# enable [NAME=VALUE]...: a server on which comedor is enabled by hand, as the guide says.
enable() {
    lay_out "$@"
    install_package
    mkdir -p /etc/comedor
    printf '%s\n' COMEDOR_SERVICE=entreaulas "$settings" > /etc/comedor/comedor.conf
    sed -i 's#/api/comedor.php#/entreaulas&#g' /etc/apache2/conf-available/comedor.conf
    a2enmod -q cgi > /dev/null
    a2enconf -q comedor > /dev/null
    restart
}
enable
finds 'ok .*comedor answers' $url
finds 'no problems' $url
# The web server runs listed scripts only.
enable site='<Files "comedor-*">
    Require all denied
</Files>'
finds 'warning .*not compared with PHP: .* by 127.0.0.1: .* denies access' $url
enable settings=COMEDOR_DATA_DIR=/DATA/otro
finds 'error .*/DATA/entreaulas' $url
enable php=pool user=maestra
finds 'error .*maestra' $url

# The service in its sandbox: a system call that the unit does not allow ends it.
lay_out web=nginx php=fpm
install_package
mkdir -p /etc/systemd/system/comedor.service.d
printf '%s\n' '[Service]' SystemCallErrorNumber=kill > /etc/systemd/system/comedor.service.d/override.conf
systemctl daemon-reload
set_up 3
add_lines
set_up 0
# A save that waits for its session, and replaces the file.
log_in
flock --close "/var/lib/php/sessions/sess_$(awk '/PHPSESSID/ { print $7 }' /tmp/cookies)" \
    timeout 20 sh -c 'touch /tmp/held; until grep -e "->" /proc/locks; do sleep 0.02; done' &
soon test -e /tmp/held
save Lentejas | expect '"success":true'
wait $!
# As after `chmod -R 2775`.
chmod 2775 "$(find /DATA/ -name _datos.json)"
save Alubias | expect '"success":true'
[ "$(systemctl show -P NRestarts comedor.service)" = 0 ]

# A stop while nginx keeps connections, in less than the service waits for one that is in use.
timeout 10 systemctl stop comedor.socket comedor.service
[ "$(systemctl show -P Result comedor.service)" = success ]
