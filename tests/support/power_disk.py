"""A folder with all changes that a program made in it, derived from its system calls.

Unknown calls that may change files raise `NotImplementedError`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.power import MEMORY, Change, Choice, File, Folder, Image, Link, Node, make_image
from tests.support.system_calls import Argument, Call

_BY_DESCRIPTOR = {"write", "pwrite64", "read", "lseek", "fsync", "fdatasync", "ftruncate", "fcntl"}


@dataclass
class _Open:
    node: File | Folder
    path: str
    offset: int = 0
    appends: bool = False


class Disk:
    """A folder with all changes that one or more programs made in it."""

    def __init__(self, root: Path) -> None:
        """Begin with the content of a folder, which is assumed to be on the disk."""
        self._path = str(root)
        self._root = _taken(root)
        self._open: dict[tuple[str, int], _Open] = {}
        self._folders: list[Folder] = list(_folders_in(self._root))
        self.moments: list[int] = []

    def follow(self, calls: Iterable[Call]) -> None:
        """Apply the calls of the program.

        Raises:
            NotImplementedError: a call that may change files is unknown here.
        """
        for call in sorted(calls, key=_takes_effect):
            if call.name in _BY_DESCRIPTOR and not self._is_ours(call.arguments[0].path):
                continue  # the call concerns a file outside the folder
            done = getattr(self, f"_do_{call.name}", None)
            if done is None:
                raise NotImplementedError(f"{call.name}{call.arguments}")
            if done(call):
                self.moments.append(call.ended)

    def syncs_of(self, name: str) -> int:
        """The number of syncs of a file in the root folder."""
        node = self._root.now[name]
        return len(node.syncs) if isinstance(node, File) else 0

    def image(self, cut: int, choice: Choice) -> Image:
        """A possible state after a power cut behind a line of the log."""
        return make_image(self._root, self._folders, cut, choice)

    # One method for each call, by name; returns whether it can matter after a power cut.

    def _do_openat(self, call: Call) -> bool:
        path, flags = self._full(*call.arguments[:2]), call.arguments[2].text
        self._open.pop((call.process, call.result), None)
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
            node = File()
            folder.name(call.ended, name, node)
        if isinstance(node, Link):
            raise NotImplementedError(f"a link to a file: {path}")
        is_cut = isinstance(node, File) and "O_TRUNC" in flags and not is_new
        if isinstance(node, File) and is_cut:
            node.change(Change(call.ended, 0))
        self._open[call.process, call.result] = _Open(node, path, appends="O_APPEND" in flags)
        return is_new or is_cut

    def _do_close(self, call: Call) -> bool:
        self._open.pop((call.process, call.arguments[0].number), None)
        return False

    def _do_dup(self, call: Call) -> bool:
        self._open[call.process, call.result] = self._opened(call)
        return False

    def _do_fcntl(self, call: Call) -> bool:
        # Nearly all calls are locks, which leave no trace.
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
            assert isinstance(file.node, File)
            file.offset = file.node.length
        file.offset += call.result
        return self._written(call, file, file.offset - call.result)

    def _do_pwrite64(self, call: Call) -> bool:
        return self._written(call, self._opened(call), call.arguments[3].number)

    def _written(self, call: Call, file: _Open, place: int) -> bool:
        data = call.arguments[1].data[: call.result]
        assert isinstance(file.node, File)
        assert len(data) == call.result
        file.node.change(Change(call.ended, place, data))
        return not file.path.endswith(MEMORY)

    def _do_ftruncate(self, call: Call) -> bool:
        file = self._opened(call)
        assert isinstance(file.node, File)
        file.node.change(Change(call.ended, call.arguments[1].number))
        return not file.path.endswith(MEMORY)

    def _do_fsync(self, call: Call) -> bool:
        self._opened(call).node.syncs.append((call.begun, call.ended))
        return True

    _do_fdatasync = _do_fsync

    def _do_mmap(self, call: Call) -> bool:
        _, _, protection, flags, file, _ = call.arguments
        can_write = "PROT_WRITE" in protection.text and "MAP_SHARED" in flags.text
        if can_write and not file.path.endswith(MEMORY):
            raise NotImplementedError(f"{file.path} was written as memory")
        return False

    def _do_mkdir(self, call: Call) -> bool:
        path = self._full(Argument(), call.arguments[0])
        made = Folder()
        self._folders.append(made)
        folder, name = self._place(path)
        folder.name(call.ended, name, made)
        return True

    def _do_symlink(self, call: Call) -> bool:
        folder, name = self._place(self._full(Argument(), call.arguments[1]))
        folder.name(call.ended, name, Link(os.fsdecode(call.arguments[0].data)))
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
        if (call.process, file.number) not in self._open:
            raise NotImplementedError(f"it is not known how {file.path} was opened: {call}")
        return self._open[call.process, file.number]

    def _full(self, folder: Argument, name: Argument) -> str:
        # As with the operator `/`, an absolute name replaces the folder.
        return os.path.normpath(Path(folder.path, os.fsdecode(name.data)))

    def _is_ours(self, path: str) -> bool:
        return path == self._path or path.startswith(f"{self._path}/")

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder that contains a path, and the name of the path in the folder."""
        if path == self._path:
            return self._root, ""
        if not self._is_ours(path):
            raise NotImplementedError(f"between {self._path} and {path}")
        *above, name = os.path.relpath(path, self._path).split("/")
        folder = self._root
        for one in above:
            below = folder.now[one]
            if not isinstance(below, Folder):
                raise NotImplementedError(f"a link to a folder: {path}")
            folder = below
        return folder, name


def _takes_effect(call: Call) -> int:
    """The line by which to order a call among those of other threads, which may see its effect.

    A closed descriptor may be in use again, and a new folder may contain files, before `strace`
    reports the end of the call.
    """
    is_seen_early = call.name in {"close", "mkdir", "rmdir", "link", "symlink", "rename"}
    return call.begun if is_seen_early or call.name.startswith("unlink") else call.ended


def _taken(path: Path) -> Folder:
    found: dict[str, Node] = {}
    for one in path.iterdir():
        if one.is_symlink():
            found[one.name] = Link(str(one.readlink()))
        elif one.is_dir():
            found[one.name] = _taken(one)
        else:
            assert one.stat().st_nlink == 1, f"{one} has two names"
            content = one.read_bytes()
            found[one.name] = File(before_all=content, length=len(content))
    return Folder(before_all=found, now=dict(found))


def _folders_in(folder: Folder) -> Iterator[Folder]:
    yield folder
    for node in folder.before_all.values():
        if isinstance(node, Folder):
            yield from _folders_in(node)
