"""One of two servers crashes while it saves: what the other one answers, and when."""

import json
import shlex
import time
from concurrent.futures import ThreadPoolExecutor

import machine
import school
from workload import PHP, Answer

DATE = "2026-09-01"
SHARED, OWN = (f"action=get_menu&aulario={aulario}&date={DATE}" for aulario in ("aula1", "own"))
READ, READ_OWN = (f"HTTP_COOKIE=PHPSESSID=own get '{query}'" for query in (SHARED, OWN))
# After the lock is taken, the new content is written, and before it is flushed
AT = "fchmod:when=1"
# Requests to a FastCGI process that wait for the crashed server: half of those that it handles at once.
WAITING = 32
SOCKET = "/tmp/comedor.socket"
SERVE = f"""
env -u GATEWAY_INTERFACE comedor fastcgi {SOCKET} 2> /tmp/fastcgi &
until [ -S {SOCKET} ]; do sleep 0.01; done"""
# Sends requests of `admin` at once; until all are answered, sends those of `own` one after another. Prints
# how long it took, how many those of `own` were, the longest time of one, and how many of both failed.
ASK = r"""
[, $socket, $query, $count] = $argv;
function send($id) {
    global $socket, $query;
    $params = '';
    foreach (['REQUEST_METHOD' => 'GET', 'QUERY_STRING' => $query, 'HTTP_COOKIE' => "PHPSESSID=$id"]
             as $name => $value)
        $params .= chr(strlen($name)) . chr(strlen($value)) . $name . $value;
    $records = "\1\1\0\1\0\x08\0\0\0\1\0\0\0\0\0\0\1\4\0\1" . pack('n', strlen($params)) . "\0\0$params"
        . "\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0";
    $connection = stream_socket_client("unix://$socket");
    fwrite($connection, $records);
    return $connection;
}
$is_ok = fn($connection) => str_contains(stream_get_contents($connection), 'Status: 200');
$open = array_map(fn() => send('admin'), range(1, $count));
[$sent, $failed, $slowest, $begin] = [0, 0, 0, microtime(true)];
while ($open) {
    $start = microtime(true);
    $sent++;
    $failed += !$is_ok(send('own'));
    $slowest = max($slowest, microtime(true) - $start);
    foreach ($open as $key => $connection) {
        [$read, $none] = [[$connection], null];
        if (!stream_select($read, $none, $none, 0, 20000)) break;
        $failed += !$is_ok($connection);
        unset($open[$key]);
    }
}
printf('%.1f %d %.1f %d', microtime(true) - $begin, $sent, $slowest, $failed);"""


class Crash:
    """The server with the first mount crashes. The user `own` and the aulario `own` are those that only the
    other one served; both served the user `admin`.
    """

    def __init__(self, workload, network):
        self.workload, self.network = workload, network
        self.one, self.two = workload.mounts

    def run(self):
        self.prepare()
        self.network.crash()
        self.meanwhile()
        saved = "after"
        if hasattr(self.network, "reconnect"):
            saved = self.come_back()
        self.judge(saved)

    def save(self, text, plates=("crash",), aulario="aula1"):
        return school.save(self.workload.random, aulario, DATE, plates, text)

    def prepare(self):
        first, stay = self.one.shells[0], self.two.shells[0]
        self.timed(first, self.save("before").command())
        own = f"export HTTP_COOKIE=PHPSESSID=own; {self.save('own', aulario='own').command()}"
        for command in ("log_in own", school.add_aulario("own"), f"({own})", READ_OWN, SERVE):
            stay.must(command)
        body = shlex.quote(json.dumps(self.save("during").body))
        first.must(f"stop {AT} save_menu aula1 {body}")

    def timed(self, shell, command):
        """The seconds until the answer, which must be a success, and the answer."""
        started = time.monotonic()
        while (answer := Answer(shell, command)).is_busy:
            pass
        if answer.status != 200:
            self.workload.fault(f"crash: {answer}")
        return round(time.monotonic() - started, 1), answer

    def meanwhile(self):
        """Requests to the other server."""
        save = self.save("after", plates=("crash", "kept")).command()
        with ThreadPoolExecutor() as pool:
            shells = self.two.shells
            asked = pool.submit(shells[0].run, f"{PHP} {shlex.quote(ASK)} {SOCKET} '{OWN}' {WAITING}")
            timed = [pool.submit(self.timed, shell, command)
                     for shell, command in zip(shells[1:], (READ, save, READ_OWN))]
        (read, answer), (saved, _), (other, _) = (each.result() for each in timed)
        waited, answered, slowest, failed = asked.result()[1].decode().split()
        self.workload.add("a server crashes during a save", s_a_read_of_that_day=read,
                          s_a_save_of_that_day=saved, s_a_read_in_another_aulario=other)
        self.workload.add(f"{WAITING} requests by FastCGI of a user of both servers", s=waited,
                          of_another_user_meanwhile=answered, s_the_slowest=slowest, failed=failed)
        if failed != "0":
            self.workload.fault(f"crash: {failed} requests by FastCGI failed")
        if float(waited) > 5 and int(answered) < 10:
            self.workload.fault("crash: other requests by FastCGI waited too")
        if not any(f'"{text}' in answer.text for text in ("before", "during", "after")):
            self.workload.fault("crash: an acknowledged save is lost")

    def come_back(self):
        """The first server ends its save. What the day has after it."""
        self.network.reconnect()
        answer = Answer(self.one.shells[0], "resume")
        started = time.monotonic()
        while Answer(self.one.shells[1], READ).status != 200:
            if time.monotonic() - started > machine.TIMEOUT:
                raise RuntimeError("the server does not come back")
            self.one.shells[1].run("sleep 0.1")
        self.workload.add("the server comes back", status_of_its_save=answer.status,
                          s_until_it_answers_reads=round(time.monotonic() - started, 1))
        return "during" if answer.status == 200 else "after"

    def judge(self, saved):
        shell = self.two.shells[0]
        plates = Answer(shell, READ).body()["menu"]["plates"]
        found = [plates.get(plate, {}).get("name", "").split(" ")[0] for plate in ("crash", "kept")]
        if found != [saved, "after"]:
            self.workload.fault(f"crash: {found} instead of {saved}, after")
        folder = f"{school.AULARIOS}/{school.day_file('aula1', DATE)}".rpartition("/")[0]
        _, names = shell.run(f"ls -A {folder}")
        if names.split() != [b"_datos.json"]:
            self.workload.fault(f"crash: left in the folder: {names.decode()}")
