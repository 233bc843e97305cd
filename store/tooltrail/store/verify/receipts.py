"""Makes canonical results and receipts anew, from the complete output, and compares."""

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records import FamilyRegistry, StreamRecord
from tooltrail.records.errors import InvalidRecordError, TooltrailError
from tooltrail.records.facts import CallEnded, StreamFact
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.outcomes import Outcome, OutcomeMaker
from tooltrail.store.references import stream_members
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.surfaces import Call


class Receipts:
    """Compares what the ingester made of an output with what this program makes of it.

    Args:
        families: the tool families of this program.
        archive: where spooled streams are now.
    """

    def __init__(self, families: FamilyRegistry, archive: ArtifactArchive) -> None:
        self._maker = OutcomeMaker(families, self.read_spooled)
        self._archive = archive
        self._families = families

    def check_end(self, checking: Checking, call: Call, fact: CallEnded) -> None:
        """Make the outcome of a call again, unless its caller made it."""
        document = call.exact.get("output")
        if fact.shown is not None or document is None:
            return
        policy, family = checking.digest(call.row["policy"]), call.row["family"]
        try:
            if self._families.find(family) is None:
                raise InvalidRecordError(f"family {family} is not known to this program")
            if not self._maker.knows_policy(policy):
                self._maker.learn_policy(policy, checking.body(policy) or b"")
            bodies = {fact.output: document}
            for stream in fact.streams:
                if stream.spooled is None:
                    bodies[stream.digest] = self._content(checking, call, stream)
            made = self._maker.outcome(fact, bodies, family, policy)
        except (TooltrailError, LookupError, TypeError, ValueError) as error:
            message = f"the receipt of {call.subject} cannot be made anew: {error}"
            checking.incomplete(call.subject, "surfaces", None, message)
            return
        checking.totals.checked["receipts"] += 1
        _compare(checking, call, made)

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a stream that is an artifact now; see `OutcomeMaker`."""
        reader = self._archive.reader(artifact_path(stream.digest), size=stream.size)
        head = reader.read_bytes(0, edge_bytes)
        tail = reader.read_bytes(max(len(head), stream.size - edge_bytes), stream.size)
        return StreamRecord(**stream_members(stream), head=head, tail=tail)

    def _content(self, checking: Checking, call: Call, stream: StreamFact) -> bytes:
        receipt = call.exact.get("receipt") or b""
        for row in call.children["streams"]:
            offset = row["receipt_offset"]
            if row["digest"] == checking.connection.sha(stream.digest) and isinstance(offset, int):
                return receipt[offset : offset + stream.size]
        found = checking.body(stream.digest)
        if found is not None:
            return found
        with self._archive.open(artifact_path(stream.digest)) as stored:
            return stored.read()


def _compare(checking: Checking, call: Call, made: Outcome) -> None:
    connection, subject, key = checking.connection, call.subject, call.row["key"]
    expected = rows.surface_columns(connection, made)
    if any(call.texts[name] != expected[name] for name in ("renderer", "renderer_version")):
        renderer = f"{made.shown.renderer} {made.shown.renderer_version}"
        message = f"the receipt of {subject} is of another renderer; this program has {renderer}"
        checking.incomplete(subject, "surfaces", "renderer", message)
        return
    for name in ("canonical", "receipt"):
        if expected[name] != call.texts[name]:
            message = f"the {name} of {subject} is not what its output gives"
            checking.damage(subject, "surfaces", name, message)
    for table, children in rows.outcome_rows(connection, key, made).items():
        checking.compare_rows(subject, table, children, call.children[table])
