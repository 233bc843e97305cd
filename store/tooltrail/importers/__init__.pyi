from .importing import (
    FORMATS,
    Imported,
    Importer,
    ImportResult,
    session_files,
    usual_folders,
)

__all__ = [
    "FORMATS",
    "ImportResult",
    "Imported",
    "Importer",
    "session_files",
    "usual_folders",
]
