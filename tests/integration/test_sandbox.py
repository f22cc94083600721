#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The sandbox of a run, seen from inside and from outside, as root and as an ordinary user."""

import glob
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import harness

FILE_TIMEOUT = 900

INSIDE = harness.program("inside")
# A user that exists nowhere, as far as files go.
OTHER = 61234
# The agent works on the tree itself, so that the test can look at what it made.
IN_PLACE = ("--workspace-mode", "in-place")


def run_as(uid, argv, **kw):
    """subprocess.run as another user, without groups."""
    def become():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return subprocess.run(argv, preexec_fn=become if uid != os.geteuid() else None, **kw)


class Box(harness.Case):
    """cinch and the small program `inside`, run as the user of the class."""

    uid = os.geteuid()

    def setUp(self):
        super().setUp()
        if self.uid != os.geteuid():
            for base, dirs, files in os.walk(self.dir):
                os.chown(base, self.uid, self.uid)
            # The program itself may lie where only root can look.
            self.tools = self.make_dir("tools")
            for name in (harness.CINCH, os.path.join(harness.BUILD, "src/init/cinch-init"), INSIDE,
                         harness.program("without")):
                shutil.copy(name, self.tools)
            os.chmod(self.dir, 0o755)
            self.cinch_path = os.path.join(self.tools, "cinch")
            self.inside_path = os.path.join(self.tools, "inside")
            self.without_path = os.path.join(self.tools, "without")
            self.env["PATH"] = "/usr/bin:/bin"
        else:
            self.cinch_path = harness.CINCH
            self.inside_path = INSIDE
            self.without_path = harness.program("without")
        self.env["CINCH_INIT"] = os.path.join(self.tools, "cinch-init") if self.uid != os.geteuid() \
            else os.path.join(harness.BUILD, "src/init/cinch-init")

    def give(self, path):
        os.chown(path, self.uid, self.uid, follow_symlinks=False)
        return path

    def put(self, name, text, mode=0o644):
        path = self.write(name, text, mode)
        self.give(os.path.dirname(path))
        return self.give(path)

    def run_box(self, command, *options, env=None, valid=True, without=None):
        """cinch run in a fresh output directory, as the user of the class; `without` something, on a machine that
        lacks it."""
        output = self.new_output()
        argv = [*([self.without_path, without] if without else []), self.cinch_path, "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace,
                "--output", output, *options, "--", *command]
        done = run_as(self.uid, argv, env={**self.env, **(env or {})}, cwd=self.dir,
                      stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
        result = harness.Result(done.returncode, done.stdout, done.stderr, output)
        if valid:
            self.assert_valid(result)
        return result

    def sh(self, text, *options, **kw):
        return self.run_box(["sh", "-c", text], *options, **kw)

    def out(self, result):
        return result.bytes("stdout.log").decode()

    def inside(self, *argv):
        return run_as(self.uid, [self.inside_path, *argv], env=self.env, cwd=self.dir,
                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE)


class Sandboxed(Box):
    """The same tests for both kinds of user; OrdinaryUser below runs them again."""

    # --- who and what ---

    def test_nobody_with_nothing(self):
        r = self.sh("id -u; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
        lines = self.out(r).splitlines()
        self.assertNotEqual(lines[0], "0")
        for line in lines[1:]:
            name, value = line.split()
            self.assertEqual(value, {"NoNewPrivs:": "1", "Seccomp:": "2"}.get(name, "0" * 16), line)

    # --- machines that lack something ---

    def test_without_overlays_it_is_a_copy(self):
        self.put("ws/a", "one\n")
        r = self.sh("echo two >> a; cat a; echo new > b", without="overlay")
        self.assertEqual((r.reason, self.out(r)), ("success", "one\ntwo\n"), r.stderr)
        with open(self.path("ws/a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\n")
        said = r.json("evidence", "workspace.json")
        self.assertEqual(said["mode"], "copy")
        self.assertIn("overlay", said["why_not_overlay"])
        self.assertEqual(sorted(f["path"] for f in said["files"]), ["a", "b"])
        self.assertEqual(r.manifest["sandbox"]["lost"], [])
        self.assertIn(b"overlay", r.stderr)
        self.assertFalse(r.exists("work"))
        r = self.sh("true", "--workspace-mode", "overlay", without="overlay")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))

    def test_without_namespaces(self):
        """A promise that cannot be kept is none; who does without it still has a workspace that is not the user's."""
        self.put("ws/a", "one\n")
        r = self.sh("echo two >> a; pwd", without="user,mount")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        r = self.sh("echo two >> a; pwd", "--allow-degraded", without="user,mount")
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        self.assertNotEqual(self.out(r).strip(), self.workspace)
        with open(self.path("ws/a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\n")
        self.assertEqual(r.manifest["sandbox"]["enforced"], [])
        self.assertEqual(r.json("evidence", "workspace.json")["why_not_overlay"], "there is no sandbox")
        self.assertIn(b"+two", r.bytes("diff.patch"))

    def test_without_a_network_of_its_own(self):
        """The gateway then listens outside, on a port that was free: two runs are not in each other's way."""
        script = self.put("model.yaml", "turns: [{say: hello}]\n")
        self.put("my/ask.yaml", "name: ask\nargv: ['{command...}']\ngateway: {env: {DOOR: '{gateway_url}'}}\n")
        ask = "echo $DOOR; exec 3<>/dev/tcp/127.0.0.1/${DOOR##*:} && echo open"
        options = ["--script", script, "--adapter-dir", self.path("my"), "--adapter", "ask"]
        r = self.run_box(["bash", "-c", ask], *options)
        self.assertEqual(self.out(r), "http://127.0.0.1:61161\nopen\n", r.stderr)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", 61161))
            r = self.run_box(["bash", "-c", ask], *options, "--allow-degraded", without="net")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertNotIn("61161", self.out(r))
        self.assertIn("\nopen\n", self.out(r))
        self.assertIn("network", r.manifest["sandbox"]["lost"][0])

    def test_the_manifest_says_what_held(self):
        s = self.sh("true").manifest["sandbox"]
        self.assertEqual(s["requested"], "workspace-write")
        self.assertEqual(s["lost"], [])
        self.assertEqual(set(s["enforced"]), {"files", "identity", "processes", "network", "ipc", "system_calls",
                                              "landlock", "pids"})
        self.assertRegex(s["plan_sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(self.sh("true", "--sandbox", "off").manifest["sandbox"]["enforced"], [])

    def test_own_files_are_readable_and_new_ones_are_ours(self):
        self.put("ws/private", "mine", 0o600)
        r = self.sh("cat private; echo new > made; mkdir d; echo x > d/f; chmod 600 made", *IN_PLACE)
        self.assertEqual(self.out(r), "mine")
        for name in ("made", "d", "d/f"):
            self.assertEqual(os.stat(os.path.join(self.workspace, name)).st_uid, self.uid)

    def test_nothing_of_the_host_is_there(self):
        secret = self.put("userhome/.ssh/id", "PRIVATE", 0o600)
        os.chmod(os.path.dirname(secret), 0o755)
        beside = self.put("other/file", "beside", 0o644)
        r = self.sh(f"cat {secret}; cat {beside}; cat /etc/shadow /etc/sudoers; ls /run/docker.sock /run/dbus; "
                    f"ls /sys/kernel; ls {os.path.dirname(harness.CINCH)}; echo end")
        self.assertEqual(self.out(r), "end\n")

    def test_the_system_cannot_be_written(self):
        r = self.sh("for d in / /usr /usr/bin /etc /opt /proc/sys/kernel /sys /dev; do "
                    "touch $d/x 2>/dev/null && echo $d; done; echo x > /proc/sys/kernel/core_pattern; echo end")
        self.assertEqual(self.out(r), "end\n")

    def test_private_places_can(self):
        name = self.mark[-12:]
        r = self.sh('for d in /tmp /dev/shm /var/tmp "$HOME" "$TMPDIR" "$CINCH_ARTIFACTS_DIR" .; do '
                    f'touch $d/{name} || echo $d; done; echo hi > /dev/stdout; echo hi > /dev/null')
        self.assertEqual(self.out(r), "hi\n")
        self.assertFalse(os.path.exists("/tmp/" + name))
        self.assertTrue(r.exists("artifacts", name))

    def test_no_process_of_the_host_is_seen(self):
        r = self.sh("ls /proc | grep -c '^[0-9]'; cat /proc/1/environ /proc/1/maps; ls /proc/1/fd /proc/1/root; "
                    "kill -9 1; echo alive")
        self.assertLess(int(self.out(r).split()[0]), 8)
        self.assertEqual(self.out(r).split()[-1], "alive")

    # --- network ---

    def test_nothing_can_be_reached(self):
        with socket.create_server(("127.0.0.1", 0)) as host:
            name = "\0cinch-test-" + self.mark[-8:]
            with socket.socket(socket.AF_UNIX) as abstract:
                abstract.bind(name)
                abstract.listen()
                text = ("import socket\n"
                        f"for family, to in ((2, ('127.0.0.1', {host.getsockname()[1]})), (2, ('1.1.1.1', 80)), "
                        f"(1, {name!r})):\n"
                        "    try:\n        socket.socket(family).connect(to)\n        print('reached', to)\n"
                        "    except OSError as e:\n        pass\n"
                        "for family in (17, 31, 38, 40):\n"
                        "    try:\n        socket.socket(family, 3)\n        print('made', family)\n"
                        "    except OSError:\n        pass\n"
                        "a = socket.create_server(('127.0.0.1', 0))\n"
                        "socket.create_connection(a.getsockname())\nprint('own loopback')\n")
                r = self.run_box(["/usr/bin/python3", "-c", text])
        self.assertEqual(self.out(r), "own loopback\n", r.bytes("stderr.log"))

    def test_the_host_is_reached_when_it_may(self):
        with socket.create_server(("127.0.0.1", 0)) as host:
            text = f"import socket; socket.create_connection(('127.0.0.1', {host.getsockname()[1]})); print('ok')"
            r = self.run_box(["/usr/bin/python3", "-c", text], "--net", "open")
        self.assertEqual(self.out(r), "ok\n", r.bytes("stderr.log"))
        self.assertNotIn("network", r.manifest["sandbox"]["enforced"])

    def test_the_listener_is_served_from_outside(self):
        done = self.inside("--listen", "--", "/usr/bin/python3", "-c",
                           "import socket; print(socket.create_connection(('127.0.0.1', 8080)).recv(9))")
        self.assertEqual((done.stdout, done.returncode), ("b'hello'\n", 0), done.stderr)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", 8080), 1).close()

    def test_listed_hosts_through_the_gateway(self):
        """The proxy is all there is; what it refuses stands in the manifest."""
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"page")

            def log_message(self, *args):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        text = ("import os, urllib.request\n"
                "for name in ('no_proxy', 'NO_PROXY'):\n    os.environ.pop(name)\n"
                f"for url in ('http://localhost:{port}/', 'http://localhost:{port + 1}/', 'http://other.example/'):\n"
                "    try:\n        print(urllib.request.urlopen(url).read().decode())\n"
                "    except OSError as e:\n        print(type(e).__name__)\n")
        r = self.run_box(["/usr/bin/python3", "-c", text], "--net", f"localhost:{port}")
        self.assertEqual(self.out(r).split(), ["page", "HTTPError", "HTTPError"], r.bytes("stderr.log"))
        self.assertIn("network", r.manifest["sandbox"]["enforced"])
        self.assertIn("connect to other.example:80", r.manifest["sandbox"]["denied"])

    # --- policy ---

    def test_read_write_and_deny(self):
        self.put("data/a", "A")
        self.put("data/hidden/b", "B")
        out = self.give(self.make_dir("out"))
        data = self.path("data")
        r = self.sh(f"cat {data}/a; cat {data}/hidden/b; echo x > {data}/new; echo y > {out}/y; ls {data}/hidden",
                    "--read", data, "--write", out, "--deny", data + "/hidden")
        self.assertEqual(self.out(r), "A")
        self.assertEqual(sorted(os.listdir(data)), ["a", "hidden"])
        with open(out + "/y") as f:
            self.assertEqual(f.read(), "y\n")

    def test_links_on_the_way(self):
        """Nothing can be mounted through /bin, nor through a link of the workspace: it goes to where they lead."""
        self.put("ws/real/f", "text")
        os.symlink("real", self.path("ws", "link"))
        r = self.sh("/bin/ls /bin/ls; cat link/f; /usr/bin/true || echo hidden", "--read", "/bin/ls", "--read",
                    self.path("ws", "link", "f"), "--deny", "/bin/true")
        self.assertEqual(self.out(r), "/bin/ls\ntexthidden\n", r.stderr)

    def test_a_home_is_shown_without_its_secrets(self):
        for name in (".ssh/id", ".aws/credentials", ".netrc", "notes"):
            self.put("userhome/" + name, "text of " + name)
        home = self.path("userhome")
        r = self.sh(f"cat {home}/.ssh/id {home}/.aws/credentials {home}/.netrc {home}/notes", "--read", home)
        self.assertEqual(self.out(r), "text of notes")
        r = self.sh(f"cat {home}/.ssh/id", "--read", home, "--read", home + "/.ssh")
        self.assertEqual(self.out(r), "text of .ssh/id")

    def test_a_read_only_workspace(self):
        self.put("ws/f", "text")
        r = self.sh("cat f; echo x > new; rm f; echo $?", "--sandbox", "read-only", *IN_PLACE)
        self.assertEqual(self.out(r), "text1\n")
        self.assertEqual(os.listdir(self.workspace), ["f"])

    def test_hooks_cannot_be_planted(self):
        run_as(self.uid, ["git", "init", "-q", self.workspace], env=self.env, check=True)
        r = self.sh("echo x > .git/hooks/post-checkout; git config core.fsmonitor x; mv .git/hooks .git/h; "
                    "mv .git g; rm -rf .git/hooks; echo hi > a; git add a; "
                    "git -c user.name=a -c user.email=a@b commit -qm x && git log --format=%s", *IN_PLACE)
        self.assertEqual(self.out(r), "x\n", r.bytes("stderr.log"))
        self.assertFalse(os.path.exists(os.path.join(self.workspace, ".git/hooks/post-checkout")))
        with open(os.path.join(self.workspace, ".git/config")) as f:
            self.assertNotIn("fsmonitor", f.read())

    def test_a_path_that_does_not_exist(self):
        r = self.sh("true", "--read", self.path("nowhere"))
        self.assertEqual((r.code, r.reason), (66, "missing_input"))
        for path in ("/proc", "/proc/self/exe"):
            r = self.sh("true", "--read", path)
            self.assertEqual(r.code, 65)

    def test_limits(self):
        r = self.sh("i=0; while [ $i -lt 40 ]; do sleep 60 & i=$((i+1)); done; echo all", "--pids", "20",
                    "--drain", "1")
        self.assertNotEqual(self.out(r), "all\n")

    # --- programs ---

    def test_real_programs(self):
        self.put("ws/a.c", '#include <stdio.h>\nint main(void) { puts("c"); return 0; }\n')
        r = self.sh("gcc -o a a.c && ./a && /usr/bin/python3 -c 'print(\"py\")' && git init -q x && echo git")
        self.assertEqual(self.out(r), "c\npy\ngit\n", r.bytes("stderr.log"))

    @unittest.skipUnless(os.path.exists("/usr/bin/node"), "node is not installed")
    def test_node_and_npm(self):
        r = self.sh("/usr/bin/node -e 'console.log(os.cpus().length > 0)' && /usr/bin/npm --version >/dev/null && "
                    "echo '{}' > package.json && /usr/bin/npm run 2>&1 && echo npm")
        self.assertEqual(self.out(r).split()[-1], "npm", r.bytes("stderr.log"))

    def test_terminals(self):
        r = self.run_box(["/usr/bin/python3", "-c",
                          "import pty, sys; sys.exit(pty.spawn(['sh', '-c', 'tty >/dev/tty'])); "])
        self.assertIn("/dev/pts/0", self.out(r))

    def test_a_script_for_an_interpreter(self):
        script = self.put("agent.py", "print('ran')")
        self.assertEqual(self.out(self.run_box(["/usr/bin/python3", script])), "ran\n")

    # --- transactions, several programs ---

    def test_a_layer_keeps_changes_apart(self):
        self.put("ws/f", "old")
        layer = self.give(self.make_dir("layer"))
        for name in ("upper", "work"):
            self.give(self.make_dir("layer", name))
        done = self.inside("--overlay", self.workspace, layer, "--layer", "t", "--",
                           "/bin/sh", "-c", "cat f; echo new > f; echo x > made; cat f; ls")
        self.assertEqual(done.stdout, "oldnew\nf\nmade\n", done.stderr)
        self.assertEqual(os.listdir(layer + "/upper"), [])
        with open(os.path.join(self.workspace, "f")) as f:
            self.assertEqual(f.read(), "old")

    def test_an_overlay_leaves_the_tree_alone(self):
        self.put("ws/f", "old")
        self.put("ws/d/g", "g")
        layer = self.give(self.make_dir("layer"))
        for name in ("upper", "work"):
            self.give(self.make_dir("layer", name))
        before = os.stat(os.path.join(self.workspace, "f"))
        done = self.inside("--overlay", self.workspace, layer, "--", "/bin/sh", "-c",
                           "echo new > f; rm d/g; echo x > n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(os.path.join(self.workspace, "f")).st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(sorted(os.listdir(self.workspace)), ["d", "f"])
        self.assertEqual(sorted(os.listdir(layer + "/upper")), ["d", "f", "n"])
        self.assertEqual(os.stat(layer + "/upper/n").st_uid, self.uid)

    def test_a_program_after_the_other(self):
        done = self.inside("--again", "--", "/bin/sh", "-c", "echo $$; touch /tmp/was-here; ls /tmp")
        self.assertEqual(done.stdout.split(), ["2", "was-here", "2", "was-here"], done.stderr)

    # --- the end ---

    def test_nothing_survives_two_kills_at_once(self):
        output = self.new_output()
        argv = [self.cinch_path, "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace, "--output", output,
                "--", "sh", "-c", "trap '' TERM HUP INT; setsid sleep 600 & echo ready; wait; sleep 600"]
        def become():
            if self.uid != os.geteuid():
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
        p = subprocess.Popen(argv, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=become)
        self.addCleanup(self.reap, p)
        log = os.path.join(output, "stdout.log")
        harness.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 0, "the agent")
        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
            helpers = [int(x) for x in f.read().split()]
        self.assertEqual(len(helpers), 1)
        # Both are stopped first, so that neither can react to the death of the other.
        for pid in (p.pid, *helpers):
            os.kill(pid, signal.SIGSTOP)
        for pid in (p.pid, *helpers):
            os.kill(pid, signal.SIGKILL)
        p.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of everything", 10)

    def test_no_descriptor_leaks(self):
        with open("/etc/hostname") as f:
            os.set_inheritable(f.fileno(), True)
            r = self.sh("ls -l /proc/self/fd | grep -v -E ' [012] -> |total|/proc/'; echo end")
        self.assertEqual(self.out(r), "end\n")


@unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
class OrdinaryUser(Sandboxed):
    uid = OTHER


# Tries every way to make a file or directory that runs as its owner or group, in each directory that it is given.
SETID = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, O_TMPFILE = -100, 0o20200000

def chmod(path, bits): os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755)); os.chmod(path, 0o755 | bits)
def fchmod(path, bits):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o755); os.fchmod(fd, 0o755 | bits)
def fchmodat(path, bits):
    open(path, "w").close(); at = os.open(os.path.dirname(path), os.O_RDONLY)
    os.chmod(os.path.basename(path), 0o755 | bits, dir_fd=at)
