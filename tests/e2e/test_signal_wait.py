"""A wait for signals tells none that nobody sent, also where the process was stopped meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

WAITS = """import signal
from loadstone.cli.process.signal_wait import wait_for
every = (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)
signal.pthread_sigmask(signal.SIG_BLOCK, every)
print("waits", flush=True)
print([wait_for(every, 0.2) for _ in range(3)], flush=True)
print(wait_for(every, 60), flush=True)
"""


def test_a_process_that_was_stopped_longer_than_it_waits_gets_no_signal_that_nobody_sent() -> None:
    """Python's own wait returned memory that nobody wrote, and an agent that was paused killed itself."""
    process = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    for _ in range(3):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
    assert process.stdout.readline() == "[None, None, None]\n"
    process.send_signal(signal.SIGTERM)
    answer = process.communicate()[0]
    assert answer == f"ReceivedSignal(number={int(signal.SIGTERM)}, code=0)\n"


def test_a_signal_that_waits_already_is_told_with_its_sender() -> None:
    # In a process of one thread: another that does not block the signal would end both.
    code = """import os, signal
from loadstone.cli.process.signal_wait import wait_for
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
os.kill(os.getpid(), signal.SIGUSR2)
print(wait_for((signal.SIGUSR2,), 10), wait_for((signal.SIGUSR2,), 0))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == f"ReceivedSignal(number={int(signal.SIGUSR2)}, code=0) None\n"
