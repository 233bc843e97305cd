import fcntl
import gc
import os
import resource
import subprocess
from pathlib import Path

import pytest
from tests.cli.process.harness import Driver, python

from tooltrail.cli._process import SpawnFailure, run_child
from tooltrail.cli._process import spawn as spawn_module
from tooltrail.cli._process.spawn import spawn


def refusal(argv: list[str], cwd: str | None = None) -> str:
    with pytest.raises(SpawnFailure) as caught:
        run_child(argv, on_chunk=lambda _name, _data: None, on_idle=lambda: None, cwd=cwd)
    failure = caught.value
    assert failure.message == str(failure)
    return f"{failure.kind} {failure.exit_code}: {failure.message}"


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


SPAWN, NO_FOLDER = "command_spawn_failed", "workdir_not_found"


def test_a_command_that_cannot_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = script(tmp_path / "plain", "echo hello", mode=0o644)
    odd = script(tmp_path / "an odd one", "\x01\x02\x03")
    lost = script(tmp_path / "script", "#!/no/such/interpreter\n")
    folder, no_interpreter = str(tmp_path), "the interpreter that it names is not found"
    monkeypatch.setenv("PATH", folder)
    for argv, cwd, said in (
        (["no-such"], None, f"{SPAWN} 127: command 'no-such' is not found"),
        (["sh"], None, f"{SPAWN} 127: command 'sh' is not found"),  # which PATH does not have
        (["/no/such"], "/", f"{SPAWN} 127: command '/no/such' is not found"),
        (
            ["/no/such"],
            "/no/such",
            (
                f"{NO_FOLDER} 126: cannot enter the working folder '/no/such': "
                "no such file or directory"
            ),
        ),
        (["/bin/sh"], plain, f"{NO_FOLDER} 126: "),
        ([folder], folder, f"{SPAWN} 126: cannot run {folder!r}: permission denied"),
        ([plain], None, f"{SPAWN} 126: cannot run {plain!r}: permission denied"),
        (
            [odd],
            None,
            (
                f"{SPAWN} 126: cannot run {odd!r}: exec format error; "
                f"if it is a script without #!, run it with `sh '{odd}'`"
            ),
        ),
        ([lost], None, f"{SPAWN} 126: cannot run {lost!r}: {no_interpreter}"),
        (["./script"], folder, f"{SPAWN} 126: cannot run './script': {no_interpreter}"),
        (["script"], None, f"{SPAWN} 126: cannot run 'script': {no_interpreter}"),
        (
            ["/bin/sh", *["x" * 100_000] * 200],
            None,
            f"{SPAWN} 126: cannot run '/bin/sh': argument list too long",
        ),
        (["/bin/sh", "a\0b"], None, f"{SPAWN} 126: cannot run '/bin/sh'"),
        (["/bin/sh"], "a\0b", f"{NO_FOLDER} 126: "),
        ([], None, f"{SPAWN} 126: cannot run nothing: there is no command"),
    ):
        assert refusal(argv, cwd).startswith(said), argv[:1]


def test_a_refusal_leaves_no_descriptor_open() -> None:
    before = open_descriptors()
    for argv in (["no-such-program"], ["a\0b"]):
        refusal(argv)
    assert open_descriptors() <= before


def open_descriptors() -> set[str]:
    gc.collect()  # what other tests left open is closed whenever the collector comes by
    return {link.name for link in Path("/dev/fd").iterdir()}


def test_the_child_gets_folder_environment_and_arguments_as_given(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "red")
    code = "import os,sys; print(os.getcwd(), os.environ['COLOUR'], sys.argv[1:], sep='|')"
    report = driver.run(*python(code), "a b", "*", cwd=str(tmp_path))
    expected = f"{tmp_path.resolve()}|red|['a b', '*']\n"
    assert report.stream("stdout").decode() == expected


def test_the_child_leads_a_group_of_its_own(driver: Driver) -> None:
    report = driver.run(*python("import os; print(os.getpid(), os.getpgrp())"))
    pid, group = map(int, report.stream("stdout").split())
    assert pid == group == report.pids[0] != report.group


def test_the_child_has_the_signals_that_it_would_have_without_us(driver: Driver) -> None:
    command = ["grep", "Sig[BI]", "/proc/self/status"]
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc")
    direct = subprocess.run(command, capture_output=True, check=True).stdout
    assert driver.run(*command).stream("stdout") == direct


def test_a_signal_that_we_were_told_to_ignore_is_ignored_by_the_child(driver: Driver) -> None:
    report = driver.run("sh", "-c", "kill -HUP $$; echo alive", ignore=["SIGHUP"])
    assert report.stream("stdout") == b"alive\n"


def test_descriptors_that_we_were_given_reach_the_child(driver: Driver) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"through\n")
    os.close(writer)
    report = driver.run(
        *python(f"import os; os.write(1, os.read({reader}, 99))"), popen={"pass_fds": [reader]}
    )
    os.close(reader)
    assert report.stream("stdout") == b"through\n"


def capacities() -> list[int]:
    child, sources = spawn(["true"], None, None)
    child.destroy()
    for source in sources.values():
        os.close(source.fd)
    return [source.capacity for source in sources.values()]


def test_pipes_are_enlarged_where_the_system_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        assert capacities() == [1 << 16] * 2
        return
    assert set(capacities()) <= {1 << 20, 1 << 18, 1 << 16}
    monkeypatch.setattr(spawn_module, "_PIPE_SIZES", (0xFFFF_FFFF,))
    assert set(capacities()) <= {1 << 16, 1 << 12}
    monkeypatch.delattr(fcntl, "F_SETPIPE_SZ")
    assert capacities() == [1 << 16] * 2


def test_without_descriptors_for_the_run_a_command_is_not_started() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as first_free:  # noqa: PTH123  its number matters
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free.fileno() + 1, hard))
        try:
            said = refusal(["true"])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said == f"{SPAWN} 126: cannot run 'true': too many open files"
