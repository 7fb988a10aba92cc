# What `comedor check` finds on servers of several kinds, with comedor enabled as the guides say, and their service.
. tests/deploy/server.sh

# enabled cgi|fastcgi: comedor answers, and the check finds no problem.
enabled() {
    install_package
    script_answers
    enable_by_hand "$1"
    comedor_answers
    check_is_clean
}

lay_out php=fpm data=/srv/disk/entreaulas settings=COMEDOR_DATA_DIR=/srv/disk/entreaulas
enabled cgi

lay_out php=pool user=maestra data_at=/home/maestra/school
drop_in User=maestra Group=maestra ReadWritePaths=/home/maestra/school ProtectHome=no
enabled fastcgi

lay_out web=nginx php=fpm
# A system call that the unit does not allow ends the service.
drop_in SystemCallErrorNumber=kill
enabled fastcgi
# A save that waits for its session, and replaces the file.
flock --close "/var/lib/php/sessions/sess_$(awk '/PHPSESSID/ { print $7 }' /tmp/cookies)" \
    sh -c 'touch /tmp/held; until grep -e "->" /proc/locks; do sleep 0.02; done' &
until [ -e /tmp/held ]; do sleep 0.02; done
save Lentejas | expect '"success":true'
wait $!
# As after `chmod -R 2775`.
chmod 2775 "$(find /DATA/ -name _datos.json)"
save Alubias | expect '"success":true'
[ "$(systemctl show -P NRestarts comedor.service)" = 0 ]

# A stop while nginx keeps connections, in less than the service waits for one that is in use.
timeout 10 systemctl stop comedor.socket comedor.service
[ "$(systemctl show -P Result comedor.service)" = success ]
