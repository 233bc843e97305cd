from ._json import write_payloads
from .conversations import conversation_of
from .exporting import export_transcript, provider_writer, write_export
from .fitting import Fitted, fit
from .formats import FORMATS, Writer
from .transcript import Transcript, load_transcript, until

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
