"""A GlusterFS volume of three replicas and two mounts of it, in a namespace of this machine."""

import subprocess

import machine
from namespace import Namespace
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
BRICKS = ["brick1", "brick2", "brick3"]

# Both variables are options: $VOLUME is separated by spaces.
SCRIPT = f"""
mount --bind /mnt/log /var/log/glusterfs && mkdir /run/gluster &&
mount -t tmpfs glusterd /var/lib/glusterd && ip address add {ADDRESS}/32 dev lo || exit
glusterd --no-daemon > /mnt/log/glusterd 2>&1 &
while ! gluster volume list > /dev/null 2>&1; do
    kill -0 $! || exit
    sleep 0.1
done
gluster() {{ command gluster --mode=script volume "$@" > /dev/null; }}
gluster create menus replica 3 {" ".join(f"{ADDRESS}:/mnt/{brick}" for brick in BRICKS)} force || exit
for option in $VOLUME; do gluster set menus "${{option%%=*}}" "${{option#*=}}" || exit; done
gluster start menus || exit
for mount in /mnt/one /mnt/two; do
    mount -t glusterfs ${{MOUNT:+-o "$MOUNT"}} {ADDRESS}:/menus $mount || exit
done
"""


class GlusterFS:
    """The volume; entered, it is the two mounts. Of `options`, those with a dot are of the volume."""

    victims = [None, "replica"]

    def __init__(self, folder, program, options):
        subprocess.run(["bash", "-euc", PACKAGES], check=True, cwd=machine.REPOSITORY)
        self.namespace = Namespace(folder / "gluster", program, *BRICKS, "one", "two")
        volume = " ".join(option for option in options if "." in option)
        mount = ",".join(option for option in options if "." not in option)
        self.options = {"VOLUME": volume, "MOUNT": mount}

    def __enter__(self):
        *shells, self.control = self.namespace.start(SCRIPT, 2 * SHELLS + 1, **self.options)
        return Mount("/mnt/one", shells[:SHELLS]), Mount("/mnt/two", shells[SHELLS:])

    def kill(self, _):
        """Kills the server of one of the three replicas."""
        self.control.must("kill -9 $(cat /run/gluster/vols/menus/*-brick2.pid)")

    def crash(self):
        """Kills the client of the first mount."""
        self.control.must("kill -9 $(pgrep -f 'glusterfs .*/mnt/one$')")

    def __exit__(self, *_):
        self.namespace.end()
