"""Sentences about values that a model refuses."""

import pytest
from pydantic import ValidationError

from tooltrail.records import Message
from tooltrail.records.complaints import sentence_of
from tooltrail.records.policy_documents import first_complaint


@pytest.mark.parametrize(
    ("is_from_file", "sentence"),
    [
        (True, "must be text, not a number: put it in quotes"),
        (False, "must be text, not a number"),
    ],
)
def test_only_the_author_of_a_file_is_advised_to_use_quotes(
    is_from_file: bool, sentence: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        Message.model_validate({"role": "user", "blocks": [{"type": "text", "text": 5}]})
    [error] = refused.value.errors()
    assert sentence_of(error, is_from_file=is_from_file) == sentence
    assert first_complaint(refused.value).endswith(": must be text, not a number")
