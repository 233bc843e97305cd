"""How a session is read back: an ordered conversation, and the formats it is printed in."""

from tooltrail.transcripts._payloads import write_payloads
from tooltrail.transcripts.conversations import conversation_of
from tooltrail.transcripts.exporting import export_transcript, provider_writer, write_export
from tooltrail.transcripts.fitting import Fitted, fit
from tooltrail.transcripts.formats import FORMATS, Writer
from tooltrail.transcripts.transcript import Transcript, load_transcript, until

__all__ = [
    "FORMATS",
    "Fitted",
    "Transcript",
    "Writer",
    "conversation_of",
    "export_transcript",
    "fit",
    "load_transcript",
    "provider_writer",
    "until",
    "write_export",
    "write_payloads",
]
