"""The possible states of a folder after a power cut, derived from the actions of a program.

These changes are assumed to be durable:

- Data that was written before an fsync or fdatasync of its file began, once that call has ended,
  and the length of the file at that time: both calls promise that (POSIX).
- Entries of a folder that were made, removed or renamed before an fsync of *that folder* began.
  Some file systems keep more: with its usual journal, an fsync of a file in ext4 keeps all names
  that were made before it. POSIX does not promise that.

All later changes, up to the power cut, are uncertain:

- Data: any subset of the 4096-byte pages of each write survives, in any order, as the page cache
  writes them back. A page may be torn at a sector of 512 bytes, which disks write atomically. If a
  later piece survives without an earlier one, or only the length survives, the missing bytes are
  zeros. A file may have only its name.
- A changed length survives or not.
- Entries of one folder: the first N changes survive, for any N, since file systems with a journal
  keep the order of changes to a folder. No order is assumed between folders, or between entries
  and data. A rename survives in both folders or in none; with it, all earlier changes in both do.

SQLite's `-shm` is memory that the next process creates again: it is left out. Modes, times and
owners are not modelled, nor disks that report writes too early or lose durable data.
"""

import os
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

PAGE = 4096
SECTOR = 512
MEMORY = "-shm"


class Choice(Protocol):
    """Decides which uncertain changes survive."""

    def is_there(self) -> bool: ...

    def count(self, most: int) -> int:
        """A number from 0 to `most`."""
        ...


class Nothing:
    """No uncertain change survives."""

    def is_there(self) -> bool:
        return False

    def count(self, most: int) -> int:
        return 0


class Everything:
    """All changes survive, as after a `kill -9` without a power cut."""

    def is_there(self) -> bool:
        return True

    def count(self, most: int) -> int:
        return most


class Chance:
    """Some uncertain changes survive; the share depends on the seed."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._share = self._random.random()

    def is_there(self) -> bool:
        return self._random.random() < self._share

    def count(self, most: int) -> int:
        return round(most * self._random.random())


@dataclass(eq=False)
class _Sure:
    """The fsyncs of a file or folder, and what they made durable."""

    syncs: list[tuple[int, int]] = field(default_factory=list)

    def before(self, cut: int) -> int:
        """The line before which all changes are on the disk; -1 if no change is certain."""
        return max((begun for begun, ended in self.syncs if ended <= cut), default=-1)


@dataclass(frozen=True)
class Change:
    """Data that was written at an offset; without data, a length that was set."""

    at: int
    place: int
    data: bytes | None = field(default=None, repr=False)


@dataclass(eq=False)
class File(_Sure):
    before_all: bytes = field(default=b"", repr=False)
    changes: list[Change] = field(default_factory=list)
    length: int = 0

    def change(self, change: Change) -> None:
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
                if change.data is not None and choice.is_there():
                    # The length survives, even if data does not.
                    end = change.place + len(change.data)
                    found.extend(bytes(max(0, end - len(found))))
                for piece in _pieces(change, choice):
                    _apply(found, piece)
        return bytes(found)


@dataclass(eq=False)
class Link:
    target: str


@dataclass(frozen=True)
class Entry:
    """A new target of a name, or None to remove it; entries of one rename share one `at`."""

    at: int
    name: str
    node: "Node | None"


@dataclass(eq=False)
class Folder(_Sure):
    before_all: dict[str, "Node"] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    now: dict[str, "Node"] = field(default_factory=dict)

    def name(self, at: int, name: str, node: "Node | None") -> None:
        insort(self.entries, Entry(at, name, node), key=lambda entry: entry.at)
        if node is None:
            del self.now[name]
        else:
            self.now[name] = node

    def names(self, count: int) -> list[tuple[str, "Node"]]:
        """The content of the folder after `count` entries, in the order of names."""
        found = dict(self.before_all)
        for entry in self.entries[:count]:
            if entry.node is None:
                found.pop(entry.name, None)
            else:
                found[entry.name] = entry.node
        return sorted(found.items())


Node = File | Folder | Link


@dataclass
class Image:
    """The remaining content of a folder, by relative path."""

    folders: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    second_names: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)

    def put(self, folder: Path) -> None:
        """Write the content into a new folder."""
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
        """A hash that is equal for equal images; valid only in this process."""
        parts = (self.links, self.files, self.second_names)
        return hash((tuple(self.folders), *(tuple(sorted(part.items())) for part in parts)))


def make_image(root: Folder, folders: Iterable[Folder], cut: int, choice: Choice) -> "Image":
    """A possible state of `root` after a power cut; `folders` are all folders that ever existed."""
    there = _entries_there(folders, cut, choice)
    found = Image()
    below = [("", root)]
    while below:
        above, folder = below.pop()
        for name, node in folder.names(there[folder]):
            path = f"{above}{name}"
            if isinstance(node, Folder):
                found.folders.append(path)
                below.append((f"{path}/", node))
            elif isinstance(node, Link):
                found.links[path] = node.target
            elif not name.endswith(MEMORY):
                first = found.nodes.setdefault(id(node), path)
                if first == path:
                    found.files[path] = node.image(cut, choice)
                else:
                    found.second_names[path] = first
    return found


def _entries_there(folders: Iterable[Folder], cut: int, choice: Choice) -> dict[Folder, int]:
    """The number of surviving entries of each folder."""
    there: dict[Folder, int] = {}
    for folder in folders:
        past = sum(entry.at <= cut for entry in folder.entries)
        sure = folder.before(cut)
        sure_count = sum(entry.at < sure for entry in folder.entries)
        there[folder] = sure_count + choice.count(past - sure_count)
    while _complete_renames(there):
        pass
    return there


def _complete_renames(there: dict[Folder, int]) -> bool:
    """Add entries of renames in other folders, and entries before them; return whether any."""
    done = {entry.at for folder, n in there.items() for entry in folder.entries[:n]}
    added = False
    for folder, n in there.items():
        last = max((k + 1 for k, e in enumerate(folder.entries) if e.at in done), default=0)
        if last > n:
            there[folder] = last
            added = True
    return added


def _apply(found: bytearray, change: Change) -> None:
    if change.data is None:
        del found[change.place :]
    found.extend(bytes(max(0, change.place - len(found))))
    if change.data is not None:
        found[change.place : change.place + len(change.data)] = change.data


def _pieces(change: Change, choice: Choice) -> Iterator[Change]:
    """The surviving pieces of an uncertain change."""
    if change.data is None:
        if choice.is_there():
            yield change
        return
    place, data = change.place, change.data
    while data:
        size = min(len(data), PAGE - place % PAGE)
        if choice.is_there():
            yield Change(change.at, place, data[:size])
        elif choice.is_there():
            yield from _torn(change.at, place, data[:size], choice)
        place, data = place + size, data[size:]


def _torn(at: int, place: int, data: bytes, choice: Choice) -> Iterator[Change]:
    """The beginning or the end of a piece, cut at the border of a sector."""
    border = (place // SECTOR + choice.count(PAGE // SECTOR)) * SECTOR
    middle = min(max(border - place, 0), len(data))
    if choice.is_there():
        yield Change(at, place, data[:middle])
    else:
        yield Change(at, place + middle, data[middle:])
