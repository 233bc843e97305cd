import os
import select
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process.harness import HANG_S, Driver, finish, pipe_of, python

from tooltrail.cli._process import ChildExit, run_child
from tooltrail.cli._process.child import Child
from tooltrail.cli._process.jobs import Job, Terminal
from tooltrail.cli._process.relay import SignalRelay

TRAP = "import signal,sys\nsignal.signal({n}, lambda *_: sys.exit(7))\n"
# Not signal.pause(): a signal that comes just before it would be noticed only after the next one.
READY = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)\n"
FORWARDED = [
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH),
]

# macOS has no `waitid` before Python 3.13.
WATCHES: list[dict[str, Any]] = [{}, {"without": ["waitid"]}]


def wait_for_end(pid: int) -> None:
    """Until a process that is not our child is a zombie."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("no way to watch a process that is not ours")
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:  # its parent has asked for its end already
        return
    try:
        assert select.select([fd], [], [], HANG_S)[0]
    finally:
        os.close(fd)


@pytest.mark.parametrize("signum", FORWARDED)
def test_a_signal_reaches_the_child_whose_answer_is_mirrored(driver: Driver, signum: int) -> None:
    process = driver.start(*python(TRAP.format(n=int(signum)) + READY))
    assert pipe_of(process.stdout).readline() == b"ready\n"
    process.send_signal(signum)
    finish(process)
    assert driver.report().exit_status == 7


def test_a_signal_reaches_the_whole_group(driver: Driver) -> None:
    inner = "trap 'echo inner; exit' TERM; echo ready; while :; do read x; done"
    code = f"sh -c \"{inner}\" & trap 'wait; exit 3' TERM; wait"
    reader, writer = os.pipe()
    process = driver.start("sh", "-c", f"{{ {code}; }} <&0", popen={"stdin": reader})
    os.close(reader)
    assert pipe_of(process.stdout).readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    os.close(writer)
    out, _ = finish(process)
    assert out == b"inner\n"


def test_a_signal_passes_although_the_reader_stalls(driver: Driver) -> None:
    pid_file = driver.folder / "pid"
    process = driver.start("yes", pid_file=str(pid_file))
    assert pipe_of(process.stdout).read(2) == b"y\n"
    process.send_signal(signal.SIGTERM)
    wait_for_end(int(pid_file.read_text()))
    out, _ = finish(process)
    report = driver.report()
    assert (report.signal, report.tee_closed) == (signal.SIGTERM, [])
    assert b"y\n" + out == report.stream("stdout")


def test_a_child_that_ignores_the_signal_is_waited_for(driver: Driver) -> None:
    code = "trap '' INT; echo ready; read x; echo done"
    process = driver.start("sh", "-c", code, popen={"stdin": subprocess.PIPE})
    assert pipe_of(process.stdout).readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(b"\n", timeout=HANG_S)
    assert (out, err) == (b"done\n", b"")
    assert driver.report().exit_status == 0


def test_stop_and_continue_are_forwarded(driver: Driver) -> None:
    code = TRAP.format(n="signal.SIGCONT") + READY
    process = driver.start(*python(code))
    assert pipe_of(process.stdout).readline() == b"ready\n"
    process.send_signal(signal.SIGTSTP)
    process.send_signal(signal.SIGCONT)
    finish(process)
    assert driver.report().exit_status == 7


def test_a_signal_that_we_ignore_does_not_reach_the_child(driver: Driver) -> None:
    code = TRAP.format(n="signal.SIGTERM") + READY
    process = driver.start(*python(code), ignore=["SIGHUP"])
    assert pipe_of(process.stdout).readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert driver.report().exit_status == 7


def test_a_signal_before_the_start_is_forwarded_at_the_start() -> None:
    with SignalRelay() as relay:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGCHLD)
        # Between a signal and its handler there may be one more bytecode.
        process = subprocess.Popen(["sleep", "1000"], process_group=0)
        child = Child(process)
        relay.attach(child)
        child.destroy()
        assert child.signal in {signal.SIGTERM, signal.SIGKILL}
        assert relay.read_signals()[:2] == [signal.SIGTERM, signal.SIGCHLD]
        relay.detach()
        signal.raise_signal(signal.SIGTERM)


def test_output_of_a_background_process_is_waited_for(driver: Driver) -> None:
    code = "{ read x; echo late; } <&0 & exit 6"
    pid_file = driver.folder / "pid"
    process = driver.start(
        "sh", "-c", code, popen={"stdin": subprocess.PIPE}, pid_file=str(pid_file)
    )
    # The output is open although the child has ended.
    out, _ = process.communicate(b"\n", timeout=HANG_S)
    assert out == b"late\n"
    assert driver.report().exit_status == 6


HOLDER = (
    "import os,sys,time\n"
    "pid = os.fork()\n"
    "if pid == 0:\n"
    "  os.setsid(); print('held', os.getpid(), flush=True)\n"
    "  time.sleep(1000)\n"
    "os.read(0, 1); os._exit(6)\n"
)


@pytest.mark.parametrize("missing", [[], ["waitid"]])
def test_a_signal_after_the_childs_end_ends_the_wait(driver: Driver, missing: list[str]) -> None:
    pid_file = driver.folder / "pid"
    process = driver.start(
        *python(HOLDER), popen={"stdin": subprocess.PIPE}, pid_file=str(pid_file), without=missing
    )
    holder = int(pipe_of(process.stdout).readline().split()[1])
    stdin = pipe_of(process.stdin)
    stdin.write(b"\n")
    stdin.flush()
    wait_for_end(int(pid_file.read_text()))
    process.send_signal(signal.SIGTERM)
    process.wait(HANG_S)
    os.kill(holder, signal.SIGKILL)
    finish(process)
    report = driver.report()
    assert (report.exit_status, report.signal, report.timed_out) == (6, None, False)


def test_a_child_that_ends_politely_has_timed_out_all_the_same(driver: Driver) -> None:
    report = driver.run(*python(TRAP.format(n="signal.SIGTERM") + READY), timeout_s=1.0)
    assert (report.timed_out, report.mirrored) == (True, 124)
    # Before its trap was set, the signal would have killed it.
    assert report.exit_status == 7 or report.signal == signal.SIGTERM


def test_a_stopped_child_is_ended_by_the_time_limit(driver: Driver) -> None:
    report = driver.run("sh", "-c", "kill -STOP $$", timeout_s=0.2, grace_s=1000)
    assert (report.timed_out, report.signal) == (True, signal.SIGTERM)


@pytest.mark.parametrize("spec", WATCHES)
def test_the_time_limit_also_ends_descendants_that_hold_the_pipes(
    driver: Driver, spec: dict[str, Any]
) -> None:
    code = "sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & exit 3"
    report = driver.run("sh", "-c", code, timeout_s=2.0, grace_s=0.1, **spec)
    assert (report.timed_out, report.exit_status, report.mirrored) == (True, 3, 124)


def test_a_holder_in_another_group_is_left_behind(driver: Driver) -> None:
    process = driver.start(
        *python(HOLDER), popen={"stdin": subprocess.PIPE}, timeout_s=4.0, grace_s=0.1
    )
    holder = int(pipe_of(process.stdout).readline().split()[1])
    process.wait(HANG_S)
    os.kill(holder, signal.SIGKILL)
    finish(process)
    report = driver.report()
    assert (report.timed_out, report.mirrored) == (True, 124)
    assert report.stream("stdout") == f"held {holder}\n".encode()


def test_the_time_limit_strikes_although_the_reader_stalls(driver: Driver) -> None:
    process = driver.start("yes", timeout_s=2.0, grace_s=0.1, stall_s=0.2)
    # Nobody reads until it is over.
    process.wait(HANG_S)
    out, err = finish(process)
    report = driver.report()
    assert (report.timed_out, report.tee_closed) == (True, ["stdout"])
    assert report.stream("stdout").startswith(out)
    assert len(out) < len(report.stream("stdout"))
    assert err == b""


def test_a_slow_reader_gets_everything_after_the_time_limit(driver: Driver) -> None:
    pid_file = driver.folder / "pid"
    process = driver.start("yes", timeout_s=0.3, grace_s=0.1, pid_file=str(pid_file))
    assert pipe_of(process.stdout).read(2) == b"y\n"
    wait_for_end(int(pid_file.read_text()))
    out, _ = finish(process)
    report = driver.report()
    assert report.tee_closed == []
    assert b"y\n" + out == report.stream("stdout")


def test_a_signal_gives_up_a_reader_that_stalls_after_the_childs_end(driver: Driver) -> None:
    pid_file = driver.folder / "pid"
    process = driver.start(
        *("head", "-c", "300000", "/dev/zero"), pid_file=str(pid_file), stall_s=0.2
    )
    assert pipe_of(process.stdout).read(1) == b"\0"
    wait_for_end(int(pid_file.read_text()))
    process.send_signal(signal.SIGINT)
    process.wait(HANG_S)
    finish(process)
    report = driver.report()
    assert (report.exit_status, report.tee_closed) == (0, ["stdout"])
    assert len(report.stream("stdout")) == 300_000


@pytest.mark.parametrize("spec", WATCHES)
def test_a_child_that_closes_its_output_and_goes_on_is_waited_for(
    driver: Driver, tmp_path: Path, spec: dict[str, Any]
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    code = 'exec >&- 2>&-; read x < "$0"; exit 9'
    report = driver.run("sh", "-c", code, str(fifo), poke_when_idle=str(fifo), **spec)
    assert report.exit_status == 9


def test_ignoring_the_end_of_children_does_not_lose_the_status(driver: Driver) -> None:
    assert driver.run("sh", "-c", "exit 3", ignore=["SIGCHLD"]).exit_status == 3


def test_an_interrupted_run_leaves_no_child() -> None:
    pids: list[int] = []

    class Abort(BaseException):
        pass

    def abort(_name: str, data: bytes) -> None:
        pids.append(int(data))
        raise Abort

    with pytest.raises(Abort):
        run_child(["sh", "-c", "echo $$; exec sleep 1000"], on_chunk=abort, on_idle=lambda: None)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_no_thread_is_left() -> None:
    before = {*threading.enumerate()}
    found = run_child(["true"], on_chunk=lambda _name, _data: None, on_idle=lambda: None)
    assert found == ChildExit(0, None, timed_out=False, duration_ms=found.duration_ms)
    assert {*threading.enumerate()} <= before


def test_a_handler_that_was_not_set_from_python_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = signal.getsignal

    def getsignal(signum: int) -> Any:
        return None if signum == signal.SIGHUP else real(signum)

    monkeypatch.setattr(signal, "getsignal", getsignal)
    before = real(signal.SIGHUP)
    with SignalRelay():
        assert real(signal.SIGHUP) is before
        assert real(signal.SIGTERM) != before


def test_a_child_that_was_stopped_by_hand_does_not_stop_us() -> None:
    child = Child(subprocess.Popen(["sh", "-c", "kill -STOP $$; exit 5"], process_group=0))
    main, terminal = os.openpty()
    job = Job(child, Terminal(terminal))
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    job.on_child_changed()
    child.send(signal.SIGCONT)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    job.finish()
    child.destroy()
    assert child.exit_status == 5
    os.close(main)
    os.close(terminal)


def test_a_child_that_was_reaped_behind_our_back_has_ended() -> None:
    child = Child(subprocess.Popen(["true"], process_group=0))
    os.waitpid(child.pid, 0)
    assert child.has_ended()
    assert (child.exit_status, child.signal) == (None, None)
