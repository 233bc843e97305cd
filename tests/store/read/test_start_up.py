"""A question to an SQLite store imports no toolkit that takes longer than the answer."""

import subprocess
import sys

from tests.support.call_facts import moment
from tests.support.recorded_calls import call
from tests.support.store_parts import StoreParts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import ToolDefinition, digest_of
from tooltrail.records.facts import MessageAdded, ToolsOffered

PROGRAM = """
import sys
from pathlib import Path
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.read.feed import InvocationFeed
from tooltrail.store.read.reader import Reader

reader = Reader(Database(parse_target(sys.argv[1])), None, Path())
page = reader.invocations(limit=20)
reader.sessions(), reader.counts(), reader.artifacts(), InvocationFeed(reader).poll()
stream = reader.invocation("@last").streams[0]
reader.open_stream(stream)
messages, calls = reader.conversation("@last")[1:]
assert (len(page.items), len(messages), len(calls)) == (1, 2, 1)
print(*sorted({"pydantic", "sqlalchemy", "alembic", "fsspec", "psycopg", "rich"} & {*sys.modules}))
"""


def test_a_reader_needs_neither_models_nor_a_toolkit(parts: StoreParts) -> None:
    session, text = new_id(), b"please look"
    definition = ToolDefinition(name="bash").to_json()
    said = MessageAdded(
        session=session, id=new_id(), at=moment(1), role="user", text=digest_of(text)
    )
    offer = ToolsOffered(session=session, id=new_id(), at=moment(2), tools=(digest_of(definition),))
    made = call(session, 3, receipt=b"r", stdout=b"x" * 100)
    parts.ingest(Entry(said, [text]), Entry(offer, [definition]), *made.entries())
    path = parts.spool.parent / "trail.db"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == ""
