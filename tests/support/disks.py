"""Real disks: one that can be full, read-only or away."""

import errno
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BLOCK = 4096


class SmallDisk:
    """A file system of its own at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take all the room that there is."""
        with self._filler.open("ab", buffering=0) as filler:
            while _takes(filler.fileno()):
                pass

    def free(self) -> None:
        """Give it back."""
        self._filler.unlink(missing_ok=True)

    @contextmanager
    def read_only(self) -> Generator[None]:
        """Nobody can write to it as long as the block lasts."""
        self._mount_again("ro")
        try:
            yield
        finally:
            self._mount_again("rw")

    @contextmanager
    def unmounted(self) -> Generator[None]:
        """As long as the block lasts there is the empty folder alone on which it is mounted."""
        aside = self.folder.with_name(f"{self.folder.name}-aside")
        aside.mkdir()
        subprocess.run(["mount", "--bind", str(self.folder), str(aside)], check=True)
        subprocess.run(["umount", str(self.folder)], check=True)
        try:
            yield
        finally:
            subprocess.run(["mount", "--bind", str(aside), str(self.folder)], check=True)
            subprocess.run(["umount", str(aside)], check=True)

    def _mount_again(self, option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: int) -> Generator[SmallDisk]:
    """A disk of `size` bytes, mounted at `folder`; skips the test where nobody may mount."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _takes(descriptor: int) -> bool:
    try:
        return os.write(descriptor, bytes(_BLOCK)) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
