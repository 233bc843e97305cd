"""Many small cases of one test.

A test costs milliseconds beside its body, in each process that collects it, whatever it checks.
"""

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

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
    told = [names] if isinstance(names, str) else names
    assert known, "there is no case"

    def decorated(test: Test) -> Test:
        def checked(**others: Any) -> None:
            failures: list[Exception] = []
            for case, name in zip(known, called, strict=True):
                members = [case] if isinstance(names, str) else case
                given = dict(zip(told, members, strict=True))
                try:
                    test(**others, **given)
                except Exception as error:  # noqa: BLE001  of any kind
                    error.add_note(f"of the case {name or repr(case)[:500]}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(known)} cases", failures)

        update_wrapper(checked, test)
        del checked.__dict__["__wrapped__"]  # or pytest would ask for the arguments
        return checked

    return decorated
