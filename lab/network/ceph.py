"""A CephFS in a namespace of this machine, and two mounts of it: by ceph-fuse there, or by the kernel of
a virtual machine.

The cluster has one monitor, one manager, three OSDs and two MDS. It is that of Debian 13 (Ceph 18), in a
root of its own, which debootstrap makes once.
"""

import shutil
import socket
import subprocess

import machine
import nfs
from machine import Debian, Machine, Process
from workload import SHELLS

# $0 is the root.
ROOT = """
. tests/packages
need debootstrap debootstrap
need cgi-fcgi libfcgi-bin
need php php-cli
need strace strace
need ip iproute2
install_missing
[ -e "$0/ready" ] && exit
echo "Installing Ceph, 120 MB, in $0"
rm -rf "$0"
debootstrap --variant=minbase trixie "$0" http://deb.debian.org/debian > /dev/null
printf '#!/bin/sh\\nexit 101\\n' > "$0/usr/sbin/policy-rc.d" && chmod +x "$0/usr/sbin/policy-rc.d"
echo force-unsafe-io > "$0/etc/dpkg/dpkg.cfg.d/unsafe"
packages="ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse"
chroot "$0" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $packages > "$0.log" 2>&1 || { cat "$0.log"; exit 1; }
chroot "$0" apt-get clean
# The manager's interpreters cannot import Debian's bcrypt, which nothing here needs.
echo > "$0/usr/share/ceph/mgr/bcrypt.py"
touch "$0/ready" """

# Not a loopback address: the virtual machine connects to it too.
ADDRESS = "192.0.2.1"
MONITOR = f"{ADDRESS}:3300"
OSDS = ["osd.0", "osd.1", "osd.2"]
MDS = ["mds.a", "mds.b"]

# Defaults, except for what a small machine needs, and no authentication.
CONF = f"""
[global]
fsid = 6f1f2a5e-5cf3-4c0e-9c0e-3f4a0d0b8f11
mon host = [v2:{MONITOR}/0]
public addr = {ADDRESS}
cluster addr = {ADDRESS}
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
admin socket =
log file = /mnt/log/$name.log
mon cluster log file = /mnt/log/cluster.log
crash dir = /tmp
mon data = /mnt/mon
mgr data = /mnt/mgr
osd data = /mnt/osd.$id
mds data = /mnt/mds.$id
mon data avail warn = 5
mgr initial modules =
# A monitor that has just started waits longer before it replaces an MDS.
mds beacon mon down grace = 0
osd crush chooseleaf type = 0
osd pool default pg autoscale mode = off
osd op queue = wpq
bluestore block size = 4294967296
bluestore cache autotune = false
bluestore cache size = 67108864
mds cache memory limit = 268435456
"""

# A namespace of mounts, network and processes, in which the folder $0 is /mnt. $ROOT is the root, $CLUSTER
# are options.
NAMESPACE = "unshare --mount --net --pid --fork --kill-child --mount-proc bash -c".split()
SCRIPT = f"""
mount --bind "$0" /mnt && mount --rbind "$ROOT" /media && mount --rbind /mnt /media/mnt &&
mount -t proc proc /media/proc && mount --rbind /dev /media/dev && mount --rbind /sys /media/sys &&
for root in / /media/; do mount -t tmpfs tmp ${{root}}tmp && mount -t tmpfs run ${{root}}run || exit; done &&
cd / && ip link set lo up && ip address add {ADDRESS}/32 dev lo || exit
export CEPH_CONF=/mnt/ceph.conf
cat > $CEPH_CONF <<'END'
{CONF}
END
ceph() {{ chroot /media timeout 60 ceph "$@" > /mnt/log/answer 2>&1; }}
# daemon NAME PROGRAM: in the background
daemon() {{ chroot /media "$2" -i "${{1#*.}}" -f > /mnt/log/$1.out 2>&1 & echo $! > /mnt/$1.pid; }}

uuid=$(sed -n 's/^fsid = //p' $CEPH_CONF)
chroot /media monmaptool --create --fsid $uuid --addv a '[v2:{MONITOR}]' /mnt/monmap &&
chroot /media ceph-authtool --create-keyring /mnt/keyring --gen-key -n mon. &&
chroot /media ceph-mon -i a --mkfs --monmap /mnt/monmap --keyring /mnt/keyring || exit
daemon mon.a ceph-mon
until ceph mon stat; do kill -0 $! || exit; sleep 0.1; done
daemon mgr.x ceph-mgr
for osd in {" ".join(OSDS)}; do
    uuid=$(cat /proc/sys/kernel/random/uuid)
    ceph osd new $uuid ${{osd#*.}} && chroot /media ceph-osd -i ${{osd#*.}} --mkfs --osd-uuid $uuid || exit
    daemon $osd ceph-osd
done
ceph osd pool create meta 8 && ceph osd pool create data 8 && ceph fs new menus meta data || exit
for option in $CLUSTER; do
    case $option in
        session_*) ceph fs set menus "${{option%%=*}}" "${{option#*=}}" ;;
        *) ceph config set mds "${{option%%=*}}" "${{option#*=}}" ;;
    esac || exit
done
for mds in {" ".join(MDS)}; do
    daemon $mds ceph-mds
    until ceph mds stat && grep -q "up:active\\|up:standby" /mnt/log/answer; do sleep 0.2; done
done
until ceph health && grep -q HEALTH_OK /mnt/log/answer; do sleep 0.2; done
"""

