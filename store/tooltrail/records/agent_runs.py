"""The facts about an agent run beside its conversation: how each leg began, and its outcome.

A run consists of consecutive conversations, one for each tier of its ladder that was tried. Each
conversation is a session of its own, and is called a leg of the run. Two facts about each leg
hold everything about the run that its sessions do not contain.
"""

from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field, PlainSerializer, TypeAdapter

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
"""The outcome of a leg.

`submitted`: a value that the schema accepts was submitted. `answered`: an agent without a schema
ended with a text. `result_not_submitted`: the model stopped, or a limit was reached, and nothing
was submitted. `result_invalid`: likewise, but every submitted value was refused. `limit_reached`:
an agent without a schema did not finish within its limits. `model_failed`: the model's server was
unreachable or returned an error, or the model refused an agent without a schema. `cancelled`: the
caller stopped the leg. `failed`: the program that ran the leg had an error.
"""

SUCCESSES: frozenset[LegOutcome] = frozenset({"submitted", "answered"})

LimitName = Literal["steps", "time", "tokens", "attempts", "reminders"]
"""The limit that ended a leg."""

_Id = Annotated[UUID, PlainSerializer(str, return_type=str)]


class AgentVersion(Record):
    """One version of an agent, named by the digest of its description.

    Attributes:
        version: the author's name for this version.
        document: canonical JSON of the complete configuration.
    """

    agent_id: str
    version: str | None = None
    document: str

    @property
    def digest(self) -> Digest:
        """The digest of the document; equal digests mean the same version."""
        return digest_of(self.document.encode())


class LegStarted(Record):
    """The start of a leg of an agent run: which version of the agent asks which model.

    Attributes:
        run_id: id of the session of the run's first leg.
        position: position of the leg in its run, from 0.
        provider: the owner of the model's server, if the caller names one.
        agent_digest: see `AgentVersion`.
        schema_digest: digest of the schema that the result must match; None for free text.
        time_limit_ms: the time after which the leg has ended in any case.
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
        """The start in one sentence, for people."""
        return f"agent {self.agent_id} begins with tier {self.tier}: {self.model}"


class LegEnded(Record):
    """The end of a leg of an agent run, with its outcome.

    Attributes:
        reason: the outcome in one sentence, with the error if there was one.
        result_id: id of the invocation whose arguments are the final value, or of the message that
            is the final text; None if there is no result.
        escalated_to: name of the tier that continues the run; None if no tier does.
        attempt_count: number of submissions, valid or not.
        step_count: number of answers that the model was asked for.
        reminder_count: how often the model was reminded that a result is missing.
        input_tokens: total input tokens, as counted by the model's server; None if it counts none.
        duration_ms: time from start to end of the leg, by a monotonic clock.
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
        """The outcome in one sentence, for people."""
        goes_on = "" if self.escalated_to is None else f"; tier {self.escalated_to} goes on"
        return f"{self.outcome}: {self.reason}{goes_on}"


LegFact: TypeAlias = LegStarted | LegEnded

_FACT: TypeAdapter[LegFact] = TypeAdapter(Annotated[LegFact, Field(discriminator="kind")])


def leg_fact_json(fact: LegFact) -> str:
    """The canonical JSON of a fact, including members that have their default."""
    return canonical_json.encode_text(fact.model_dump())


def read_leg_fact(document: str) -> LegFact:
    """Read a fact from its JSON.

    Raises:
        InvalidRecordError: the document is not a fact that this program knows.
    """
    try:
        return _FACT.validate_python(canonical_json.decode(document))
    except ValueError as error:
        raise InvalidRecordError(f"no fact of an agent run: {error}") from error
