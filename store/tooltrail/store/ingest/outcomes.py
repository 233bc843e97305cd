"""What a call came to, ready to be written: the texts of its surfaces and everything beside them.

A fact that carries what its caller was shown is taken as it is. For any other the canonical result
is projected and the receipt rendered here, with the policy that the fact names: the same input
gives the same bytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from pydantic import ValidationError

from tooltrail.artifacts import ArtifactNamer, digest_of_path
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    Family,
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    StreamRecord,
    project,
    render,
)
from tooltrail.records.canonical_json import decode, encode_text, with_lists
from tooltrail.records.digests import Digest, digest_of, parse_digest
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    OmissionFact,
    Shown,
    StreamFact,
    shown_json,
)
from tooltrail.records.plain_text import storable
from tooltrail.records.policy_documents import first_complaint, stored_policy
from tooltrail.store.references import has_references, shorten_canonical, shorten_output

VERDICTS: Final = "structured_output"
"""The family whose results are verdicts on a submission, and the name of its renderer."""

_VERDICT: Final = frozenset({"schema_digest", "attempt", "valid"})


class StreamReader(Protocol):
    """Where the bytes of spooled streams are read."""

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a spooled stream with its two ends.

        Raises:
            InvalidRecordError: the file is missing, or holds other bytes than the fact says.
            UnavailableError: the file cannot be read now.
        """
        ...


class Beginning(NamedTuple):
    """What the end of a call must know of its start."""

    tool_name: str
    family: str
    policy: Digest


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a structured output that an agent submitted."""

    schema: Digest
    attempt: int
    valid: bool
    document: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is written of the end of a call, without the keys of its rows.

    Attributes:
        output: document of the complete output.
        canonical: the canonical result; see `shorten_canonical`.
        receipt: what was shown.
        renderer: name of the renderer.
        renderer_version: its version.
        shown: digest of the JSON of a `Shown` that was made here; None where the fact has it.
        is_exact: whether the three texts are stored byte for byte.
        streams: each with the place of its bytes in the receipt, if they stand there.
        omissions: what the stages left out.
        artifacts: in the order of `result.artifacts`.
        bodies: bytes to store by digest.
        attached: content of artifacts that no spooled stream has.
        verdict: of a structured output.
    """

    output: str
    canonical: str
    receipt: str
    renderer: str
    renderer_version: int
    shown: Digest | None
    is_exact: bool
    streams: tuple[tuple[StreamFact, int | None], ...]
    omissions: tuple[OmissionFact, ...]
    artifacts: tuple[ArtifactFact, ...]
    bodies: Mapping[Digest, bytes]
    attached: tuple[StreamRecord, ...] = ()
    verdict: Verdict | None = None


