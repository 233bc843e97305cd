"""The outcome of a call, ready to be written: the texts of its surfaces and all rows beside them.

A fact that says what the caller was shown is used unchanged. For any other fact, the canonical
result is projected and the receipt rendered here, with the policy that the fact names: the same
input gives the same bytes. For a call that was imported, nothing is rendered: the receipt is the
text that the model saw. An imported call may lack its output or its receipt.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from pydantic import ValidationError

from tooltrail.artifacts import ArtifactNamer
from tooltrail.journal.invocation import SEEN, shown_of
from tooltrail.records import (
    CompleteOutput,
    Family,
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    Receipt,
    StreamRecord,
    project,
    render,
)
from tooltrail.records.canonical_json import decode
from tooltrail.records.command_documents import stream_members
from tooltrail.records.counted_streams import INLINE_BYTES
from tooltrail.records.digests import EMPTY, Digest, digest_of
from tooltrail.records.fact_spelling import shown_json
from tooltrail.records.facts import CallEnded, Shown, StreamFact
from tooltrail.records.frozen import Frozen
from tooltrail.records.plain_text import storable, text_from
from tooltrail.records.policy_documents import first_complaint, stored_policy
from tooltrail.store.ingest.publishing import PendingArtifact
from tooltrail.store.references import (
    has_references,
    shorten_canonical,
    shorten_output,
)

NOT_RENDERED: Final = Shown(canonical=EMPTY, receipt=EMPTY, renderer="", renderer_version=0)
"""What is known to have been shown of a call whose output is not recorded."""


class Outcome(Frozen):
    """The values to write for the end of a call, without the keys of its rows.

    Attributes:
        output: document of the complete output.
        canonical: the canonical result; see `shorten_canonical`.
        receipt: the receipt; None if it is not recorded.
        renderer: the renderer of the receipt; `seen` for a text that another program made.
        shown: what the caller was shown; made here if the fact does not say. Without the receipt
            for an imported call, whose receipt is not made here.
        made: digest of the JSON of `shown` if it was made here; else None.
        is_exact: whether the three texts are stored byte for byte.
        streams: each stream, and the offset of its bytes in the receipt, if they are in it.
    """

    output: str
    canonical: str
    receipt: str | None
    renderer: str | None
    shown: Shown
    made: Digest | None
    is_exact: bool
    streams: Sequence[tuple[StreamFact, int | None]]
    bodies: Mapping[Digest, bytes]
    published: Sequence[PendingArtifact]


class OutcomeMaker:
    """Makes outcomes with the families of a program. For one thread.

    `read_spooled` returns the record of a spooled stream, with this many bytes of its head and
    tail; see `Publisher.read_spooled`. `policies` has the policies of `learn_policy`.
    """

    def __init__(
        self, families: FamilyRegistry, read_spooled: Callable[[StreamFact, int], StreamRecord]
    ) -> None:
        self._families = families
        self._read_spooled = read_spooled
        self.policies: dict[Digest, Policy] = {}

    def learn_policy(self, digest: Digest, document: bytes) -> None:
        """Keep a policy for the calls that name it.

        Raises `InvalidRecordError` if this program cannot apply the policy.
        """
        self.policies[digest] = stored_policy(document, self._families)

    def outcome(
        self, fact: CallEnded, bodies: Mapping[Digest, bytes], family: str, policy: Digest
    ) -> Outcome:
        """The outcome of a call, from its end and the bodies that travel with that fact.

        Raises `InvalidRecordError` if a body is missing, or the output does not fit the family.
        """
        try:
            document = bodies[fact.output]
            if fact.shown is not None:
                shown = fact.shown
                attached = {
                    one.digest: StreamRecord.from_bytes(one.role, bodies[one.digest])
                    for one in shown.artifacts
                    if one.digest in bodies
                }
                texts = (document, bodies[shown.canonical], bodies[shown.receipt])
                return _assembled(fact, shown, texts, bodies, attached)
            if fact.source is not None and not document:
                return _assembled(fact, NOT_RENDERED, (b"", b"", _seen(fact, bodies)), {}, {})
            if policy not in self.policies:
                raise InvalidRecordError(f"policy {policy} is missing or cannot be read")
            named = self._families.named(family)
            return self._projected(fact, document, bodies, named, self.policies[policy])
        except KeyError as error:
            raise InvalidRecordError(f"body {error.args[0]} is missing") from error
        except ValidationError as error:
            raise InvalidRecordError(f"not a complete output: {first_complaint(error)}") from error

    def _projected(
        self,
        fact: CallEnded,
        document: bytes,
        bodies: Mapping[Digest, bytes],
        family: Family,
        policy: Policy,
    ) -> Outcome:
        records = {one.role: self._record(fact, one, bodies, policy) for one in fact.streams}
        short = {one.digest: one.content for one in records.values() if one.content is not None}
        output = read_output(document, family, records)
        namer = ArtifactNamer()
        projection = project(output, self._families.of_output(output, family), policy, namer)
        canonical = projection.canonical.to_json()
        if fact.source is not None:
            receipt = Receipt("", "", 0, policy.digest)
            text = _seen(fact, bodies)
        else:
            receipt = render(projection.canonical, family, policy)
            text = receipt.to_bytes()
        shown = made_shown(shown_of(projection, digest_of(canonical), receipt, ()))
        return _assembled(fact, shown, (document, canonical, text), short, namer.named)

    def _record(
        self, fact: CallEnded, stream: StreamFact, bodies: Mapping[Digest, bytes], policy: Policy
    ) -> StreamRecord:
        if not is_body(fact, stream):
            return self._read_spooled(stream, policy.edge_bytes)
        if stream.spooled is None or stream.digest in bodies:
            content = bodies[stream.digest]
        else:
            content = self._read_spooled(stream, INLINE_BYTES).head
        return StreamRecord(**stream_members(stream), head=content, content=content)


def read_output(
    document: bytes, family: Family, streams: Mapping[str, StreamRecord]
) -> CompleteOutput:
    """The complete output whose canonical JSON names each of its streams by role and digest.

    Raises `InvalidRecordError` if the JSON is not an output of this family.
    """
    members = decode(document)
    if not isinstance(members, dict):
        raise InvalidRecordError("a complete output must be a JSON object")
    result = _filled(members.get("result"), streams)
    partial = _filled(members.get("partial_output", []), streams)
    for kind in family.result_types:
        try:
            typed = None if result is None else kind.model_validate(result)
            filled = {**members, "result": typed, "partial_output": partial}
            output = CompleteOutput.model_validate(filled)
        except ValidationError:
            continue
        if output.to_json() == document:
            return output
    raise InvalidRecordError(f"the complete output is not one of family {family.name}")


def text_of(data: bytes) -> tuple[str, bool]:
    """Bytes as a text that databases can store, and whether that text is exact."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return storable(text_from(data)), False
    return (text, True) if "\0" not in text else (storable(text), False)


