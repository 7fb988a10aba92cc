# The service of FastCGI in its sandbox, behind nginx: its check before the start, a system call that the unit does not
# allow, and a stop.
. lab/machines/server.sh

lay_out web=nginx php=fpm
install_package
mkdir -p /etc/comedor /etc/systemd/system/comedor.service.d
echo COMEDOR_SERVICE=entreaulas > /etc/comedor/comedor.conf
# A system call that the unit does not allow ends the process.
printf '%s\n' '[Service]' SystemCallErrorNumber=kill > /etc/systemd/system/comedor.service.d/override.conf
systemctl daemon-reload
blocks docs/install.md
run 'nginx.1'
sed -i '/^server {/a include snippets/comedor.conf;' /etc/nginx/sites-available/default
restart
comedor_answers

# The check before the start, with the user and the sandbox of the service.
journalctl -u comedor > /tmp/log
grep -F 'ok      user: www-data' /tmp/log
grep -F 'COMEDOR_SERVICE=entreaulas (/etc/comedor/comedor.conf line 1)' /tmp/log
grep -E 'error  |Read-only' /tmp/log && exit 1
# It finds what the sandbox hides, and the service starts all the same.
mkdir -p /srv/school
cp -a /DATA/entreaulas/Centros /srv/school
echo COMEDOR_DATA_DIR=/srv/school >> /etc/comedor/comedor.conf
systemctl restart comedor.service
journalctl -u comedor | grep -F 'error   /srv/school/Centros: is read-only for this process'
[ "$(systemctl is-active comedor.service)" = active ]
sed -i '/COMEDOR_DATA_DIR/d' /etc/comedor/comedor.conf
systemctl restart comedor.service

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

# A stop while nginx keeps connections, in less than the 30 s for which the service waits for one that is in use.
timeout 25 systemctl stop comedor.socket comedor.service
[ "$(systemctl show -P Result comedor.service)" = success ]
