"""What the documents show is what happens."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(document: str, language: str) -> list[str]:
    return [body for name, body in FENCE.findall((ROOT / document).read_text()) if name == language]


def test_the_table_of_handlers_in_the_contract_records_what_the_contract_says() -> None:
    [example] = [block for block in blocks("docs/contract.md", "python") if "handlers = " in block]
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout in blocks("docs/contract.md", "text")


def test_the_example_record_of_the_design_is_what_exec_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTRAIL_DB", str(tmp_path / "tooltrail.db"))
    tooltrail = [sys.executable, "-m", "tooltrail.cli"]
    subprocess.run([*tooltrail, "init"], check=True, capture_output=True)
    command = ["sh", "-c", "echo hi; echo oops >&2; exit 3"]
    assert subprocess.run([*tooltrail, "exec", "--", *command], check=False).returncode == 3
    shown = subprocess.run(
        [*tooltrail, "show", "--surface", "canonical"], check=True, capture_output=True
    ).stdout
    (documented,) = blocks("docs/design.md", "json")
    assert json.loads(documented) == json.loads(shown)
    receipt = subprocess.run(
        [*tooltrail, "show", "--surface", "receipt"], check=True, capture_output=True, text=True
    ).stdout
    assert receipt in blocks("docs/design.md", "text")


def test_every_link_inside_the_documents_leads_somewhere() -> None:
    link = re.compile(r"\]\((?!https?:|#)([^)#]+)")
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in link.findall(document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_file_that_answers_a_question_is_there() -> None:
    row = re.compile(r"^\| `(\w+)` \| .+\? .*\| (.+) \|$", re.MULTILINE)
    rows = row.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(rows) >= 20
    for source_root, files in rows:
        for file in re.findall(r"`([^`]+)`", files):
            assert (ROOT / source_root / "tooltrail" / file).is_file(), file


def test_no_document_names_what_was_removed() -> None:
    removed = re.compile(
        r"\b(told|outbox|set aside|set-aside|on_unavailable|durability|range_traits"
        r"|maintenance_runs|group commit|add_message|start_alone)\b",
        re.IGNORECASE,
    )
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        assert not removed.findall(document.read_text()), document.name