def fchmodat2(path, bits): open(path, "w").close(); libc.syscall(452, AT_FDCWD, path.encode(), 0o755 | bits, 0)
def high_bits(path, bits): open(path, "w").close(); libc.syscall(90, path.encode(), ctypes.c_long(1 << 40 | 0o755 | bits))
def creat(path, bits): libc.syscall(85, path.encode(), 0o755 | bits)
def create(path, bits): os.open(path, os.O_CREAT | os.O_WRONLY, 0o755 | bits)
def openat2(path, bits):
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o755 | bits, 0)
    libc.syscall(437, AT_FDCWD, path.encode(), ctypes.byref(how), 24)
def tmpfile(path, bits):
    fd = os.open(os.path.dirname(path), O_TMPFILE | os.O_RDWR, 0o755 | bits)
    libc.linkat(AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, path.encode(), 0x400)
def mknod(path, bits): os.mknod(path, 0o100755 | bits)
def renamed(path, bits): chmod(path + ".old", bits); os.rename(path + ".old", path)
def deep(path, bits):
    d = path
    for i in range(40): d += "/d"
    os.makedirs(d)
    chmod(d + "/f", bits)
    os.chmod(path, 0 if "artifacts" in path else 0o755)
def mkdir(path, bits): os.mkdir(path, 0o755 | bits)
def directory(path, bits): os.mkdir(path); os.chmod(path, 0o755 | bits)

