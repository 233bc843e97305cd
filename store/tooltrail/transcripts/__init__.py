"""How a session is read back: an ordered conversation, and the formats it is printed in."""

from tooltrail.transcripts.fitting import Fitted, fit
from tooltrail.transcripts.formats import FORMATS, Writer
from tooltrail.transcripts.transcript import Transcript, load_transcript

__all__ = ["FORMATS", "Fitted", "Transcript", "Writer", "fit", "load_transcript"]
