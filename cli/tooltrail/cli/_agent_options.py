"""The options that say which server and model an agent uses."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tooltrail.cli._options import NamedOption, gathered, stacked

if TYPE_CHECKING:
    from tooltrail.agents import AgentConfig, ChatModel, Tier

FORMATS = ("openai", "openai-responses", "anthropic", "gemini", "ollama")
"""The wire formats of models, listed here so that `--help` imports none of them."""


class Endpoint(NamedTuple):
    """The server of the models, as the options name it. None means the value of the tier."""

    format_name: str | None
    base_url: str | None
    model: str | None
    api_key_env: str | None
    provider: str | None
    streams: bool

    def applied(self, config: "AgentConfig") -> "AgentConfig":
        """The configuration to run: with the model of `--model`, if one was given."""
        if self.model is not None:
            config = config.model_copy(update={"model": self.model, "tiers": ()})
        if not config.ladder:
            raise click.UsageError(f"agent {config.id} names no model; pass --model")
        for tier in config.ladder:
            if self.format_name is None and tier.format is None:
                raise click.UsageError(f"tier {tier.name} names no format; pass --format")
        return config

    def model_of(self, tier: "Tier") -> "ChatModel":
        """The model of a tier over HTTP."""
        from tooltrail.agents import HttpModel  # noqa: PLC0415  not for --help

        # The author of a configuration file must not choose the address that gets the user's key.
        is_named_here = self.base_url is not None or tier.base_url is None
        return HttpModel.of(
            self.format_name or tier.format or "",
            tier.model,
            base_url=self.base_url or tier.base_url,
            api_key_env=self.api_key_env or (tier.api_key_env if is_named_here else None),
            provider=self.provider,
            stream=self.streams,
        )


def _named(flag: str, metavar: str, help_text: str) -> Callable[[Any], Any]:
    return click.option(flag, cls=NamedOption, metavar=metavar, help=help_text)


endpoint_options = stacked(
    _named(
        "--base-url",
        "URL",
        "Address of the server. By default, the address of the tier or of the provider.",
    ),
    click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="Wire format of the server. By default, the format of the tier.",
    ),
    _named("--model", "NAME", "Use only this model instead of the tiers of the agent."),
    _named(
        "--api-key-env",
        "VARIABLE",
        "Environment variable of the API key. By default, the variable of the provider, used only "
        "for the address of the provider.",
    ),
    _named("--provider", "NAME", "Name of the provider, for the record."),
    click.option(
        "--stream/--no-stream",
        "streams",
        default=True,
        show_default=True,
        help="Whether to stream answers.",
    ),
    gathered("endpoint", Endpoint),
)
"""The options of the server, passed to the command as one argument `endpoint`."""
