"""The formats of the corpus: sessions of real agents, in a folder beside the repository."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.corpus import claude_code, codex, mini_swe_agent, opencode, pi, swe_agent
from tests.support.corpus.calls import RecordedCall

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
"""Its licences do not allow it in the repository, so the folder may be absent."""

READERS: dict[str, Callable[[Path], Iterator[RecordedCall]]] = {
    "claude_code": claude_code.read,
    "codex": codex.read,
    "opencode": opencode.read,
    "pi": pi.read,
    "swe_agent_traj": swe_agent.read,
    "mini_swe_agent": mini_swe_agent.read,
}


def recorded_calls(name: str) -> Iterator[RecordedCall]:
    """All calls of a format, in the order of its files."""
    for path in sorted((CORPUS / name).rglob("*")):
        if path.is_file():
            yield from READERS[name](path)
