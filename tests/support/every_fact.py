"""A store with every kind of fact, for tests that alter and verify it."""

from datetime import timedelta
from uuid import UUID

from tests.support.call_facts import as_shown, command, ended, message, moment, started
from tests.support.store_parts import StoreParts, spool

from tooltrail.journal import Entry
from tooltrail.records import CompleteOutput
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    ArtifactFact,
    Maintenance,
    MessageAdded,
    OmissionFact,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
)
from tooltrail.records.families.structured_output import StructuredOutput

AT = moment()
LONG = b"".join(b"line %d of a long output\n" % n for n in range(4000))

OPENED, IMPLICIT, LEG = UUID(int=101), UUID(int=102), UUID(int=103)
TEXT, RICH, OFFER, BEGUN, DONE = (UUID(int=n) for n in range(201, 206))
SHORT, LARGE, SPOOLED, OPEN, SHOWN, ODD, VERDICT, LATE, REPEATED = (
    UUID(int=n) for n in range(301, 310)
)
MAINTAINED = UUID(int=401)


def fill(store: StoreParts, *, guarded: bool = False) -> None:
    """Record every kind of fact, and ingest them in several runs.

    Args:
        store: an empty store.
        guarded: whether to keep the triggers; otherwise a text is erased, too.
    """
    environment, document, payload = b'{"host":"h"}', b'{"parts":["hello"]}', b"{ }"
    extras = b'{"cwd":"/"}'
    tools = [encode({"name": name, "description": "d"}) for name in ("read", "write")]
    leg = encode(
        {
            "run_id": str(UUID(int=501)),
            "position": 2,
            "tier": "small",
            "model": "m",
            "wire_format": "openai-chat",
            "agent_id": "reviewer",
            "schema_digest": digest_of(b"{}"),
        }
    )
    outcome = encode(
        {"outcome": "escalated", "escalated_to": "large", "attempt_count": 2, "duration_ms": 7}
    )
    store.ingest(
        Entry(
            SessionOpened(
                session=OPENED,
                at=AT,
                name="nightly",
                title="Nightly build",
                agent="builder",
                parent=IMPLICIT,
                environment=digest_of(environment),
            ),
            [environment],
        ),
        message(OPENED, id=TEXT),
        started(
            OPENED,
            SHORT,
            message=RICH,
            position=1,
            call_id="c-1",
            title="ls",
            owner="o-1",
            environment=digest_of(environment),
        ),
        ended(
            OPENED,
            SHORT,
            command(b"one line that is long enough to be shared with the receipt, twice\n" * 2),
            extras=digest_of(extras),
            bodies=[extras],
        ),
        Entry(
            MessageAdded(
                session=OPENED,
                id=RICH,
                at=AT,
                role="assistant",
                text=digest_of(b"hello"),
                document=digest_of(document),
                payload=digest_of(payload),
                wire_format="openai-chat",
            ),
            [b"hello", document, payload],
        ),
        started(OPENED, LARGE),
    )
    captured = spool(store, SPOOLED, LONG * 3)
    result = b'{"error":null,"result":{"artifacts":[]},"status":"success"}'
    receipt = "shown to the model: \u00e4".encode()
    verdict = CompleteOutput.success(
        "final_answer",
        StructuredOutput.of(
            {"answer": 42}, agent="reviewer", schema_digest=digest_of(b"{}"), attempt=2
        ),
    )
    shown = as_shown(
        result,
        receipt,
        omissions=(
            OmissionFact(
                stage="projector", field="stdout", unit="bytes", before=9, after=4, reason="budget"
            ),
            OmissionFact(
                stage="renderer", field="stdout", unit="lines", before=3, after=1, reason="budget"
            ),
        ),
        artifacts=(ArtifactFact(role="stdout", digest=captured.digest),),
    )
    store.ingest(
        ended(OPENED, LARGE, LONG, exit_status=0),
        started(OPENED, SPOOLED),
        ended(
            OPENED,
            SPOOLED,
            command(captured, b"warning: something odd\n", 3),
            spooled=f"{SPOOLED}/stdout.zst",
            exit_status=3,
            signal=9,
            timed_out=True,
        ),
        Entry(
            ToolsOffered(session=LEG, id=OFFER, at=AT, tools=tuple(map(digest_of, tools))), tools
        ),
        Entry(
            AgentLeg(
                session=LEG,
                id=BEGUN,
                at=AT,
                document=digest_of(leg),
                agent=digest_of(b"agent"),
                agent_version="3",
            ),
            [leg, b"agent"],
        ),
        started(
            LEG,
            VERDICT,
            arguments=b'{"answer":42}',
            tool_name="final_answer",
            family="structured_output",
        ),
        ended(LEG, VERDICT, verdict),
        Entry(AgentOutcome(session=LEG, id=DONE, at=AT, document=digest_of(outcome)), [outcome]),
        started(OPENED, SHOWN),
        ended(OPENED, SHOWN, b"shown\n", shown=shown, bodies=[result, receipt], error_kind="odd"),
        started(OPENED, ODD, arguments=b'{"command":"a\0b\xff"}'),
        ended(
            OPENED,
            ODD,
            command(
                b"nul \0 and \xff, and enough of it to be shared with the receipt if it could\n"
            ),
        ),
        started(IMPLICIT, OPEN),
        started(OPENED, REPEATED),
        ended(OPENED, REPEATED, b"again\n"),
        Entry(SessionClosed(session=OPENED, at=AT + timedelta(hours=1), reason="done")),
    )
    store.ingest(
        started(OPENED, LATE),
        ended(OPENED, LATE, b"late\n"),
        started(OPENED, REPEATED, title="differs without harm"),
        ended(OPENED, REPEATED, b"again\n"),
        started(OPENED, REPEATED, arguments=b'{"command":"other"}'),
        Entry(SessionClosed(session=OPENED, at=AT + timedelta(hours=2))),
        Entry(
            Maintenance(
                id=MAINTAINED, at=AT, action="gc", actor="me", details=digest_of(b'{"n":1}')
            ),
            [b'{"n":1}'],
        ),
    )
    if not guarded:
        store.erase_body(b"hello")
