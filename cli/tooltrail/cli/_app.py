"""The tree of commands. The module of a command is imported when the command is used."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import click

from tooltrail.cli._examples import FIRST, add_examples, listed
from tooltrail.cli._exit_codes import table
from tooltrail.cli._known import complete_values
from tooltrail.cli._options import time_option
from tooltrail.cli._version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "Record what agents run": {
        "agents": "check, run and compare agents with structured results",
        "exec": "run a command and record its output byte for byte",
        "hook": "record what Claude Code and Codex run, event by event",
        "import": "record the sessions that agents left as files",
        "mcp-proxy": "record the tool calls between an MCP client and its server",
        "session": "open, close and list sessions",
    },
    "Look at the record": {
        "artifact": "read, search and verify stored artifacts",
        "cat": "print the output of an invocation, or an artifact",
        "diff": "show what differs between two calls, or two sessions",
        "head": "print the first lines of an output or an artifact",
        "log": "list invocations, newest first",
        "mcp": "let an agent read its own record over MCP",
        "show": "show one invocation with its three surfaces",
        "tail": "print the last lines of an output, also while it runs",
        "tools": "list and export the tools that models were offered",
        "transcript": "print a session as a conversation",
    },
    "Find and count": {
        "grep": "print the lines of an output or an artifact that match",
        "redact": "search what is stored for credentials",
        "retries": "list calls that were made again with the same arguments",
        "search": "find words, patterns and paths in everything recorded",
        "sql": "run a query over the views and tables of the store",
        "stats": "count calls by tool, day, outcome and more",
    },
    "Prove the record": {
        "coverage": "compare the store with the transcripts of an agent",
        "verify": "compare every record with the ledger",
    },
    "Keep the store": {
        "db": "show, check, upgrade and back up the database",
        "gc": "delete stored objects that no record refers to",
        "init": "create a store",
        "repair": "ingest all facts that wait in the journal, and report",
        "status": "print where the store is, and what needs attention",
    },
    "Get help": {
        "completion": "print the script with which a shell completes commands and names",
        "help": "show the help text of a command",
    },
}
"""Every command with its help in one line, grouped by what people do."""

_OF_ARTIFACT = frozenset({"cat", "grep", "head", "tail"})
"""Commands that are the same below `artifact`."""

_HELPS = {name: text for commands in COMMANDS.values() for name, text in commands.items()}

NAMES = sorted(_HELPS)
"""The names of all commands."""


class LazyGroup(click.Group):
    """A group that lists its commands with their one-line help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in alphabetical order."""
        del ctx
        return NAMES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None if the name is unknown."""
        del ctx
        return _load(cmd_name) if cmd_name in NAMES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command with this name. The error for an unknown name has near names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=NAMES, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands and options that begin with this text."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  not for other uses

        names = [name for name in _HELPS if name.startswith(incomplete)]
        found = [CompletionItem(name, help=_HELPS[name]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands before the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above, in columns of one width."""
        del ctx
        width = max(map(len, NAMES))
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the examples, and the table of exit codes at the end of the help text."""
        super().format_epilog(ctx, formatter)
        for paragraph in table().split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(f"\b\n{paragraph}")


@cache
def _load(name: str) -> click.Command:
    of_artifact = name in _OF_ARTIFACT
    module = "artifact" if of_artifact else name.replace("-", "_")
    commands = import_module(f"tooltrail.cli.commands.{module}_command")
    command: object = getattr(commands, name if of_artifact else "command")
    assert isinstance(command, click.Command)
    add_examples(command, f"tooltrail {name}")
    complete_values(command)
    return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=listed([*FIRST]),
)
@click.option("--db", metavar="PATH|URL", help="Database of the store ($TOOLTRAIL_DB).")
@click.option("--artifacts", metavar="PATH|URL", help="Artifact root ($TOOLTRAIL_ARTIFACTS).")
@click.option("--spool", metavar="PATH", help="Folder of the journal ($TOOLTRAIL_SPOOL).")
@time_option
@click.version_option(VERSION, message="tooltrail %(version)s")
def app(**_: object) -> None:
    """Keep a permanent, complete and provable record of every tool that an AI agent runs.

    --db or $TOOLTRAIL_DB names the store. The default is the file
    tooltrail/tooltrail.db in the user's data folder ($XDG_DATA_HOME).
    Options of the store are accepted before and after the command.
    """


complete_values(app)
