#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sockets and FIFOs of the host in trees that the agent is shown: neither connected to nor written to nor read."""

import os
import shutil
import socket
import tempfile
import threading
import unittest

import harness
from test_sandbox import Box

ROOT = os.geteuid() == 0

PROBE = r"""
import os, socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_UNIX, kind)
        try:
            s.connect(path)
            s.send(b"hello")
            print("reached", path)
        except OSError:
            pass
    for flags in (os.O_WRONLY, os.O_RDONLY, os.O_RDWR):
        try:
            fd = os.open(path, flags | os.O_NONBLOCK)
            if flags == os.O_RDONLY:
                print("read", path) if os.read(fd, 9) else None
            else:
                os.write(fd, b"hello")
                print("wrote", path)
        except OSError:
            pass
print("end")
"""


class Endpoints(Box):
    def setUp(self):
        Box.setUp(self)
        self.heard = []
        self.put("probe.py", PROBE)

    def serve(self, path, kind=socket.SOCK_STREAM):
        s = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(s.close)
        here = os.getcwd()
        os.chdir(os.path.dirname(path))  # names of sockets are short
        s.bind(os.path.basename(path))
        os.chdir(here)
        os.chmod(path, 0o777)
        self.give(path)
        if kind == socket.SOCK_STREAM:
            s.listen(5)

        def loop():
            try:
                while True:
                    if kind == socket.SOCK_STREAM:
                        self.heard.append(s.accept()[0].recv(9))
                    else:
                        self.heard.append(s.recv(9))
            except OSError:
                pass
        threading.Thread(target=loop, daemon=True).start()

    def fifo(self, path):
        """A host process holds both ends, with something to read in it."""
        os.mkfifo(path, 0o666)
        os.chmod(path, 0o666)
        self.give(path)
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        os.write(fd, b"secret")
        return fd

    def populate(self, directory):
        os.makedirs(directory + "/sub/deep", exist_ok=True)
        for base, _, _ in os.walk(directory):
            self.give(base)
        self.serve(directory + "/s1")
        self.serve(directory + "/sub/deep/s2")
        self.serve(directory + "/d1", socket.SOCK_DGRAM)
        self.fds = [self.fifo(directory + "/f1"), self.fifo(directory + "/sub/deep/f2")]
        return [directory + name for name in ("/s1", "/sub/deep/s2", "/d1", "/f1", "/sub/deep/f2")]

    def assert_unreachable(self, paths, *options, copies=False):
        """In an overlay a FIFO is one of its own, which may be written to."""
        r = self.run_box(["/usr/bin/python3", self.path("probe.py"), *paths], "--read", self.path("probe.py"), *options)
        said = r.bytes("stdout.log").decode().splitlines()
        self.assertEqual([s for s in said if not (copies and s.startswith("wrote "))], ["end"], r.bytes("stderr.log"))
        self.assertEqual(self.heard, [])
        for fd in self.fds:
            self.assertEqual(os.read(fd, 100), b"secret")

    def test_in_a_granted_tree(self):
        directory = self.make_dir("granted")
        self.assert_unreachable(self.populate(directory), "--read", directory)

    def test_many(self):
        """All that exist at the start, however many there are."""
        directory = self.make_dir("granted")
        os.chmod(directory, 0o755)
        paths = [os.path.join(directory, f"f{n}") for n in range(300)]
        self.fds = [self.fifo(path) for path in paths]
        self.assert_unreachable(paths, "--read", directory)

    def test_below_tmp_where_the_agent_may_write(self):
        directory = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, directory)
        self.assert_unreachable(self.populate(directory), "--read", directory)

    def test_that_is_granted_itself(self):
        directory = self.make_dir("granted")
        paths = self.populate(directory)
        self.assert_unreachable(paths[:1], "--read", paths[0])

    def test_in_place(self):
        self.assert_unreachable(self.populate(self.workspace), "--workspace-mode", "in-place")

    def test_in_a_read_only_workspace(self):
        paths = self.populate(self.workspace)
        for mode in ("in-place", "overlay"):
            with self.subTest(mode=mode):
                self.assert_unreachable(paths, "--workspace-mode", mode, "--sandbox", "read-only", copies=mode == "overlay")
                for fd in self.fds:
                    os.write(fd, b"secret")

    def test_own_ones_work(self):
        text = ("import os, socket, threading; s = socket.socket(socket.AF_UNIX); s.bind('own'); s.listen(1); "
                "c = socket.socket(socket.AF_UNIX); c.connect('own'); c.send(b'x'); print(s.accept()[0].recv(1)); os.mkfifo('p'); "
                "f = os.open('p', os.O_RDWR); os.write(f, b'y'); print(os.read(f, 1))")
        for mode in ("in-place", "overlay"):
            r = self.run_box(["/usr/bin/python3", "-c", text], "--workspace-mode", mode)
            self.assertEqual(r.bytes("stdout.log"), b"b'x'\nb'y'\n", r.bytes("stderr.log"))
            for name in ("own", "p"):
                if os.path.lexists(os.path.join(self.workspace, name)):
                    os.unlink(os.path.join(self.workspace, name))

    def test_private_files_of_a_granted_tree_are_read(self):
        self.put("granted/private", "private\n", 0o600)
        r = self.sh(f"cat {self.path('granted', 'private')}; echo x > {self.path('granted', 'private')}", "--read", self.path("granted"))
        self.assertEqual(r.bytes("stdout.log"), b"private\n", r.bytes("stderr.log"))


@unittest.skipUnless(ROOT, "needs root to become another user")
class OrdinaryUserEndpoints(Endpoints):
    uid = 65534


@unittest.skipUnless(ROOT, "needs root")
class Later(Box):
    """What appears in a read-only tree while the run is going on; with root's mounts."""

    setUp = Endpoints.setUp
    serve = Endpoints.serve
    fifo = Endpoints.fifo
    populate = Endpoints.populate

    def test_sockets_that_appear_later(self):
        directory = self.make_dir("granted")
        process, r = self.start("--read", directory, "--read", self.path("probe.py"), "--", "sh", "-c",
                                f"echo ready; while [ ! -e {directory}/go ]; do sleep 0.02; done; "
                                f"exec /usr/bin/python3 {self.path('probe.py')} {directory}/s1 {directory}/d1")
        harness.wait_until(lambda: r.exists("stdout.log") and r.bytes("stdout.log"), "the agent")
        self.populate(directory)
        self.write("granted/go", "")
        self.finish(process, r)
        self.assertEqual(r.bytes("stdout.log"), b"ready\nend\n", r.bytes("stderr.log"))
        self.assertEqual(self.heard, [])


if __name__ == "__main__":
    harness.main()
