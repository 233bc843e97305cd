"""Results of tool calls, as messages for the provider whose answer asked for the calls.

    messages += tool_results_message("openai", finished)

The caller has the provider's answer already, and appends these messages to it.
"""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import JsonValue

from tooltrail.journal.invocation import Finished
from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    result_status,
)
from tooltrail.records.errors import check_type
from tooltrail.wire import (
    DEFAULT_EXPORT_POLICY,
    ChangeKind,
    ExportPolicy,
    ExportRefusedError,
    ExportReport,
    wire_format,
)
from tooltrail.wire.members import list_in, object_in

_CHANGES_OF_ANSWER: frozenset[ChangeKind] = frozenset(
    {"arguments_wrapped", "id_dropped", "message_added", "provider_data_dropped"}
)
"""Changes of the answer with the calls. They are ignored: the caller has that answer already."""


def tool_results_message(
    format_name: str,
    finished: Iterable[Finished],
    policy: ExportPolicy = DEFAULT_EXPORT_POLICY,
) -> list[JsonValue]:
    """The messages of the next request that carry the results of calls.

    Append them to the answer that asked for the calls. There is one message for each result or one
    for all, as the format requires. The model is shown the receipts. Ids and names are those of the
    answer, even if the format has other rules for them.

    Args:
        format_name: name of the wire format.
        finished: the recorded calls of one answer, in their order.
        policy: see `tooltrail.wire`. If the format needs ids and the provider gave a call none,
            all results of the batch become text; with `ids="synthesise"` they have made ids.

    Raises:
        NotFoundError: there is no such format.
        InvalidRecordError: `finished` does not consist of `Finished`.
        ExportRefusedError: the policy is strict, and a result cannot be written without changes.
    """
    check_type("finished", finished, Iterable)
    known, ended = wire_format(format_name), list(finished)
    asked = Message(role="assistant", blocks=tuple(_asked(one, policy) for one in ended))
    results = Message(role="tool", blocks=tuple(result_block(one) for one in ended))
    lax = replace(policy, strict=False, identifiers="keep")
    export = known.write_history(Conversation.of([asked, results]), lax)
    if policy.strict:
        refused = ExportReport()
        for change in export.report:
            if change.kind not in _CHANGES_OF_ANSWER:
                refused.add(change.kind, change.where, change.detail)
        if refused:
            raise ExportRefusedError(refused)
    items = [item for value in export.request.values() for item in list_in(value)]
    if export.report.of_kind("batch_as_text"):
        # The items are the calls as text, which the caller has in the answer, and the results.
        return items[-1:]
    return [item for item in items if known.is_result(object_in(item))]


def _asked(finished: Finished, policy: ExportPolicy) -> CallBlock:
    check_type("a finished call", finished, Finished)
    call = finished.call
    if policy.ids == "fallback" and "id_synthesised" in call.flags:
        # The answer of the provider has no id, and the caller has that answer.
        call = call.model_copy(update={"call_id": None})
    if call.kind == "function":
        # The answer has the arguments and all other members of the call.
        flags = tuple(flag for flag in call.flags if flag == "id_synthesised")
        call = call.model_copy(update={"arguments_raw": "{}", "flags": flags, "extras": {}})
    return CallBlock(call=call, key=str(finished.invocation_id))


def result_block(finished: Finished) -> ResultBlock:
    """The block that shows the model the receipt of a call. Its key is the id of the invocation."""
    error = finished.canonical.error
    return ResultBlock(
        call_id=finished.call.call_id,
        tool_name=finished.call.tool_name,
        namespace=finished.call.namespace,
        status=result_status(finished.state, None if error is None else error.kind),
        content=(TextBlock(text=finished.receipt.text),),
        key=str(finished.invocation_id),
    )