# $MOUNT are options.
FUSE = """
for mount in one two; do
    chroot /media ceph-fuse ${MOUNT:+-o "$MOUNT"} -n client.admin /mnt/$mount &&
        mount --bind /media/mnt/$mount /mnt/$mount || exit
done
"""

# The arguments are file descriptors, each for a shell.
SHELLS_THERE = """
for descriptor; do
    sh <& $descriptor >& $descriptor 2>&1 &
    shells="$shells $!"
done
wait $shells"""


class Cluster(Process):
    """The namespace, in which the script has run, and shells there: `control`, and `count` others.

    Of `options`, those of the MDS and of sessions are the cluster's, the others those of the mounts.
    """

    def __init__(self, folder, program, options, script, count):
        root = folder / "ceph-root"
        subprocess.run(["bash", "-euc", ROOT, root], check=True, cwd=machine.REPOSITORY)
        files = folder / "ceph"
        shutil.rmtree(files, ignore_errors=True)
        for name in ("bin", "log", "mon", "mgr", *OSDS, *MDS, "one", "two"):
            (files / name).mkdir(parents=True)
        shutil.copy(program, files / "bin/comedor")
        # It hides the settings of this machine.
        (files / "bin/comedor.conf").write_text("# no settings\n")
        shutil.copy(machine.HERE / "request", files / "bin")
        cluster = [option for option in options if option.startswith(("mds_", "session_"))]
        self.mount = ",".join(option for option in options if option not in cluster)
        variables = {"ROOT": root, "CLUSTER": " ".join(cluster), "MOUNT": self.mount,
                     "PATH": "/mnt/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        pairs = [socket.socketpair() for _ in range(count + 1)]
        command = [*NAMESPACE, script + SHELLS_THERE, files]
        command += [str(theirs.fileno()) for _, theirs in pairs]
        print(f"The logs are in {files}/log", flush=True)
        with open(files / "log/start", "wb") as file:
            super().__init__(command, pairs, stdout=file, stderr=file, env=variables)
        *self.shells, self.control = self.shells

    def kill(self, victim):
        name = OSDS[1] if victim == "OSD" else MDS[0]
        self.control.must(f"kill -9 $(cat /mnt/{name}.pid)")


class CephFuse(Cluster):
    """Two mounts by ceph-fuse."""

    folder, victims = "/mnt", [None, "OSD", "active MDS"]

    def __init__(self, folder, program, options):
        super().__init__(folder, program, options, SCRIPT + FUSE, 2 * SHELLS)

    def crash(self):
        """Kills the client of the first mount."""
        self.control.must("kill -9 $(pgrep -f 'ceph-fuse .*/mnt/one$')")


# Each network card of the virtual machine is in a network namespace, which makes it a client.
CARDS = {"one": "eth0", "two": "eth1"}
CLIENT = """
/bin/ip netns add {name} && /bin/ip link set {card} netns {name} &&
/bin/ip -n {name} addr add 10.0.2.15/24 dev {card} && /bin/ip -n {name} link set {card} up &&
/bin/ip -n {name} route add default via 10.0.2.2 &&
nsenter --net=/run/netns/{name} unshare --uts sh -c '
    hostname {name} && mount -t ceph -o name=admin,ms_mode=crc,{options} {monitor}:/ /{name}'"""


class CephKernel(Cluster):
    """Two mounts by the kernel of a virtual machine."""

    folder, victims = "", [None, "active MDS"]

    def __init__(self, folder, program, options):
        super().__init__(folder, program, options, SCRIPT, 0)
        debian = Debian()
        initramfs = debian.initramfs(folder / "initramfs", program)
        network = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]
        self.machine = Machine(debian, initramfs, "driver=null-co", 2 * SHELLS, folder / "console",
                               enter=network, cards=len(CARDS))
        self.shells = self.machine.shells
        self.shells[0].must(nfs.FOLDERS)
        for name, card in CARDS.items():
            client = {"name": name, "card": card, "options": self.mount, "monitor": MONITOR}
            self.shells[0].must(CLIENT.format(**client))

    def crash(self):
        """Unplugs the first client."""
        self.shells[-1].must(f"/bin/ip -n one link set {CARDS['one']} down")

    def reconnect(self):
        self.shells[-1].must(
            f"/bin/ip -n one link set {CARDS['one']} up && /bin/ip -n one route add default via 10.0.2.2"
        )

    def __exit__(self, *_):
        self.machine.__exit__()
        super().__exit__()
