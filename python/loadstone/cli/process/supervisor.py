"""The process a shell waits for: it starts the one that works, and tells how that one ended.

Whatever the working process meets (a library that aborts, the OOM killer, a bundle on storage that
stopped answering), somebody is left to say it and to end. Knows signals and exits; imports little,
touches no file but procfs and does no work.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone import crash_note, exit_cause, exitcodes, process_state, slow_answer
from loadstone.cli.process.signal_wait import wait_for
from loadstone.exit_cause import Deaths

if TYPE_CHECKING:
    from collections.abc import Callable

ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FORWARDED: Final = (*ASKING, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
WAITED_FOR: Final = (*FORWARDED, signal.SIGTSTP, signal.SIGCHLD)
SENT_BY_PROCESS: Final = 0
"""`si_code` of 0 and below: `kill(2)` and its like. What a terminal sends, the worker gets by itself."""
PATIENCE_S: Final = 10.0
"""After the second request to end, before the worker is given up."""
STANDS_STILL_S: Final = 1.0
"""After a request to end, of a worker that waits in the kernel and has nothing to put in order."""
SAME_REQUEST_S: Final = 0.25
TICK_S: Final = 1.0
TICK_ASKED_S: Final = 0.2
STOPPING_S: Final = 1.0
"""For the worker to stop by itself after Ctrl-Z, and again when asked to."""
LOOK_S: Final = 0.01
PR_SET_PDEATHSIG: Final = 1


def run(work: Callable[[], int]) -> int:
    """Do `work` in a process of its own and return its exit code; without one where none can be had."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    crash_note.share()
    parent = os.getpid()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return work()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(exitcodes.FAILED)
        os.close(write_end)
        with contextlib.suppress(RuntimeError):  # Where there may be no thread, it is killed and no more.
            threading.Thread(target=_let_go, args=(read_end,), name="let go", daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return _work(work)
    os.close(read_end)
    code = _Waiting(pid, write_end).to_the_end()
    # Nothing of the worker's is ours to flush or to take down.
    os._exit(code)


def _work(work: Callable[[], int]) -> int:
    """Do `work`, and have this process end without taking its modules and objects down.

    That takes the interpreter 30 to 120 ms of CPU time once the large libraries are loaded. What is
    registered to be done at exit is done all the same: the first one registered is the last one called.
    """
    codes: list[int] = []
    atexit.register(_end_at_once, codes)
    codes.append(work())
    return codes[0]


def _end_at_once(codes: list[int]) -> None:
    if codes:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # Full, closed: `work` has looked and told.
                stream.flush()
        os._exit(codes[0])


def _let_go(reader: int) -> None:
    """Hold neither terminal nor pipes, once told so: a process that waits in the kernel cannot be ended.

    A thread of the worker: its other threads still run while one waits.
    """
    if os.read(reader, 1):
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)


