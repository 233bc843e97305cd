"""The examples of all help texts. An example belongs to the command that it runs."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

import click

_MOST = 4

FIRST = (
    "tooltrail hook install claude-code",
    "tooltrail exec -- make test",
    "tooltrail log --failed --since yesterday",
    "tooltrail show @last",
)
"""The examples of `tooltrail --help`."""

LINES: Final[Sequence[str]] = """\
tooltrail agents check .
tooltrail agents check --strict agents/reviewer.yml
tooltrail agents run agent.yml --task "Review the last commit"
tooltrail agents run agent.yml --root src --allow-writes --task - < task.txt
tooltrail agents stats --since 7d
tooltrail agents stats --agent reviewer --csv
tooltrail agents ls --agent reviewer
tooltrail agents diff old/agent.yml new/agent.yml
tooltrail agents diff --stored old/agent.yml new/agent.yml
tooltrail artifact ls --invocation @last
tooltrail artifact ls --session nightly-build --fields path,size --csv
tooltrail artifact stat sha256:5ff0
tooltrail artifact verify
tooltrail artifact verify sha256:5ff0
tooltrail artifact relocate /mnt/archive/artifacts
tooltrail artifact relocate --delete-old s3://bucket/trail
tooltrail cat @last > output.txt
tooltrail cat @last:Bash --stream stderr
tooltrail cat sha256:5ff0 --lines 100:120
eval "$(tooltrail completion bash)"    # in ~/.bashrc
eval "$(tooltrail completion zsh)"     # in ~/.zshrc, after compinit
tooltrail completion fish > ~/.config/fish/completions/tooltrail.fish
tooltrail coverage ~/.claude/projects
tooltrail coverage --json session.jsonl
tooltrail db current
tooltrail db upgrade
tooltrail db check
tooltrail db backup backup.db
tooltrail db index
tooltrail db index --rebuild
tooltrail diff 5d9aa8a6 @last
tooltrail diff --same-args @last:Bash
tooltrail diff --surfaces @last
tooltrail diff --session nightly-build @last --brief
tooltrail exec -- make test
tooltrail exec --session nightly-build --timeout 10m -- ./deploy.sh
tooltrail exec -- sh -c "make 2>&1 | tee build.log"
tooltrail gc
tooltrail gc --grace 7d --yes
tooltrail grep -n error @last
tooltrail grep -i -C 3 "exit (code|status)" @last:Bash
tooltrail head -n 50 @last
tooltrail head sha256:5ff0
tooltrail help log
tooltrail help artifact ls
tooltrail hook install claude-code
tooltrail hook install codex --project
tooltrail hook uninstall claude-code
tooltrail hook uninstall codex --project
tooltrail hook status
tooltrail hook status codex
tooltrail import
tooltrail import --since 2d ~/.claude/projects
tooltrail import --follow
tooltrail init
tooltrail init --db postgresql://me@server/trail --artifacts s3://bucket
tooltrail log --failed --since yesterday
tooltrail log --tool Bash --exit-code "!=0" -n 0
tooltrail log --where "tool = Bash and duration > 30s" --sort duration
tooltrail log -f --agent claude-code
claude mcp add tooltrail -- tooltrail mcp
codex mcp add tooltrail -- tooltrail mcp
tooltrail mcp-proxy --server-name git -- uvx mcp-server-git
tooltrail mcp-proxy --url https://mcp.example.com --header "X-Key:$KEY"
tooltrail redact --scan
tooltrail repair
tooltrail retries --since 7d
tooltrail search "no such file" --failed
tooltrail search E0433 --tool Bash --since 2d
tooltrail search --path src/parser.py
tooltrail search --literal "connection reset" --reverse -n 1
tooltrail session open --name nightly-build --agent cron
export TOOLTRAIL_SESSION=$(tooltrail session open --title build)
tooltrail session close
tooltrail session close nightly-build
tooltrail session ls
tooltrail session ls --tool Bash --failed
tooltrail show @last:Bash
tooltrail show 5d9aa8a6 --surface receipt
tooltrail show nightly-build#3 --stream stderr
tooltrail sql
tooltrail sql "SELECT outcome, count(*) FROM v_invocations GROUP BY 1"
tooltrail stats --by tool,day --since 7d
tooltrail stats --tool Bash --by day --surfaces
tooltrail stats --sort p95 -n 10
tooltrail status
tooltrail tail -n 100 @running
tooltrail tail -f @running:Bash
tooltrail tools ls --session @last
tooltrail tools ls --calls
tooltrail tools export --format anthropic --session @last
tooltrail tools export --format mcp --tool Bash --strict
tooltrail transcript
tooltrail transcript nightly-build --format markdown -o build.md
tooltrail transcript @last --format anthropic --compact 20000
tooltrail verify
tooltrail verify --receipts --json
""".splitlines()
"""Command lines that work when pasted, with at most 76 characters, for 80 columns."""


def add_examples(command: click.Command, path: str) -> list[str]:
    """Add examples to the help texts of a command and of its subcommands, and return them.

    A group has the first example of each subcommand.
    """
    found = _lines_of(path) or _lines_of(f"tooltrail {command.name}")
    if isinstance(command, click.Group):
        each = (add_examples(one, f"{path} {name}")[:1] for name, one in command.commands.items())
        firsts = set(chain.from_iterable(each))
        found = [line for line in LINES if line in firsts]
    # A command may have two names, such as `artifact cat` and `cat`.
    note = (command.epilog or "").partition("\b")[0].strip()
    command.epilog = "\n\n".join(filter(None, (note, listed(found[:_MOST]))))
    return found


def _lines_of(path: str) -> list[str]:
    return [line for line in LINES if f"{path} " in f"{line} "]


def listed(lines: list[str]) -> str:
    """Examples as click's text of a help page; click does not wrap what follows a backspace."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else ""
