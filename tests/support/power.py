"""What may be left of a folder when its machine loses power, from what a program did there.

What is taken to be sure, and why:

- Data that was written before an fsync or fdatasync of its file began, once that has ended, and the
  length that the file then had: that is what both promise (POSIX).
- Entries of a folder that were made, removed or renamed before an fsync of *that folder* began.
  Many file systems keep more (an fsync of a file in ext4 keeps all names before it); POSIX does
  not promise it, and others do not.

What is taken to be unsure: everything since then, up to the cut.

- Of data, any subset of the 4096-byte pages of each write, in any order, as the page cache writes
  them back. A page may be torn at a sector of 512 bytes: disks write those whole. Where a later
  piece is there and an earlier one is not, or where only the length had been kept, stand zeros.
  A file may have its name and nothing else.
- Of a length that was set, that it was.
- Of the entries of one folder, a beginning of them: file systems with a journal keep the order of
  what is done to a folder. Nothing is said of the order between folders, nor between entries and
  data. A rename is done as a whole or not at all, in both folders; with it comes what was done in
  them before.

SQLite's `-shm` is memory that the next process makes anew: it is left out. Modes, times and owners
are not modelled, nor disks that lie about what they have written, or lose what they had.
"""

import os
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tests.support.system_calls import Argument, Call

PAGE = 4096
SECTOR = 512
_MEMORY = "-shm"


class Choice(Protocol):
    """Decides what of the unsure is there."""

    def is_there(self) -> bool: ...

    def count(self, most: int) -> int:
        """A number from 0 to that."""
        ...


class Nothing:
    """What is not sure is not there."""

    def is_there(self) -> bool:
        return False

    def count(self, most: int) -> int:
        return 0


class Everything:
    """All is there, as after a `kill -9` without a loss of power."""

    def is_there(self) -> bool:
        return True

    def count(self, most: int) -> int:
        return most


class Chance:
    """Some of it is there; how much of it, differs from one seed to the next."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._share = self._random.random()

    def is_there(self) -> bool:
        return self._random.random() < self._share

    def count(self, most: int) -> int:
        return round(most * self._random.random())


@dataclass(eq=False)
class _Sure:
    """What a thing's fsyncs have made sure."""

    syncs: list[tuple[int, int]] = field(default_factory=list)

    def before(self, cut: int) -> int:
        """The line before which all that had ended is on the disk; -1 for nothing."""
        return max((begun for begun, ended in self.syncs if ended <= cut), default=-1)


@dataclass(frozen=True)
class _Change:
    """Data written at a place, or, without data, the length that was set."""

    at: int
    place: int
    data: bytes | None = field(default=None, repr=False)


@dataclass(eq=False)
class _File(_Sure):
    before_all: bytes = field(default=b"", repr=False)
    changes: list[_Change] = field(default_factory=list)
    length: int = 0

    def change(self, change: _Change) -> None:
        self.changes.append(change)
        end = change.place + len(change.data or b"")
        self.length = end if change.data is None else max(self.length, end)

    def image(self, cut: int, choice: Choice) -> bytes:
        sure = self.before(cut)
        found = bytearray(self.before_all)
        for change in self.changes:
            if change.at < sure:
                _apply(found, change)
            elif change.at <= cut:
                for piece in _pieces(change, choice):
                    _apply(found, piece)
        return bytes(found)


@dataclass(eq=False)
class _Link:
    target: str


@dataclass(frozen=True)
class _Entry:
    """A name that from then on leads to this, or nowhere; those of one rename have one `at`."""

    at: int
    name: str
    node: "_Node | None"


