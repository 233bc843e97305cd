"""One made-up secret for each rule, spelled as its provider documents the format.

The secrets are put together here, so that no scanner takes this file for a leak.
"""

from itertools import cycle, islice
from typing import Final

_ALNUM: Final = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
_HEX: Final = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
_UPPER: Final = "Q7WERTY2UIOP3ASDF4GHJK5LZXC6VBNM"
_LETTERS: Final = "aBcDeFgHiJkLmNoPqRsTuVwXyZ"


def _some(count: int, letters: str = _ALNUM) -> str:
    return "".join(islice(cycle(letters), count))


def _key_lines() -> list[str]:
    lines = [_some(64), _some(64, _LETTERS), _some(37) + "=="]
    return ["-----BEGIN " + "OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----"]


SECRETS: Final = {
    "aws-access-key-id": "AKIA" + _some(16, _UPPER),
    "azure-client-secret": "abc8" + "Q~" + _some(34),
    "google-api-key": "AIza" + _some(35),
    "google-oauth-secret": "GOCSPX-" + _some(28),
    "google-access-token": "ya29" + ".a0" + _some(120),
    "digitalocean-token": "dop" + "_v1_" + _some(64, _HEX),
    "heroku-key": "HRKU-" + "AA" + _some(58),
    "cloudflare-origin-key": "v1.0" + "-" + _some(24, _HEX) + "-" + _some(146, _HEX),
    "fly-token": "fm2" + "_" + _some(300) + "=",
    "planetscale-token": "pscale" + "_pw_" + _some(43),
    "supabase-token": "sbp" + "_" + _some(40, _HEX),
    "netlify-token": "nfp" + "_" + _some(36),
    "databricks-token": "dapi" + _some(32, _HEX) + "-2",
    "vault-token": "hvs" + "." + _some(95),
    "terraform-token": _some(14) + ".atlas" + "v1." + _some(67),
    "pulumi-token": "pul" + "-" + _some(40, _HEX),
    "doppler-token": "dp" + ".st.dev." + _some(43),
    "dynatrace-token": "dt0c" + "01." + _some(24, _UPPER) + "." + _some(64, _UPPER),
    "tailscale-key": "tskey" + "-auth-" + _some(17) + "-" + _some(32),
    "github-token": "ghp" + "_" + _some(36),
    "github-fine-grained-token": "github" + "_pat_" + _some(22) + "_" + _some(59),
    "gitlab-token": "glpat" + "-" + _some(20),
    "atlassian-token": "ATA" + "TT3xFfGF0" + _some(171) + "=" + _some(8, _UPPER),
    "npm-token": "npm" + "_" + _some(36),
    "pypi-token": "pypi" + "-AgEIcHlwaS5vcmc" + _some(150),
    "rubygems-key": "rubygems" + "_" + _some(48, _HEX),
    "docker-token": "dckr" + "_pat_" + _some(27),
    "buildkite-token": "bkua" + "_" + _some(40, _HEX),
    "circleci-token": "CCI" + "PAT_" + _some(22) + "_" + _some(40, _HEX),
    "anthropic-key": "sk" + "-ant-api03-" + _some(93) + "AA",
    "openai-key": "sk" + "-proj-" + _some(74) + "T3Blbk" + "FJ" + _some(74),
    "openrouter-key": "sk" + "-or-v1-" + _some(64, _HEX),
    "huggingface-token": "hf" + "_" + _some(34, _LETTERS),
    "groq-key": "gsk" + "_" + _some(52),
    "xai-key": "xai" + "-" + _some(80),
    "replicate-token": "r8" + "_" + _some(37),
    "perplexity-key": "pplx" + "-" + _some(48),
    "langsmith-key": "lsv2" + "_pt_" + _some(32, _HEX) + "_" + _some(10, _HEX),
    "slack-token": "xoxb" + "-123456789012-1234567890123-" + _some(24),
    "slack-app-token": "xapp" + "-1-A0123456789-1234567890123-" + _some(64, _HEX),
    "telegram-token": "1234567890" + ":AA" + _some(33),
    "stripe-key": "sk" + "_live_" + _some(99),
    "stripe-webhook-secret": "whsec" + "_" + _some(32),
    "square-token": "sq0" + "csp-" + _some(43),
    "shopify-token": "shpat" + "_" + _some(32, _HEX),
    "sendgrid-key": "SG" + "." + _some(22) + "." + _some(43),
    "mailgun-key": "key" + "-" + _some(32, _HEX),
    "brevo-key": "xkeysib" + "-" + _some(64, _HEX) + "-" + _some(16),
    "notion-token": "ntn" + "_12345678901" + _some(35),
    "linear-key": "lin" + "_api_" + _some(40),
    "figma-token": "figd" + "_" + _some(40),
    "postman-key": "PMAK" + "-" + _some(24, _HEX) + "-" + _some(34, _HEX),
    "new-relic-key": "NRAK" + "-" + _some(27, _UPPER),
    "grafana-token": "glsa" + "_" + _some(32) + "_" + _some(8, _HEX),
    "grafana-cloud-token": "glc" + "_eyJ" + _some(120) + "=",
    "sentry-user-token": "sntryu" + "_" + _some(64, _HEX),
    "sentry-organization-token": "sntrys" + "_eyJ" + _some(180) + "=_" + _some(43),
    "1password-token": "ops" + "_eyJ" + _some(800),
    "jwt": "eyJ" + _some(33) + ".eyJ" + _some(90) + "." + _some(43),
    "age-key": "AGE-SECRET" + "-KEY-1" + _some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
}
"""The secret of each rule that replaces its complete match."""

IN_TEXT: Final = {
    "aws-secret-access-key": ("AWS_SECRET_ACCESS_KEY=", _some(38) + "+/", "\nregion = x"),
    "azure-storage-key": ("DefaultEndpoints;AccountKey=", _some(86) + "==", ";Suffix=core"),
    "slack-webhook": (
        "https://hooks.slack.com/services/",
        "T01234567/B01234567/" + _some(24),
        " ok",
    ),
    "discord-webhook": (
        "https://discord.com/api/webhooks/123456789012345678/",
        _some(68),
        '"',
    ),
    "authorization-header": ('{"Authorization": "Bearer ', _some(40), '", "Accept": "*/*"}'),
    "url-password": ("postgresql://app:", "s3cr3t-Pass", "@db.example.com:5432/app"),
    "private-key": ("key:\n", "\n".join(_key_lines()), "\nnext: 1\n"),
}
"""For each other rule: the text before a secret, the secret, and the text after it."""

ALL: Final = {**{rule: ("value ", text, " end") for rule, text in SECRETS.items()}, **IN_TEXT}
