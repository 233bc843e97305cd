"""Blocks are decoded by other threads, and by the taker's own where there are none."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.cli import without_coverage

ALONE = """
import os, resource, sys
from pathlib import Path
# All of it at once: the other user may not be able to read what is installed.
from tooltrail.artifacts import *
from tooltrail.records.streams import StreamRecord

if os.getuid() == 0:
    os.setgid(54321)
    os.setuid(54321)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
folder = Path(sys.argv[1])
archive = ArtifactArchive(open_sink(str(folder / "root"), create=True))
data = b"".join(b"line %d\\n" % n for n in range(1_000_000))
stream = StreamRecord.from_bytes("stdout", data)
reader = archive.reader(archive.publish(CapturedStream(stream, None), scratch=folder).path)
for _ in range(2):
    print(reader.count_matches("7", literal=True), data.count(b"7") > 0)
    print([match.line_number for match in reader.grep("99999$")])
"""


def test_where_no_thread_is_to_be_had_the_caller_searches() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", ALONE, folder],
            capture_output=True,
            text=True,
            check=False,
            env=without_coverage(os.environ),
        )
    count = sum("7" in str(n) for n in range(1_000_000))
    expected = f"{count} True\n{[100_000 * n for n in range(1, 11)]}\n"
    assert (done.stdout, done.stderr) == (expected * 2, "")