def _filled(value: object, streams: Mapping[str, StreamRecord]) -> object:
    """Replace the references to streams in the JSON of a result by the streams."""
    match value:
        case {"role": str(role), "digest": str(), "produced_size": int()}:
            if role not in streams:
                raise InvalidRecordError(f"stream {role} of the output is missing")
            return streams[role]
        case dict():
            members = cast("dict[str, object]", value)
            return {name: _filled(member, streams) for name, member in members.items()}
        case list():
            return [_filled(member, streams) for member in cast("list[object]", value)]
        case _:
            return value


def _assembled(
    fact: CallEnded,
    shown: Shown,
    texts: tuple[bytes, bytes, bytes],
    bodies: Mapping[Digest, bytes],
    attached: Mapping[Digest, StreamRecord],
) -> Outcome:
    """The outcome of a call, from its output, canonical result and receipt."""
    (output, canonical, receipt), is_exact = zip(*map(text_of, texts), strict=True)
    # Text of a tool that looks like a reference must not be expanded.
    foreign = (has_references(output), has_references(canonical), False)
    stored = {
        digest_of(data): data
        for data, is_same, is_foreign in zip(texts, is_exact, foreign, strict=True)
        if is_foreign or not is_same
    }
    can_refer = not stored
    made: Digest | None = None
    if fact.shown is None:
        document = shown_json(shown)
        made = digest_of(document)
        if not can_refer:
            stored[made] = document
    if can_refer:
        output = shorten_output(output, fact.streams)
        canonical = shorten_canonical(canonical, texts[2])
    artifacts = {one.digest for one in shown.artifacts}
    placed: list[tuple[StreamFact, int | None]] = []
    for stream in fact.streams:
        offset = -1
        if is_body(fact, stream):
            content = bodies[stream.digest]
            if len(content) != stream.size:
                sizes = f"{len(content):,} bytes, not {stream.size:,}"
                raise InvalidRecordError(f"stream {stream.role} has {sizes}")
            if can_refer and content:
                offset = texts[2].find(content)
            if offset < 0 and stream.digest not in artifacts:
                stored[stream.digest] = content
        placed.append((stream, offset if offset >= 0 else None))
    return Outcome(
        output=output,
        canonical=canonical,
        receipt=receipt if fact.source is None or fact.receipt is not None else None,
        renderer=renderer_of(fact, shown),
        shown=shown,
        made=made,
        is_exact=can_refer,
        streams=placed,
        bodies=stored,
        published=_published(fact, shown, attached),
    )


def _seen(fact: CallEnded, bodies: Mapping[Digest, bytes]) -> bytes:
    """The text that the model saw, for an imported call; empty if it is not recorded."""
    return b"" if fact.receipt is None else bodies[fact.receipt]


def renderer_of(fact: CallEnded, shown: Shown) -> str | None:
    """The renderer of the receipt of a call; None if the receipt is not recorded."""
    if fact.source is None:
        return shown.renderer
    return None if fact.receipt is None else SEEN


def is_body(fact: CallEnded, stream: StreamFact) -> bool:
    """Whether the bytes of a stream are stored as a body, unless they are an artifact.

    True for streams that travel with the fact. If the ingester makes the result, also true for
    short streams in the spool.
    """
    return stream.spooled is None or (fact.shown is None and stream.size <= INLINE_BYTES)


def _published(
    fact: CallEnded, shown: Shown, attached: Mapping[Digest, StreamRecord]
) -> list[PendingArtifact]:
    """The artifacts to publish, from the spool or from memory."""
    named = {one.digest for one in shown.artifacts}
    files = [one for one in fact.all_streams if one.spooled is not None]
    spooled = {one.digest: one for one in files if one.digest in named or not is_body(fact, one)}
    held = [attached[one] for one in sorted(named & attached.keys() - spooled.keys())]
    return [
        *(PendingArtifact(one) for one in spooled.values()),
        *(PendingArtifact(StreamFact.of(one), one.content) for one in held),
    ]


def made_shown(shown: Shown) -> Shown:
    """The `Shown` to store for a fact that does not say what was shown.

    Its texts are escaped as databases store them, so that `verify` gets the same from the rows.
    """
    return shown.replaced(
        renderer=storable(shown.renderer),
        omissions=tuple(
            one.replaced(field=storable(one.field), reason=storable(one.reason))
            for one in shown.omissions
        ),
        artifacts=tuple(one.replaced(role=storable(one.role)) for one in shown.artifacts),
    )
