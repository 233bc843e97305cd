"""The exit codes and their meanings, as `--help` prints them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands except `exec`, which mirrors its child."""

    OK = 0
    DAMAGED = 1
    USAGE = 2
    NOT_FOUND = 3
    INCOMPLETE = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141

    @classmethod
    def of_damage(cls, *, is_damaged: object, is_incomplete: object) -> "ExitCode":
        """The exit code of a check. Damage takes precedence over incompleteness."""
        if is_damaged:
            return cls.DAMAGED
        return cls.INCOMPLETE if is_incomplete else cls.OK


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.DAMAGED: "verification failed, or a difference was found",
    ExitCode.USAGE: "wrong usage or invalid input",
    ExitCode.NOT_FOUND: "nothing has this name, or no line matches",
    ExitCode.INCOMPLETE: "incomplete: missing artifact, open invocation, lost output, unmet budget",
    ExitCode.UNAVAILABLE: "store missing, unavailable, or of another revision",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.BROKEN_PIPE: "the reader of stdout went away",
}

EXEC_MEANINGS = (
    "`exec` mirrors its command: its status, 128+N for signal N, 124 timeout,\n"
    "126 cannot be run, 127 not found."
)


def table() -> str:
    """The table of exit codes, as `--help` prints it."""
    lines = [f"{code.value:5}  {meaning}" for code, meaning in MEANINGS.items()]
    return "\n".join(["Exit codes:", *lines, "", EXEC_MEANINGS])
