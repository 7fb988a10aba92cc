"""The record of a disk's writes, and what a power cut may leave of them.

The record is a log in the format of dm-log-writes (Documentation/admin-guide/device-mapper/
log-writes.rst in Linux), as QEMU's block driver blklogwrites appends to it: a block with sector,
length, flags and padding, then the data. A flush is an entry with a flag; it makes the entries
before it durable.
"""

import bisect
import os
import random
import struct
import subprocess
from collections import namedtuple

SECTOR = 512
FLUSH, FUA = 1, 2
# Of ext4 and Btrfs, which do not mount with a torn one: they rely on a disk that writes it whole.
SUPERBLOCKS = (0, 128, 131072)
Entry = namedtuple("Entry", "start sector count flags")
# A state of the disk: all entries before `flushed`, and `rest`, a list of (entry, sectors of it).
State = namedtuple("State", "number cut flushed rest kind")


class Record:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.entries = list(self.read())
        self.flushes = [i + 1 for i, entry in enumerate(self.entries) if entry.flags & FLUSH]

    def read(self):
        size = os.fstat(self.file.fileno()).st_size
        start = SECTOR
        while start + SECTOR <= size:
            header = os.pread(self.file.fileno(), 24, start)
            entry = Entry(start, *struct.unpack("<QQQ", header))
            end = start + SECTOR + entry.count * SECTOR
            # Not logged to its end.
            if not (entry.count or entry.flags) or end > size:
                return
            yield entry
            start = end

    def entries_before(self, size):
        """How many entries had begun at this size of the log: all that were complete, at least."""
        return bisect.bisect_left(self.entries, size, key=lambda entry: entry.start)

    def apply(self, entry, image, sectors):
        """Writes these sectors of an entry to an image."""
        for sector in sectors:
            data = os.pread(self.file.fileno(), SECTOR, entry.start + SECTOR + sector * SECTOR)
            os.pwrite(image, data, (entry.sector + sector) * SECTOR)

    def state(self, seed, number, first, acknowledged):
        """The crash state `number` of a seed, at or after the entry `first`.

        Every other one is cut just after an acknowledgement. Of three, one has all writes up to the
        cut; the others have all up to the last flush and a subset of those after it.
        """
        rng = random.Random(f"{seed} state {number}")
        cut = rng.choice(acknowledged) if number % 2 else rng.randint(first, len(self.entries))
        if rng.random() < 1 / 3:
            return State(number, cut, cut, [], "all writes")
        flushed = self.flushes[bisect.bisect_right(self.flushes, cut) - 1]
        rest = [(e, self.survivors(rng, e)) for e in self.entries[flushed:cut]]
        return State(number, cut, flushed, rest, "all flushed writes, some others, some torn")

    def survivors(self, rng, entry):
        """Which sectors of a write after the last flush are on the disk."""
        whole = range(entry.count)
        torn = [sector for sector in whole if rng.random() < 0.5]
        if entry.flags & FUA:
            return whole
        return rng.choice([whole, [], whole if entry.sector in SUPERBLOCKS else torn])


class Disk:
    """Writes states to `image`, an open file, each from what is durable in the one before."""

    def __init__(self, record, base, image):
        self.record, self.image = record, image
        self.durable, self.applied = os.memfd_create("durable"), 0
        # QEMU takes the size of the image when it starts.
        for target in (self.durable, image):
            copy(base, target)

    def write(self, state):
        """Writes a state; they come in the order of `flushed`."""
        for entry in self.record.entries[self.applied : state.flushed]:
            self.record.apply(entry, self.durable, range(entry.count))
        self.applied = state.flushed
        copy(path(self.durable), self.image)
        for entry, sectors in state.rest:
            self.record.apply(entry, self.image, sectors)


def path(descriptor):
    """The path of an open file, for other programs too."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def copy(source, target):
    """Copies the file with the path `source`, holes included, to the open file `target`."""
    subprocess.run(["cp", "--sparse=always", source, path(target)], check=True)
