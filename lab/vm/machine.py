"""Virtual machines: Debian's QEMU, kernel and busybox, and a shell in the machine on each port.

The packages are unpacked into a folder, not installed: no kernel hooks run, no root is needed, and
the programs come with the libraries that they were built for.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PACKAGES = """qemu-system-x86 linux-image-cloud-amd64 busybox-static strace e2fsprogs xfsprogs btrfs-progs
    iproute2 libfcgi-bin php-cli php-cgi""".split()
# Of the packages, in each machine
PROGRAMS = ["strace", "ip", "cgi-fcgi", "php", "php-cgi"]

# Ends the output of a command; followed by its exit status.
END = b"\n--end-of-output-- "
# Seconds without any output after which a machine counts as dead.
TIMEOUT = 300


def release_build():
    """Builds the program; its path."""
    path = subprocess.check_output([REPOSITORY / "cgi-bin/build"], text=True)
    return Path(path.strip())


class Debian:
    """The unpacked packages. Downloaded once; after that nothing here uses the network."""

    def __init__(self):
        folder = REPOSITORY / "target/vm"
        self.root, wanted = folder / "root", folder / "packages"
        if not wanted.exists() or wanted.read_text().split() != PACKAGES:
            shutil.rmtree(folder, ignore_errors=True)
            self.root.mkdir(parents=True)
            with tempfile.TemporaryDirectory(dir=folder) as cache:
                self.unpack(Path(cache))
            wanted.write_text(" ".join(PACKAGES))
        (self.version,) = os.listdir(self.root / "lib/modules")

    def unpack(self, cache):
        print(f"Downloading {', '.join(PACKAGES)}, about 100 MB, to {self.root}", flush=True)
        for name in ("lists", "archives"):
            (cache / name / "partial").mkdir(parents=True)
        # Lists of its own, and an empty status: all they depend on, whatever is installed.
        options = [f"Dir::State={cache}", f"Dir::Cache={cache}", "Dir::State::status=/dev/null"]
        options += ["Debug::NoLocking=1", "APT::Sandbox::User="]
        apt = ["apt-get", "-qq", *(f"-o{option}" for option in options)]
        subprocess.run([*apt, "update"], check=True)
        command = [*apt, "install", "--download-only", "--no-install-recommends", "-y", *PACKAGES]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for deb in (cache / "archives").glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", deb, self.root], check=True)
        (version,) = os.listdir(self.root / "lib/modules")
        subprocess.run([self.root / "bin/busybox", "depmod", "-b", self.root, version], check=True)

    def program(self, name):
        """The command that starts a program of the packages with the packages' libraries."""
        libraries = [str(self.root / folder / "x86_64-linux-gnu") for folder in ("lib", "usr/lib")]
        loader = f"{libraries[0]}/ld-linux-x86-64.so.2"
        # PHP has its version in its name.
        patterns = [f"*bin/{name}", f"usr/bin/{name}", f"usr/bin/{name}[0-9]*"]
        found = next(path for pattern in patterns for path in self.root.glob(pattern))
        return [loader, "--library-path", ":".join(libraries), str(found)]

    def initramfs(self, folder, comedor):
        """Packs the kernel's modules, busybox, PROGRAMS, the program under test and the scripts beside this
        file.
        """
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("bin", "lib64", "usr/lib"):
            (folder / name).mkdir(parents=True)
        shutil.copytree(self.root / "lib/modules", folder / "lib/modules")
        shutil.copy(self.root / "bin/busybox", folder / "bin")
        shutil.copy(comedor, folder / "bin/comedor")
        shutil.copy(HERE / "script", folder / "bin")
        for script in ("benches/comedor.php", "examples/guardar.php"):
            shutil.copy(REPOSITORY / script, folder)
        shutil.copy(HERE / "request", folder / "bin")
        shutil.copy(HERE / "init", folder)
        for name in PROGRAMS:
            loader, *option, program = self.program(name)
            shutil.copy(program, folder / "bin" / name)
            shutil.copy(loader, folder / "lib64")
            command = [loader, *option, "--list", program]
            for line in subprocess.check_output(command, text=True).splitlines():
                if " => /" in line and "ld-linux" not in line:
                    shutil.copy(line.split()[2], folder / "usr/lib")
        archive = folder.with_suffix(".cpio")
        busybox = folder / "bin/busybox"
        pack = f"find . | '{busybox}' cpio -o -H newc > '{archive}' 2> /dev/null"
        subprocess.run(pack, shell=True, check=True, cwd=folder)
        return archive