@dataclass(eq=False)
class _Folder(_Sure):
    before_all: dict[str, "_Node"] = field(default_factory=dict)
    entries: list[_Entry] = field(default_factory=list)
    now: dict[str, "_Node"] = field(default_factory=dict)

    def name(self, at: int, name: str, node: "_Node | None") -> None:
        insort(self.entries, _Entry(at, name, node), key=lambda entry: entry.at)
        if node is None:
            del self.now[name]
        else:
            self.now[name] = node

    def names(self, count: int) -> list[tuple[str, "_Node"]]:
        """What is in it after so many entries, in the order of names."""
        found = dict(self.before_all)
        for entry in self.entries[:count]:
            if entry.node is None:
                found.pop(entry.name, None)
            else:
                found[entry.name] = entry.node
        return sorted(found.items())


_Node = _File | _Folder | _Link


@dataclass
class _Open:
    node: _File | _Folder
    path: str
    offset: int = 0
    appends: bool = False


class Disk:
    """A folder with all that one program did in it."""

    def __init__(self, root: Path) -> None:
        """Begin with what is in a folder; all of it is taken to be on the disk."""
        self._path = str(root)
        self._root = _taken(root)
        self._open: dict[int, _Open] = {}
        self._folders: list[_Folder] = list(_folders_in(self._root))
        self.moments: list[int] = []

    def follow(self, calls: Iterable[Call]) -> None:
        """Go through what the program did.

        Raises:
            NotImplementedError: it did something that changes files and is not known here.
        """
        for call in sorted(calls, key=_takes_effect):
            done = getattr(self, f"_do_{call.name}", None)
            if done is None:
                raise NotImplementedError(f"{call.name}{call.arguments}")
            if done(call):
                self.moments.append(call.ended)

    def syncs_of(self, name: str) -> int:
        """How often a file of the root folder was synced."""
        node = self._root.now[name]
        return len(node.syncs) if isinstance(node, _File) else 0

    def image(self, cut: int, choice: Choice) -> "Image":
        """What is left when the power goes after a line of the log."""
        there = self._entries_there(cut, choice)
        found = Image()
        below = [("", self._root)]
        while below:
            above, folder = below.pop()
            for name, node in folder.names(there[folder]):
                path = f"{above}{name}"
                if isinstance(node, _Folder):
                    found.folders.append(path)
                    below.append((f"{path}/", node))
                elif isinstance(node, _Link):
                    found.links[path] = node.target
                elif not name.endswith(_MEMORY):
                    first = found.nodes.setdefault(id(node), path)
                    if first == path:
                        found.files[path] = node.image(cut, choice)
                    else:
                        found.second_names[path] = first
        return found

    def _entries_there(self, cut: int, choice: Choice) -> dict[_Folder, int]:
        """How many of its entries each folder has."""
        there: dict[_Folder, int] = {}
        for folder in self._folders:
            past = sum(entry.at <= cut for entry in folder.entries)
            sure = folder.before(cut)
            sure_count = sum(entry.at < sure for entry in folder.entries)
            there[folder] = sure_count + choice.count(past - sure_count)
        while self._complete_renames(there):
            pass
        return there

    def _complete_renames(self, there: dict[_Folder, int]) -> bool:
        """Add what a rename did in the other folder, and there before; whether there was any."""
        done = {entry.at for folder, n in there.items() for entry in folder.entries[:n]}
        added = False
        for folder, n in there.items():
            last = max((k + 1 for k, e in enumerate(folder.entries) if e.at in done), default=0)
            if last > n:
                there[folder] = last
                added = True
        return added

    # What calls do, each by its name; whether that can make a difference after a cut.

    def _do_openat(self, call: Call) -> bool:
        path, flags = self._full(*call.arguments[:2]), call.arguments[2].text
        self._open.pop(call.result, None)
        if not self._is_ours(path):
            return False
        if "O_TMPFILE" in flags:
            raise NotImplementedError(f"a file without a name in {path}")
        folder, name = self._place(path)
        node = self._root if path == self._path else folder.now.get(name)
        is_new = node is None
        if node is None and "O_CREAT" not in flags:
            raise NotImplementedError(f"{path} was opened, and nobody knows what made it")
        if node is None:
            node = _File()
            folder.name(call.ended, name, node)
        if isinstance(node, _Link):
            raise NotImplementedError(f"a link to a file: {path}")
        is_cut = isinstance(node, _File) and "O_TRUNC" in flags and not is_new
        if isinstance(node, _File) and is_cut:
            node.change(_Change(call.ended, 0))
        self._open[call.result] = _Open(node, path, appends="O_APPEND" in flags)
        return is_new or is_cut

    def _do_close(self, call: Call) -> bool:
        self._open.pop(call.arguments[0].number, None)
        return False

    def _do_dup(self, call: Call) -> bool:
        self._open[call.result] = self._opened(call)
        return False

    def _do_fcntl(self, call: Call) -> bool:
        # Nearly all are locks, which nothing is left of.
        return self._do_dup(call) if "F_DUPFD" in call.arguments[1].text else False

    def _do_lseek(self, call: Call) -> bool:
        self._opened(call).offset = call.result
        return False

    def _do_read(self, call: Call) -> bool:
        self._opened(call).offset += call.result
        return False

    def _do_write(self, call: Call) -> bool:
        file = self._opened(call)
        if file.appends:
            assert isinstance(file.node, _File)
            file.offset = file.node.length
        file.offset += call.result
        return self._written(call, file, file.offset - call.result)

    def _do_pwrite64(self, call: Call) -> bool:
        return self._written(call, self._opened(call), call.arguments[3].number)

    def _written(self, call: Call, file: _Open, place: int) -> bool:
        data = call.arguments[1].data[: call.result]
        assert isinstance(file.node, _File)
        assert len(data) == call.result
        file.node.change(_Change(call.ended, place, data))
        return not file.path.endswith(_MEMORY)

    def _do_ftruncate(self, call: Call) -> bool:
        file = self._opened(call)
        assert isinstance(file.node, _File)
        file.node.change(_Change(call.ended, call.arguments[1].number))
        return not file.path.endswith(_MEMORY)

    def _do_fsync(self, call: Call) -> bool:
        self._opened(call).node.syncs.append((call.begun, call.ended))
        return True

    _do_fdatasync = _do_fsync

    def _do_mmap(self, call: Call) -> bool:
        _, _, protection, flags, file, _ = call.arguments
        can_write = "PROT_WRITE" in protection.text and "MAP_SHARED" in flags.text
        if can_write and not file.path.endswith(_MEMORY):
            raise NotImplementedError(f"{file.path} was written as memory")
        return False

    def _do_mkdir(self, call: Call) -> bool:
        path = self._full(Argument(), call.arguments[0])
        made = _Folder()
        self._folders.append(made)
        folder, name = self._place(path)
        folder.name(call.ended, name, made)
        return True

    def _do_symlink(self, call: Call) -> bool:
        folder, name = self._place(self._full(Argument(), call.arguments[1]))
        folder.name(call.ended, name, _Link(os.fsdecode(call.arguments[0].data)))
        return True

    def _do_unlink(self, call: Call) -> bool:
        return self._removed(call, self._full(Argument(), call.arguments[0]))

    _do_rmdir = _do_unlink

    def _do_unlinkat(self, call: Call) -> bool:
        return self._removed(call, self._full(*call.arguments[:2]))

    def _removed(self, call: Call, path: str) -> bool:
        folder, name = self._place(path)
        folder.name(call.ended, name, None)
        return True

    def _do_link(self, call: Call) -> bool:
        old, new = (self._place(self._full(Argument(), one)) for one in call.arguments[:2])
        new[0].name(call.ended, new[1], old[0].now[old[1]])
        return True

    def _do_rename(self, call: Call) -> bool:
        old, new = (self._place(self._full(Argument(), one)) for one in call.arguments[:2])
        node = old[0].now[old[1]]
        old[0].name(call.ended, old[1], None)
        new[0].name(call.ended, new[1], node)
        return True

    def _opened(self, call: Call) -> _Open:
        file = call.arguments[0]
        if file.number not in self._open:
            raise NotImplementedError(f"it is not known how {file.path} was opened: {call}")
        return self._open[file.number]

    def _full(self, folder: Argument, name: Argument) -> str:
        # As `/` has it, an absolute name needs no folder.
        return os.path.normpath(Path(folder.path, os.fsdecode(name.data)))

    def _is_ours(self, path: str) -> bool:
        return path == self._path or path.startswith(f"{self._path}/")

    def _place(self, path: str) -> tuple[_Folder, str]:
        """The folder in which something is, and its name there."""
        if path == self._path:
            return self._root, ""
        if not self._is_ours(path):
            raise NotImplementedError(f"between {self._path} and {path}")
        *above, name = os.path.relpath(path, self._path).split("/")
        folder = self._root
        for one in above:
            below = folder.now[one]
            if not isinstance(below, _Folder):
                raise NotImplementedError(f"a link to a folder: {path}")
            folder = below
        return folder, name


