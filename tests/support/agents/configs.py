"""Configurations of agents for tests."""

MINIMAL = "schema: kb.agent/1\nid: probe\nname: Probe\n"
"""A complete configuration of three lines; more lines can be appended."""


def lines_of(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
