"""The commands that documents show with `$`, run in one shell per document, with a home of its own.

`python -m tests.support.console` writes what the commands print into each document that differs.
Tests compare.
"""

import getpass
import os
import re
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.audit_guide import write_story
from tests.support.cli import clean_environment

ROOT = Path(__file__).parents[2]
YOU = "/home/you"
"""The home folder that documents show."""

_BLOCK = re.compile(r"(?<=```console\n)\$ .*?(?=```\n)", re.DOTALL)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_ID = re.compile(r"\b[0-9a-f]{8,}(-[0-9a-f]{4,})*\b")
_NUMBER = re.compile(r"\d[\d,.:TZ-]*\d|\d+(?= bytes)")


@dataclass(frozen=True)
class Document:
    """A document; `before` is what its reader ran, and `compared` the part of a text to compare."""

    name: str
    before: tuple[str, ...]
    compared: Callable[[str], str]

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Each command, and what the document says that the command prints."""
        blocks = _BLOCK.findall(self.path.read_text())
        return [(one[1], one[2]) for block in blocks for one in _STEP.finditer(block)]


def without_numbers(text: str) -> str:
    """A text without the digits of ids, numbers of several digits, sizes, and widths of columns."""
    text = _NUMBER.sub("N", _ID.sub(lambda found: re.sub("[0-9a-f]", "x", found[0]), text))
    return re.sub("  +", " ", text)


_IMPORTED = ("tooltrail import",)
DOCUMENTS = (
    Document("README.md", ("cd tooltrail",), without_numbers),
    Document("docs/audit-guide.md", _IMPORTED, str),
    Document("docs/importers.md", _IMPORTED, str),
    Document("docs/tutorial.md", ("cd tooltrail",), without_numbers),
)


def printed_by(home: Path, commands: Sequence[str]) -> list[str]:
    """What each of the commands prints, run one after the other in a home with past sessions."""
    write_story(home / ".claude" / "projects" / "app")
    if "cd tooltrail" in commands:
        _write_repository(home / "tooltrail")
    files = [home.parent / f"printed-{n}" for n in range(len(commands))]
    lines = ["set -m", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for command, file in zip(commands, files, strict=True):
        lines += [f"exec >{file} 2>&1", command]
        if command.endswith("&"):
            # What a command prints is in the record up to a second later.
            lines.append("until tooltrail tail @running 2>&- | grep -q .; do sleep 0.1; done")
    subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=home,
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    host = f"{getpass.getuser()}@{socket.gethostname()}"
    texts = (file.read_text() for file in files)
    return [text.replace(str(home), YOU).replace(host, "you@laptop") for text in texts]


def _write_repository(folder: Path) -> None:
    """The folder that `git clone` makes."""
    for name in ("cli", "store", "artifacts", "migrations", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)


def _environment(home: Path) -> dict[str, str]:
    """The environment of a laptop on which pip finds what is installed here, without a network."""
    programs = sysconfig.get_path("scripts")
    return {
        **clean_environment(),
        "HOME": str(home),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # this is how pip spells "no isolation" in the environment
        "TZ": "UTC",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }


def outputs_of(document: Document, folder: Path) -> list[str]:
    """What the commands of a document print, in their order."""
    home = folder / "home" / "you"
    home.mkdir(parents=True)
    commands = [command for command, _ in document.steps]
    return printed_by(home, [*document.before, *commands])[len(document.before) :]


def write_outputs(document: Document) -> None:
    """Write what each command of a document prints, if one prints what is not there.

    All outputs are replaced together, so that the ids and times of a page are those of one run.
    """
    with TemporaryDirectory() as folder:
        outputs = outputs_of(document, Path(folder))
    compared = document.compared
    if [compared(text) for _, text in document.steps] == [compared(text) for text in outputs]:
        return
    rest = iter(outputs)

    def step(found: re.Match[str]) -> str:
        return f"$ {found[1]}\n{next(rest)}"

    text = document.path.read_text()
    document.path.write_text(_BLOCK.sub(lambda one: _STEP.sub(step, one[0]), text))


def main() -> None:
    """Write what the commands print into each document."""
    for document in DOCUMENTS:
        write_outputs(document)


if __name__ == "__main__":
    main()
