"""Conditions of `store.expressions` as SQL over `invocations`, for both engines.

A place in a document is read in a subquery, which yields its JSON value. A long text of a canonical
result may be a reference into the receipt; see `store.references`. It is read from there, and
compared like any other text. If the receipt is erased, the canonical result is, too.

PostgreSQL compares texts of documents as bytes, in the order of code points like SQLite. Values of
damaged rows make no error: JSON that a database cannot parse counts as one text.
"""

import json
from typing import Final

from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.plain_text import storable
from tooltrail.store.expressions import (
    ENVIRONMENT,
    PRESENT,
    Comparison,
    Every,
    Expression,
    Not,
    RanIn,
    Some,
)
from tooltrail.store.read.rows import Sql, joined

_SESSION: Final = (
    "(SELECT held.{} FROM sessions AS held WHERE held.key = invocations.session_key LIMIT 1)"
)

_SURFACES: Final = "(SELECT {} FROM surfaces AS s WHERE s.invocation_key = invocations.key LIMIT 1)"

_COLUMNS: Final = {
    "tool": "invocations.tool_name",
    "duration": "invocations.duration_ms",
    "started": "invocations.started_at",
    "finished": "invocations.finished_at",
    "size": "invocations.output_size",
    "lost": "invocations.lost_size",
    # Like `--timed-out`. The column of this name is NULL if the output is not recorded.
    "timed_out": "(invocations.outcome = 'timeout')",
    "agent": _SESSION.format("agent"),
    # In SQLite, a damaged column may hold a text, which is greater than every number.
    "cut": _SURFACES.format("CASE WHEN cut_size <= 9223372036854775807 THEN cut_size END"),
    "receipt": _SURFACES.format("receipt"),
}
"""SQL for the columns that are not a column of `invocations` with the same name."""

_SOURCES: Final = {
    "arguments": ("arguments", ()),
    "result": ("canonical", ("result",)),
    "error": ("canonical", ("error",)),
}
"""The column of `surfaces` that has a document, and where in that column."""

_MOST_BRACKETS: Final = 5_000
"""Most `[` and `{` of a document that PostgreSQL parses. At some 10,000 levels it gives up."""

_REFERENCE: Final = "$tooltrail.receipt"

# A backslash becomes an escape that is no backslash; then each backslash begins an escape. NUL
# becomes `\0`, as in every stored text: a text of PostgreSQL cannot hold it.
_WITHOUT_NUL: Final = r"replace(replace(s.{column}, '\\', '\u005c'), '\u0000', '\u005c0')"

# Lone surrogates become texts such as `\ud800`, too.
_LONE: Final = (
    r"\\(u[dD][89abAB][[:xdigit:]]{2})(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][[:xdigit:]]{2})\\(u[dD][c-fC-F][[:xdigit:]]{2})"
)

_OF_SQLITE: Final = (
    r"(SELECT CASE WHEN NOT json_valid(s.{column}) THEN json_quote(s.{column})"
    r" WHEN instr(s.{column}, '\u0000') > 0 THEN"
    f" {_WITHOUT_NUL} ELSE s.{{column}} END AS document, s.receipt FROM surfaces AS s"
    " WHERE s.invocation_key = invocations.key AND typeof(s.{column}) = 'text'{only})"
)
_OF_SERVER: Final = (
    "(SELECT CASE WHEN length(exact) - length(translate(exact, '[{{', ''))"
    f" <= {_MOST_BRACKETS} AND pg_input_is_valid(clean, 'jsonb') THEN CAST(clean AS jsonb)"
    " ELSE to_jsonb(exact) END AS document, receipt FROM ("
    r"SELECT CASE WHEN strpos(s.{column}, '\u') = 0 THEN s.{column} ELSE"
    rf" regexp_replace({_WITHOUT_NUL}, ?, '\\u005c\1\2', 'g') END AS clean,"
    " s.{column} AS exact, s.receipt FROM surfaces AS s"
    " WHERE s.invocation_key = invocations.key AND s.{column} IS NOT NULL{only} OFFSET 0) AS texts)"
)
"""The document of an invocation as valid JSON, and the receipt. `?` is `_LONE`."""

