"""One of two servers crashes while it saves: what the other one answers, and when."""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor

import school
from workload import Answer, until_not_busy

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


def ask(user):
    """The command for a request by FastCGI."""
    variables = f"REQUEST_METHOD=GET 'QUERY_STRING={OWN}' HTTP_COOKIE=PHPSESSID={user}"
    return f"env -i {variables} cgi-fcgi -bind -connect {SOCKET}"


# A subshell waits for these processes alone.
ASK_AT_ONCE = f"""(
for n in $(seq {WAITING}); do {ask("admin")} > /tmp/asked$n & done
wait
cat /tmp/asked*)"""


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
        answers = until_not_busy(shell, command)
        if answers[-1].status != 200:
            self.workload.faults.append(f"crash: {answers[-1]}")
        return round(sum(answer.seconds for answer in answers), 1), answers[-1]

    def meanwhile(self):
        """Requests to the other server."""
        save = self.save("after", plates=("crash", "kept")).command()
        asking, reading, saving, other = self.two.shells
        own, _ = self.timed(other, READ_OWN)
        meanwhile = []
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(Answer, asking, ASK_AT_ONCE)
            timed = [pool.submit(self.timed, reading, READ), pool.submit(self.timed, saving, save)]
            while not asked.done():
                meanwhile.append(Answer(other, ask("own")))
        (read, answer), (saved, _) = (each.result() for each in timed)
        self.workload.add("a server crashes during a save", s_a_read_of_that_day=read,
                          s_a_save_of_that_day=saved, s_a_read_in_another_aulario=own)
        asked = asked.result()
        slowest = max(each.seconds for each in meanwhile)
        failed = WAITING - asked.text.count("Status: 200")
        failed += sum(each.status != 200 for each in meanwhile)
        self.workload.add(f"{WAITING} requests by FastCGI of a user of both servers",
                          s=round(asked.seconds, 1), of_another_user_meanwhile=len(meanwhile),
                          s_the_slowest=round(slowest, 1), failed=failed)
        if failed:
            self.workload.faults.append(f"crash: {failed} requests by FastCGI failed")
        if asked.seconds > 20 and len(meanwhile) < 10:
            self.workload.faults.append("crash: other requests by FastCGI waited too")
        if not any(f'"{text}' in answer.text for text in ("before", "during", "after")):
            self.workload.faults.append("crash: an acknowledged save is lost")

    def come_back(self):
        """The first server ends its save. What the day has after it."""
        self.network.reconnect()
        answer = Answer(self.one.shells[0], "resume")
        until = f"until {READ} | grep 'Status: 200'; do sleep 0.1; done"
        back = Answer(self.one.shells[1], until)
        self.workload.add("the server comes back", status_of_its_save=answer.status,
                          s_until_it_answers_reads=round(back.seconds, 1))
        return "during" if answer.status == 200 else "after"

    def judge(self, saved):
        shell = self.two.shells[0]
        plates = Answer(shell, READ).body()["menu"]["plates"]
        found = [plates.get(plate, {}).get("name", "").split(" ")[0] for plate in ("crash", "kept")]
        if found != [saved, "after"]:
            self.workload.faults.append(f"crash: {found} instead of {saved}, after")
        folder = f"{school.AULARIOS}/{school.day_file('aula1', DATE)}".rpartition("/")[0]
        _, names = shell.run(f"ls -A {folder}")
        if names.split() != [b"_datos.json"]:
            self.workload.faults.append(f"crash: left in the folder: {names.decode()}")
