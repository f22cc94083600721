# SPDX-License-Identifier: MIT
"""A terminal for cinch to run on."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import harness


def on_terminal(args, env, columns=80, rows=24):
    """Runs cinch on a terminal of its own; gives what would be on the screen, raw."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen([harness.CINCH, *args], stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    text = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break  # EIO: the other end is closed
        if not chunk:
            break
        text += chunk
    os.close(leader)
    return process.wait(harness.PATIENCE), text