# `- -1` adds one: `rows.Sql` gives `+` another meaning.
_SQLITE_PART: Final = (
    f"CAST(substr(CAST(receipt AS BLOB), json_extract(value, '$.\"{_REFERENCE}\"[0]') - -1,"
    f" json_extract(value, '$.\"{_REFERENCE}\"[1]')) AS TEXT)"
)
_SERVER_PART: Final = (
    "CASE WHEN jsonb_path_exists(value, CAST(? AS jsonpath), '{}', true) THEN substring("
    "convert_to(receipt, 'UTF8') FROM"
    f" CAST(value -> '{_REFERENCE}' -> 0 AS integer) - -1"
    f" FOR CAST(value -> '{_REFERENCE}' -> 1 AS integer)) END"
)
_IS_REFERENCE: Final = (
    f'strict $."{_REFERENCE}" ? (@[0] >= 0 && @[0] < 2000000000 && @[1] >= 0 && @[1] < 2000000000)'
)


def condition_of(expression: Expression) -> Sql:
    """The condition of an expression. Unknown means false.

    Raises `InvalidRecordError` if the expression was not resolved; see `Reader.resolved`.
    """
    match expression:
        case Every(parts) | Some(parts):
            word = " AND " if isinstance(expression, Every) else " OR "
            return Sql("(") + joined(word, map(condition_of, parts)) + ")"
        case Not(part):
            return Sql("(") + condition_of(part) + ") IS NOT TRUE"
        case RanIn(_, environments):
            return has_run_in(environments)
        case Comparison(name) if name in _SOURCES:
            return _in_document(expression)
        case Comparison("session"):
            return _of_session(expression)
        case _:
            return _of_column(expression)


def _of_column(one: Comparison) -> Sql:
    if one.name in ENVIRONMENT:
        raise InvalidRecordError(f"{one.name} can only be compared after `Reader.resolved`")
    column = _COLUMNS.get(one.name, f"invocations.{one.name}")
    if one.operator == "~":
        on_server = Sql(f"strpos({column}, CAST(? AS text)) > 0", (one.value,))
        return Sql(f"instr({column}, ?) > 0", (one.value,), on_server)
    if one.operator == PRESENT:
        return Sql(f"{column} IS NOT NULL")
    return Sql(f"{column} {_sign(one)} ?", (one.value,))


def _of_session(one: Comparison) -> Sql:
    column = "name" if isinstance(one.value, str) else "id"
    is_so = Sql(f"{_SESSION.format(column)} = ?", (one.value,))
    return is_so if one.operator == "=" else is_so + " IS NOT TRUE"


def has_run_in(environments: tuple[Digest, ...]) -> Sql:
    """The condition that a call ran in one of some environments."""
    column = f"COALESCE(invocations.environment, {_SESSION.format('environment')})"
    digits = [one.partition(":")[2] for one in environments]
    on_server = Sql(f"encode({column}, 'hex') = ANY(?)", (digits,))
    in_list = f"lower(hex({column})) IN (SELECT value FROM json_each(?))"
    return Sql(in_list, (json.dumps(digits),), on_server)


def _in_document(one: Comparison) -> Sql:
    column, root = _SOURCES[one.name]
    keys = (*root, *one.path)
    path = "$" + "".join(f"[{key}]" if isinstance(key, int) else f'."{key}"' for key in keys)
    here = _for_sqlite(one, column, path)
    return Sql(here.text, here.values, _for_server(one, column, path))


