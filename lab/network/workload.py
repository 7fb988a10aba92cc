"""Two mounts of one network file system, as two web servers use it, and what must hold there (see `run`).

It knows nothing of the file system. `Workload(network)` needs two mounts that do not share a cache, `one` and
`two` in `network.folder`, and `network.shells`: SHELLS of `machine.Shell` for each, on a machine that has the
mount, and comedor, strace, php, GNU's or busybox's tools on its PATH. Both mounts show the same files; `data`
and `sessions` are made there.

Its methods add to `figures`, a table for a person, and to `faults`, a list of sentences: empty if all is well.
"""

import json
import random
import re
import shlex
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

import school

WRITERS = 3  # on each mount
SHELLS = WRITERS + 1
PLATES = 8  # of each writer on a day; a menu has at most 64

# `stop CALL:when=N ACTION AULARIO BODY` stops the program after a system call, `resume` continues it
# and prints the answer.
STOPPING = r"""
stop() {
    printf %s "$4" > /tmp/body; : > /tmp/calls
    REQUEST_METHOD=POST QUERY_STRING="action=$2&aulario=$3" CONTENT_LENGTH=${#4} \
        strace -o /tmp/calls -e "trace=${1%%:*}" -e "inject=$1:signal=STOP" \
        comedor < /tmp/body > /tmp/answer 2>&1 &
    strace=$!
    until grep -q 'stopped by SIGSTOP' /tmp/calls; do
        kill -0 $strace 2> /dev/null || { cat /tmp/answer /tmp/calls; return 1; }
        sleep 0.01
    done
}
resume() {
    kill -CONT $(cat /proc/$strace/task/$strace/children); wait $strace; cat /tmp/answer
}"""
# Its standard output has PHP's errors. Debian's PHP also warns if the machine has no time zones.
PHP = "2> /dev/null php -d display_startup_errors=0 -r"
# After the read with the lock and before the last look at the file; the fourth is after the lease.
GAPS = ["flock:when=2", "fchmod:when=1", "fsync:when=1", "fcntl:when=3"]
LAST_LOOK = "pread64:when=1"
SAVE = "file_put_contents($argv[1], $argv[2]);"
# Logs in, changes, replaces and ends the session `php`, over and over.
PAGE = r"""
ini_set('session.save_path', $argv[1]); ini_set('session.use_cookies', 0);
ini_set('session.use_strict_mode', 0); ini_set('session.cache_limiter', '');
$file = "$argv[1]/sess_php"; $content = file_get_contents("$argv[1]/sess_admin");
for ($n = 0; !file_exists($argv[2]); $n++) {
    session_id('php'); session_start(); session_decode($content);
    $_SESSION['page'] = str_repeat('x', mt_rand(0, 5000)); session_write_close();
    usleep(mt_rand(0, 30000));
    if ($n % 3 == 0) { file_put_contents("$file.new", $content); rename("$file.new", $file); }
    if ($n % 3 == 1) { session_id('php'); session_start(); session_destroy(); }
    usleep(mt_rand(0, 10000));
}
echo $n;"""


class Mount:
    def __init__(self, folder, shells):
        self.folder, self.shells = folder, shells
        self.data, self.sessions = f"{folder}/data", f"{folder}/sessions"
        for shell in shells:
            shell.run(f"export COMEDOR_DATA_DIR={self.data} COMEDOR_SESSION_DIR={self.sessions}")
            shell.run(STOPPING)


class Answer:
    """What the program printed to a shell, and when."""

    def __init__(self, shell, command):
        started = time.monotonic()
        self.exit_status, output = shell.run(command)
        self.seconds = time.monotonic() - started
        self.text = output.decode(errors="replace")
        status = re.search(r"^Status: (\d+)", self.text, re.MULTILINE)
        self.status = int(status[1]) if status else 0
        self.is_busy = '"code":"BUSY"' in self.text

    def __str__(self):
        """The log, or what there is."""
        return self.text.split("Status:")[0].strip() or self.text[:300]

    def body(self):
        return json.loads(self.text.rsplit("\r\n\r\n", 1)[1])


def until_not_busy(shell, command):
    """Repeats a command while its answer is BUSY; all answers."""
    answers = [Answer(shell, command)]
    while answers[-1].is_busy:
        answers.append(Answer(shell, command))
    return answers


