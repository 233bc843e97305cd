"""The default policy as it is stored: canonical JSON, made ahead of time.

A program that records one command only stores a policy and never applies it, so it reads the
document from a file of this package. `python -m tests.support.default_policy` writes the file, and
a test compares it with `default_policy()`.
"""


def default_policy_json() -> bytes:
    """The canonical JSON of the default policy."""
    with open(f"{__file__.removesuffix('.py')}.json", "rb") as file:  # noqa: PTH123  pathlib takes 5 ms
        return file.read()
