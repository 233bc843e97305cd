"""Each format against texts that the standard behind it allows, and texts that it does not."""

import pytest

from tooltrail.agents.schemas._formats import FORMATS

EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2024-02-29", "2026-01-31", "0001-01-01"],
        [
            *("", "2023-02-29", "2026-1-31", "20260131", "2026-01-31\n", "2026-W01-1"),
            *("2026-13-01", "\u0968\u0966\u0968\u096c-01-31", "2026-01-31Z", " 2026-01-31"),
        ],
    ),
    "time": (
        [
            *("12:00:00Z", "12:00:00z", "12:00:00.123+02:00", "23:59:60Z", "01:29:60+01:30"),
            *("15:59:60.5-08:00", "00:00:00-23:59"),
        ],
        [
            *("", "12:00:00", "24:00:00Z", "12:60:00Z", "12:00:61Z", "12:00:00+24:00", "12:00Z"),
            *("12:00:00Z\n", "22:59:60Z", "23:59:60+01:00", "12:00:00+02", "12:00:00.Z"),
            *("\u0661\u0662:00:00Z", "12:00:00+02:60", "T12:00:00Z"),
        ],
    ),
    "date-time": (
        [
            *("2026-01-31T12:00:00Z", "2026-01-31t12:00:00.5z", "1998-12-31T23:59:60Z"),
            *("1990-12-31T15:59:60-08:00", "1937-01-01T12:00:27.87+00:20"),
        ],
        [
            *("", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z"),
            *("2026-01-31T25:00:00Z", "2026-01-31T12:00:00Z\n", "1998-12-31T23:58:60Z"),
            *("2026-01-31", "2026-01-31T12:00:00+0200", "2026-01-31T12:00:00+25:00"),
        ],
    ),
    "duration": (
        ["P1Y", "P3W", "PT1H2M3S", "P1Y2M3DT4H5M6S", "PT36H", "P0D", "P1M2D", "PT1M30S"],
        [
            *("", "P", "PT", "P1", "1Y", "P1Y1W", "P1Y1D", "PT1H1S", "P1.5D", "P1YT", "p1y"),
            *("P1D\n", "P-1D", "PT1D", "P2D1Y", "P\uff11Y", "P1D1Y", "+P1D"),
        ],
    ),
    "email": (
        [
            *("a@b.org", "joe.bloggs+x@example.com", '"joe bloggs"@example.com', "a@[127.0.0.1]"),
            *("a@[IPv6:::1]", "te~st@example.com", "a@localhost", '"a\\"b"@example.com'),
            "x" * 64 + "@example.com",
        ],
        [
            *("", "@", "a@", "@b", ".a@b.org", "a.@b.org", "a..b@c.org", "a b@c.org", "a@b@c", "a"),
            *("a@b.org\n", "a@-b.org", "a@[1.2.3.400]", "a@[IPv6:::1::2]", "a@b..org"),
            *('"a"b@c.org', "\u00e9@b.org", "x" * 65 + "@example.com", "a@[::1]"),
        ],
    ),
    "hostname": (
        ["a", "www.example.com", "xn--4gbwdl.xn--wgbh1c", "1host", "a-b.c", "a" * 63 + ".org"],
        [
            *("", "-a.b", "a-.b", "a_b", "a..b", ".", ".a", "a.", "a b", "\u00e9.org", "a.b\n"),
            *("a" * 64 + ".org", ".".join(["a" * 60] * 5)),
        ],
    ),
    "ipv4": (
        ["127.0.0.1", "0.0.0.0", "255.255.255.255"],
        [
            *("", "127.0.0.01", "1.2.3", "1.2.3.256", "1.2.3.4\n", "1.2.3.4/24", "0x7f.0.0.1"),
            *("\uff11.2.3.4", "2130706433", "1.2.3.4.5", " 1.2.3.4"),
        ],
    ),
    "ipv6": (
        ["::", "::1", "::ffff:1.2.3.4", "2001:db8::8a2e", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::"],
        [
            *("", ":::", "1::2::3", "fe80::1%eth0", "::1/64", "12345::", "::1\n", "1:2:3:4:5:6:7"),
            *("::1.2.3", "[::1]", "::g"),
        ],
    ),
    "uri": (
        [
            *("https://a.org/b?c=d#e", "urn:isbn:0451450523", "mailto:a@b.org", "http://[::1]:80/"),
            *("http://a.org/%C3%A9", "file:///etc/hosts", "tel:+1-816-555-1212"),
        ],
        [
            *("", "//a.org", "a/b", "http:// a", "http://a.org/\n", "https://a.org/\u00e9", ":x"),
            *("http://a.org/%zz", "http://a.org/<x>", "http://[::1", "1http://a", "\\\\WIN\\share"),
            *("http://a.org/a b", 'http://a.org/"'),
        ],
    ),
    "uri-reference": (
        ["", "a/b", "//a.org", "#x", "https://a.org", "../x?y", "/a"],
        ["\\\\WIN", "#a\\b", "a b", "/\u00e9", "%zz", "a\n", "\n"],
    ),
    "uuid": (
        [
            *("2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"),
            "00000000-0000-0000-0000-000000000000",
        ],
        [
            *("", "2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d16380-"),
            *("2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08-aa98-11ea-b4aa-73b441d1_380"),
            *("{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", "2eb8aa08-aa98-11ea-b4aa-73b441d16380\n"),
            *("2eb8aa08-aa98-11ea-b4a-a73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"),
        ],
    ),
    "json-pointer": (
        ["", "/", "/a/~0/~1", "/a b", "/\u00e9", "//", "/0/-"],
        ["a", "/~", "/~2", "#/a", "/a~"],
    ),
    "regex": (
        ["", "^a$", r"\p{L}", "(?<n>a)", "[a-z]{2,}"],
        ["(", "a**", r"\a", "^(abc]", r"\Z", "\ud800"],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_that_the_standard_allows_have_the_format(name: str) -> None:
    allowed, _ = EXAMPLES[name]

    assert [text for text in allowed if not FORMATS[name](text)] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_that_the_standard_does_not_allow_do_not_have_it(name: str) -> None:
    _, refused = EXAMPLES[name]

    assert [text for text in [*refused, "\ud800", "\0"] if FORMATS[name](text)] == (
        ["\0"] if name == "regex" else []
    )


def test_every_format_is_among_those() -> None:
    assert FORMATS.keys() == EXAMPLES.keys()