class OutcomeMaker:
    """Makes outcomes with the families of a program. For one thread.

    Args:
        families: the tool families.
        reader: of spooled streams.
    """

    def __init__(self, families: FamilyRegistry, reader: StreamReader) -> None:
        self._families = families
        self._reader = reader
        self._policies: dict[Digest, Policy] = {}

    def knows_policy(self, digest: Digest) -> bool:
        """Whether the policy was learned."""
        return digest in self._policies

    def learn_policy(self, digest: Digest, document: bytes) -> None:
        """Keep a policy for the calls that name it.

        Raises:
            InvalidRecordError: not a policy that this program can apply.
        """
        self._policies[digest] = stored_policy(document, self._families)

    def outcome(
        self, fact: CallEnded, bodies: Mapping[Digest, bytes], beginning: Beginning
    ) -> Outcome:
        """What a call came to.

        Args:
            fact: the end of the call.
            bodies: those that travel with the fact.
            beginning: of the call.

        Raises:
            InvalidRecordError: a body is missing, or the output is not one of its family.
            UnavailableError: a spooled stream cannot be read now.
        """
        try:
            document = bodies[fact.output]
            if fact.shown is not None:
                return _shown_outcome(fact, fact.shown, document, bodies)
            return self._projected(fact, document, bodies, beginning)
        except KeyError as error:
            raise InvalidRecordError(f"body {error.args[0]} is missing") from error
        except ValidationError as error:
            raise InvalidRecordError(f"not a complete output: {first_complaint(error)}") from error

    def _projected(
        self,
        fact: CallEnded,
        document: bytes,
        bodies: Mapping[Digest, bytes],
        beginning: Beginning,
    ) -> Outcome:
        policy = self._policies.get(beginning.policy)
        if policy is None:
            raise InvalidRecordError(f"policy {beginning.policy} is missing")
        family = self._families.named(beginning.family)
        records = {one.role: self._record(one, bodies, policy) for one in fact.streams}
        output = read_output(document, family, records)
        if output.error is not None and not output.partial_output:
            # Older documents name the streams of a failure in its details.
            output = output.model_copy(update={"partial_output": tuple(records.values())})
        namer = ArtifactNamer()
        projection = project(output, self._families.of_output(output, family), policy, namer)
        receipt = render(projection.canonical, family, policy)
        return _assembled(
            fact,
            document,
            projection.canonical.to_json(),
            receipt.to_bytes(),
            bodies,
            renderer=(receipt.renderer_name, receipt.renderer_version),
            omissions=tuple(
                OmissionFact(**one.model_dump())
                for one in (*projection.omissions, *receipt.omissions)
            ),
            artifacts=tuple(
                ArtifactFact(role=one.role, digest=digest_of_path(one.reference.path))
                for one in projection.artifacts
            ),
            attached=namer.named,
        )

    def _record(
        self, stream: StreamFact, bodies: Mapping[Digest, bytes], policy: Policy
    ) -> StreamRecord:
        if stream.spooled is not None:
            return self._reader.read_spooled(stream, policy.edge_bytes)
        content = bodies[stream.digest]
        return StreamRecord(
            role=stream.role,
            digest=stream.digest,
            size=stream.size,
            line_count=stream.line_count,
            head=content,
            content=content,
            produced_size=stream.produced_size,
            produced_line_count=stream.produced_line_count,
            loss_reason=stream.loss_reason,
        )


def read_output(
    document: bytes, family: Family, streams: Mapping[str, StreamRecord]
) -> CompleteOutput:
    """The complete output whose canonical JSON is given.

    Args:
        document: the JSON, in which a stream stands with its role, digest and counts.
        family: of the result.
        streams: the streams by role.

    Raises:
        InvalidRecordError: no output of this family has this JSON.
    """
    members = decode(document)
    if not isinstance(members, dict):
        raise InvalidRecordError("a complete output must be a JSON object")
    result = _filled(members.get("result"), streams)
    partial = _filled(members.get("partial_output", []), streams)
    for kind in family.result_types:
        try:
            typed = None if result is None else kind.model_validate(result)
            output = CompleteOutput.model_validate(
                {**members, "result": typed, "partial_output": partial}
            )
        except ValidationError:
            continue
        if output.to_json() == document:
            return output
    raise InvalidRecordError(f"the complete output is not one of family {family.name}")


