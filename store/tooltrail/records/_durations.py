"""How a duration is spelled."""


def seconds(duration_ms: int) -> str:
    """A duration in seconds, exactly: `1.5 s`."""
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + " s"
