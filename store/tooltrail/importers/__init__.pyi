from .importing import (
    FORMATS,
    Imported,
    Importer,
    Outcome,
    session_files,
    usual_folders,
)

__all__ = [
    "FORMATS",
    "Imported",
    "Importer",
    "Outcome",
    "session_files",
    "usual_folders",
]
