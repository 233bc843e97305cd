"""Many small cases of one test.

Each collected test costs milliseconds, so small cases share one.
"""

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

import pytest

Test = Callable[..., None]


def each_case(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Iterable[object] = ()
) -> Callable[[Test], Test]:
    """One test that checks every case of a function without fixtures, and names those that fail.

    Args:
        names: the argument that a case is, or those that its members are.
        cases: what is checked.
        ids: what the cases are called.
    """
    known = [*cases]
    called = [*ids] or [None] * len(known)
    members_of = [names] if isinstance(names, str) else names
    assert known, "there is no case"

    def decorated(test: Test) -> Test:
        def checked(**others: Any) -> None:
            failures: dict[str, Exception] = {}
            skipped: BaseException | None = None
            for case, name in zip(known, called, strict=True):
                members = [case] if isinstance(names, str) else case
                given = dict(zip(members_of, members, strict=True))
                try:
                    test(**others, **given)
                except pytest.skip.Exception as skip:
                    skipped = skip
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  of any kind
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    called_so = str(name or repr(case)[:500])
                    failure.add_note(f"of the case {called_so}")
                    failures[called_so] = failure
            if failures:
                found = f"{len(failures)} of {len(known)} cases: {', '.join(failures)}"
                raise ExceptionGroup(found, [*failures.values()])
            if skipped is not None:
                raise skipped

        update_wrapper(checked, test)
        del checked.__dict__["__wrapped__"]  # or pytest would ask for the arguments
        return checked

    return decorated
