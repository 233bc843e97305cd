"""How a session is read back: an ordered conversation, and the formats it is printed in."""

from tooltrail.transcripts.conversation import Conversation, load_conversation
from tooltrail.transcripts.fitting import Fitted, fit
from tooltrail.transcripts.formats import FORMATS, Writer

__all__ = ["FORMATS", "Conversation", "Fitted", "Writer", "fit", "load_conversation"]
