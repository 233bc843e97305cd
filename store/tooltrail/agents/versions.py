"""Recorded versions of agents."""

from pydantic import JsonValue, ValidationError

from tooltrail.agents.configuration import AgentConfig
from tooltrail.records import DamageError, InvalidRecordError, canonical_json
from tooltrail.store.read.agent_runs import agent_version
from tooltrail.store.read.reader import Reader


def stored_agent(reader: Reader, name: str) -> AgentConfig:
    """The recorded configuration of a version.

    Args:
        reader: reader of the store.
        name: digest of the version, or a unique prefix.

    Raises:
        NotFoundError: no version has this digest.
        AmbiguousNameError: several versions have this prefix.
        DamageError: the record does not match its digest, or is not a configuration.
    """
    return agent_of_document(agent_version(reader, name).document)


def agent_of_document(document: str) -> AgentConfig:
    """Read a configuration from its canonical JSON.

    Raises:
        DamageError: the document is not a configuration of this version of Tooltrail.
    """
    try:
        value: JsonValue = canonical_json.decode(document)
        return AgentConfig.model_validate(value, by_alias=True, by_name=False)
    except (InvalidRecordError, ValidationError) as error:
        said = f"a recorded version of an agent cannot be read: {error}"
        raise DamageError(said, path="agents") from error
