"""A GlusterFS volume of three replicas and two mounts of it, on this machine, as root.

glusterd, its ports, the bricks and the mounts are in namespaces of their own, and end with the shells
in them. Bricks and logs are in a folder.
"""

import shutil
import socket
import subprocess

import machine
from workload import SHELLS, Mount

PACKAGES = """
. tests/packages
need glusterd glusterfs-server glusterfs-client
need php php-cli
need strace strace
need ip iproute2
install_missing"""

# Gluster refuses a loopback address.
ADDRESS = "192.0.2.1"

# $1 is the folder, $2 the options of the volume, separated by spaces, $3 those of the mounts; the rest
# are file descriptors, each for a shell.
SCRIPT = f"""
mount --bind "$1" /mnt && mount --bind /mnt/log /var/log/glusterfs &&
mount -t tmpfs tmp /tmp && mount -t tmpfs run /run && mkdir /run/gluster &&
mount -t tmpfs glusterd /var/lib/glusterd &&
ip link set lo up && ip address add {ADDRESS}/32 dev lo || exit
glusterd --no-daemon > /mnt/log/glusterd 2>&1 &
while ! gluster volume list > /dev/null 2>&1; do
    kill -0 $! || exit
    sleep 0.1
done
gluster() {{ command gluster --mode=script volume "$@" > /dev/null; }}
gluster create menus replica 3 {" ".join(f"{ADDRESS}:/mnt/brick{number}" for number in "123")} force || exit
for option in $2; do gluster set menus "${{option%%=*}}" "${{option#*=}}" || exit; done
gluster start menus || exit
for mount in /mnt/one /mnt/two; do
    mount -t glusterfs ${{3:+-o "$3"}} {ADDRESS}:/menus $mount || exit
done
shift 3
for descriptor; do
    sh <& $descriptor >& $descriptor 2>&1 &
    shells="$shells $!"
done
wait $shells"""


class Volume:
    """The volume; entered, it is the two mounts. Of `options`, those with a dot are of the volume."""

    def __init__(self, folder, program, options):
        subprocess.run(["bash", "-euc", PACKAGES], check=True, cwd=machine.REPOSITORY)
        self.folder = folder / "gluster"
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("bin", "log", "brick1", "brick2", "brick3", "one", "two"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(program, self.folder / "bin/comedor")
        # It hides the settings of this machine.
        (self.folder / "bin/comedor.conf").touch()
        shutil.copy(machine.HERE / "request", self.folder / "bin")
        options = options.split(",") if options else []
        volume = " ".join(option for option in options if "." in option)
        mount = ",".join(option for option in options if "." not in option)
        self.options = [volume, mount]

    def __enter__(self):
        ours, theirs = zip(*(socket.socketpair() for _ in range(2 * SHELLS + 1)))
        descriptors = [end.fileno() for end in theirs]
        command = "unshare --mount --net --pid --fork --kill-child --mount-proc bash -c".split()
        command += [SCRIPT, "gluster", self.folder, *self.options, *map(str, descriptors)]
        path = "/mnt/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=descriptors, env={"PATH": path}
        )
        for end in theirs:
            end.close()
        try:
            *shells, self.control = (machine.Shell(end, "/mnt/bin/request") for end in ours)
        except BaseException:
            self.__exit__()
            raise
        return Mount("/mnt/one", shells[:SHELLS]), Mount("/mnt/two", shells[SHELLS:])

    def kill_server(self):
        """Kills the server of one of the three replicas."""
        self.control.run("kill -9 $(cat /run/gluster/vols/menus/*-brick2.pid)")

    def __exit__(self, *_):
        """Ends all processes in the namespaces, and so the mounts."""
        self.process.kill()
        self.process.wait()
