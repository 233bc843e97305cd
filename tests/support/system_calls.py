"""The changes of a program to the files of a folder, as traced by `strace`.

The trace follows one process with all its threads, or also all processes that it starts. A call
takes effect at the log line on which it ended. A sync makes durable what had ended before the line
on which the sync began.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.processes import start_worker

_TRACED = (
    # Calls that change files, and calls that show which file and which offset.
    "openat,openat2,open,creat,close,dup,dup2,dup3,fcntl,lseek,read,readv,write,pwrite64,writev,"
    "pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,rename,renameat,"
    "renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mmap,msync,"
    "copy_file_range,sendfile,splice,clone,clone3,fork,vfork"
)
_LONGEST = 64 << 20
"""Bytes of one write that the log shows; a longer write fails."""

_OPTIONS = (
    "-f",
    "-qq",
    "-y",
    "-xx",
    "--seccomp-bpf",
    "-s",
    str(_LONGEST),
    "-e",
    f"trace={_TRACED}",
)
_LINE = re.compile(r"(\d+) +(.*)")
_BEGUN = re.compile(r"(\w+\(.*?)\s*<unfinished \.\.\.>$")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)$")
_WHOLE = re.compile(r"(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)")
_PART = re.compile(
    r'\s*(?:"(?P<data>(?:\\x[0-9a-f]{2})*)"(?P<cut>\.\.\.)?'
    r'|(?P<number>[^,"<]+)<(?P<path>(?:\\x[0-9a-f]{2})+)>(?:\(deleted\))?'
    r"|(?P<plain>[^,]+))(?:,|$)"
)
_FAMILY = ("clone", "clone3", "fork", "vfork")


@dataclass(frozen=True)
class Argument:
    """An argument of a call.

    Attributes:
        text: text in the log: flags, sizes, descriptors without their paths.
        data: bytes of a string.
        path: path of the file of a descriptor.
    """

    text: str = ""
    data: bytes = field(default=b"", repr=False)
    path: str = ""

    @property
    def number(self) -> int:
        """The value of a descriptor or a size."""
        return int(self.text, 0)


@dataclass(frozen=True)
class Call:
    """One system call that succeeded.

    Attributes:
        name: name of the call.
        arguments: arguments of the call.
        result: returned value.
        begun: log line on which the call began.
        ended: log line on which the call ended.
        process: id of the process that made the call.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: int
    begun: int
    ended: int
    process: str = ""

    def __str__(self) -> str:
        shown = [
            repr(one.data[:80]) if one.data else f"{one.text} {one.path}".strip()
            for one in self.arguments
        ]
        return f"{self.ended}: {self.name}({', '.join(shown)}) = {self.result}"


@dataclass(frozen=True)
class Said:
    """A line of standard output, and the line of the log on which it began to be written."""

    at: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The calls of a program in a folder, and the lines that it printed."""

    calls: tuple[Call, ...]
    said: tuple[Said, ...]


def require_strace() -> None:
    """Skip the test if no process can be traced."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("there is no strace, by which a program's writes are seen")
    tried = subprocess.run([strace, *_OPTIONS, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace cannot be used here: {tried.stderr.decode().strip()}")


def trace(
    folder: Path, log: Path, module: str, *arguments: str, follows_all: bool = False
) -> Trace:
    """Run a module of the tests under `strace`; the module must succeed.

    Args:
        folder: folder in which the module is traced.
        log: a new file outside the folder.
        module: module of the tests.
        arguments: arguments of the module.
        follows_all: whether to follow the processes that the module starts, too. Each of them must
            open its files itself.
    """
    under = ["strace", *_OPTIONS, "-o", str(log), "--"]
    worker = start_worker(*arguments, module=module, under=under)
    _, error = worker.communicate()
    assert worker.returncode == 0, error.decode()
    with log.open() as lines:
        return _read(lines, folder, follows_all=follows_all)


def _read(lines: Iterable[str], folder: Path, *, follows_all: bool = False) -> Trace:
    """Read the calls that concern a folder from a log.

    Raises:
        NotImplementedError: a process that is not followed used the folder.
    """
    ours = "".join(f"\\x{byte:02x}" for byte in os.fsencode(folder))
    found: list[tuple[str, int, int, re.Match[str]]] = []
    first = ""
    leaders: dict[str, str] = {}
    for thread, begun, ended, text in _joined(lines):
        first = first or thread
        whole = _WHOLE.match(text)
        if whole is None or whole[3].startswith(("-", "?")):
            continue
        if whole[1] in _FAMILY:
            if "CLONE_THREAD" in whole[2]:
                leaders[whole[3]] = thread
        elif ours in text or text.startswith("write(1<"):
            found.append((thread, begun, ended, whole))

    def process_of(thread: str) -> str:
        while thread in leaders:
            thread = leaders[thread]
        return thread

    ours_too = [one for one in found if follows_all or process_of(one[0]) == first]
    calls = [_call(one, process_of(one[0])) for one in ours_too]
    strange = [one for one in found if one not in ours_too and ours in one[3][2]]
    # A child may close descriptors that it has inherited.
    strange = [one for one in strange if one[3][1] != "close"]
    if strange:
        raise NotImplementedError(f"another process was in {folder}: {strange[0][3][0][:300]}")
    said = [call for call in calls if call.name == "write" and call.arguments[0].text == "1"]
    return Trace(tuple(call for call in calls if call not in set(said)), tuple(_lines(said)))


def _joined(lines: Iterable[str]) -> Iterator[tuple[str, int, int, str]]:
    """Each call with its thread and the lines on which it began and ended."""
    begun: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        assert found is not None, line
        thread, text = found.groups()
        if (first := _BEGUN.match(text)) is not None:
            begun[thread] = number, first[1]
        elif (rest := _RESUMED.match(text)) is not None:
            start, beginning = begun.pop(thread)
            yield thread, start, number, beginning + rest[1]
        else:
            yield thread, number, number, text


def _call(found: tuple[str, int, int, re.Match[str]], process: str) -> Call:
    _, begun, ended, whole = found
    arguments = tuple(_argument(part) for part in _PART.finditer(whole[2]))
    return Call(whole[1], arguments, int(whole[3], 0), begun, ended, process)


def _argument(part: re.Match[str]) -> Argument:
    assert part["cut"] is None, "what was written is longer than strace was told to show"
    if part["data"] is not None:
        return Argument(data=_bytes(part["data"]))
    if part["path"] is not None:
        return Argument(part["number"].strip(), path=os.fsdecode(_bytes(part["path"])))
    return Argument(part["plain"].strip())


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _lines(writes: Sequence[Call]) -> Iterator[Said]:
    left = ""
    for write in writes:
        *whole, left = (left + write.arguments[1].data[: write.result].decode()).split("\n")
        yield from (Said(write.begun, tuple(line.split(" "))) for line in whole)
