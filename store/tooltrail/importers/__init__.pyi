from .importing import (
    FORMATS,
    Imported,
    Importer,
    find_files,
    recognize,
    session_files,
    usual_folders,
)

__all__ = [
    "FORMATS",
    "Imported",
    "Importer",
    "find_files",
    "recognize",
    "session_files",
    "usual_folders",
]
