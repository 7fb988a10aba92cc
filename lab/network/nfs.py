"""A virtual machine with an NFS server and two clients that share no cache.

The server and each client have a network namespace and a host name of their own, so they are to each
other what three machines are: the server sees two clients. It exports an ext4 disk by NFS 4.2.
"""

import subprocess

from machine import Debian, Machine, file_node
from workload import SHELLS

FOLDERS = "mkdir -p /tmp /one /two /run/netns"
# The caches in /proc/net/rpc are those that rpc.mountd fills: who the clients are, and what the file
# system with the number 0 is. 9218 (0x2402): fsid, no_subtree_check, insecure; root is not mapped.
SERVER = r"""
mkdir -p /export /var/lib/nfs/v4recovery &&
mount -t ext4 /dev/vda /export && mount -t nfsd nfsd /proc/fs/nfsd &&
echo 10 > /proc/fs/nfsd/nfsv4gracetime && cd /proc/net/rpc &&
echo 'nfsd 10.0.1.2 2147483647 clients' > auth.unix.ip/channel &&
echo 'nfsd 10.0.2.2 2147483647 clients' > auth.unix.ip/channel &&
echo 'clients 1 \x00000000 2147483647 /export' > nfsd.fh/channel &&
echo 'clients /export 2147483647 9218 65534 65534 0' > nfsd.export/channel &&
cd /proc/fs/nfsd && echo "-3 +4 +4.2" > versions && echo "tcp 2049" > portlist && echo 8 > threads &&
echo Y > v4_end_grace && cd /"""
# Records the system calls that fail with ESTALE (116).
TRACE = """
mount -t tracefs trace /sys/kernel/tracing && cd /sys/kernel/tracing/events/raw_syscalls/sys_exit &&
echo 'ret == -116' > filter && echo 1 > enable && cd /"""

# /bin/ip, because busybox has another.
CLIENT = """
/bin/ip netns add {name} && /bin/ip link add {name} type veth peer name eth0 netns {name} &&
/bin/ip addr add 10.0.{number}.1/24 dev {name} && /bin/ip link set {name} up &&
/bin/ip -n {name} addr add 10.0.{number}.2/24 dev eth0 && /bin/ip -n {name} link set eth0 up &&
nsenter --net=/run/netns/{name} unshare --uts sh -c '
    hostname {name} && mount -t nfs4 -o {options} 10.0.{number}.1:/ /{name}'"""


class NFS(Machine):
    folder, victims = "", [None]

    def __init__(self, folder, program, options):
        debian = Debian()
        initramfs = debian.initramfs(folder / "initramfs", program)
        disk = folder / "disk"
        subprocess.run([*debian.program("mkfs.ext4"), "-q", "-F", disk, "512M"], check=True)
        drive, console = file_node("", disk), folder / "console"
        super().__init__(debian, initramfs, drive, 2 * SHELLS, console)
        options = ",".join(["vers=4.2", *options])
        clients = [CLIENT.format(name=name, number=number, options=options)
                   for number, name in enumerate(("one", "two"), 1)]
        for command in [FOLDERS, SERVER, *clients, TRACE]:
            self.shells[0].must(command)

    def crash(self):
        """Unplugs the first client."""
        self.shells[-1].must("/bin/ip link set one down")

    def reconnect(self):
        self.shells[-1].must("/bin/ip link set one up")

    def __exit__(self, error, *_):
        if error is None:
            _, count = self.shells[0].run("grep -c comedor- /sys/kernel/tracing/trace")
            print(f"system calls of the program that failed with ESTALE: {int(count)}")
        super().__exit__()
