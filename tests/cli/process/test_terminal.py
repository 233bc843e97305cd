import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.process.harness import PYTHON, Driver, Terminal, python

Open = Callable[..., Terminal]

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="needs a shell with job control")

ASK = "import sys; print('ask', flush=True); print('got', sys.stdin.readline().strip(), flush=True)"
ASK_TTY = (
    "tty = open('/dev/tty', 'rb+', buffering=0)\n"
    "print('ask', flush=True)\n"
    "print('got', tty.readline().decode().strip(), flush=True)"
)


def line(*argv: str) -> bytes:
    return shlex.join(argv).encode() + b"\n"


def shell(open_terminal: Open) -> Terminal:
    assert BASH is not None
    terminal = open_terminal(BASH, "--norc", "--noprofile", "-i")
    terminal.send(b"set +o history; stty -echo; echo up$((1+1))\n")
    terminal.expect(b"up2\r\n")
    return terminal


def leave(terminal: Terminal, driver: Driver) -> None:
    """End the shell, behind a command that has ended well."""
    terminal.send(b"exit\n")
    assert terminal.wait() == 0
    assert driver.report().exit_status == 0


def sh(open_terminal: Open, script: str) -> Terminal:
    """A script on a terminal: its commands share one group, which is in the foreground."""
    return open_terminal("/bin/sh", "-c", script)


def test_a_command_reads_the_terminal_as_its_foreground_group(
    driver: Driver, open_terminal: Open
) -> None:
    # It is given without being asked for; a moment after the start is early enough.
    wait = "import os,time\nwhile os.tcgetpgrp(0) != os.getpgrp(): time.sleep(0.001)\n"
    terminal = open_terminal(*driver.command(*python(wait + ASK)))
    terminal.expect(b"ask\r\n")
    terminal.send(b"answer\n")
    terminal.expect(b"got answer\r\n")
    assert terminal.wait() == 0
    report = driver.report()
    assert report.exit_status == 0
    assert report.foreground is True


