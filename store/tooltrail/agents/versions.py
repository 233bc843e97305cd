"""Versions of agents as they were recorded."""

from pydantic import JsonValue, ValidationError

from tooltrail.agents.configuration import AgentConfig
from tooltrail.records import DamageError, canonical_json
from tooltrail.store.read.agent_runs import agent_version
from tooltrail.store.read.reader import Reader


def stored_agent(reader: Reader, name: str) -> AgentConfig:
    """The configuration of a version that was run.

    Args:
        reader: of the store.
        name: the digest of the version, or a unique beginning of it.

    Raises:
        NotFoundError: no version has this name; AmbiguousNameError: several have.
        DamageError: it is not what its digest names, or no configuration.
    """
    return agent_of_document(agent_version(reader, name).document)


def agent_of_document(document: str) -> AgentConfig:
    """The configuration behind its canonical JSON.

    Raises:
        DamageError: it is none that this program knows.
    """
    value: JsonValue = canonical_json.decode(document)
    try:
        return AgentConfig.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        said = f"a recorded version of an agent cannot be read: {error}"
        raise DamageError(said, path="agents") from error