@dataclass
class _Waiting:
    """Waits for the worker, and passes on what it is sent."""

    pid: int
    tell: int
    """Whoever hears of it lets go of the terminal."""
    requests: int = 0
    asked_s: float = 0.0
    progress: tuple[str, ...] = ()
    moved_s: float = 0.0
    """When the worker was last seen to do anything, since it was asked to end."""
    seen: dict[int, tuple[tuple[str, ...], float]] = field(default_factory=dict)
    """What the worker and its children had done when they last did anything, and when that was."""
    said: set[str] = field(default_factory=set)

    def to_the_end(self) -> int:
        deaths = Deaths.now()
        while True:
            received = wait_for(WAITED_FOR, TICK_ASKED_S if self.requests else TICK_S)
            if received is not None and received.number in FORWARDED:
                self._pass_on(signal.Signals(received.number), received.code)
            elif received is not None and received.number == signal.SIGTSTP:
                self._stop()
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                return _exit_code_of(status, deaths, used.ru_utime + used.ru_stime)
            insisted = self.requests > 1 and time.monotonic() - self.asked_s > PATIENCE_S
            if insisted or (self.requests and self._is_deaf()):
                return self._leave()
            self._tell_of_silence()

    def _tell_of_silence(self) -> None:
        """Say which input the worker, or a child that looks for it, waits for and gets no answer from."""
        now_s = time.monotonic()
        before, self.seen = self.seen, {}
        for pid in (self.pid, *process_state.forks(self.pid)):
            progress = process_state.progress(pid)
            did, since_s = before.get(pid, (None, now_s))
            self.seen[pid] = (progress, since_s if progress == did else now_s)
            is_silent = now_s - self.seen[pid][1] >= slow_answer.SILENT_S
            # A display over the whole screen would be torn; what hangs in a run, the run tells.
            if is_silent and not crash_note.owed() and (name := process_state.waited_for(pid)):
                if name not in self.said:
                    _write(f"loadstone: {slow_answer.words(name)}\n")
                self.said.add(name)

    def _is_deaf(self) -> bool:
        """Whether the worker waits for what does not answer: it cannot hear what it is asked.

        A run, which has figures to save, is left to end in its own order until somebody insists.
        """
        now = process_state.progress(self.pid)
        if now != self.progress or crash_note.ends_in_order():
            self.progress, self.moved_s = now, time.monotonic()
        stood_s = time.monotonic() - self.moved_s
        return stood_s > STANDS_STILL_S and process_state.waits_in_the_kernel(self.pid)

    def _pass_on(self, number: signal.Signals, code: int) -> None:
        now_s = time.monotonic()
        ignored = number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN
        asks = number in ASKING and not ignored
        if asks and now_s - self.asked_s >= SAME_REQUEST_S:
            self.requests += 1
            self.asked_s = now_s
        if code <= SENT_BY_PROCESS:
            os.kill(self.pid, number)

    def _stop(self) -> None:
        """Stop once the worker has: it gives the terminal back first, and the shell takes it when we stop."""
        for is_asked in (False, True):
            if is_asked:  # Whoever asked did not ask the whole group, as a terminal does.
                os.kill(self.pid, signal.SIGTSTP)
            until_s = time.monotonic() + STOPPING_S
            while time.monotonic() < until_s:
                if os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG) is not None:
                    os.kill(os.getpid(), signal.SIGSTOP)
                    os.kill(self.pid, signal.SIGCONT)
                    return
                time.sleep(LOOK_S)

    def _leave(self) -> int:
        os.write(self.tell, b"1")
        time.sleep(0.3)
        os.kill(self.pid, signal.SIGKILL)
        ended = process_state.killed_ends(self.pid)
        _give_terminal_back()
        waits = "" if ended else f"; process {self.pid} waits in the kernel for it and is left behind"
        _say(f"left: something did not answer{waits}")
        return exitcodes.FAILED if crash_note.settings_are_changed() else exitcodes.INTERRUPTED


def _exit_code_of(status: int, deaths: Deaths, cpu_s: float) -> int:
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    _give_terminal_back()
    if number in FORWARDED:
        # It was asked to die and had no reason not to: so do we, and the shell sees by what.
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        os.kill(os.getpid(), number)
    oom = Deaths.now().since(deaths)
    ended = exit_cause.of_exit(-number, oom=oom, cpu_s=cpu_s, cpu_limit_s=exit_cause.cpu_limit_s())
    is_known = ended != f"was killed by {exit_cause.signal_name(number)}"
    _say(f"the program {ended}{'' if is_known else _why(number, counted=bool(deaths.counts))}")
    return exitcodes.FAILED


def _give_terminal_back() -> None:
    """Write what the worker did not: a display over the whole screen ends, what it held is said."""
    _write(crash_note.owed())


def _why(number: int, *, counted: bool) -> str:
    """Say what may have ended it. `counted`: the kernel tells whom it kills for want of memory."""
    if number == signal.SIGKILL and not counted:
        return ", perhaps by the OOM killer: the kernel's log (dmesg) names it"
    if number == signal.SIGILL:
        return (
            ": this CPU lacks instructions that Polars is built with (AVX2); on such CPUs, as many virtual"
            " machines have, run python -m pip install 'polars[rtcompat]'"
        )
    if number in (signal.SIGABRT, signal.SIGTRAP, signal.SIGSEGV, signal.SIGBUS):
        return ": a library broke off, as they do without memory (ulimit -v, memory.max)"
    return ""


def _say(text: str) -> None:
    """Write to standard error, with the figures of the run; whoever closed it does not want them."""
    figures = crash_note.read()
    message = f"loadstone: {text}\n" + (f"{figures}\n" if figures else "")
    if crash_note.settings_are_changed():
        message += "loadstone: settings of this machine are still changed: run loadstone restore\n"
    _write(message)


def _write(said: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, said.encode(errors="replace"))
