"""Where sessions are looked for."""

from pathlib import Path

import pytest

from tooltrail.importers import usual_folders


@pytest.mark.parametrize(
    ("folder", "variable", "base"),
    [
        (".claude/projects", "CLAUDE_CONFIG_DIR", ".claude"),
        (".codex/sessions", "CODEX_HOME", ".codex"),
        (".copilot/session-state", "COPILOT_HOME", ".copilot"),
        (".gemini/tmp", "GEMINI_CLI_HOME", "."),
        (".pi/agent/sessions", "PI_CODING_AGENT_DIR", ".pi/agent"),
        (".pi/agent/sessions", "PI_CODING_AGENT_SESSION_DIR", ".pi/agent/sessions"),
    ],
)
def test_the_usual_folder_of_an_agent_can_be_moved(
    tmp_path: Path, folder: str, variable: str, base: str
) -> None:
    expected = tmp_path / folder
    expected.mkdir(parents=True)
    assert usual_folders({}, tmp_path) == [expected]
    assert usual_folders({}, tmp_path / "elsewhere") == []
    assert usual_folders({variable: str(tmp_path / base)}, tmp_path / "elsewhere") == [expected]
