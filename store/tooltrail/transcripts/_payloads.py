"""What providers sent, verbatim: the payload of every message that has one, a line each."""

import base64
import json
from collections.abc import Iterator

from tooltrail.store.views import MessageView
from tooltrail.transcripts.transcript import Transcript


def write_payloads(transcript: Transcript) -> Iterator[str]:
    """`{"seq", "id", "role", "wire_format", "payload" | "payload_base64"}` for each payload.

    A payload that is UTF-8 is text, and any other is in base64; either way its bytes are the ones
    that were recorded.
    """
    for entry in transcript.entries:
        if isinstance(entry, MessageView) and entry.payload is not None:
            line = {
                "seq": entry.seq,
                "id": str(entry.id),
                "role": entry.role,
                "wire_format": entry.wire_format,
                **_spelled(entry.payload),
            }
            yield json.dumps(line, separators=(",", ":")) + "\n"


def _spelled(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode()}
