"""A child on a pseudo-terminal: what it sees, what we pass on, and what is left of our terminal."""

import fcntl
import shlex
import signal
import struct
import subprocess
import termios
from collections.abc import Callable

import pytest
from tests.cli.process.harness import Driver, Terminal, python
from tests.cli.process.test_terminal import leave, needs_bash, shell

Open = Callable[..., Terminal]

ASK = "print('ask', flush=True); print('got', input(), flush=True)"


def test_the_child_prints_to_a_terminal_and_all_of_it_is_one_stream(driver: Driver) -> None:
    code = "import os,sys; print(*map(os.isatty, (0, 1, 2)), flush=True); os.write(2, b'err\\n')"
    report = driver.run(*python(code), has_terminal=True)
    assert report.stream("stdout") == b"False True True\r\nerr\r\n"
    assert (report.stream("stderr"), report.exit_status) == (b"", 0)


def test_much_output_comes_through_completely(driver: Driver) -> None:
    report = driver.run("seq", "100000", has_terminal=True)
    lines = report.stream("stdout").split(b"\r\n")
    assert lines == [*(b"%d" % n for n in range(1, 100_001)), b""]


def test_our_own_input_is_the_childs_where_it_is_no_terminal(driver: Driver) -> None:
    process = driver.start("cat", has_terminal=True, popen={"stdin": subprocess.PIPE})
    out, _ = process.communicate(b"piped\n", timeout=60)
    assert out == b"piped\r\n"


def test_a_command_that_cannot_start_leaves_nothing_behind(driver: Driver) -> None:
    report = driver.run("no-such-program", has_terminal=True)
    assert (report.kind, report.exit_code) == ("command_spawn_failed", 127)


def test_the_time_limit_and_its_signals_reach_the_child(driver: Driver) -> None:
    report = driver.run("sleep", "1000", timeout_s=0.2, has_terminal=True)
    assert (report.timed_out, report.signal, report.mirrored) == (True, signal.SIGTERM, 124)


def test_what_is_typed_reaches_the_child(driver: Driver, open_terminal: Open) -> None:
    terminal = open_terminal(*driver.command(*python(ASK), has_terminal=True))
    terminal.expect(b"ask\r\n")
    terminal.send(b"answer\r")
    terminal.expect(b"got answer\r\n")
    assert terminal.wait() == 0
    assert driver.report().stream("stdout") == b"ask\r\nanswer\r\ngot answer\r\n"


def test_ctrl_c_interrupts_the_child_and_ctrl_d_ends_its_input(
    driver: Driver, open_terminal: Open
) -> None:
    code = (
        "import sys\n"
        "try: print('ready', flush=True), sys.stdin.read()\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print('rest', repr(sys.stdin.read()), flush=True)\n"
    )
    terminal = open_terminal(*driver.command(*python(code), has_terminal=True))
    terminal.expect(b"ready\r\n")
    terminal.send(b"\x03")
    terminal.expect(b"interrupted\r\n")
    terminal.send(b"\x04")
    terminal.expect(b"rest ''\r\n")
    assert terminal.wait() == 0
    assert driver.report().exit_status == 0


def test_the_size_of_our_terminal_is_passed_on_whenever_it_changes(
    driver: Driver, open_terminal: Open
) -> None:
    code = (
        "import os,signal,sys,time\n"
        "seen = []\n"
        "signal.signal(signal.SIGWINCH, lambda *_: seen.append(os.get_terminal_size(1)))\n"
        "print('ready', flush=True)\n"
        "while not seen: time.sleep(0.02)\n"
        "print('size', *seen[0], flush=True)\n"
    )
    terminal = open_terminal(*driver.command(*python(code), has_terminal=True))
    terminal.expect(b"ready\r\n")
    fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    terminal.expect(b"size 77 33\r\n")
    assert terminal.wait() == 0


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_our_terminal_has_its_own_modes_again(
    driver: Driver, open_terminal: Open, end: str
) -> None:
    code = f"import os,signal,tty; tty.setraw(1); {end}"
    command = shlex.join(driver.command(*python(code), has_terminal=True))
    terminal = open_terminal("/bin/sh", "-c", f"stty -a; echo ---; {command}; stty -a")
    assert terminal.wait() == 0
    before, _, after = terminal.seen.partition(b"---\r\n")
    assert before == after


def go_on_in_front(terminal: Terminal, driver: Driver) -> None:
    """Bring the stopped job to the front, answer it, and leave the shell."""
    terminal.expect(b"ready> ")
    terminal.send(b"fg\n")
    terminal.expect(b"driver.py")
    terminal.send(b"back\r")
    terminal.expect(b"got back\r\n")
    terminal.expect(b"ready> ")
    leave(terminal, driver)


@needs_bash
def test_ctrl_z_stops_child_and_job_and_fg_goes_on(driver: Driver, open_terminal: Open) -> None:
    terminal = shell(open_terminal)
    command = driver.command(*python(ASK), has_terminal=True, pid_file=str(driver.folder / "pid"))
    terminal.send(shlex.join(command).encode() + b"\n")
    terminal.expect(b"ask\r\n")
    terminal.send(b"\x1a")
    terminal.expect(b"Stopped")
    terminal.expect(b"ready> ")
    look = f"ps -o stat= -p $(cat {driver.folder}/pid)"
    terminal.send(f"until {look} | grep T; do sleep 0.02; done; echo sho'wn'\n".encode())
    terminal.expect(b"shown\r\n")
    go_on_in_front(terminal, driver)


@needs_bash
def test_ctrl_z_stops_the_job_of_a_shell_that_is_the_child(
    driver: Driver, open_terminal: Open
) -> None:
    inner = ("bash", "--norc", "--noprofile", "-i")
    command = shlex.join(driver.command(*inner, has_terminal=True))
    terminal = shell(open_terminal)
    terminal.send(f"PS1='inner> ' {command}\n".encode())
    terminal.expect(b"inner> ")
    terminal.send(f"{shlex.join(python(ASK))}\r".encode())
    terminal.expect(b"ask\r\n")
    terminal.send(b"\x1a")
    terminal.expect(b"Stopped")
    terminal.expect(b"inner> ")  # not the prompt of the outer shell
    terminal.send(b"fg\r")
    terminal.expect(b" -c ")
    terminal.send(b"back\r")
    terminal.expect(b"got back\r\n")
    terminal.expect(b"inner> ")
    terminal.send(b"exit\r")
    terminal.expect(b"ready> ")
    leave(terminal, driver)


@needs_bash
def test_a_stop_by_signal_stops_child_and_job(driver: Driver, open_terminal: Open) -> None:
    terminal = shell(open_terminal)
    code = f"import os,signal; os.kill(os.getppid(), signal.SIGTSTP); {ASK}"
    terminal.send(shlex.join(driver.command(*python(code), has_terminal=True)).encode() + b"\n")
    terminal.expect(b"Stopped")
    go_on_in_front(terminal, driver)