def test_ctrl_c_reaches_the_child_alone(driver: Driver, open_terminal: Open) -> None:
    code = (
        "import signal,sys,time\n"
        "def stop(*_): print('interrupted'); sys.exit(8)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "sys.stdin.readline()\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    terminal = open_terminal(*driver.command(*python(code)))
    terminal.send(b"\n")
    terminal.expect(b"ready\r\n")
    terminal.send(b"\x03")
    assert terminal.wait() == 0
    report = driver.report()
    assert report.exit_status == 8
    assert report.stream("stdout") == b"ready\ninterrupted\n"
    assert report.foreground is True


def test_a_killed_childs_terminal_settings_are_undone(driver: Driver, open_terminal: Open) -> None:
    raw = "import os,signal,tty; tty.setraw(0); os.kill(os.getpid(), signal.SIGKILL)"
    script = f"{shlex.join(driver.command(*python(raw)))}; stty -a"
    assert BASH is not None
    terminal = sh(open_terminal, script)
    assert terminal.wait() == 0
    assert driver.report().signal == 9
    assert b" icanon" in terminal.seen


@pytest.mark.parametrize("missing", [[], ["waitid"]])
def test_in_a_script_the_child_gets_the_terminal_when_it_asks(
    driver: Driver, open_terminal: Open, missing: list[str]
) -> None:
    command = shlex.join(driver.command(*python(ASK_TTY), without=missing))
    terminal = sh(open_terminal, f"echo piped | {command}; echo after; read x; echo read $x")
    terminal.expect(b"ask\r\n")
    terminal.send(b"answer\n")
    terminal.expect(b"got answer\r\n")
    terminal.expect(b"after\r\n")
    terminal.send(b"mine\n")
    terminal.expect(b"read mine\r\n")
    assert terminal.wait() == 0
    assert driver.report().foreground is True


def test_a_pager_behind_us_keeps_the_terminal(driver: Driver, open_terminal: Open) -> None:
    command = shlex.join(driver.command("echo", "text"))
    terminal = sh(open_terminal, f"{command} | {shlex.join(python(ASK_TTY))}")
    terminal.expect(b"ask\r\n")
    terminal.send(b"q\n")
    terminal.expect(b"got q\r\n")
    assert terminal.wait() == 0


def test_ctrl_c_in_a_script_reaches_script_and_child(driver: Driver, open_terminal: Open) -> None:
    # Short sleeps: a shell forgets a signal that comes between its fork and the new program.
    code = "trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done"
    command = shlex.join(driver.command("sh", "-c", code))
    terminal = sh(open_terminal, f"trap 'echo script too' INT; {command}; echo after")
    terminal.expect(b"ready\r\n")
    terminal.send(b"\x03")
    terminal.expect(b"script too\r\n")
    terminal.expect(b"after\r\n")
    assert terminal.wait() == 0
    assert driver.report().exit_status == 5


@needs_bash
def test_ctrl_z_stops_the_job_and_fg_goes_on(driver: Driver, open_terminal: Open) -> None:
    terminal = shell(open_terminal)
    terminal.send(line(*driver.command(*python(ASK))))
    terminal.expect(b"ask\r\n")
    terminal.send(b"\x1a")
    terminal.expect(b"Stopped")
    terminal.expect(b"ready> ")
    terminal.send(b"fg\n")
    terminal.expect(PYTHON.encode())
    terminal.send(b"back\n")
    terminal.expect(b"got back\r\n")
    terminal.expect(b"ready> ")
    terminal.send(b"exit\n")
    assert terminal.wait() == 0
    report = driver.report()
    assert (report.exit_status, report.foreground) == (0, True)


@needs_bash
def test_ctrl_z_stops_the_script_around_us_too(driver: Driver, open_terminal: Open) -> None:
    terminal = shell(open_terminal)
    script = shlex.join(driver.command(*python(ASK))) + "; echo after"
    terminal.send(line("sh", "-c", script))
    terminal.expect(b"ask\r\n")
    terminal.send(b"one\n")
    terminal.expect(b"got one\r\n")
    terminal.expect(b"after\r\n")
    terminal.send(line("sh", "-c", shlex.join(driver.command(*python(ASK + "\n" + ASK))) + "; :"))
    terminal.expect(b"ask\r\n")
    terminal.send(b"lent\n")
    terminal.expect(b"got lent\r\nask\r\n")
    # The terminal is the child's now: Ctrl-Z reaches neither the script nor us.
    terminal.send(b"\x1a")
    terminal.expect(b"Stopped")
    terminal.send(b"fg\n")
    terminal.send(b"two\n")
    terminal.expect(b"got two\r\n")
    leave(terminal, driver)


@needs_bash
def test_a_background_job_that_reads_is_stopped_until_it_is_in_front(
    driver: Driver, open_terminal: Open
) -> None:
    terminal = shell(open_terminal)
    terminal.send(shlex.join(driver.command(*python(ASK))).encode() + b" &\n")
    terminal.expect(b"ask\r\n")
    terminal.send(b"wait %1; jobs\n")
    terminal.expect(b"Stopped")
    terminal.send(b"fg\n")
    terminal.send(b"now\n")
    terminal.expect(b"got now\r\n")
    leave(terminal, driver)


@needs_bash
def test_ctrl_z_in_a_pipeline_stops_the_child_too(driver: Driver, open_terminal: Open) -> None:
    terminal = shell(open_terminal)
    code = "import sys; print('ready', flush=True); sys.stdin.readline(); print('done', flush=True)"
    pid_file = driver.folder / "pid"
    command = shlex.join(driver.command(*python(code), pid_file=str(pid_file)))
    terminal.send(
        f"mkfifo {driver.folder}/f; {command} < <(cat {driver.folder}/f) | cat\n".encode()
    )
    terminal.expect(b"ready\r\n")
    terminal.send(b"\x1a")
    terminal.expect(b"Stopped")
    terminal.expect(b"ready> ")
    terminal.send(f"ps -o stat= -p $(cat {pid_file}); echo shown\n".encode())
    assert b"T" in terminal.expect(b"shown\r\n")
    terminal.send(f"(echo > {driver.folder}/f) & fg %1\n".encode())
    terminal.expect(b"done\r\n")
    leave(terminal, driver)


def test_ctrl_z_where_no_shell_could_continue_us_is_ignored(
    driver: Driver, open_terminal: Open
) -> None:
    # We lead the session ourselves: the system discards the stop, as it would the child's.
    terminal = open_terminal(*driver.command(*python(ASK)))
    terminal.expect(b"ask\r\n")
    terminal.send(b"\x1a")
    terminal.send(b"still here\n")
    terminal.expect(b"got still here\r\n")
    assert terminal.wait() == 0
    assert driver.report().exit_status == 0


def test_a_reader_whom_nobody_can_bring_to_the_front_is_hung_up(
    driver: Driver, open_terminal: Open, tmp_path: Path
) -> None:
    # A group of its own whose parent is gone: orphaned, in the background, and asking.
    command = driver.command(*python(ASK))
    fifo = tmp_path / "fifo"
    code = (
        "import os,subprocess,sys\n"
        f"os.mkfifo({str(fifo)!r})\n"
        "if os.fork() == 0:\n"
        "  os.setpgid(0, 0)\n"
        f"  hold = os.open({str(fifo)!r}, os.O_RDWR); os.set_inheritable(hold, True)\n"
        f"  if os.fork() == 0: os.execv({command[0]!r}, {command!r})\n"
        "  os._exit(0)\n"
        "os.wait()\n"
        f"open({str(fifo)!r}).read()\n"
    )
    terminal = open_terminal(*python(code))
    assert terminal.wait() == 0
    assert driver.report().signal == 1


def test_a_terminal_without_our_output_is_lent_all_the_same(
    driver: Driver, open_terminal: Open
) -> None:
    code = "import sys; print('ask', file=sys.stderr); print('got', sys.stdin.readline())"
    command = shlex.join(driver.command(*python(code)))
    terminal = open_terminal("/bin/sh", "-c", f"exec {command} >&-")
    terminal.expect(b"ask\r\n")
    terminal.send(b"silence\n")
    assert terminal.wait() == 0
    assert driver.report().stream("stdout") == b"got silence\n\n"


@pytest.mark.parametrize("has_terminal", [False, True])
def test_a_terminal_that_hangs_up_ends_the_child(
    driver: Driver, open_terminal: Open, *, has_terminal: bool
) -> None:
    code = (
        "import os,signal,time\n"
        "signal.signal(signal.SIGHUP, lambda *_: os._exit(3))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    terminal = open_terminal(*driver.command(*python(code), has_terminal=has_terminal))
    terminal.expect(b"ready\r\n")
    assert terminal.hang_up() == 0
    assert driver.report().exit_status == 3