@dataclass
class Image:
    """What is left of a folder, by paths below it."""

    folders: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    second_names: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)

    def put(self, folder: Path) -> None:
        """Write it into a new folder."""
        folder.mkdir()
        for path in self.folders:
            (folder / path).mkdir()
        for path, target in self.links.items():
            (folder / path).symlink_to(target)
        for path, content in self.files.items():
            (folder / path).write_bytes(content)
        for path, first in self.second_names.items():
            os.link(folder / first, folder / path)

    def fingerprint(self) -> int:
        """The same for images that are alike; of this process alone."""
        parts = (self.links, self.files, self.second_names)
        return hash((tuple(self.folders), *(tuple(sorted(part.items())) for part in parts)))


def _takes_effect(call: Call) -> int:
    """Where a call is to stand among those of other threads, which may have seen what it did.

    A number that was closed may be in use again, and a new folder filled, before `strace` was told
    that the call had ended.
    """
    is_seen_early = call.name in {"close", "mkdir", "rmdir", "link", "symlink", "rename"}
    return call.begun if is_seen_early or call.name.startswith("unlink") else call.ended


def _taken(path: Path) -> _Folder:
    found: dict[str, _Node] = {}
    for one in path.iterdir():
        if one.is_symlink():
            found[one.name] = _Link(str(one.readlink()))
        elif one.is_dir():
            found[one.name] = _taken(one)
        else:
            assert one.stat().st_nlink == 1, f"{one} has two names"
            content = one.read_bytes()
            found[one.name] = _File(before_all=content, length=len(content))
    return _Folder(before_all=found, now=dict(found))


