# What PHP's user can do to root's `comedor check` and `comedor setup`: files of the application, sessions, data,
# processes and connections that are made to harm.
. tests/deploy/server.sh

as_php() { setpriv --reuid=www-data --regid=www-data --clear-groups "$@"; }
# A tree of such files.
make_trap() {
    mkfifo "$1/fifo.php" "$1/.htaccess" "$1/.user.ini"
    yes '<?php' > "$1/fifo.php" &
    truncate -s 10G "$1/sparse.php" "$1/sparse.json"
    ln -s /dev/zero "$1/endless.php"
    ln -s . "$1/loop"
    ln -s / "$1/root"
    ln -s /etc/shadow "$1/shadow.json"
    mkdir "$1/\$(touch evil)" "$1/';touch evil;" "$1/"$'\n        touch evil\n\e[2J'
    echo '<?php ini_set("session.save_path", "/tmp/`touch evil`\n$(touch evil)"); session_name("a\nb");' > "$1/code.php"
    echo '<?php date_default_timezone_set("/dev/zero");' > "$1/zone.php"
    (cd "$1" && for n in {1..60}; do mkdir deep && cd deep; done)
}
export -f make_trap
# What must not change, the times of folders too: nothing is written outside, and no suggested command harms.
outside() { stat -c '%n %U:%G %a %Y' /etc /etc/shadow /etc/passwd /root /var/www/html /; }
survives() {
    local start=$SECONDS status=0
    timeout 60 "$@" < /dev/null > /tmp/output 2>&1 || status=$?
    echo "$*: status $status after $((SECONDS - start)) s"
    [ $status -lt 100 ] || { cat /tmp/output && return 1; }
    ! LC_ALL=C grep -P '[^\n\t[:print:]\x80-\xff]' /tmp/output || return 1
    ! grep -aF "$(head -n 1 /etc/shadow)" /tmp/output || return 1
    # Root does not look instead of the service.
    ! grep -E 'root, which can access|user: root' /tmp/output || return 1
    # The commands that it suggests.
    grep '^        ' /tmp/output > /tmp/commands || true
    cat /tmp/commands
    (cd / && bash /tmp/commands) < /dev/null > /dev/null 2>&1 || true
    diff /tmp/before <(outside)
}

enable fastcgi php=fpm
comedor_answers
check_is_clean
chown -R www-data: /var/www/html/entreaulas
outside > /tmp/before

# Processes with the names of web servers and PHP.
for name in apache2 caddy nginx php-fpm8.2; do
    as_php bash -c "exec -a '$name: master process' sleep 1000" &
    cp /bin/sleep "/tmp/$name"
    as_php "/tmp/$name" 1000 &
done
for folder in /var/www/html/entreaulas /DATA/entreaulas/Centros /DATA/entreaulas/Centros/colegio/Aularios \
    /DATA/entreaulas/Centros/colegio/Aularios/aula1; do
    as_php bash -c "make_trap $folder"
done
as_php bash -c 'cd /var/lib/php/sessions && mkfifo sess_fifo && truncate -s 10G sess_sparse &&
    ln -s /etc/shadow sess_link && touch $'\''sess_\n        touch evil'\'
survives comedor check
survives comedor setup --dry-run

# Files that change while they are read.
as_php bash -c 'cd /var/www/html/entreaulas/api && cp comedor.php copy && while :; do
    ln -sfn /dev/zero next && mv -T next comedor.php
    cp copy next && mv -T next comedor.php
done' 2> /dev/null &
changing=$!
for n in 1 2 3; do survives comedor check; done
survives comedor setup --yes
kill $changing

# A service that does not answer, with a full queue.
as_php bash -c "kill -STOP $(systemctl show -P MainPID comedor.service)"
ulimit -n 20000
# shellcheck disable=SC2016  # PHP's variables
as_php php -r 'do {
    $all[] = $last = @stream_socket_client("unix:///run/comedor/comedor.sock", $code, $error, 0, STREAM_CLIENT_ASYNC_CONNECT);
} while ($last);
echo count($all), " connections\n";
sleep(1000);' > /tmp/connections &
until [ -s /tmp/connections ]; do sleep 0.02; done
cat /tmp/connections
survives comedor check