os.umask(0)
for where in sys.argv[1:]:
    for bits in (0o4000, 0o2000, 0o6000):
        for way in (chmod, fchmod, fchmodat, fchmodat2, high_bits, creat, create, openat2, tmpfile, mknod, renamed, deep,
                    mkdir, directory):
            try:
                way(f"{where}/{way.__name__}.{bits:o}", bits)
            except OSError:
                pass
    os.chmod(where, 0o755) if where != "." else None
print("tried")
"""


class SetId(Box):
    """What a run leaves on the host carries no setuid and no setgid bit, and its directories are private."""

    def marked(self, *tops):
        """Entries with one of the bits, wherever they are."""
        found = []
        for top in tops:
            for base, dirs, files in os.walk(top):
                for name in [base] + [os.path.join(base, f) for f in files]:
                    if os.lstat(name).st_mode & 0o6000 and not os.path.islink(name):
                        found.append(name)
        return found

    def attempt(self, *options, where=(), output=None, keep="keep"):
        script = self.put("setid.py", SETID)
        task = self.put("task.yaml", json.dumps({"prompt": "x", "workspace": {"keep": keep}}))
        if output is not None:
            self.new_output = lambda: output
        places = ' '.join(['.', '"$CINCH_ARTIFACTS_DIR"', '"$HOME"', *where])
        r = self.run_box(["sh", "-c", f"/usr/bin/python3 {script} {places}"], "--read", script, *options, task)
        self.assertEqual((r.reason, self.out(r)), ("success", "tried\n"), r.stderr)
        return r

    def test_no_bit_is_left(self):
        for options in ((), ("--keep-home",), ("--workspace-mode", "copy"), IN_PLACE):
            r = self.attempt(*options)
            self.assertEqual(self.marked(r.output, self.workspace), [], options)
            self.assertIn("chmod.2000", os.listdir(r.path("artifacts")))
            for name in os.listdir(self.workspace):
                subprocess.run(["rm", "-rf", os.path.join(self.workspace, name)], check=True)

    def test_no_bit_in_directories_that_others_reach(self):
        """Also not for a moment: the directory of the record was there and is open, and so is what is granted."""
        shared = self.give(self.make_dir("shared"))
        output = self.give(self.make_dir("mine"))
        for directory in (shared, output):
            os.chmod(directory, 0o755)
        look = "ls -ld $CINCH_ARTIFACTS_DIR/*2000 $CINCH_ARTIFACTS_DIR/*6000 | cut -c7 | grep -ic s; true"
        r = self.attempt("--write", shared, where=[shared], output=output)
        self.assertEqual(self.marked(output, shared), [])
        self.assertEqual(os.stat(output).st_mode & 0o777, 0o755)
        for name in ("logs", "evidence", "work"):
            self.assertEqual(os.stat(r.path(name)).st_mode & 0o7777, 0o700, name)
        del self.new_output
        for options in (("--write", shared), IN_PLACE):
            r = self.sh(f"echo x > $CINCH_ARTIFACTS_DIR/f2000; chmod 2755 $CINCH_ARTIFACTS_DIR/f2000; {look}", *options)
            self.assertEqual(self.out(r), "0\n", options)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give capabilities to a file")
    def test_no_file_capability_is_left(self):
        """As good as a setuid bit: inside the sandbox nobody can set them, without one they are taken away."""
        if self.uid != 0:
            self.skipTest("this user can give none")
        give = ("import os, struct\nfor p in ('f', os.environ['CINCH_ARTIFACTS_DIR'] + '/f'):\n    open(p, 'w').close()\n"
                "    try:\n        os.setxattr(p, 'security.capability', struct.pack('<5I', 0x2000001, 1, 0, 1, 0))\n"
                "        print('given')\n    except OSError:\n        print('refused')\n")
        script = self.put("give.py", give)
        task = self.put("task.yaml", json.dumps({"prompt": "x", "workspace": {"keep": "keep"}}))
        for options, said in (((), "refused"), (IN_PLACE, "refused"), (("--sandbox", "off"), "given")):
            r = self.run_box(["/usr/bin/python3", script], "--read", script, *options, task)
            self.assertEqual((r.reason, self.out(r)), ("success", f"{said}\n{said}\n"), r.stderr)
            for top in (r.output, self.workspace):
                for base, _, files in os.walk(top):
                    for name in files:
                        path = os.path.join(base, name)
                        self.assertNotIn("security.capability", os.listxattr(path, follow_symlinks=False), path)

    def test_after_a_kill(self):
        """Whoever is killed cannot clean up: recovery does."""
        output = self.new_output()
        argv = [self.cinch_path, "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace, "--output", output, "--",
                "sh", "-c", "mkdir -m 755 d; chmod g+s d; echo x > $CINCH_ARTIFACTS_DIR/f; chmod g+s $CINCH_ARTIFACTS_DIR/f; "
                "echo ready; sleep 600"]
        process = subprocess.Popen(argv, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, user=self.uid, group=self.uid, extra_groups=[])
        self.addCleanup(self.reap, process)
        log = os.path.join(output, "stdout.log")
        harness.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 0, "the agent")
        self.assertEqual(os.stat(output).st_mode & 0o7777, 0o700)
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of everything", 10)
        done = run_as(self.uid, [self.cinch_path, "recover", output], env=self.env, cwd=self.dir, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.marked(output), [])

    def test_directories_are_private(self):
        r = self.sh("mkdir d; false")
        for base, dirs, _ in os.walk(r.output):
            inner = os.path.relpath(base, r.output)
            if inner.startswith("work/layer/upper") or inner.startswith("work/tree"):
                dirs.clear()  # as the agent made them
                continue
            self.assertEqual(os.stat(base).st_mode & 0o7777 & ~0o700, 0, base)

    def test_trees_with_setgid_directories(self):
        """Programs that preserve modes work in the private view of an ordinary user."""
        if self.uid == 0:
            self.skipTest("refused for root, whose group would be given away")
        shared = self.give(self.make_dir("ws", "team"))
        os.chmod(shared, 0o2775)
        self.put("ws/team/f", "x")
        os.chmod(shared, 0o2775)
        r = self.sh("cp -a team copy && mkdir -m 755 team/new && install -d team/other && chmod -R u+w team && echo ok")
        self.assertEqual(self.out(r), "ok\n", r.bytes("stderr.log"))


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class SetIdOfAUser(SetId):
    uid = OTHER


def hidden_names():
    """What docs/task.md says is hidden in a shared home."""
    with open(os.path.join(harness.ROOT, "docs", "task.md"), encoding="utf-8") as f:
        return re.search(r"These stay hidden in it[^`]*`([^`]*)`", f.read()).group(1).split()


class SharedHome(Box):
    """--home shared: the agent sees the home without its credentials, and what it writes there is its own."""

    PROFILE = """