class Workload:
    def __init__(self, network):
        one = Mount(f"{network.folder}/one", network.shells[:SHELLS])
        two = Mount(f"{network.folder}/two", network.shells[SHELLS:])
        self.mounts, self.random = (one, two), random.Random()
        self.figures, self.faults = [], []
        one.shells[0].run(f"mkdir -p {one.sessions} && log_in admin\n{school.PREPARE}")

    def add(self, name, **figures):
        text = ", ".join(f"{value} {what.replace('_', ' ')}" for what, value in figures.items())
        self.figures.append(f"{name}: {text}")

    def gap(self, count):
        """PHP's save on one mount, the program on the other."""
        answers, saves = Counter(), Counter()
        for number in range(count):
            answer = self.save_at([*GAPS, LAST_LOOK][number % 5], number, saves)
            answers[answer.status] += 1
            if answer.status != 200 and not answer.is_busy:
                self.faults.append(f"gap: {answer}")
        self.add("gap", saves_by_PHP=saves["kept"] + saves["lost"], lost=saves["lost"],
                 BUSY=answers[503], errors=answers[500])
        self.add("after the last look, or after a lease",
                 saves_by_PHP=saves["late, kept"] + saves["late, lost"], lost=saves["late, lost"])

    def save_at(self, at, number, saves):
        """Stops the program at a system call, and saves. Counts in `saves` what becomes of PHP's plate, if the
        program got that far. The answer.
        """
        ours, theirs = self.mounts if number % 2 else reversed(self.mounts)
        date = "2026-10-01"
        path = f"{theirs.data}/Centros/centro1/Aularios/{school.day_file('aula1', date)}"
        mine = school.save(self.random, "aula1", date, ["cgi"], str(number))
        if number == 0:
            ours.shells[0].run(mine.command())
        body = shlex.quote(json.dumps(mine.body))
        answer = Answer(ours.shells[0], f"stop {at} save_menu aula1 {body}")
        if answer.exit_status != 0:
            if answer.status == 200:
                raise RuntimeError(f"not stopped at {at}: {answer.text}")
            # It failed before that call.
            return answer
        plates = {f"php{number}": {"name": "php"}}
        day = json.dumps({"date": date, "menus": {"basal": {"plates": plates}}})
        php = f"{PHP} {shlex.quote(SAVE)} {path} {shlex.quote(day)}"
        with ThreadPoolExecutor() as pool:
            saving = pool.submit(theirs.shells[0].run, php)
            # A lease makes it wait until the program continues.
            wait([saving], timeout=60 if at in GAPS[:3] else 5)
            was_first = saving.done()
            answer = Answer(ours.shells[0], "resume")
            status, message = saving.result()
        if status != 0 or message.strip():
            self.faults.append(f"gap: PHP: {message.decode(errors='replace')}")
        _, content = theirs.shells[0].run(f"cat {path}")
        end = "kept" if f'"php{number}"' in content.decode(errors="replace") else "lost"
        if at == LAST_LOOK or not was_first:
            end = f"late, {end}"
        elif end == "lost":
            self.faults.append(f"gap: PHP's save {number} is lost, at {at}")
        saves[end] += 1
        return answer

    def open_files(self):
        """A process has the file of a day open while the program replaces it on one mount. Requests through the
        other one must find the new file: a server of NFS keeps the old one as long as it is open.
        """
        old_reads = lost = 0
        for number, holder in enumerate(self.mounts):
            one, two = (mount.shells[0] for mount in self.mounts)
            date = f"2026-10-{number + 3:02}"
            query = f"action=get_menu&aulario=aula1&date={date}&menu=basal"
            first, second, third = (
                school.save(self.random, "aula1", date, [plate], plate).command()
                for plate in ("first", "second", "third")
            )
            for shell, command in ((one, first), (two, f"get '{query}'")):
                shell.must(command)
            day = school.day_file("aula1", date)
            holder.shells[1].must(f"exec 7< {holder.data}/Centros/centro1/Aularios/{day}")
            one.must(second)
            old_reads += "second" not in Answer(two, f"get '{query}'").text
            two.must(third)
            holder.shells[1].must("exec 7<&-")
            lost += "second" not in Answer(one, f"get '{query}'").text
        if old_reads or lost:
            self.faults.append(f"open files: {old_reads} old reads, {lost} saves lost")
        self.add("open files", reads=len(self.mounts), old_reads=old_reads, saves_lost=lost)

    def speed(self, count):
        """One client without others, by CGI."""
        shell, rates = self.mounts[0].shells[0], {}
        save = school.save(self.random, "aula1", "2026-10-02", ["speed"], "speed").command()
        read = "get 'action=get_menu&aulario=aula1&date=2026-10-02'"
        for name, command in {"saves": save, "reads": read}.items():
            answer = Answer(shell, f"for n in $(seq {count}); do {command}\ndone > /tmp/answers")
            rates[f"{name}_per_second"] = round(count / answer.seconds)
        self.add("speed of one client by CGI", **rates)

    def logins(self, count):
        """A login through one mount, which flushes nothing, and then a read through the other."""
        (one, *_), (two, *_) = (mount.shells for mount in self.mounts)
        slowest = 0
        for number in range(count):
            one.run(f"log_in login{number}")
            get = f"HTTP_COOKIE=PHPSESSID=login{number} get 'action=get_menu_types&aulario=aula1'"
            answer = Answer(two, get)
            slowest = max(slowest, answer.seconds)
            if answer.status != 200:
                self.faults.append(f"logins: {answer}")
        self.add("logins on the other server", reads=count, s_the_slowest=round(slowest, 1))

    def sessions(self, count):
        one, two = self.mounts
        answers, stop = Counter(), f"{one.folder}/stop"
        page = f"rm -f {stop}; {PHP} {shlex.quote(PAGE)} {two.sessions} {two.folder}/stop"
        with ThreadPoolExecutor() as pool:
            saving = pool.submit(two.shells[0].run, page)
            for _ in range(count):
                get = "HTTP_COOKIE=PHPSESSID=php get 'action=get_menu_types&aulario=aula1'"
                answer = Answer(one.shells[0], get)
                answers[answer.status] += 1
                if answer.status not in (200, 400) and not answer.is_busy:
                    self.faults.append(f"sessions: {answer}")
            one.shells[0].run(f": > {stop}")
            _, pages = saving.result()
        self.add("sessions", requests=count, logged_in=answers[200], not_logged_in=answers[400],
                 BUSY=answers[503], errors=answers[500], changes_by_PHP=pages.decode().strip())


