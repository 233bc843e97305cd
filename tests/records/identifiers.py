"""Identifiers as a tool may give them."""

from hypothesis import strategies as st

from tooltrail.records.authoring import one_line

identifiers: st.SearchStrategy[str] = (
    st.text(st.characters(), min_size=1, max_size=40).map(one_line).filter(bool)
    | st.just("x" * 256)
    | st.just("\u6f22" * 256)
)