name: talker
argv: ['{command...}']
home: shared
session: {files: [".talker/sessions/*/*.jsonl"]}
auth:
  login: talker login
  host:
    - {file: .talker/login.json, has: /token}
"""

    def setUp(self):
        super().setUp()
        self.home = self.give(self.env["HOME"])

    def put_home(self, name, text, mode=0o644):
        self.put(os.path.join(self.home, name), text, mode)
        top = self.home
        for part in os.path.dirname(name).split("/"):
            top = os.path.join(top, part)
            self.give(top)
        return os.path.join(self.home, name)

    def content(self, name):
        with open(os.path.join(self.home, name), encoding="utf-8") as f:
            return f.read()

    def tree(self):
        """Every file of the home with its content and mode."""
        found = {}
        for base, dirs, files in os.walk(self.home):
            for name in dirs + files:
                path = os.path.join(base, name)
                data = b"" if name in dirs else open(path, "rb").read()
                found[os.path.relpath(path, self.home)] = (os.lstat(path).st_mode, data)
        return found

    def test_what_is_written_is_private(self):
        self.put_home(".bashrc", "# mine\n")
        self.put_home("notes/a", "a\n")
        self.put_home("notes/b", "b\n")
        before = self.tree()
        for options in ((), ("--sandbox", "read-only"), ("--net", "open")):
            r = self.sh("echo $HOME; echo 'echo evil' >> ~/.bashrc; echo '[core]' > ~/.gitconfig; rm ~/notes/a; echo c > ~/notes/b; "
                        "mkdir -p ~/.config/autostart; mv ~/notes ~/moved; chmod 777 ~; cat ~/.bashrc ~/moved/b", "--home", "shared", *options)
            self.assertEqual((r.reason, self.out(r)), ("success", f"{self.home}\n# mine\necho evil\nc\n"), r.stderr)
            self.assertEqual(self.tree(), before, options)
            self.assertEqual(os.stat(self.home).st_mode & 0o777, 0o755)
            self.assertFalse(r.exists("home-layer"))

    def test_credentials_are_hidden(self):
        names = hidden_names()
        self.assertGreater(len(names), 40)
        for name in names:
            self.put_home(name + "/file" if name in (".ssh", ".mozilla", ".config/rclone", ".config/gh") else name, "NEEDLE")
        self.put_home("shown", "SHOWN")
        r = self.sh("grep -rs NEEDLE ~; mv ~/.config ~/c 2>/dev/null; cp -r ~/.cargo ~/d 2>/dev/null; grep -rs NEEDLE ~; cat ~/shown; "
                    "rm -rf ~/.npmrc ~/.ssh; cat ~/.npmrc ~/.ssh/file; echo", "--home", "shared")
        self.assertEqual((r.reason, self.out(r)), ("success", "SHOWN\n"), r.stderr)

    def test_credentials_behind_links_are_hidden(self):
        """As programs that manage such files have it."""
        self.put_home("dotfiles/npmrc", "NEEDLE")
        self.put_home("dotfiles/ssh/id", "NEEDLE")
        self.put_home("dotfiles/plain", "SHOWN")
        os.symlink("dotfiles/npmrc", os.path.join(self.home, ".npmrc"))
        os.symlink(os.path.join(self.home, "dotfiles/ssh"), os.path.join(self.home, ".ssh"))
        os.symlink("nowhere", os.path.join(self.home, ".netrc"))
        os.symlink(self.home, self.path("link"))
        for home in (self.home, self.path("link")):
            self.env["HOME"] = home
            r = self.sh("grep -rs NEEDLE ~/ ~/.npmrc ~/.ssh/id; cat ~/dotfiles/plain", "--home", "shared")
            self.assertEqual((r.reason, self.out(r)), ("success", "SHOWN"), r.stderr)

    def test_workspace_and_record_below_the_home(self):
        self.workspace = self.give(self.make_dir("userhome", "src", "project"))
        self.give(os.path.dirname(self.workspace))
        self.put_home("src/project/a", "a\n")
        runs = self.give(self.make_dir("userhome", "runs"))
        self.new_output = lambda: os.path.join(runs, "one")
        r = self.sh("echo b >> a; echo mine > ~/made; ls ~; echo x > $CINCH_ARTIFACTS_DIR/f", "--home", "shared")
        self.assertEqual((r.reason, self.out(r)), ("success", "made\nruns\nsrc\n"), r.stderr)
        self.assertIn(b"+b", r.bytes("diff.patch"))
        self.assertEqual(self.content("src/project/a"), "a\n")
        self.assertFalse(os.path.exists(os.path.join(self.home, "made")))
        self.assertEqual(r.bytes("artifacts", "f"), b"x\n")

    def test_programs_of_the_home_cannot_be_replaced(self):
        # Below /tmp nothing is trusted in any case.
        self.home = self.env["HOME"] = self.give(tempfile.mkdtemp(prefix="cinch-", dir="/var/lib"))
        self.addCleanup(shutil.rmtree, self.home)
        tool = self.put_home(".local/bin/tool", "#!/bin/sh\necho real\n", 0o755)
        self.env["PATH"] = f"{os.path.dirname(tool)}:{self.home}/bin:/usr/bin:/bin"
        check = self.put("task.yaml", json.dumps({"prompt": "x", "completion": {"command": ["/bin/sh", "-c", "test $(tool) = real && ! command -v planted"],
                                                                              "max_rounds": 0}}))
        r = self.sh("tool; echo 'echo fake' > ~/.local/bin/tool; mv ~/.local ~/x; mkdir -p ~/.local/bin ~/bin; "
                    "for d in ~/.local/bin ~/bin; do for p in tool planted sh; do printf '#!/bin/sh\\nexit 0\\n' > $d/$p; chmod +x $d/$p; done; done; true",
                    "--home", "shared", check)
        self.assertEqual((r.reason, self.out(r)), ("success", "real\n"), r.bytes("stderr.log"))

    def test_conversations_and_logins_are_real(self):
        self.put("my/talker.yaml", self.PROFILE)
        self.put_home(".talker/login.json", '{"token": "old-token-1234567890"}', 0o600)
        self.put_home(".talker/sessions/p/before.jsonl", "one\n")
        self.put_home(".talker/config", "mine\n")
        options = ["--adapter-dir", self.path("my"), "--adapter", "talker"]
        r = self.sh("cat ~/.talker/login.json; cd ~/.talker; echo two >> sessions/p/before.jsonl; mkdir sessions/q; echo new > sessions/q/new.jsonl; "
                    "echo no > sessions/q/other.txt; mkdir -p sessions/q/memory; echo no > sessions/q/memory/x.jsonl; ln -s /etc/passwd sessions/q/link.jsonl; "
                    "echo evil > config; echo '{\"token\": \"new-token-1234567890\"}' > t && mv t login.json", *options)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(self.content(".talker/sessions/p/before.jsonl"), "one\ntwo\n")
        self.assertEqual(self.content(".talker/sessions/q/new.jsonl"), "new\n")
        self.assertEqual(os.listdir(os.path.join(self.home, ".talker/sessions/q")), ["new.jsonl"])
        self.assertEqual(self.content(".talker/config"), "mine\n")
        self.assertEqual(self.content(".talker/login.json"), '{"token": "new-token-1234567890"}\n')
        for name in (".talker/login.json", ".talker/sessions/q/new.jsonl"):
            st = os.stat(os.path.join(self.home, name))
            self.assertEqual((st.st_mode & 0o777, st.st_uid), (0o600, self.uid))
        # What is no login does not replace one, and none is made where there was none.
        r = self.sh("echo nonsense > ~/.talker/login.json", *options)
        self.assertEqual(self.content(".talker/login.json"), '{"token": "new-token-1234567890"}\n')
        self.assertIn("login", json.dumps(r.manifest["warnings"]))
        os.unlink(os.path.join(self.home, ".talker/login.json"))
        self.sh("echo '{\"token\": \"planted-token-123\"}' > ~/.talker/login.json; rm ~/.talker/sessions/p/before.jsonl", *options)
        self.assertFalse(os.path.exists(os.path.join(self.home, ".talker/login.json")))
        self.assertEqual(self.content(".talker/sessions/p/before.jsonl"), "one\ntwo\n")

    def test_a_login_gets_other_values_and_nothing_else(self):
        """The user's own harness would obey variables and addresses that are added."""
        self.put("my/talker.yaml", self.PROFILE + "    - {file: .talker/.env, has: /KEY}\n")
        options = ["--adapter-dir", self.path("my"), "--adapter", "talker"]
        old = {".talker/login.json": '{"token": "old-token-1234567890", "scopes": ["a"]}', ".talker/.env": "KEY=old-key-1234567890\n"}
        for name, text in old.items():
            self.put_home(name, text, 0o600)
        for name, text in ((".talker/login.json", '{"token": "new-token-1234567890", "base_url": "http://127.0.0.1:9"}'),
                           (".talker/login.json", '{"token": "new-token-1234567890", "scopes": [{"command": "id"}]}'),
                           (".talker/.env", "KEY=old-key-1234567890\nNODE_OPTIONS=--require=/tmp/planted.js\n"),
                           (".talker/.env", "KEY=new-key-1234567890\n")):
            r = self.sh(f"echo '{text}' > ~/{name}", *options)
            self.assertEqual(r.reason, "success", r.stderr)
            self.assertEqual({name: self.content(name) for name in old}, old)
            self.assertIn(f"'{name}' of the shared home was changed in more than the values", json.dumps(r.manifest["warnings"]))
        r = self.sh("touch ~/.talker/login.json ~/.talker/.env", *options)
        self.assertEqual(r.manifest["warnings"], [])

    def test_without_overlays_it_is_refused(self):
        r = self.sh("echo x > ~/x", "--home", "shared", without="overlay")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("--home private", r.manifest["error"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "x")))


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class SharedHomeOfAUser(SharedHome):
    uid = OTHER


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Root(harness.Case):
    def test_a_workspace_below_var_tmp(self):
        self.workspace = tempfile.mkdtemp(prefix="cinch-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.workspace)
        r = self.run_command("sh", "-c", "pwd; echo x > f")
        self.assertEqual((r.reason, r.bytes("stdout.log").decode()), ("success", self.workspace + "\n"))

    def test_files_of_others_keep_their_owners(self):
        path = self.write("ws/theirs", "x", 0o644)
        os.chown(path, 4321, 4321)
        r = self.run_command("sh", "-c", "cat theirs; echo y >> theirs; echo $?; rm theirs; echo z > mine",
                             options=IN_PLACE)
        self.assertEqual(r.bytes("stdout.log"), b"x2\n")
        self.assertEqual(os.stat(os.path.join(self.workspace, "mine")).st_uid, 0)

    def test_the_tree_of_a_user(self):
        os.chown(self.workspace, 4321, 4321)
        self.run_command("sh", "-c", "echo z > made", options=IN_PLACE)
        self.assertEqual(os.stat(os.path.join(self.workspace, "made")).st_uid, 4321)

    def test_memory_and_processors(self):
        eat = "x = bytearray(400 << 20); print(len(x))"
        r = self.run_command("/usr/bin/python3", "-c", eat, options=["--memory", "100M"])
        if r.code == 69:
            self.skipTest("no writable control group: " + r.manifest["error"])
        self.assertEqual(r.reason, "failure")
        self.assertIn("memory", r.manifest["sandbox"]["enforced"])
        self.assertEqual(self.groups(), [])

    @staticmethod
    def groups():
        """Control groups of a cinch that is gone."""
        found = glob.glob("/sys/fs/cgroup/*/cinch-*") + glob.glob("/sys/fs/cgroup/cinch-*")
        return [g for g in found if not os.path.exists("/proc/" + os.path.basename(g).split("-")[1])]

    def test_groups_of_a_killed_run_are_swept(self):
        p, r = self.start("--memory", "100M", "--", "sh", "-c", "echo ready; sleep 600")
        harness.wait_until(lambda: p.poll() is not None or (r.exists("stdout.log") and r.bytes("stdout.log")), "it")
        if p.poll() == 69:
            self.skipTest("no writable control group")
        p.kill()
        p.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of everything", 10)
        self.run_command("true", options=["--memory", "100M"])
        self.assertEqual(self.groups(), [])

    def test_degraded(self):
        """An ordinary user has no control groups here: the memory of the sum cannot be bounded."""
        if os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK):
            self.skipTest("control groups of version 2")
        case = OrdinaryUser("test_nobody_with_nothing")
        case.setUp()
        self.addCleanup(case.doCleanups)
        r = case.sh("echo hi", "--memory", "100M")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn("memory", r.manifest["error"])
        self.assertEqual(r.bytes("stdout.log"), b"")
        r = case.sh("echo hi", "--memory", "100M", "--allow-degraded")
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"hi\n"))
        self.assertIn("memory", r.manifest["sandbox"]["lost"][0])
        self.assertNotIn("memory", r.manifest["sandbox"]["enforced"])
        self.assertEqual(json.loads(r.bytes("evidence", "sandbox.json"))["lost"][0]["guarantee"], "memory")


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Ladder(Box):
    """What this machine gives is taken away, one by one, by limits of an outer user namespace."""

    uid = OTHER

    def run_limited(self, limit, *options):
        argv = ["unshare", "--user", "--map-root-user", "sh", "-c",
                f"echo 0 > /proc/sys/user/{limit}; exec \"$@\"", "sh",
                self.inside_path, "--workspace", self.workspace, *options, "--", "/bin/echo", "ran"]
        return run_as(self.uid, argv, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                      text=True, timeout=harness.PATIENCE)

    def refused(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (69, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_without_user_namespaces(self):
        self.refused(self.run_limited("max_user_namespaces"), "'files'", "create a user namespace", "allow user names")

    def test_without_network_namespaces(self):
        self.refused(self.run_limited("max_net_namespaces"), "'network'", "--allow-degraded")
        done = self.run_limited("max_net_namespaces", "--degraded")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)

    def test_without_ipc_namespaces(self):
        self.refused(self.run_limited("max_ipc_namespaces"), "'ipc'")
        self.assertEqual(self.run_limited("max_ipc_namespaces", "--degraded").stdout, "ran\n")

    def test_without_pid_namespaces(self):
        self.refused(self.run_limited("max_pid_namespaces", "--degraded"), "create a pid namespace")

    def test_root_of_a_container(self):
        """uid 0 that is nobody outside: treated as the ordinary user that it is."""
        done = run_as(self.uid, ["unshare", "--user", "--map-root-user", self.inside_path, "--workspace",
                                 self.workspace, "--", "/bin/sh", "-c", "id -u; echo x > made"],
                      env=self.env, cwd=self.dir, capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, "1000\n"), done.stderr)
        self.assertEqual(os.stat(os.path.join(self.workspace, "made")).st_uid, self.uid)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class WithoutShownOwners(harness.Case):
    """Root's workspace on a file system that cannot show its files as somebody else's."""

    def setUp(self):
        super().setUp()
        self.env["CINCH_INIT"] = os.path.join(harness.BUILD, "src/init/cinch-init")
        dirs = [self.make_dir(name) for name in ("lower", "upper", "work")]
        options = "lowerdir={},upperdir={},workdir={}".format(*dirs)
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.workspace],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount an overlay here")
        self.addCleanup(subprocess.run, ["umount", self.workspace])

    def test_refused_or_without(self):
        r = self.run_command("true", options=IN_PLACE)
        if r.code == 0:
            self.skipTest("this kernel can show the owners of an overlay")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn("identity", r.manifest["error"])
        r = self.run_command("sh", "-c", "id -u; echo x > made; echo > /proc/sys/kernel/core_pattern; echo $?",
                             options=["--allow-degraded", *IN_PLACE])
        self.assertEqual(r.bytes("stdout.log"), b"1000\n2\n")
        self.assertNotIn("identity", r.manifest["sandbox"]["enforced"])
        self.assertIn("files", r.manifest["sandbox"]["enforced"])


if __name__ == "__main__":
    unittest.main()
