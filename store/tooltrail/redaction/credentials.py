"""The credential formats that everyone can know: a table of rules.

Each format has a distinctive marker: a prefix, an infix, or the name of a field. So a digest, a
UUID or a token counter is never taken for a secret. The formats are those that the providers
publish. gitleaks (https://github.com/gitleaks/gitleaks) was the checklist: its published rules have
the most users, and name a marker for nearly each format.
"""

from typing import Final, NamedTuple

MOST_OF_PATTERN: Final = 4096
"""Longest secret in bytes that a pattern of the user finds."""


class Rule(NamedTuple):
    """One kind of secret.

    Attributes:
        name: name of the rule; a replaced secret shows it.
        pattern: regular expression for the secret with the bytes around it. The group `secret` is
            replaced; without that group, the complete match. It is compiled when it is needed.
        markers: byte strings of which each match has one; empty if the pattern is searched for
            itself, which is slow.
        most: the longest match in bytes.
        distances: the possible numbers of bytes between the beginning of a match and its marker.
        is_multiline: whether a match may hold a newline. A marker with a newline needs it.
    """

    name: str
    pattern: bytes
    markers: tuple[bytes, ...] = ()
    most: int = MOST_OF_PATTERN
    distances: tuple[int, ...] = (0,)
    is_multiline: bool = True


_WORD: Final = "[A-Za-z0-9_-]"
_ALNUM: Final = "[A-Za-z0-9]"
_HEX: Final = "[a-f0-9]"
_END: Final = "(?![A-Za-z0-9])"
_BEGIN: Final = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[abefnrtv0])|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})"
    r"|(?<=[%=][0-9a-fA-F]{2})|(?<=[0-9;\[][A-HJKSTfmsu])|(?<=\x1b\([0AB]))"
)
"""Where a token may begin: not after a letter, a digit, `_` or `-`, where it would be part of a
longer word. The letter or digit that ends an escape of JSON, a URL, a mail or a terminal is no such
letter."""

_BETWEEN: Final = r"""["'\\ \t,:=>]{1,40}"""
"""Between the name of a field and its value: in code, JSON, YAML, a shell, or JSON that is a text
inside JSON, four times at most."""

