"""Runs a command that dies with the process that asked for it: `tether.py PARENT_PID COMMAND …`.

A script of its own, because arranging this between fork and exec of a process with threads is not safe. The wish
outlives exec, so that not even a SIGKILL of the parent leaves anything behind. (Linux; elsewhere it just runs it.)
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we could ask to follow
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - becoming the command is the point


main()
