"""Real disks that can be full, read-only or unmounted."""

import errno
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BLOCK = 4096


class SmallDisk:
    """A separate file system that is mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Fill all free space."""
        with self._filler.open("ab", buffering=0) as filler:
            while _takes(filler.fileno()):
                pass

    def free(self) -> None:
        """Free the space that `fill` used."""
        self._filler.unlink(missing_ok=True)

    @contextmanager
    def read_only(self) -> Generator[None]:
        """Make the disk read-only during the block."""
        self._mount_again("ro")
        try:
            yield
        finally:
            self._mount_again("rw")

    @contextmanager
    def unmounted(self) -> Generator[None]:
        """Unmount the disk during the block, so that `folder` is empty."""
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
    """A disk of `size` bytes, mounted at `folder`; skips the test without the right to mount."""
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
