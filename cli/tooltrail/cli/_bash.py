"""Completion in bash of words with `@`, `:` and `=`, at which bash splits a word."""

from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class


def join_words_of_bash() -> None:
    """Complete words with these characters in bash, too."""
    add_completion_class(_BashWords)


class _BashWords(BashComplete):
    """Joins the parts of a word, and answers with the part that bash replaces."""

    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the word at the cursor."""
        words: list[str] = []
        is_open = False
        args, part = super().get_completion_args()
        for one in (*args, part):
            if words and (is_open or one in (":", "=")):
                words[-1] += one
            else:
                words.append(one)
            is_open = one in ("@", ":", "=")
        *args, self._typed = words
        return args, self._typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """The completion without the text before the last colon, which bash keeps."""
        kept = self._typed[: self._typed.rfind(":") + 1]
        return f"{item.type},{item.value.removeprefix(kept)}"
