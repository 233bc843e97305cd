from .importing import FORMATS as FORMATS
from .importing import Imported as Imported
from .importing import Importer as Importer
from .importing import ImportResult as ImportResult
from .importing import session_files as session_files
from .importing import usual_folders as usual_folders
