"""Configurations of agents for tests."""

MINIMAL = "schema: kb.agent/1\nid: probe\nname: Probe\n"
"""Three lines that are a configuration; more can be added at the end."""


def lines_of(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
