"""Makes canonical results and receipts again, and compares them with the stored ones."""

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records import FamilyRegistry, StreamRecord
from tooltrail.records.command_documents import stream_members
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, TooltrailError
from tooltrail.records.facts import CallEnded, StreamFact
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.outcomes import Outcome, OutcomeMaker, is_body
from tooltrail.store.verify.calls import Call


class Receipts:
    """Compares the stored outcome of an output with the outcome that this program makes."""

    def __init__(self, families: FamilyRegistry, archive: ArtifactArchive) -> None:
        self._maker = OutcomeMaker(families, self.read_spooled)
        self._archive = archive
        self._families = families

    def check_end(self, call: Call, fact: CallEnded) -> None:
        """Make the outcome of a call again and compare it, unless the caller made it."""
        checking, document = call.checking, call.exact.get("output")
        if fact.shown is not None or document is None:
            return
        policy, family = checking.digest(call.row["policy"]), call.row["family"]
        try:
            if self._families.find(family) is None:
                raise InvalidRecordError(f"family {family} is not known to this program")
            if policy not in self._maker.policies:
                self._maker.learn_policy(policy, checking.body(policy) or b"")
            bodies = {fact.output: document}
            if fact.receipt is not None:
                bodies[fact.receipt] = call.exact.get("receipt") or b""
            for stream in fact.streams:
                if is_body(fact, stream):
                    bodies[stream.digest] = self._content(call, stream)
            made = self._maker.outcome(fact, bodies, family, policy)
        except (TooltrailError, LookupError, TypeError, ValueError) as error:
            waits = isinstance(error, MissingArtifactError) and self._waits(call)
            why = "its output waits in a spool; `tooltrail repair` stores it" if waits else error
            message = f"the receipt of {call.subject} cannot be made again: {why}"
            checking.incomplete(call.subject, "surfaces", message)
            return
        checking.totals.checked["receipts"] += 1
        _compare(call, made)

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a stream that is an artifact by now; see `OutcomeMaker`."""
        reader = self._archive.reader(artifact_path(stream.digest), size=stream.size)
        head = reader.read_bytes(0, edge_bytes)
        tail = reader.read_bytes(max(len(head), stream.size - edge_bytes), stream.size)
        return StreamRecord(**stream_members(stream), head=head, tail=tail)

    def _waits(self, call: Call) -> bool:
        """Whether a stream of a call waits to be stored as an artifact."""
        digests = [row["digest"] for row in call.children["streams"]]
        source = call.checking.source
        return bool(source.rows("pending_artifacts", "digest", digests, columns=["digest"]))

    def _content(self, call: Call, stream: StreamFact) -> bytes:
        receipt = call.exact.get("receipt") or call.plain("receipt") or b""
        digest = call.checking.connection.sha(stream.digest)
        for row in call.children["streams"]:
            offset = row["receipt_offset"]
            if row["digest"] == digest and isinstance(offset, int):
                return receipt[offset : offset + stream.size]
        found = call.checking.body(stream.digest)
        if found is not None:
            return found
        with self._archive.open(artifact_path(stream.digest)) as stored:
            return stored.read()


def _compare(call: Call, made: Outcome) -> None:
    checking, subject, connection = call.checking, call.subject, call.checking.connection
    expected = rows.surface_columns(connection, made, None)  # `cut_size` was compared before
    if made.receipt is None and call.came_later:
        later = ("receipt", "renderer", "renderer_version")  # compared with its fact
        expected |= {name: call.texts[name] for name in later}
    if any(call.texts[name] != expected[name] for name in ("renderer", "renderer_version")):
        renderer = f"{made.shown.renderer} {made.shown.renderer_version}"
        message = f"the receipt of {subject} is of another renderer; this program has {renderer}"
        checking.incomplete(subject, "surfaces", message, "renderer")
        return
    for name in ("canonical", "receipt"):
        if expected[name] != call.texts[name]:
            message = f"the {name} of {subject} is not what its output gives"
            checking.damage(subject, "surfaces", message, name)
    for table, children in rows.outcome_rows(connection, call.row["key"], made).items():
        call.compare_rows(table, children)
