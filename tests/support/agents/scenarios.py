"""Agent runs against a scripted server, started as a program starts them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.agents.scripted_provider import ScriptedProvider, Step, scripted_provider

from tooltrail.agents import (
    AgentConfig,
    AgentRun,
    AgentTool,
    HttpModel,
    Limits,
    RunEvent,
    Tier,
    load_agent,
    run_agent,
)
from tooltrail.store import Store
from tooltrail.workspace import workspace_tools

EXAMPLES = Path(__file__).parents[3] / "examples" / "agents"
AGENTS = ("researcher", "implementer", "reviewer", "tester")

GOOD: Mapping[str, dict[str, Any]] = {
    "researcher": {
        "summary": "Events are sent by one function, which three commands call.",
        "findings": [
            {"description": "d", "files": ["a.py"], "evidence": "x = 1", "confidence": "high"}
        ],
    },
    "implementer": {
        "summary": "done",
        "filesModified": [{"path": "a.py", "action": "modified", "changes": "x is 2"}],
        "testsCovered": False,
    },
    "reviewer": {"summary": "fine", "issues": [], "approved": True},
    "tester": {
        "summary": "one test",
        "testsCreated": [{"path": "t.py", "testCount": 1, "type": "unit"}],
        "coverage": 97.5,
    },
}
"""For each agent, a result that its schema accepts."""

BAD: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "researcher": (
        {"summary": "short", "findings": [{"description": "d", "files": ["a"], "evidence": "e"}]},
        ("summary", "findings[0].confidence"),
    ),
    "implementer": ({"summary": "x", "filesModified": "a.py"}, ("filesModified",)),
    "reviewer": ({"summary": "x", "issues": [{"severity": "bad"}]}, ()),
    "tester": ({"summary": "x", "testsCreated": [], "coverage": 101}, ("coverage",)),
}
"""For each agent, a result that its schema rejects, and the invalid fields of the result."""


@dataclass(slots=True)
class Ran:
    """A run and its effects.

    Attributes:
        run: the run.
        provider: the server of the model.
        events: events that were reported during the run.
    """

    run: AgentRun
    provider: ScriptedProvider
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    @property
    def bodies(self) -> list[Any]:
        """The bodies of all requests."""
        return [body for _, _, body in self.provider.requests]


def example(name: str, *, tiers: int = 1, **limits: int) -> AgentConfig:
    """An example agent with `tiers` tiers, `small` and then `large`, and with these limits."""
    config = load_agent(EXAMPLES / name / "agent.yml")
    named = tuple(Tier(name=tier, model=f"m-{tier}") for tier in ("small", "large"))[:tiers]
    return config.model_copy(update={"tiers": named, "limits": Limits(**limits)})


def free_text(config: AgentConfig) -> AgentConfig:
    """The agent without a schema for its result."""
    return config.model_copy(update={"output": None})


def run_scripted(
    store: Store,
    config: AgentConfig,
    format_name: str,
    script: Iterable[Step],
    *,
    root: Path,
    tools: Mapping[str, AgentTool] | None = None,
    stream: bool = True,
    task: str = "Do it.",
    observer: Callable[[RunEvent], None] | None = None,
) -> Ran:
    """Run an agent to its end; each request gets the next step of the script."""
    (root / "a.py").write_text("x = 1\n")
    given = tools or workspace_tools(root, allow_writes=True, allow_commands=True)
    events: list[RunEvent] = []
    with scripted_provider(script) as provider:

        def model(tier: Tier) -> HttpModel:
            url = provider.base_url(format_name)
            return HttpModel.of(
                format_name, tier.model, base_url=url, api_key="the-key", stream=stream
            )

        told = observer or events.append
        run = asyncio.run(run_agent(config, task, model, given, store, observer=told))
    return Ran(run, provider, events)