_KEY_LABEL: Final = "[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_KEY_SPACE: Final = r"""(?:[\s"',+]|\\+[nrt"'])"""
"""Between the lines of a key: in a file, in JSON, or in the source of a program. The end of a key
may be missing, as in the first lines of a file."""


def _format(
    name: str,
    markers: tuple[str, ...],
    pattern: str,
    most: int = 300,
    distances: tuple[int, ...] = (0,),
    *,
    is_multiline: bool = False,
) -> Rule:
    """A credential format, in text."""
    spelled = tuple(one.encode() for one in markers)
    return Rule(name, pattern.encode(), spelled, most, distances, is_multiline)


def _prefixed(name: str, prefixes: str, rest: str, most: int = 300) -> Rule:
    """A token that begins with one of some prefixes, which are separated by spaces."""
    markers = tuple(prefixes.split())
    choices = "|".join(one.replace(".", r"\.") for one in markers)
    return _format(name, markers, f"{_BEGIN}(?:{choices}){rest}{_END}", most)


RULES: Final = (
    # Clouds.
    _prefixed("aws-access-key-id", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}"),
    _format(
        "aws-secret-access-key",
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"),
        rf"(?i:ecret_?access_?key){_BETWEEN}(?P<secret>(?:[A-Za-z0-9+]|\\?/){{40}})(?![A-Za-z0-9/+=])",
    ),
    _format("azure-storage-key", ("AccountKey=",), "AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
    _format(
        "azure-client-secret",
        ("Q~",),
        rf"{_BEGIN}[A-Za-z0-9_~.]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}(?![A-Za-z0-9_~.-])",
        distances=(4,),
    ),
    _prefixed("google-api-key", "AIza", f"{_WORD}{{35}}"),
    _prefixed("google-oauth-secret", "GOCSPX-", f"{_WORD}{{28}}"),
    _prefixed("google-access-token", "ya29.", f"{_WORD}{{30,2000}}", 2048),
    _prefixed("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{64}}"),
    _prefixed("heroku-key", "HRKU-AA", f"{_WORD}{{58}}"),
    _prefixed("cloudflare-origin-key", "v1.0-", f"{_HEX}{{24}}-{_HEX}{{146}}"),
    _prefixed("fly-token", "fo1_ fm2_", "[A-Za-z0-9+/=_-]{40,1000}", 1024),
    _prefixed(
        "planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "[A-Za-z0-9=._-]{32,64}"
    ),
    _prefixed("supabase-token", "sbp_", f"{_HEX}{{40}}"),
    _prefixed("netlify-token", "nfp_", f"{_ALNUM}{{36}}"),
    _prefixed("databricks-token", "dapi", f"{_HEX}{{32}}(?:-[0-9])?"),
    _prefixed("vault-token", "hvs. hvb.", f"{_WORD}{{24,300}}", 320),
    _format(
        "terraform-token",
        (".atlasv1.",),
        rf"{_BEGIN}{_ALNUM}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}{_END}",
        distances=(14,),
    ),
    _prefixed("pulumi-token", "pul-", f"{_HEX}{{40}}"),
    _prefixed(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.scim. dp.audit.",
        rf"(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,44}}",
    ),
    _prefixed("dynatrace-token", "dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _prefixed("tailscale-key", "tskey-", f"[a-z]+-{_ALNUM}{{6,40}}(?:-{_ALNUM}{{16,64}})?"),
    # Code hosts and package registries.
    _prefixed("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_ALNUM}{{36,251}}"),
    _prefixed("github-fine-grained-token", "github_pat_", "[A-Za-z0-9_]{82}"),
    _prefixed(
        "gitlab-token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glagent- glft- glimt- gloas-",
        "[A-Za-z0-9_.-]{20,300}",
        320,
    ),
    _prefixed("atlassian-token", "ATATT3", "[A-Za-z0-9_=-]{100,250}"),
    _prefixed("npm-token", "npm_", f"{_ALNUM}{{36}}"),
    _prefixed("pypi-token", "pypi-AgE", f"{_WORD}{{50,1000}}", 1024),
    _prefixed("rubygems-key", "rubygems_", f"{_HEX}{{48}}"),
    _prefixed("docker-token", "dckr_pat_ dckr_oat_", f"{_WORD}{{27,32}}"),
    _prefixed("buildkite-token", "bkua_", "[a-z0-9]{40}"),
    _prefixed("circleci-token", "CCIPAT_", f"{_ALNUM}{{22}}_{_HEX}{{40}}"),
    # Providers of models.
    _prefixed("anthropic-key", "sk-ant-", f"[a-z0-9]{{3,12}}-{_WORD}{{80,120}}"),
    _prefixed("openai-key", "sk-", f"{_WORD}{{20,120}}T3BlbkFJ{_WORD}{{20,120}}"),
    _prefixed("openrouter-key", "sk-or-v1-", f"{_HEX}{{64}}"),
    _prefixed("huggingface-token", "hf_ api_org_", "[A-Za-z]{34}"),
    _prefixed("groq-key", "gsk_", f"{_ALNUM}{{52}}"),
    _prefixed("xai-key", "xai-", f"{_ALNUM}{{80}}"),
    _prefixed("replicate-token", "r8_", f"{_ALNUM}{{37}}"),
    _prefixed("perplexity-key", "pplx-", f"{_ALNUM}{{48}}"),
    _prefixed("langsmith-key", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    # Other services.
    _prefixed(
        "slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.", "[A-Za-z0-9.-]{10,250}"
    ),
    _prefixed("slack-app-token", "xapp-", f"[0-9]-[A-Z0-9]+-[0-9]+-{_HEX}{{20,100}}"),
    _format(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{40,100})",
    ),
    _format(
        "discord-webhook",
        ("/api/webhooks/",),
        f"/api/webhooks/[0-9]{{17,20}}/(?P<secret>{_WORD}{{60,90}})",
    ),
    _format(
        "telegram-token",
        (":AA",),
        f"{_BEGIN}[0-9]{{8,10}}:AA{_WORD}{{33}}{_END}",
        distances=(10, 9, 8),
    ),
    _prefixed("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", f"{_ALNUM}{{16,250}}"),
    _prefixed("stripe-webhook-secret", "whsec_", "[A-Za-z0-9+/=]{32,100}"),
    _prefixed("square-token", "sq0atp- sq0csp-", f"{_WORD}{{22,43}}"),
    _prefixed("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[a-fA-F0-9]{32}"),
    _prefixed("sendgrid-key", "SG.", rf"{_WORD}{{22}}\.{_WORD}{{43}}"),
    _prefixed("mailgun-key", "key-", f"{_HEX}{{32}}"),
    _prefixed("brevo-key", "xkeysib-", f"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    _prefixed("notion-token", "ntn_", f"[0-9]{{11}}{_ALNUM}{{35}}"),
    _prefixed("linear-key", "lin_api_", f"{_ALNUM}{{40}}"),
    _prefixed("figma-token", "figd_", f"{_WORD}{{40}}"),
    _prefixed("postman-key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    _prefixed("new-relic-key", "NRAK-", "[A-Z0-9]{27}"),
    _prefixed("grafana-token", "glsa_", f"{_ALNUM}{{32}}_{_HEX}{{8}}"),
    _prefixed("grafana-cloud-token", "glc_eyJ", "[A-Za-z0-9+/=]{40,400}", 420),
    _prefixed("sentry-user-token", "sntryu_", f"{_HEX}{{64}}"),
    _prefixed("sentry-organization-token", "sntrys_eyJ", "[A-Za-z0-9+/=_-]{60,600}", 620),
    _prefixed("1password-token", "ops_eyJ", "[A-Za-z0-9+/=_-]{250,4000}", 4096),
    # Formats that no single service owns.
    _prefixed(
        "jwt", "eyJ", rf"{_WORD}{{10,2000}}\.eyJ{_WORD}{{10,4000}}\.{_WORD}{{20,1000}}", 7168
    ),
    _format(
        "private-key",
        ("-----BEGIN ",),
        # Nothing is tried twice (`*+`): a broken key before much white space would take minutes.
        rf"-----BEGIN {_KEY_LABEL}(?=[\s\S]{{0,400}}?[A-Za-z0-9+/=]{{40}})"
        rf"(?:{_KEY_SPACE}*+(?:[A-Za-z-]{{4,30}}: [ -~]{{1,100}}?(?=[\n\\])"
        r"|[A-Za-z0-9+/=]{16,4000}+))+"
        rf"(?:{_KEY_SPACE}*+[A-Za-z0-9+/=]{{0,15}}+{_KEY_SPACE}*+-----END {_KEY_LABEL})?",
        16384,
        is_multiline=True,
    ),
    _prefixed("age-key", "AGE-SECRET-KEY-1", "[02-9AC-HJ-NP-Z]{58}"),
    _format(
        "authorization-header",
        ("uthorization", "UTHORIZATION"),
        rf"(?i:uthorization){_BETWEEN}(?i:Bearer|Basic|Token){_BETWEEN}"
        r"(?P<secret>[A-Za-z0-9._~+/=-]{16,4000})",
        4200,
    ),
    _format(
        "url-password",
        ("://",),
        r"""://[^\s/:@"'<>\\{}$`]{0,100}:(?P<secret>[^\s/:@"'<>\\{}$`]{3,200})@[A-Za-z0-9\[]""",
        320,
    ),
)
"""Every built-in rule."""
