"""An entry of the ledger commits to everything in it."""

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from pydantic import ValidationError

from tooltrail.records import GENESIS, LedgerEntry, canonical_json, digest_of

SESSION = UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
SUBJECT = UUID("017f22e2-79b0-7cc3-98c4-dc0c0c073990")
MOMENT = datetime(2026, 4, 23, 10, 30, 0, 250_000, tzinfo=UTC)
FIELDS: dict[str, object] = {
    "session_id": SESSION,
    "n": 0,
    "kind": "session.opened",
    "subject_id": SUBJECT,
    "happened_at": MOMENT,
    "payload": {"title": "first"},
    "previous": GENESIS,
}


def entry(**changes: object) -> LedgerEntry:
    return LedgerEntry.model_validate(FIELDS | changes)


def test_the_canonical_json_of_an_entry_is_spelled_for_ever() -> None:
    assert entry().to_json().decode() == (
        '{"happened_at":"2026-04-23T10:30:00.250000Z","kind":"session.opened","n":0,'
        '"payload":{"title":"first"},'
        '"previous":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",'
        '"session_id":"017f22e2-79b0-7cc3-98c4-dc0c0c07398f",'
        '"subject_id":"017f22e2-79b0-7cc3-98c4-dc0c0c073990"}'
    )
    assert entry().digest == digest_of(entry().to_json())


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": SUBJECT},
        {"n": 1},
        {"kind": "session.closed"},
        {"subject_id": SESSION},
        {"happened_at": MOMENT + timedelta(microseconds=1)},
        {"payload": {}},
        {"payload": {"title": "second"}},
        {"payload": {"title": "first", "more": None}},
        {"previous": digest_of(b"another")},
    ],
)
def test_every_changed_field_changes_the_digest(changes: dict[str, object]) -> None:
    assert entry(**changes).digest != entry().digest


def test_every_field_is_tried_above() -> None:
    assert set(FIELDS) == set(LedgerEntry.model_fields)
    assert json.loads(entry().to_json()).keys() == set(FIELDS)


def test_the_order_of_the_payload_does_not_matter() -> None:
    assert entry(payload={"a": 1, "b": 2}).digest == entry(payload={"b": 2, "a": 1}).digest


def test_the_zone_in_which_a_moment_is_given_does_not_matter() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert entry(happened_at=elsewhere).digest == entry().digest
    assert entry(happened_at=elsewhere).happened_at.tzinfo is UTC


@pytest.mark.parametrize(
    "changes",
    [
        {"happened_at": MOMENT.replace(tzinfo=None)},
        {"n": -1},
        {"kind": "session.forgotten"},
        {"previous": "sha256:short"},
        {"surplus": 1},
    ],
)
def test_an_entry_that_breaks_the_contract_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        entry(**changes)


def test_an_entry_read_back_has_the_same_digest() -> None:
    first = entry(payload={"size": 10**30, "rate": 0.1})
    assert LedgerEntry.model_validate(canonical_json.decode(first.to_json())) == first
    assert LedgerEntry.model_validate_json(first.to_json()).digest == first.digest


def test_payloads_that_differ_in_what_utf8_cannot_hold_have_different_digests() -> None:
    names = ["\ud800", "\udfff", "\ufffd", "\\ud800"]
    entries = [entry(payload={name: 1}) for name in names]
    entries += [entry(payload={"name": name}) for name in names]
    assert len({made.digest for made in entries}) == len(entries)


def test_a_chain_breaks_at_the_link_after_the_changed_one() -> None:
    links = [entry()]
    for n in range(1, 4):
        links.append(entry(n=n, kind="message", payload={"n": n}, previous=links[-1].digest))
    forged = links[1].model_copy(update={"payload": {"n": 99}})
    assert links[2].previous == links[1].digest
    assert links[2].previous != forged.digest
