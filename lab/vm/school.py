"""What is written to a school, and what must be there after a power cut, or after all of it."""

import io
import json
import random
import shlex
import tarfile

# In the shell of a machine.
AULARIOS = "$COMEDOR_DATA_DIR/Centros/centro1/Aularios"
WRITERS = 8
SHARED_AULARIOS = ["aula1", "aula2"]
SHARED_DAYS = ["2026-11-20", "2026-11-23", "2026-12-01"]
TYPES = "Comedor-MenuTypes.json"


class Write:
    """A write: what the frontend does before it, the request, and what it changes.

    `cells` are the plates, or menu types, of `file` that it sets, to None where it deletes one.
    """

    def __init__(self, action, aulario, body, file, cells, frontend=""):
        self.action, self.aulario, self.body = action, aulario, body
        self.file, self.cells, self.frontend = file, cells, frontend
        # How many entries the log had at most when the answer had arrived, and the time in seconds.
        self.acknowledged = None
        self.time = None

    def command(self):
        """The shell command for it; its output has `"success":true` if it was stored."""
        body = shlex.quote(json.dumps(self.body))
        return f"{self.frontend}\nrequest {self.action} {self.aulario} {body}"


def day_file(aulario, date):
    return f"{aulario}/Comedor/{date[:7]}/{date[8:]}/_datos.json"


def add_aulario(aulario):
    """The command that makes an aulario as the frontend does: without flushing it."""
    return f"printf '{{\"name\":\"{aulario}\"}}' > {AULARIOS}/{aulario}.json"


def save(rng, aulario, date, plates, value, frontend=""):
    """Two plates of the same text: a menu in which they differ was torn."""
    text = value + " " + rng.choice("abcdefgh") * rng.choice([0, 10, 600, 1900])
    text = text.strip()
    named = {plate: {"name": text} for plate in plates}
    body = {"date": date, "menu_type": "basal", "plates": named}
    cells = {plate: text for plate in plates}
    return Write("save_menu", aulario, body, day_file(aulario, date), cells, frontend)


def writes_of(writer, seed, count):
    """The writes of one writer, one after another. No other writer sets the same cells."""
    rng = random.Random(f"{seed} writer {writer}")
    plates = [f"w{writer}a", f"w{writer}b"]
    own_types = {aulario: [] for aulario in SHARED_AULARIOS}
    for number in range(count):
        value = f"w{writer}-{number}"
        aulario = rng.choice(SHARED_AULARIOS)
        if number % 10 == 1:
            yield new_day(rng, writer, number, aulario, plates, value)
        elif rng.random() < 0.5:
            yield save(rng, aulario, rng.choice(SHARED_DAYS), plates, value)
        else:
            yield change_types(rng, aulario, own_types[aulario], value)


def saves_of(writer, seed, count):
    """Saves of one writer, in an aulario of its own: what is missing then, no other writer has overwritten."""
    rng = random.Random(f"{seed} writer {writer}")
    aulario = f"own{writer}"
    for number in range(count):
        date = rng.choice(SHARED_DAYS) if number % 10 != 1 else f"2027-01-{number % 28 + 1:02}"
        frontend = add_aulario(aulario) if number == 0 else ""
        yield save(rng, aulario, date, [f"w{writer}a", f"w{writer}b"], f"w{writer}-{number}", frontend)


def new_day(rng, writer, number, aulario, plates, value):
    """The first menu of a day, whose folders the frontend may have made a moment before."""
    date = f"2027-{writer + 1:02}-{number % 28 + 1:02}"
    kind = rng.choice(["none", "folder", "file", "aulario"])
    if kind == "aulario":
        aulario = value
    folder = f"{AULARIOS}/{day_file(aulario, date).rpartition('/')[0]}"
    frontend = "" if kind == "none" else f"mkdir -p {folder}"
    if kind == "file":
        frontend += f"; printf '{{\"date\":\"{date}\",\"menus\":[]}}' > {folder}/_datos.json"
    if kind == "aulario":
        frontend += f"; {add_aulario(aulario)}"
    return save(rng, aulario, date, plates, value, frontend)


