"""Bytes inside of URIs are taken out, and put back as they were."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import MediaBlock
from tooltrail.wire.media_uris import media_of_uri, uri_of_media

uris = st.text() | st.builds(
    "data:{}{},{}".format,
    st.sampled_from(["", "image/png", "text/plain;charset=utf-8"]),
    st.sampled_from(["", ";base64", ";BASE64"]),
    st.text("ABab+/=%, ", max_size=8),
)


@given(uris)
def test_any_uri_comes_back_as_it_was(uri: str) -> None:
    assert uri_of_media(media_of_uri("image", uri)) == uri


@each_case(
    ("uri", "block"),
    [
        (
            "data:image/png;base64,AAAA",
            MediaBlock(kind="image", media_type="image/png", data="AAAA"),
        ),
        ("data:;base64,", MediaBlock(kind="image", data="")),
        ("data:image/png,AAAA", MediaBlock(kind="image", uri="data:image/png,AAAA")),
        ("data:image/png;base64", MediaBlock(kind="image", uri="data:image/png;base64")),
        ("https://example.org/a,b", MediaBlock(kind="image", uri="https://example.org/a,b")),
    ],
)
def test_only_base64_of_a_data_uri_is_taken_out(uri: str, block: MediaBlock) -> None:
    assert media_of_uri("image", uri) == block


def test_a_block_without_bytes_or_place_has_no_uri() -> None:
    assert uri_of_media(MediaBlock(kind="audio", name="a")) is None
    named = media_of_uri("document", "data:application/pdf;base64,AAAA", "a.pdf")
    assert named.name == "a.pdf"
