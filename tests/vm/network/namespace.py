"""Shells in namespaces of this machine: mounts, network and processes of their own. Needs root.

All processes there end with the shells, and with this program.
"""

import shutil
import socket
import subprocess

import machine

PATH = "/mnt/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# $0 is the folder; the arguments are file descriptors, each for a shell.
START = """
mount --bind "$0" /mnt && mount -t tmpfs tmp /tmp && mount -t tmpfs run /run && cd / &&
ip link set lo up || exit
"""
SHELLS = """
for descriptor; do
    sh <& $descriptor >& $descriptor 2>&1 &
    shells="$shells $!"
done
wait $shells"""


class Namespace:
    """`folder` is /mnt there; it has the program, and empty folders `names`."""

    def __init__(self, folder, program, *names):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("bin", "log", *names):
            (folder / name).mkdir(parents=True)
        shutil.copy(program, folder / "bin/comedor")
        # It hides the settings of this machine.
        (folder / "bin/comedor.conf").write_text("# no settings\n")
        shutil.copy(machine.HERE / "request", folder / "bin")

    def start(self, script, count, **variables):
        """Runs the script, with variables; then `count` shells, which it returns. `enter` is a command
        that runs another one in the network.
        """
        ours, theirs = zip(*(socket.socketpair() for _ in range(count)))
        descriptors = [end.fileno() for end in theirs]
        command = "unshare --mount --net --pid --fork --kill-child --mount-proc bash -c".split()
        command[:0] = machine.WITH_US
        command += [START + script + SHELLS, self.folder, *map(str, descriptors)]
        with open(self.folder / "log/start", "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=descriptors, env={"PATH": PATH, **variables},
            )
        for end in theirs:
            end.close()
        self.enter = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]
        try:
            return [machine.Shell(end, "/mnt/bin/request") for end in ours]
        except BaseException:
            print(f"The logs are in {self.folder}/log.", flush=True)
            self.end()
            raise

    def end(self):
        """Ends all processes there, and so the mounts."""
        self.process.kill()
        self.process.wait()
