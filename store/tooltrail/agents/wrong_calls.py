"""The error of a tool whose call asks for something impossible."""


class WrongCallError(ValueError):
    """The arguments of a call are wrong: the model can correct them. The tool itself works."""
