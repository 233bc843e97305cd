"""What is recorded of an agent run besides its conversation: how it began and how it came out.

A run holds one conversation after another, one for each tier of its ladder that was tried. Each is
a session of its own, and is called a leg of the run. All of a run that its sessions do not tell is
in two facts about each leg.
"""

from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field, JsonValue, PlainSerializer, TypeAdapter, ValidationError

from tooltrail.records import canonical_json
from tooltrail.records._model import DigestField, Record, Sentence
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.streams import Count

LegOutcome = Literal[
    "submitted",
    "answered",
    "result_not_submitted",
    "result_invalid",
    "limit_reached",
    "model_failed",
    "cancelled",
    "failed",
]
"""How a leg came out.

`submitted`: a value that the schema accepts was submitted. `answered`: an agent without a schema
ended with a text. `result_not_submitted`: the model stopped, or its limits were reached, and
nothing was submitted. `result_invalid`: the same, and all that was submitted was refused.
`limit_reached`: an agent without a schema came to no end within its limits. `model_failed`: the
model's server could not be asked, or gave an error. `cancelled`: who ran it gave up. `failed`: by a
fault of the program that ran it.
"""

SUCCESSES: frozenset[LegOutcome] = frozenset({"submitted", "answered"})

LimitName = Literal["steps", "time", "tokens", "attempts", "reminders"]
"""Which limit ended a leg."""

_Id = Annotated[UUID, PlainSerializer(str, return_type=str)]


class AgentVersion(Record):
    """One version of an agent, named by the digest of its description.

    Attributes:
        agent_id: the same for all versions of it.
        version: what its author calls this one.
        document: canonical JSON of its whole configuration.
    """

    agent_id: str
    version: str | None = None
    document: str

    @property
    def digest(self) -> Digest:
        """Of the document: the same one is the same version."""
        return digest_of(self.document.encode())


class LegStarted(Record):
    """A leg of an agent run that begins.

    Attributes:
        run_id: the session of the first leg of the run.
        position: of the leg in its run, from 0.
        tier: the name of its tier.
        model: which one the tier asks.
        wire_format: in which that one is asked.
        provider: whose server it is, where the caller says so.
        agent_id: of the agent.
        agent_digest: of its version.
        schema_digest: of the schema that its result must match; None for free text.
        time_limit_ms: after which it has ended in any case.
    """

    kind: Literal["leg_started"] = "leg_started"
    run_id: _Id
    position: Count
    tier: str
    model: str
    wire_format: str
    provider: str | None = None
    agent_id: str
    agent_digest: DigestField
    schema_digest: DigestField | None = None
    time_limit_ms: Count

    @property
    def sentence(self) -> str:
        """For people."""
        return f"agent {self.agent_id} begins with tier {self.tier}: {self.model}"


class LegEnded(Record):
    """A leg of an agent run that has ended, and what it came to.

    Attributes:
        outcome: how.
        reason: the same in one sentence, with the error if there was one.
        limit: which limit ended it, if one did.
        result_id: of the invocation whose arguments are the final value, or of the message that is
            the final text; None where there is none.
        escalated_to: the name of the tier that goes on; None where nobody does.
        attempt_count: submissions, valid or not.
        step_count: answers of the model that were asked for.
        reminder_count: how often the model was reminded that a result is missing.
        input_tokens: that the model's server counted in all; None where it counts none.
        output_tokens: the same.
        duration_ms: from its beginning to its end, by a clock that does not jump.
    """

    kind: Literal["leg_ended"] = "leg_ended"
    outcome: LegOutcome
    reason: Sentence
    limit: LimitName | None = None
    result_id: _Id | None = None
    escalated_to: str | None = None
    attempt_count: Count = 0
    step_count: Count = 0
    reminder_count: Count = 0
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    duration_ms: Count

    @property
    def sentence(self) -> str:
        """For people."""
        goes_on = "" if self.escalated_to is None else f"; tier {self.escalated_to} goes on"
        return f"{self.outcome}: {self.reason}{goes_on}"


LegFact: TypeAlias = Annotated[LegStarted | LegEnded, Field(discriminator="kind")]
"""What is recorded of a leg besides its conversation."""

_FACT: TypeAdapter[LegFact] = TypeAdapter(LegFact)


def leg_fact_json(fact: LegFact) -> str:
    """Canonical JSON of a fact, all members written out."""
    dumped: JsonValue = fact.model_dump()
    return canonical_json.encode_text(dumped)


def read_leg_fact(document: str) -> LegFact:
    """The fact behind its JSON.

    Raises:
        InvalidRecordError: it is none that this program knows.
    """
    try:
        return _FACT.validate_python(canonical_json.decode(document))
    except (ValidationError, ValueError) as error:
        raise InvalidRecordError(f"no fact of an agent run: {error}") from error