class Together:
    """Writers and readers on both mounts at once; `midway`, if given, is called after half of the writes."""

    def __init__(self, workload, count, midway):
        self.workload, self.mounts, self.midway = workload, workload.mounts, midway
        self.each = -(-count // (WRITERS * len(self.mounts)))
        self.count = self.each * WRITERS * len(self.mounts)
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.writes, self.old_reads = [], 0
        self.write_seconds, self.read_seconds = [], []

    def run(self):
        shells = [shell for mount in self.mounts for shell in mount.shells[:WRITERS]]
        with ThreadPoolExecutor(2 * SHELLS) as pool:
            readers = [pool.submit(self.read, mount.shells[-1]) for mount in self.mounts]
            writers = [pool.submit(self.write, *pair) for pair in enumerate(shells)]
            try:
                for writer in writers:
                    writer.result()
            finally:
                self.ended.set()
            for reader in readers:
                reader.result()
        writes, acknowledged = len(self.writes), len(self.acknowledged())
        self.workload.add("together", writes=writes, acknowledged=acknowledged, lost=self.judge(),
                          BUSY=len(self.write_seconds) - writes, errors=writes - acknowledged,
                          reads=len(self.read_seconds), old_or_failed_reads=self.old_reads,
                          s_the_slowest_write=round(max(self.write_seconds), 1),
                          s_the_slowest_read=round(max(self.read_seconds, default=0), 1))

    def acknowledged(self):
        with self.lock:
            return [write for write in self.writes if write.acknowledged is not None]

    def writes_of(self, writer):
        """Menu types and plates that no other write sets. A day is new to both mounts at once."""
        for number in range(self.each):
            value = f"w{writer}-{number}"
            aulario = school.SHARED_AULARIOS[number // 2 % 2]
            if number % 2:
                date = f"2027-{number // 2 // PLATES // 28 + 1:02}-{number // 2 // PLATES % 28 + 1:02}"
                yield school.save(self.workload.random, aulario, date, [value], value)
            else:
                body = {"id": value, "label": value}
                file = f"{aulario}/{school.TYPES}"
                yield school.Write("add_menu_type", aulario, body, file, {value: value})

    def write(self, writer, shell):
        for write in self.writes_of(writer):
            if self.ended.is_set():
                return  # Another writer failed, or Ctrl-C.
            with self.lock:
                self.writes.append(write)
                is_midway = len(self.writes) == self.count // 2
            if is_midway and self.midway:
                self.midway()
            answers = until_not_busy(shell, write.command())
            self.write_seconds += [answer.seconds for answer in answers]
            if answers[-1].status == 200:
                write.acknowledged = 0
            else:
                self.workload.faults.append(f"together: {answers[-1]}")

    def read(self, shell):
        """Reads what was written, on either mount: all that was acknowledged before must be there."""
        number = 0
        while not self.ended.is_set():
            number += 1
            known = self.acknowledged()
            if not known:
                shell.run("sleep 0.05")
                continue
            last = known[-1] if number % 2 else self.workload.random.choice(known)
            expected = {cell for write in known if write.file == last.file for cell in write.cells}
            query = f"action=get_menu_types&aulario={last.aulario}"
            if not last.file.endswith(school.TYPES):
                query = f"action=get_menu&aulario={last.aulario}&date={last.body['date']}&menu=basal"
            answer = Answer(shell, f"get '{query}'")
            self.read_seconds.append(answer.seconds)
            found = set()
            if answer.status == 200:
                body = answer.body()
                types = {entry["id"] for entry in body["menu_types"]}
                found = set(body["menu"]["plates"]) if "menu" in body else types
            if expected - found:
                self.old_reads += 1
                missing = ", ".join(sorted(expected - found)[:3])
                why = f"misses {missing}" if answer.status == 200 else f"failed: {answer}"
                self.workload.faults.append(f"together: a read of {last.file} {why}")

    def judge(self):
        """How many acknowledged writes are not in the files, on either mount."""
        lost = 0
        for mount in self.mounts:
            # Its warnings (a file time changed) are not part of the archive.
            _, archive = mount.shells[0].run(f"tar c -C {school.AULARIOS} . 2> /tmp/tar")
            findings = {"lost": [], "torn": []}
            school.judge(self.writes, 0, school.read_tar(archive), findings)
            found = findings["lost"] + findings["torn"]
            lost = max(lost, len(found))
            self.workload.faults += [f"together, on {mount.folder}: {sentence}" for sentence in found]
        return lost
