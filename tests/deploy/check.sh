# What `comedor check` finds on servers of several kinds, with comedor enabled as the guides say, and their service.
. tests/deploy/server.sh

# enabled cgi|fastcgi: comedor answers, and the check finds no problem.
enabled() {
    script_answers
    enable_by_hand "$1"
    comedor_answers
    check_is_clean
}

lay_out php=fpm data=/srv/disk/entreaulas settings=COMEDOR_DATA_DIR=/srv/disk/entreaulas
install_package
enabled cgi

lay_out php=pool user=maestra data_at=/home/maestra/school
install_package
drop_in User=maestra Group=maestra ReadWritePaths=/home/maestra/school ProtectHome=no
enabled fastcgi

lay_out web=nginx php=fpm
install_package
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

# A stop while a web server keeps connections.
python3 - << 'PYTHON'
import socket, struct, subprocess, time

def record(kind, content=b""):
    return struct.pack(">BBHHxx", 1, kind, 1, len(content)) + content

BEGIN, END, PARAMS, STDIN, KEEP = 1, 3, 4, 5, 1
REQUEST = record(BEGIN, bytes([0, 1, KEEP, 0, 0, 0, 0, 0])) + record(PARAMS) + record(STDIN)

def kept():
    """A connection on which a request was answered."""
    client = socket.socket(socket.AF_UNIX)
    client.connect("/run/comedor/comedor.sock")
    client.sendall(REQUEST)
    answer, kind = client.makefile("rb"), None
    while kind != END:
        kind, length, padding = struct.unpack(">xBxxHBx", answer.read(8))
        answer.read(length + padding)
    return answer

connections = [kept() for _ in range(300)]
started = time.monotonic()
subprocess.run(["systemctl", "stop", "comedor.socket", "comedor.service"], check=True)
# Less than the service waits for a connection that is in use.
assert time.monotonic() - started < 10
assert all(connection.read() == b"" for connection in connections)
PYTHON
[ "$(systemctl show -P Result comedor.service)" = success ]
