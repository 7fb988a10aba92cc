# What other users can do to root's `comedor setup` and `comedor check`: pages, answers, files, processes and connections
# that are made to harm.
. tests/machines/server.sh

address=http://school.example/entreaulas/
# Instead of a shell: in the background or in parentheses
as() { exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
# survives COMMAND...: it ends soon, shows nothing that only root can read, and changes nothing outside.
survives() {
    local start=$SECONDS
    status=0
    timeout 60 "$@" < /dev/null > /tmp/output 2>&1 || status=$?
    echo "$*: status $status after $((SECONDS - start)) s"
    [ $status -lt 100 ] || { cat /tmp/output && return 1; }
    ! LC_ALL=C grep -P '[^\n\t[:print:]\x80-\xff]' /tmp/output || return 1
    ! grep -aF "$(head -n 1 /etc/shadow)" /tmp/output || return 1
    # Root does not look instead of the service.
    ! grep -E 'root, which can access|user: root' /tmp/output || return 1
    diff /tmp/outside <(outside)
}
outside() { stat -c '%n %U:%G %a %Y' /etc/shadow /etc/passwd /root /var/www/html /; }
# refuses COMMAND...: it also fails, and the server is as before. A page may be requested before it is replaced: then
# set-up has written what PHP has.
refuses() {
    for _ in {1..20}; do
        survives "$@"
        [ $status = 0 ] || break
        comedor_answers
        ! grep -r /root /etc/comedor /etc/systemd/system/comedor.service.d || return 1
        comedor setup --undo
    done
    cat /tmp/output
    [ $status = 1 ]
    unchanged
}
# page_is TEXT: PHP's user replaces each page of set-up by this, which is an expression of its text.
page_is() {
    # shellcheck disable=SC2016  # PHP's variables
    as www-data php -r 'for (chdir($argv[1]);;) foreach (glob("comedor-*.php") as $page) {
        $text = @file_get_contents($page);
        file_put_contents("next", '"$1"');
        @rename("next", $page);
    }' "$application/api" &
    attack=$!
}
page_is_not() {
    kill $attack
    wait $attack || true
    rm -f "$application"/api/comedor-*
    systemctl restart "$fpm"
}

lay_out php=fpm
install_package
chown -R www-data: "$application"
state > /tmp/before
outside > /tmp/outside
# Endless, slow and false answers to the request and on the socket.
for page in '"<?php while (true) { echo str_repeat(\"x\", 65536); }"' '"<?php sleep(1000);"' \
    '"<?php while (true) { echo \"x\"; ob_flush(); flush(); usleep(100000); }"' \
    'str_replace("\$tell(\"php\"", "while (true) { fwrite(\$socket, \"x\"); }", strtr($text, "\x27", "\""))' \
    'str_replace("session_save_path() ?:", "\"/root\" ?:", $text)'; do
    page_is "$page"
    refuses comedor setup --yes "$address"
    page_is_not
done

# Others who connect to set-up's socket.
# shellcheck disable=SC2016  # PHP's variables
as daemon php -r 'for (;;) foreach (file("/proc/net/unix") as $line) {
    if (preg_match("/@(comedor-\w+)$/", $line, $name)) {
        $all[] = @stream_socket_client("unix://\0$name[1]");
        fwrite(end($all) ?: STDERR, "key=0\n");
    }
}' 2> /dev/null &
attack=$!
survives comedor setup --yes --fastcgi "$address"
kill $attack
[ $status = 0 ] || { cat /tmp/output && exit 1; }
comedor_answers

# Files that are endless, large, links, or named by commands.
make_trap() {
    mkfifo "$1/fifo.php" "$1/.htaccess" "$1/.user.ini"
    yes '<?php' > "$1/fifo.php" &
    truncate -s 10G "$1/sparse.php" "$1/sparse.json"
    ln -s /dev/zero "$1/endless.php"
    ln -s . "$1/loop"
    ln -s / "$1/root"
    ln -s /etc/shadow "$1/shadow.json"
    mkdir "$1/\$(touch evil)" "$1/';touch evil;" "$1/"$'\n        touch evil\n\e[2J'
    (cd "$1" && for n in {1..60}; do mkdir deep && cd deep; done)
}
export -f make_trap
for folder in "$application" $data/Centros $data/Centros/colegio/Aularios $data/Centros/colegio/Aularios/aula1; do
    (as www-data bash -c "make_trap $folder")
done
(as www-data bash -c 'cd /var/lib/php/sessions && mkfifo sess_fifo && truncate -s 10G sess_sparse &&
    ln -s /etc/shadow sess_link && touch $'\''sess_\n        touch evil'\')
# Processes with the names of web servers and PHP.
for name in apache2 caddy nginx php-fpm$php_version; do
    as www-data bash -c "exec -a '$name: master process' sleep 1000" &
done
survives comedor check

# A script that changes while it is read; a group of processes, which ends as a whole.
as www-data setsid bash -c 'cd /var/www/html/entreaulas/api && cp comedor.php copy && while :; do
    ln -sfn /dev/zero next && mv -T next comedor.php
    cp copy next && mv -T next comedor.php
done' 2> /dev/null &
attack=$!
for n in 1 2 3; do survives comedor check; done
survives comedor setup --yes "$address"
kill -KILL -- -$attack
wait $attack || true

# A service that does not answer, with a full queue.
mv -f $application/api/copy $application/api/comedor.php
comedor setup --undo
survives comedor setup --yes --fastcgi "$address"
[ $status = 0 ] || { cat /tmp/output && exit 1; }
comedor_answers
service=$(systemctl show -P MainPID comedor.service)
# Process 0 would be this script itself.
[ "$service" != 0 ]
(as www-data kill -STOP "$service")
ulimit -n 20000
# shellcheck disable=SC2016  # PHP's variables
as www-data php -r 'do {
    $all[] = $last = @stream_socket_client("unix:///run/comedor/comedor.sock", $code, $error, 0, STREAM_CLIENT_ASYNC_CONNECT);
} while ($last);
echo count($all), " connections\n";
sleep(1000);' > /tmp/connections &
soon test -s /tmp/connections
cat /tmp/connections
survives comedor check
grep 'error .*no FastCGI process answers' /tmp/output
