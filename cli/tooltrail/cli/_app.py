"""The tree of commands. The module of a command is imported when the command is used."""

from importlib import import_module

import click

from tooltrail.cli._exit_codes import table
from tooltrail.cli._version import VERSION

COMMANDS = {
    "agents": "check, run and compare agents with structured results",
    "artifact": "read, search and verify stored artifacts",
    "cat": "print the output of an invocation, or an artifact",
    "coverage": "compare the store with the transcripts of an agent",
    "db": "show, check, upgrade and back up the database",
    "diff": "show what differs between two calls, or two sessions",
    "exec": "run a command and record its output byte for byte",
    "gc": "delete stored objects that no record refers to",
    "grep": "print the lines of an output or an artifact that match",
    "head": "print the first lines of an output or an artifact",
    "hook": "record what Claude Code and Codex run, event by event",
    "import": "record the sessions that agents left as files",
    "init": "create a store",
    "log": "list invocations, newest first",
    "mcp": "let an agent read its own record over MCP",
    "mcp-proxy": "record the tool calls between an MCP client and its server",
    "redact": "search what is stored for credentials",
    "repair": "ingest all facts that wait in the journal, and report",
    "search": "find words, patterns and paths in everything recorded",
    "retries": "list calls that were made again with the same arguments",
    "session": "open, close and list sessions",
    "show": "show one invocation with its three surfaces",
    "stats": "count calls by tool, day, outcome and more",
    "status": "print where the store is, and what needs attention",
    "tail": "print the last lines of an output, also while it runs",
    "tools": "list and export the tools that models were offered",
    "transcript": "print a session as a conversation",
    "verify": "compare every record with the ledger",
}


class LazyGroup(click.Group):
    """A group that lists its commands with their one-line help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in alphabetical order."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None if the name is unknown."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = f"tooltrail.cli.commands.{cmd_name.replace('-', '_')}_command"
        command: object = import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table of exit codes at the end of the help text."""
        del ctx
        formatter.write(f"\n{table()}\n")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="tooltrail %(version)s")
def app() -> None:
    """Keep a permanent, complete and provable record of every tool that an AI agent runs.

    --db or $TOOLTRAIL_DB names the store. The default is the file
    tooltrail/tooltrail.db in the user's data folder ($XDG_DATA_HOME).
    """