def text_of(data: bytes) -> tuple[str, bool]:
    """A text as databases can store it, and whether it is exact."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return storable(data.decode("utf-8", "surrogateescape")), False
    return (text, True) if "\0" not in text else (storable(text), False)


def _filled(value: object, streams: Mapping[str, StreamRecord]) -> object:
    """A result with its streams where its JSON names them."""
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


def _shown_outcome(
    fact: CallEnded, shown: Shown, document: bytes, bodies: Mapping[Digest, bytes]
) -> Outcome:
    return _assembled(
        fact,
        document,
        bodies[shown.canonical],
        bodies[shown.receipt],
        bodies,
        renderer=(shown.renderer, shown.renderer_version),
        omissions=shown.omissions,
        artifacts=shown.artifacts,
        attached={
            one.digest: StreamRecord.from_bytes(one.role, bodies[one.digest])
            for one in shown.artifacts
            if one.digest in bodies
        },
    )


def _unspooled(
    fact: CallEnded, artifacts: Iterable[ArtifactFact], attached: Mapping[Digest, StreamRecord]
) -> tuple[StreamRecord, ...]:
    """The artifacts whose bytes are in memory and not in the spool, each once."""
    spooled = {one.digest for one in fact.all_streams if one.spooled is not None}
    wanted = dict.fromkeys(one.digest for one in artifacts if one.digest not in spooled)
    return tuple(attached[one] for one in wanted if one in attached)


def _assembled(
    fact: CallEnded,
    document: bytes,
    canonical: bytes,
    receipt: bytes,
    bodies: Mapping[Digest, bytes],
    *,
    renderer: tuple[str, int],
    omissions: tuple[OmissionFact, ...],
    artifacts: tuple[ArtifactFact, ...],
    attached: Mapping[Digest, StreamRecord],
) -> Outcome:
    texts = [text_of(one) for one in (document, canonical, receipt)]
    for n, (text, _) in enumerate(texts[:2]):
        if has_references(text):
            texts[n] = (text, False)  # a foreign reference, which must not be followed
    stored: dict[Digest, bytes] = {
        digest_of(data): data
        for data, (_, is_exact) in zip((document, canonical, receipt), texts, strict=True)
        if not is_exact
    }
    is_exact = not stored
    shown: Digest | None = None
    if fact.shown is None:
        made = shown_json(made_shown(canonical, receipt, renderer, omissions, artifacts))
        shown = digest_of(made)
        if not is_exact:
            stored[shown] = made
    placed: list[tuple[StreamFact, int | None]] = []
    for stream in fact.streams:
        offset = None
        if stream.spooled is None:
            content = bodies[stream.digest]
            if len(content) != stream.size:
                raise InvalidRecordError(
                    f"stream {stream.role} has {len(content):,} bytes, not {stream.size:,}"
                )
            found = receipt.find(content) if is_exact and content else -1
            if found >= 0:
                offset = found
            else:
                stored[stream.digest] = content
        placed.append((stream, offset))
    return Outcome(
        output=shorten_output(texts[0][0], fact.streams) if is_exact else texts[0][0],
        canonical=shorten_canonical(texts[1][0], receipt) if is_exact else texts[1][0],
        receipt=texts[2][0],
        renderer=renderer[0],
        renderer_version=renderer[1],
        shown=shown,
        is_exact=is_exact,
        streams=tuple(placed),
        omissions=omissions,
        artifacts=artifacts,
        bodies=stored,
        attached=_unspooled(fact, artifacts, attached),
        verdict=verdict_of(canonical) if renderer[0] == VERDICTS else None,
    )


def made_shown(
    canonical: bytes,
    receipt: bytes,
    renderer: tuple[str, int],
    omissions: Iterable[OmissionFact],
    artifacts: Iterable[ArtifactFact],
) -> Shown:
    """What the ingester made of a fact that does not say what was shown.

    Its texts are spelled as databases store them, so that `verify` gets the same from the rows.
    """
    return Shown(
        canonical=digest_of(canonical),
        receipt=digest_of(receipt),
        renderer=storable(renderer[0]),
        renderer_version=renderer[1],
        omissions=tuple(
            one.replaced(field=storable(one.field), reason=storable(one.reason))
            for one in omissions
        ),
        artifacts=tuple(one.replaced(role=storable(one.role)) for one in artifacts),
    )


def verdict_of(canonical: bytes) -> Verdict | None:
    """The verdict in a canonical result; None for an error, or a family of the same name."""
    result: dict[str, Any] = {**(CanonicalResult.from_json(canonical).result or {})}
    if not result.keys() >= _VERDICT:
        return None
    counted: dict[str, Any] = {
        "errors": [*(result.get("errors") or ())],
        "error_count": result.get("error_count") or 0,
    }
    attempt, valid = result["attempt"], result["valid"]
    if not isinstance(valid, bool) or not isinstance(attempt, int) or isinstance(attempt, bool):
        raise InvalidRecordError("a verdict has a number of the attempt, and says true or false")
    return Verdict(
        schema=parse_digest(result["schema_digest"]),
        attempt=attempt,
        valid=valid,
        document=encode_text(with_lists(counted)),
    )