def _for_sqlite(one: Comparison, column: str, path: str) -> Sql:
    source = _source(one, _OF_SQLITE, column, "instr")
    place = "json_type(document, ?) AS kind, json_extract(document, ?) AS value, receipt FROM "
    places = Sql(f"SELECT {place}", (path, path)) + source
    if one.operator == "~":
        places = Sql("SELECT type AS kind, value, receipt FROM ") + source
        places += Sql(", json_tree(document, ?)", (path,))
    contents: dict[type, str] = {
        str: "CASE kind WHEN 'text' THEN value WHEN 'object' THEN {} END".format(
            _SQLITE_PART if column == "canonical" else "NULL"
        ),
        bool: "CASE kind WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    }
    number = "CASE WHEN kind IN ('integer', 'real') THEN value END"
    content = Sql(contents.get(type(one.value), number))
    if one.operator == "~":
        return _exists(places, Sql("instr(") + content + Sql(", ?) > 0", (one.value,)))
    return _exists(places, _compared(one, content, one.value))


def _for_server(one: Comparison, column: str, path: str) -> Sql:
    # `->` would take a text for a list of one text. A path is silent where it leads nowhere.
    at = f"strict {path}.**" if one.operator == "~" else f"strict {path}"
    places = Sql("SELECT jsonb_typeof(value) AS kind, value, receipt FROM ")
    places += _source(one, _OF_SERVER, column, "strpos")
    found = "jsonb_path_query(document, CAST(? AS jsonpath), '{}', true) AS found(value)"
    places += Sql(f" AS held, {found}", (at,))
    text = Sql("CASE kind WHEN 'string' THEN convert_to(value #>> '{}', 'UTF8')")
    if column == "canonical":
        text += Sql(f" WHEN 'object' THEN {_SERVER_PART}", (_IS_REFERENCE,))
    contents: dict[type, Sql] = {
        str: text + " END",
        bool: Sql("CASE kind WHEN 'boolean' THEN CAST(value AS boolean) END"),
    }
    number = Sql("CASE kind WHEN 'number' THEN CAST(value AS numeric) END")
    content = contents.get(type(one.value), number)
    value = storable(one.value).encode() if isinstance(one.value, str) else one.value
    if one.operator == "~":
        return _exists(places, Sql("position(CAST(? AS bytea) IN ", (value,)) + content + ") > 0")
    return _exists(places, _compared(one, content, value))


def _exists(places: Sql, condition: Sql) -> Sql:
    """Whether a condition is true at one of some places with a kind, a value and a receipt."""
    return (
        Sql("EXISTS (SELECT 1 FROM (")
        + places
        + ") AS place WHERE kind <> 'null' AND "
        + condition
        + ")"
    )


def _compared(one: Comparison, content: Sql, value: object) -> Sql:
    """Compare a place that is not null. Another value than a text or number is not equal to one."""
    if one.operator == PRESENT:
        return Sql("1 = 1")
    if one.operator == "!=":
        return Sql("(") + content + Sql(" = ?) IS NOT TRUE", (value,))
    return content + Sql(f" {_sign(one)} ?", (value,))


def _source(one: Comparison, form: str, column: str, find: str) -> Sql:
    """The document of an invocation; `find` is the function that finds a text in a text."""
    conditions: list[Sql] = []
    has_reference = f"{find}(s.canonical, '{{\"{_REFERENCE}\"') > 0"
    if column == "canonical":
        # If the receipt is erased, so are the parts of the canonical result that stand there.
        conditions.append(Sql(f"(s.receipt IS NOT NULL OR NOT {has_reference})"))
    key, value = _required_texts(one)
    # A document without these texts need not be parsed. SQLite parses as fast as it finds a text,
    # and is slow only where it visits all places, for `~`.
    if key + value and (form is _OF_SERVER or one.operator == "~"):
        has = f"{find}(s.{column}, CAST(? AS text)) > 0"
        spellings = [Sql(has, (value,))]
        if isinstance(one.value, int):
            spellings.append(Sql(f"s.{column} ~ '[0-9][.eE]'"))
        if column == "canonical":
            spellings.append(Sql(has_reference))
        has_value = Sql("(") + joined(" OR ", spellings) + ")"
        # Any character may be escaped with `\u`; only those that are not plain in other ways, too.
        texts = key[1:-1] + value
        is_plain = texts.isprintable() and not {*'"\\/'} & {*texts}
        escaped = Sql(f" OR {has})", ("\\u" if is_plain else "\\",))
        conditions.append(Sql("(") + Sql(has, (key,)) + " AND " + has_value + escaped)
    only = joined("", (Sql(" AND ") + condition for condition in conditions))
    lone = (_LONE,) if form is _OF_SERVER else ()
    return Sql(form.format(column=column, only=only.text), (*lone, *only.values))


def _required_texts(one: Comparison) -> tuple[str, str]:
    """The last key with its quotes, and the value, as a document that fits has them unescaped.

    A text is empty if a document can fit without it.
    """
    keys = [f'"{key}"' for key in one.path if isinstance(key, str)]
    value = ""
    if one.operator in ("=", "~"):
        if isinstance(one.value, str):
            value = storable(one.value)
        elif isinstance(one.value, int):
            value = json.dumps(one.value)
    return keys[-1] if keys else "", value


def _sign(one: Comparison) -> str:
    return "<>" if one.operator == "!=" else one.operator