def accelerator():
    """KVM, if the processor has it: /dev/kvm alone may be one that runs no unmodified kernel."""
    flags = Path("/proc/cpuinfo").read_text().split()
    if ("vmx" in flags or "svm" in flags) and os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "-accel kvm -cpu host -smp 2".split()
    # Without KVM a second processor, or a newer one, makes a request four times as slow.
    return "-accel tcg -cpu qemu64 -smp 1".split()


class Shell:
    """A shell in a machine, at the other end of a socket; `request` is on its PATH."""

    def __init__(self, end):
        self.socket = end
        self.socket.settimeout(TIMEOUT)
        self.run(". request")

    def run(self, command):
        """Runs a command there; its exit status and output."""
        end = END.strip().decode()
        self.socket.sendall(f"{command}\nprintf '\\n{end} %s\\n' $?\n".encode())
        output = bytearray()
        while True:
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("the shell ended")
            output += received
            at = output.rfind(END, max(0, len(output) - 100))
            if at >= 0 and output.endswith(b"\n"):
                return int(output[at + len(END) :]), bytes(output[:at])

    def must(self, command):
        """Runs a command that must succeed."""
        status, output = self.run(f"{{ {command}\n}} 2>&1")
        if status != 0:
            raise RuntimeError(f"{command}: {output.decode(errors='replace')}")


def file_node(prefix, path):
    """QEMU's options for a block device in a file, which may stay in this machine's page cache."""
    options = ["driver=file", f"filename={path}", "cache.no-flush=on", "locking=off"]
    return ",".join(prefix + option for option in options)


class Process:
    """A program that runs a shell at the second end of each pair of sockets. It ends with this one."""

    def __init__(self, command, pairs, **options):
        descriptors = [theirs.fileno() for _, theirs in pairs]
        # However this one ends
        command = ["setpriv", "--pdeathsig", "KILL", *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=descriptors, **options
        )
        for _, theirs in pairs:
            theirs.close()
        self.shells = [Shell(ours) for ours, _ in pairs]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills it: for a machine, a power cut."""
        self.process.kill()
        self.process.wait()


class Machine(Process):
    """A virtual machine with a number of shells, and one disk of the block device `drive`.

    `enter` is a command that starts it elsewhere; `cards` are network cards, each with a NAT to there.
    """

    disk = "/dev/vda"

    def __init__(self, debian, initramfs, drive, shells, console, shell="sh", enter=(), cards=0):
        share = debian.root / "usr/share"
        pairs = [socket.socketpair() for _ in range(shells)]
        command = [*enter, *debian.program("qemu-system-x86_64")]
        command += ["-L", f"{share}/qemu", "-L", f"{share}/seabios"]
        command += "-nodefaults -no-user-config -display none -nic none -machine q35 -m 768".split()
        command += accelerator()
        command += ["-kernel", f"{debian.root}/boot/vmlinuz-{debian.version}"]
        command += ["-initrd", str(initramfs)]
        # The timer check fails on a busy machine without KVM. PORT_SHELL is for init's environment.
        kernel = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"
        kernel += f' PORT_SHELL="{shell}"'
        command += ["-append", kernel, "-no-reboot"]
        command += ["-serial", f"file:{console}"]
        command += ["-blockdev", f"node-name=disk,{drive}"]
        # QEMU 7.2 does not log "write zeroes" reliably.
        disk = "drive=disk,write-cache=on,discard=off,write-zeroes=off,num-queues=1"
        command += ["-device", f"virtio-blk-pci,{disk}"]
        command += ["-device", "virtio-serial-pci"]
        for number, (_, theirs) in enumerate(pairs):
            command += ["-chardev", f"socket,id=port{number},fd={theirs.fileno()}"]
            command += ["-device", f"virtserialport,chardev=port{number}"]
        for number in range(cards):
            command += ["-netdev", f"user,id=card{number}"]
            command += ["-device", f"virtio-net-pci,netdev=card{number},romfile="]
        modules = f"{debian.root}/usr/lib/x86_64-linux-gnu/qemu"
        super().__init__(command, pairs, env={"QEMU_MODULE_DIR": modules})


class Host(Process):
    """A shell in a folder of this machine, with a disk of its own there; needs root."""

    def __init__(self, folder, image):
        self.disk = f"-o loop {image}"
        pair = socket.socketpair()
        # The mounts end with the namespace.
        script = """cd "$0" && mkdir -p dev proc && mount --rbind /dev dev &&
            mount --rbind /proc proc && exec chroot . /bin/busybox sh /init shell <& $1 >& $1 2>&1"""
        command = ["unshare", "--mount", "bash", "-c", script, folder, str(pair[1].fileno())]
        super().__init__(command, [pair])
