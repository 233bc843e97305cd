"""Paths of files as labels: on one line, bounded, and with their end visible."""

import re
from typing import Annotated

from pydantic import AfterValidator

from tooltrail.records._text_cuts import ACTING, cut_after, spelled_out
from tooltrail.records.cutting import Cutter
from tooltrail.records.families._shared import NAME_CHARS

_HIDDEN = re.compile(f"[\x00-\x1f{ACTING}]")
"""Characters that begin a new line, move a cursor, or change the direction of text."""


def _not_empty(path: str) -> str:
    if not path:
        raise ValueError("a path must not be empty")
    return path


FilePath = Annotated[str, AfterValidator(_not_empty)]
"""A path exactly as the tool has it. Constraints of pydantic would refuse a non-UTF-8 name."""


def one_line_path(path: str) -> str:
    r"""A path on one line: control characters are escaped, for example as `\n`.

    White space is not collapsed as in a sentence: two different paths must not look the same.
    """
    return _HIDDEN.sub(lambda one: one[0].encode("unicode_escape").decode(), spelled_out(path))


def path_label(cutter: Cutter, field: str, path: str) -> str:
    """A path on one line of at most `NAME_CHARS` characters; a long path loses its beginning."""
    label = one_line_path(path)
    if len(label) <= NAME_CHARS:
        return label
    end = label[cut_after(label, len(label) - (NAME_CHARS - 1)) :]
    cutter.count(field, "chars", len(label), len(end), f"longer than {NAME_CHARS} characters")
    return "…" + end