def _folders_in(folder: _Folder) -> Iterator[_Folder]:
    yield folder
    for node in folder.before_all.values():
        if isinstance(node, _Folder):
            yield from _folders_in(node)


def _apply(found: bytearray, change: _Change) -> None:
    if change.data is None:
        del found[change.place :]
    found.extend(bytes(max(0, change.place - len(found))))
    if change.data is not None:
        found[change.place : change.place + len(change.data)] = change.data


def _pieces(change: _Change, choice: Choice) -> Iterator[_Change]:
    """What of an unsure change is there."""
    if change.data is None:
        if choice.is_there():
            yield change
        return
    place, data = change.place, change.data
    while data:
        size = min(len(data), PAGE - place % PAGE)
        if choice.is_there():
            yield _Change(change.at, place, data[:size])
        elif choice.is_there():
            yield from _torn(change.at, place, data[:size], choice)
        place, data = place + size, data[size:]


def _torn(at: int, place: int, data: bytes, choice: Choice) -> Iterator[_Change]:
    """A beginning or an end of a piece, up to a sector's border."""
    border = (place // SECTOR + choice.count(PAGE // SECTOR)) * SECTOR
    middle = min(max(border - place, 0), len(data))
    if choice.is_there():
        yield _Change(at, place, data[:middle])
    else:
        yield _Change(at, place + middle, data[middle:])