def change_types(rng, aulario, own, value):
    file = f"{aulario}/{TYPES}"
    if len(own) < 2:
        own.append(value)
        return Write("add_menu_type", aulario, {"id": value, "label": value}, file, {value: value})
    type_id = rng.choice(own)
    if rng.random() < 0.5:
        own.remove(type_id)
        return Write("delete_menu_type", aulario, {"id": type_id}, file, {type_id: None})
    body = {"id": type_id, "label": value}
    return Write("rename_menu_type", aulario, body, file, {type_id: value})


def cells_of(file, content):
    document = json.loads(content)
    if file.endswith(TYPES):
        return {entry["id"]: entry["label"] for entry in document}
    plates = document["menus"]["basal"]["plates"] if document["menus"] else {}
    return {key: plate["name"] for key, plate in plates.items()}


def read_tar(data):
    """The files of a tar archive by their names."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {
            member.name.removeprefix("./"): archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }


def judge(writes, cut, files, findings):
    """Looks for lost and torn writes in the `files` after a power cut at the entry `cut`.

    Adds sentences to the lists `findings["lost"]` and `findings["torn"]`. Returns the files that the next writes must go
    to, and the writes that are lost: of each plate or menu type the last one that was acknowledged.
    """
    by_file = {}
    for write in writes:
        by_file.setdefault(write.file, []).append(write)
    to_write, lost = [], []
    for file, changes in by_file.items():
        content = files.get(file)
        folder, _, name = file.rpartition("/")
        due = [w for w in changes if w.acknowledged is not None and w.acknowledged <= cut]
        if content is not None and not due and file in changes[0].frontend:
            # The frontend's own, which it did not flush.
            continue
        if content is not None or f"{folder}/.{name}.tmp" in files:
            to_write.append(file)
        try:
            cells = cells_of(file, content) if content is not None else {}
        except (ValueError, KeyError, TypeError) as error:
            # No writer wrote this.
            findings["torn"].append(f"{file}: {error!r}: {content[:60]!r}")
            lost += due[-1:]
            continue
        lost += judge_cells(file, changes, due, cells, findings)
    return to_write, lost


def judge_cells(file, changes, due, cells, findings):
    """The same for one file, with the cells that it has."""
    lost = []
    # For each cell absence, then its writes; and the last one that was acknowledged
    history = {}
    for write in changes:
        for cell in write.cells:
            writes, least = history.get(cell, ([None], 0))
            writes.append(write)
            history[cell] = writes, len(writes) - 1 if write in due else least
    for cell, (writes, least) in history.items():
        values = [write and write.cells[cell] for write in writes]
        found = cells.get(cell)
        if found not in values:
            findings["torn"].append(f"{file}: {cell}: unknown value {found!r:.40}")
        elif found not in values[least:]:
            instead = f"{found!r:.40} instead of {values[least]!r:.40}"
            findings["lost"].append(f"{file}: {cell}: {instead}")
            lost.append(writes[least])
    for write in changes:
        if len({cells.get(cell) for cell in write.cells}) > 1:
            findings["torn"].append(f"{file}: {list(write.cells)} from different writes")
    return lost


def next_write(file):
    """A write that changes the file once more."""
    aulario, *_ = file.split("/")
    frontend = add_aulario(aulario)  # It had not flushed that either.
    if file.endswith(TYPES):
        body = {"id": "basal", "label": "next"}
        return Write("rename_menu_type", aulario, body, file, {}, frontend)
    month, day = file.split("/")[2:4]
    body = {"date": f"{month}-{day}", "menu_type": "basal", "plates": {"next": {"name": "next"}}}
    return Write("save_menu", aulario, body, file, {}, frontend)


PREPARE = f"""mkdir -p {AULARIOS}
{chr(10).join(add_aulario(aulario) for aulario in SHARED_AULARIOS)}
sync"""
