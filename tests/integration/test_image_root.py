#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--image: agents, tools and checks on the root file system of a container image, in the sandbox of cinch. Images are
made here, of a static busybox; what they contain beyond that is hostile or missing."""

FILE_TIMEOUT = 900

import functools
import glob
import io
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import unittest

import harness
import ociimage
import test_sandbox
import test_tools

BUSYBOX = shutil.which("busybox")
UNPACK = os.path.join(harness.BUILD, "src/image/cinch-unpack")
LOADER = "lib64/ld-linux-x86-64.so.2"
TOOLS = ("sh", "cat", "echo", "env", "id", "ls", "mkdir", "mv", "ln", "rm", "sleep", "touch", "true", "head")


@functools.lru_cache(maxsize=None)
def busybox():
    with open(BUSYBOX, "rb") as f:
        return f.read()


def is_static(path):
    done = subprocess.run(["readelf", "-l", path], capture_output=True, text=True)
    return done.returncode == 0 and "INTERP" not in done.stdout


def base(*more):
    """The lowest layer: a shell, and a mark."""
    return [("bin", None), ("bin/busybox", busybox()), *((f"bin/{t}", ociimage.link("busybox")) for t in TOOLS),
            ("etc", None), ("etc/mark", b"image\n"), ("opt", None), ("opt/tool", b"#!/bin/sh\necho tool of the image\n"),
            *more]


@unittest.skipUnless(BUSYBOX and is_static(BUSYBOX), "needs a static busybox (package busybox-static)")
@unittest.skipUnless(platform.machine() == "x86_64", "the images of this test are for amd64")
class Box(test_sandbox.Box):
    def setUp(self):
        super().setUp()
        self.env["CINCH_UNPACK"] = UNPACK
        if self.uid != os.geteuid():
            self.env["CINCH_UNPACK"] = shutil.copy(UNPACK, self.tools)

    def cache(self, *names):
        return os.path.join(self.env["HOME"], ".cache/cinch/images", *names)

    def entries(self):
        return sorted(os.path.basename(x) for x in glob.glob(self.cache("sha256-*")))

    def root(self, *more, name="root"):
        """A root file system as a directory."""
        path = self.make_dir(name)
        with tarfile.open(fileobj=io.BytesIO(ociimage.tar_bytes(base(*more)))) as tar:
            tar.extractall(path, filter="fully_trusted") if sys.version_info >= (3, 12) else tar.extractall(path)
        for where, dirs, files in os.walk(path):
            for x in [where, *(os.path.join(where, f) for f in dirs + files)]:
                self.give(x)
        return path

    def archive(self, *layers, form="oci-archive", file="image.tar", **kw):
        path = self.path(file)
        self.image_id = ociimage.image(path, [x if isinstance(x, bytes) else ociimage.tar_bytes(x) for x in layers or [base()]],
                                 form=form, **kw)
        for where, dirs, files in os.walk(path):
            self.give(where)
        return self.give(path)

    def good(self, image, text, *options, **kw):
        r = self.sh(text, "--image", image, *options, **kw)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        return self.out(r)

    def unpack(self, path, *more):
        """The program itself: (exit status, what it said)."""
        done = test_sandbox.run_as(self.uid, [self.env["CINCH_UNPACK"], self.cache(), "", path, *more], env=self.env,
                                   cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=harness.PATIENCE)
        return done.returncode, json.loads(done.stdout)


class ImageRoot(Box):
    # --- what is seen ---

    def test_a_directory(self):
        root = self.root()
        out = self.good(f"dir:{root}", "cat /etc/mark; ls /; echo changed > /opt/tool; echo new > made; id -un; ls /usr 2>&1; true")
        lines = out.splitlines()
        self.assertEqual(lines[0], "image")
        self.assertEqual(sorted(x for x in lines[1:-2] if not x.startswith(".")),
                         ["bin", "dev", "etc", "opt", "proc", "run", "sys", "tmp", "var", *self.tops()])
        with open(os.path.join(root, "opt/tool"), "rb") as f:
            self.assertEqual(f.read(), b"#!/bin/sh\necho tool of the image\n")
        r = self.sh("echo new > made", "--image", root)
        self.assertIn(b"+new", r.bytes("diff.patch"))
        self.assertEqual(r.json("evidence", "image.json")["root"], root)
        self.assertEqual(r.manifest["sandbox"]["lost"], [])
        self.assertEqual(sorted(os.listdir(root)), ["bin", "etc", "opt"])

    def tops(self):
        """Where the run's own directories are, as far as the image has nothing there."""
        return sorted({self.dir.split("/")[1]} - {"tmp"})

    def test_programs_of_the_host_are_not_there(self):
        r = self.sh("git --version", "--image", self.root())
        self.assertEqual((r.code, r.reason), (1, "failure"))
        r = self.run_box(["git", "--version"], "--image", self.root())
        self.assertEqual((r.code, r.reason), (127, "not_found"))
        self.assertIn(b"not found in the PATH of the image", r.stdout)

    def test_accounts_and_etc(self):
        root = self.root(("etc/passwd", b"root:x:0:0::/root:/bin/sh\nbuilder:x:1000:1000::/:/bin/sh\n"))
        out = self.good(f"dir:{root}", "id -un; cat /etc/passwd; (echo x > /etc/ld.so.preload) 2>&1; cat /etc/hosts")
        lines = out.splitlines()
        self.assertTrue(lines[1].startswith(lines[0] + ":x:"), out)
        self.assertIn("builder:x:1000:1000::/:/bin/sh", lines)
        self.assertIn("Read-only file system", out)
        self.assertIn("127.0.0.1 localhost", out)

    def test_variables_of_the_image(self):
        image = self.archive(base(("tools/only", b"#!/bin/sh\necho only here\n")),
                             config={"Env": ["PATH=/tools:/bin", "GREETING=hello", "HOME=/nowhere", "not a name=1"]})
        self.assertEqual(self.good(image, "only; echo $GREETING; test \"$HOME\" != /nowhere && echo own home"),
                         "only here\nhello\nown home\n")
        r = self.run_box(["only"], "--image", image, "--env", "GREETING=task")
        self.assertEqual(self.out(r), "only here\n")

    # --- images ---

    def test_forms(self):
        """The same image in four forms is unpacked once."""
        for form, prefix in (("oci-archive", "oci-archive:"), ("docker-archive", "docker-archive:"), ("oci", "oci:"),
                             ("oci-archive", "")):
            path = self.archive(form=form, file=f"{form}{len(prefix)}", name="localhost/base:1")
            self.assertEqual(self.good(prefix + path, "cat /etc/mark"), "image\n", form)
        self.assertEqual(self.entries(), ["sha256-" + self.image_id])
        self.assertEqual(self.good(f"oci-archive:{self.path('oci-archive0')}:localhost/base:1@sha256:{self.image_id}",
                                   "cat /etc/mark"), "image\n")
        r = self.sh("true", "--image", f"oci:{self.path('oci')}:other")
        self.assertEqual((r.code, r.reason), (66, "missing_input"))

    def test_the_second_run_unpacks_nothing(self):
        image = self.archive()
        self.good(image, "true")
        self.env["CINCH_UNPACK"] = "/bin/false"
        self.assertEqual(self.good(image, "cat /etc/mark"), "image\n")
        self.assertEqual(os.listdir(self.cache("tmp")), [])

    def test_a_file_that_was_replaced_is_another_image(self):
        self.assertEqual(self.good(self.archive(), "cat /etc/mark"), "image\n")
        image = self.archive(base(), [("etc/mark", b"second\n")])
        self.assertEqual(self.good(image, "cat /etc/mark"), "second\n")
        self.assertEqual(len(self.entries()), 2)

    def test_several_runs_unpack_once(self):
        image = self.archive()
        runs = []
        for _ in range(4):
            output = self.new_output()
            argv = [self.cinch_path, "run", "--workspace", self.workspace, "--output", output, "--image", image, "--env",
                    "CINCH_TEST_MARK", "--", "cat", "/etc/mark"]
            def become():
                if self.uid != os.geteuid():
                    os.setgroups([])
                    os.setresgid(self.uid, self.uid, self.uid)
                    os.setresuid(self.uid, self.uid, self.uid)
            p = subprocess.Popen(argv, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, preexec_fn=become)
            self.addCleanup(self.reap, p)
            runs.append((p, output))
        for p, output in runs:
            self.assertEqual(p.wait(timeout=harness.PATIENCE), 0)
            with open(os.path.join(output, "stdout.log"), encoding="utf-8") as f:
                self.assertEqual(f.read(), "image\n")
        self.assertEqual(self.entries(), ["sha256-" + self.image_id])
        self.assertEqual(os.listdir(self.cache("tmp")), [])

    # --- layers ---

    def test_layers(self):
        hard = ociimage.link("etc/one", tarfile.LNKTYPE)
        setid = tarfile.TarInfo()
        setid.mode = 0o6755
        closed = tarfile.TarInfo()
        closed.type, closed.mode = tarfile.DIRTYPE, 0
        device = tarfile.TarInfo()
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
        foreign = tarfile.TarInfo()
        foreign.uid = foreign.gid = 12345
        first = base(("etc/one", b"1"), ("etc/two", hard), ("gone/a", b"x"), ("whole", None), ("whole/old", b"x"),
                     ("whole/sub", None), ("whole/sub/old", b"x"), ("late", None), ("late/old", b"x"), ("was-file", b"x"),
                     ("was-dir", None), ("was-dir/x", b"x"), ("usr/lib", None), ("lib", ociimage.link("usr/lib")),
                     ("bin/setid", setid), ("closed", closed), ("closed/in", b"in"), ("dev/null2", device),
                     ("foreign", foreign), ("/absolute", b"abs"))
        second = [("gone/.wh.a", b""), ("whole/.wh..wh..opq", b""), ("whole/new", b"n"), ("whole/sub", None),
                  ("whole/sub/new", b"n"), ("late/new", b"n"), ("late/.wh..wh..opq", b""), ("was-file", None),
                  ("was-file/in", b"x"), ("was-dir", b"file"), ("lib/through", b"t"), (".wh.foreign", b""),
                  (".wh..wh.plnk/1.2", b"")]
        for compress in ("", "gz", "xz"):
            image = self.archive(ociimage.tar_bytes(first), ociimage.tar_bytes(second, compress if compress != "xz" else ""),
                                 file=f"layers{compress}.tar")
            code, said = self.unpack(image)
            self.assertEqual(code, 0, said)
        root = self.cache("sha256-" + self.image_id, "root")
        found = sorted(os.path.relpath(os.path.join(w, x), root) for w, d, f in os.walk(root) for x in d + f
                       if not os.path.relpath(os.path.join(w, x), root).startswith(("bin/", "etc/", "opt/")))
        self.assertEqual(found, sorted(["absolute", "bin", "closed", "closed/in", "dev", "etc", "gone", "late", "late/new",
                                        "lib", "opt", "usr", "usr/lib", "usr/lib/through", "was-dir", "was-file",
                                        "was-file/in", "whole", "whole/new", "whole/sub", "whole/sub/new"]))
        self.assertEqual(os.stat(root + "/etc/one").st_ino, os.stat(root + "/etc/two").st_ino)
        self.assertEqual(stat.S_IMODE(os.stat(root + "/bin/setid").st_mode), 0o755)
        self.assertEqual(stat.S_IMODE(os.stat(root + "/closed").st_mode), 0o700)
        self.assertEqual({os.lstat(os.path.join(w, x)).st_uid for w, d, f in os.walk(root) for x in d + f}, {self.uid})

    # --- hostile and damaged images ---

    def refused(self, layer, *words, code=65, reason=None):
        image = self.archive(base(), layer, file=f"hostile{self.outputs}.tar")
        r = self.sh("true", "--image", image)
        self.assertEqual(r.code, code, r.stderr)
        for word in words:
            self.assertIn(word, r.stdout.decode())
        self.assertEqual(self.entries(), [])
        self.assertEqual(os.listdir(self.cache("tmp")), [])

    def test_members_that_lead_out(self):
        outside = self.give(self.make_dir("outside"))
        self.refused([("../escaped", b"x")], "leads out of the image")
        self.refused([("a/../../escaped", b"x")], "leads out of the image")
        self.refused([("passwd", ociimage.link("/etc/passwd", tarfile.LNKTYPE))], "not in the image")
        self.refused([("up", ociimage.link("../../../etc/passwd", tarfile.LNKTYPE))], "leads out of the image")
        self.refused([("out", ociimage.link(outside)), ("out/file", b"x")], "directory 'out'")
        # Links are followed inside: what is written through them stays in the image.
        image = self.archive(base(), [("inner", None), ("out", ociimage.link("/inner")), ("out/file", b"x"),
                                      ("up", ociimage.link("../../../../../../inner")), ("up/file2", b"x")],
                             file="links.tar")
        self.assertEqual(self.unpack(image)[0], 0)
        self.assertEqual(os.listdir(outside), [])
        self.assertEqual(sorted(os.listdir(self.cache("sha256-" + self.image_id, "root/inner"))), ["file", "file2"])
        self.assertFalse(os.path.exists(self.path("escaped")))

    def test_bombs(self):
        image = self.archive(base(), ociimage.tar_bytes([("zeros", bytes(64 << 20))], "gz"))
        self.assertLess(os.path.getsize(image), 8 << 20)
        code, said = self.unpack(image, str(16 << 20))
        self.assertEqual(code, 1)
        self.assertIn("more than", said["error"])
        self.assertEqual((self.entries(), os.listdir(self.cache("tmp"))), ([], []))
        deep = self.archive(base(), [("/".join(["d"] * 300) + "/x", b"x")], file="deep.tar")
        self.assertEqual(self.unpack(deep)[0], 1)

    def test_links_of_the_image_never_lead_to_the_host(self):
        """While the view is made the host's root is still in sight, at a path that a link can name."""
        outside = self.give(self.make_dir("outside"))
        top = self.dir.split("/")[1]
        for links in ([("etc2", ociimage.link("/.host/etc")), ("var", ociimage.link("/.host" + outside)),
                       (top, ociimage.link("/.host" + outside)) if top != "tmp" else ("srv", ociimage.link("/.host"))],
                      [("var", None), ("var/tmp", ociimage.link("/.host" + outside))]):
            root = self.root(*links, name=f"root{len(links)}")
            self.assertEqual(self.good(f"dir:{root}", "cat /etc/mark; echo x > /var/tmp/y; echo z > made"), "image\n")
        root = self.root(name="root-etc")
        shutil.rmtree(os.path.join(root, "etc"))
        os.symlink("/.host" + outside, os.path.join(root, "etc"))
        self.good(f"dir:{root}", "true")
        self.assertEqual(os.listdir(outside), [])

    def test_wrong_inputs(self):
        r = self.sh("true", "--image", self.path("missing.tar"))
        self.assertEqual((r.code, r.reason), (66, "missing_input"))
        r = self.sh("true", "--image", "localhost/cinch-no-such-image:1")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn(b"cinch-no-such-image", r.stdout)
        r = self.sh("true", "--image", "not/a name")
        self.assertEqual(r.code, 64, r.stderr)
        r = self.sh("true", "--image", self.put("text.tar", "not an archive\n" * 1000))
        self.assertEqual(r.code, 65, r.stderr)
        image = self.archive(architecture="arm64", file="arm.tar")
        r = self.sh("true", "--image", image)
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn(b"linux/arm64", r.stdout)
        image = self.archive(file="good.tar")
        r = self.sh("true", "--image", f"{image}@sha256:{'0' * 64}")
        self.assertEqual((r.code, r.reason), (65, "bad_task"))
        self.assertIn(self.image_id.encode(), r.stdout)
        r = self.sh("true", "--image", f"dir:{self.root()}", "--sandbox", "off")
        self.assertEqual((r.code, r.reason), (65, "bad_task"))

    def test_damaged_archives(self):
        image = self.archive(ociimage.tar_bytes(base(), "gz"), file="whole.tar")
        with open(image, "rb") as f:
            data = f.read()
        layer = data.index(b"\x1f\x8b")
        wrong = bytearray(data)
        wrong[layer + 5000] ^= 0xff
        for name, content in (("flipped.tar", bytes(wrong)), ("cut.tar", data[:len(data) // 2]), ("empty.tar", b"")):
            self.put(name, content)
            r = self.sh("true", "--image", self.path(name))
            self.assertEqual((r.code, r.reason), (65, "bad_task"), (name, r.stderr))
            self.assertEqual((self.entries(), os.listdir(self.cache("tmp"))), ([], []), name)

    def test_a_run_that_is_killed_while_it_unpacks(self):
        image = self.archive()
        os.mkdir(self.path("slow"))
        slow = self.put("slow/unpack", f"#!/bin/sh\n\"{self.env['CINCH_UNPACK']}\" \"$@\" >/dev/null\nsleep 60\n", 0o755)
        output = self.new_output()
        p, result = self.start("--image", image, "--", "true", output=output, env={"CINCH_UNPACK": slow}) \
            if self.uid == os.geteuid() else (None, None)
        if p is None:
            self.skipTest("as root is enough")
        harness.wait_until(lambda: self.entries(), "the image")
        p.send_signal(signal.SIGTERM)
        self.finish(p, result)
        self.assertEqual(result.reason, "terminated")

    # --- programs of the host beside it ---

    def python(self):
        return os.path.realpath("/usr/bin/python3")

    def test_a_program_of_the_host(self):
        """Its interpreter, loader and libraries come along: the image has none."""
        root = self.root()
        r = self.run_box([self.python(), "-c", "import sys, ssl, sqlite3; print(sys.executable, open('/etc/mark').read())"],
                         "--image", root)
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assertEqual(self.out(r), f"/.runtime{self.python()} image\n\n")

    def test_a_program_of_the_host_beside_another_loader(self):
        """The image has a loader and a C library of the same names, which are not for our programs."""
        wrong = b"#!/bin/sh\nexit 9\n"
        root = self.root((LOADER, wrong), ("lib/x86_64-linux-gnu/libc.so.6", b"not a library"),
                         ("etc/ld.so.cache", b"nothing"), ("etc/ld.so.preload", b"/lib/x86_64-linux-gnu/libc.so.6\n"))
        script = self.put("agent", "#!/usr/bin/env python3\nimport subprocess, sys\n"
                                   "print(subprocess.run([sys.executable, '-c', 'print(1 + 1)'], capture_output=True).stdout)\n"
                                   "print(subprocess.run(['/bin/cat', '/etc/mark'], capture_output=True).stdout, sys.argv)\n", 0o755)
        self.env["PATH"] = "/usr/bin:/bin"
        r = self.run_box([script, "one", "two"], "--image", root)
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assertEqual(self.out(r), f"b'2\\n'\nb'image\\n' ['{script}', 'one', 'two']\n")

    def test_a_python_environment_of_the_host(self):
        venv = self.path("venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True, capture_output=True)
        site = glob.glob(venv + "/lib/python*/site-packages")[0]
        with open(site + "/ours.py", "w", encoding="utf-8") as f:
            f.write("value = 'of the environment'\n")
        agent = self.put("venv/bin/agent", f"#!{venv}/bin/python3\nimport ours, ssl, subprocess, sys\nprint(ours.value, sys.prefix)\n"
                         "print(subprocess.run([sys.executable, '-c', 'import ours; print(ours.value)'], "
                         "capture_output=True, text=True).stdout)\n", 0o755)
        for more in ((), ((LOADER, b"#!/bin/sh\nexit 9\n"), ("usr/bin/python3", b"#!/bin/sh\nexit 9\n"))):
            root = self.root(*more, name=f"root{len(more)}")
            r = self.run_box([agent], "--image", root)
            self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
            self.assertEqual(self.out(r), f"of the environment {venv}\nof the environment\n\n")

    # --- tools and checks ---

    def test_checks_see_the_image_as_it_was(self):
        """An agent that replaces a program of the image does not replace the one that judges it."""
        root = self.root(("usr/bin", None), ("usr/bin/judge", b"#!/bin/sh\necho honest > /tmp/x; exit 1\n"))
        task = self.put("task.yaml", "sandbox: {image: ./root}\nagent: {adapter: command, command: [sh, -c, "
                        "'printf \"#!/bin/sh\\nexit 0\\n\" > /usr/bin/judge && /usr/bin/judge && echo replaced']}\n"
                        "completion: {command: [judge], max_rounds: 1}\n")
        output = self.new_output()
        done = test_sandbox.run_as(self.uid, [self.cinch_path, "run", "--workspace", self.workspace, "--output", output,
                                              "--env", "CINCH_TEST_MARK", task], env=self.env, cwd="/",
                                   stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assertEqual(set(self.out(r).split()), {"replaced"}, r.stderr)
        self.assertNotEqual(r.reason, "success", r.stderr)
        self.assertTrue(os.path.isdir(root))

    def run_task(self, task, *options):
        path = self.put("task.yaml", json.dumps({"limits": {"timeout": 100}, **task}))
        output = self.new_output()
        done = test_sandbox.run_as(self.uid, [self.cinch_path, "run", "--workspace", self.workspace, "--output", output,
                                              "--env", "CINCH_TEST_MARK", *options, path], env=self.env, cwd=self.dir,
                                   stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assert_valid(r)
        return r

    def test_bridged_tools(self):
        """A program of the host inside calls them; each runs on the image, and one that fails leaves nothing."""
        root = self.root(("bin/test", ociimage.link("busybox")))
        tool = self.put("tool.sh", "#!/bin/sh\ncat > /dev/null\ncat /etc/mark > made-by-$1\ncommand -v git\n"
                                   "test $1 = good && cat /etc/mark\n", 0o755)
        agent = self.put("agent", test_tools.AGENT + """
print(sorted(names), server.call("good").split(), server.call("bad").startswith("error"))
print(os.path.exists("made-by-good"), os.path.exists("made-by-bad"), open("/etc/mark").read())
""", 0o755)
        self.put("ws/a", "a\n")
        r = self.run_task({
            "agent": {"adapter": "command", "command": [agent]}, "prompt": "Do it.", "sandbox": {"image": root},
            "tools": [{"name": x, "description": "It tries.", "command": [tool, x]} for x in ("good", "bad")]})
        self.assertEqual(r.reason, "success", r.stdout + r.bytes("stderr.log"))
        self.assertEqual(self.out(r).splitlines()[:2], ["['bad', 'good'] ['image'] True", "True False image"])
        self.assertIn(b"+image", r.bytes("diff.patch"))
        self.assertNotIn(b"made-by-bad", r.bytes("diff.patch"))
        self.assertEqual(os.listdir(self.workspace), ["a"])

    def test_completion_checks(self):
        """They judge the agent's files with the programs of the image, and ask for another turn."""
        root = self.root(("bin/grep", ociimage.link("busybox")), ("bin/test", ociimage.link("busybox")))
        r = self.run_task({
            "agent": {"adapter": "command", "command": ["sh", "-c", "test -e one && echo two > two; echo one > one"]},
            "prompt": "Do it.", "sandbox": {"image": root},
            "completion": {"command": ["sh", "-c", "grep -q image /etc/mark && grep -q two two"], "max_rounds": 3}})
        self.assertEqual(r.reason, "success", r.stdout + r.bytes("stderr.log"))
        self.assertIn(b"+two", r.bytes("diff.patch"))
        r = self.run_task({
            "agent": {"adapter": "command", "command": ["sh", "-c", "echo one > one"]}, "prompt": "Do it.",
            "sandbox": {"image": root}, "completion": {"command": ["git", "--version"], "max_rounds": 1}})
        self.assertNotEqual(r.reason, "success", "git of the host was found")

    def test_adapter_programs_that_misbehave(self):
        """The same reasons and codes as without an image, and always a record."""
        root = self.root()
        manifest = '{"status": "completed", "outcome": "needs_human", "duration": "1s", "artifacts": []}'
        for name, text, code, reason in (
                ("hangs", "sleep 1000", 124, "timeout"),
                ("silent", "exit 0", 1, "no_result"),
                ("asks", f"echo '{manifest}' > $HOLON_OUTPUT_DIR/manifest.json; exit 2", 2, "needs_human"),
                ("outside", "echo x > /etc/passwd && exit 0; echo x > /bin/new; echo x > $HOLON_INPUT_DIR/spec.yaml; exit 1", 1, "failure")):
            with self.subTest(name):
                program = self.put(name, "#!/bin/sh\n" + text + "\n", 0o755)
                output = self.new_output()
                done = test_sandbox.run_as(
                    self.uid, [self.cinch_path, "run", "--workspace", self.workspace, "--output", output, "--env", "CINCH_TEST_MARK",
                               "--image", root, "--adapter", "exec:" + program, "--timeout", "5s", "--grace", "1s", "do it"],
                    env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
                r = harness.Result(done.returncode, done.stdout, done.stderr, output)
                self.assert_valid(r)
                self.assertEqual((r.code, r.reason), (code, reason), r.stdout + r.stderr + r.bytes("stderr.log"))
        self.assertFalse(os.path.exists(os.path.join(root, "bin/new")))
        self.assertFalse(os.path.exists(os.path.join(root, "etc/passwd")))

    def test_savepoints(self):
        """A turn that fails is taken back, as without an image."""
        self.put("ws/a", "old\n")
        root = self.root()
        r = self.sh("echo x >> a; mkdir e; echo e > e/e; exit 3", "--image", root, "--savepoint", "turn")
        self.assertEqual(r.code, 1, r.stderr)
        told = r.json("savepoints", "turn-1.json")
        self.assertEqual((told["outcome"], told["restored"]), ("failed", True))
        self.assertIn(b"+x", r.bytes("savepoints", "turn-1.patch"))
        self.assertEqual(r.bytes("diff.patch"), b"")
        r = self.sh("echo x >> a", "--image", root, "--savepoint", "turn")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.bytes("diff.patch"), r.bytes("savepoints", "turn-1.patch"))


    # --- cinch images ---

    def images(self, *args):
        done = test_sandbox.run_as(self.uid, [self.cinch_path, "images", "--format", "json", *args], env=self.env,
                                   cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_list_and_prune(self):
        self.assertEqual(self.images()["images"], [])
        image = self.archive()
        self.good(image, "true")
        found = self.images()["images"]
        self.assertEqual([(x["id"], x["reference"], x["in_use"]) for x in found], [(self.image_id, image, False)])
        self.assertGreater(found[0]["bytes"], 100000)
        self.assertFalse(self.images("prune", "--dry-run")["images"][0]["removed"])
        self.images("prune", "--older-than", "1h")
        self.assertEqual(self.entries(), ["sha256-" + self.image_id])
        # A run that goes on has it.
        mark = os.path.join(self.workspace, "go")
        text = self.good(image, "true") or "echo started > started; while ! test -e go; do sleep 0.1; done"
        output = self.new_output()
        def become():
            if self.uid != os.geteuid():
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
        p = subprocess.Popen([self.cinch_path, "run", "--workspace", self.workspace, "--workspace-mode", "in-place",
                              "--output", output, "--image", image, "--env", "CINCH_TEST_MARK", "--", "sh", "-c", text],
                             env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=become)
        self.addCleanup(self.reap, p)
        harness.wait_until(lambda: os.path.exists(os.path.join(self.workspace, "started")), "the run")
        self.assertTrue(self.images("prune")["images"][0]["in_use"])
        self.assertEqual(self.entries(), ["sha256-" + self.image_id])
        self.put("ws/go", "")
        self.assertTrue(os.path.exists(mark))
        self.assertEqual(p.wait(timeout=harness.PATIENCE), 0)
        self.assertTrue(self.images("prune")["images"][0]["removed"])
        self.assertEqual((self.entries(), self.images()["images"]), ([], []))
        self.assertEqual(self.good(image, "cat /etc/mark"), "image\n")


@unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
class OrdinaryUserImageRoot(ImageRoot):
    uid = test_sandbox.OTHER


class Agents(Box):
    """The real agent programs, where nothing of what they need is in the image."""

    SHELL = "turns:\n  - {say: I will., call: {tool: native.shell, args: {command: 'cat /etc/mark > made'}}}\n  - say: done\n"

    def agent(self, name, image, script=SHELL):
        self.env["PATH"] = os.path.dirname(self.real(name)) + ":" + self.env["PATH"]
        r = self.run_cinch("--adapter", name, "--image", image, "--timeout", "200s", "--script",
                           self.write("model.yaml", script), "--model", "some-model", "write the file")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))
        return r.bytes("diff.patch").decode()

    def test_claude_code_in_a_busybox(self):
        self.assertIn("+image", self.agent("claude-code", self.root()))

    def test_codex_in_a_busybox(self):
        self.assertIn("+image", self.agent("codex", self.root()))

    def test_aider_in_an_older_debian(self):
        self.real("aider")
        archive, why = ociimage.debian_root("bullseye-git")
        if archive is None:
            self.skipTest(why)
        root = self.make_dir("bullseye")
        subprocess.run(["tar", "-C", root, "-xf", archive, "--exclude=./dev"], check=True)
        self.write("ws/old.txt", "old\n")
        patch = self.agent("aider", root, "turns:\n  - say: |\n      old.txt\n      ```\n      <<<<<<< SEARCH\n"
                                          "      old\n      =======\n      new\n      >>>>>>> REPLACE\n      ```\n")
        self.assertIn("+new", patch)


@unittest.skipUnless(shutil.which("podman") and os.geteuid() == 0, "needs podman and root")
class PodmanStore(Box):
    def test_an_image_of_the_store(self):
        conf = self.write("storage.conf", f'[storage]\ndriver = "vfs"\ngraphroot = "{self.path("graph")}"\n'
                                          f'runroot = "{self.path("run")}"\n')
        self.env["CONTAINERS_STORAGE_CONF"] = conf
        self.write("base.tar", ociimage.tar_bytes(base()))
        done = subprocess.run(["podman", "import", "--quiet", self.path("base.tar"), "localhost/cinch-base:1"],
                              env=self.env, capture_output=True, text=True, timeout=harness.PATIENCE)
        if done.returncode != 0:
            self.skipTest("podman cannot import an image here: " + done.stderr.strip()[-200:])
        self.assertEqual(self.good("cinch-base:1", "cat /etc/mark"), "image\n")
        # Neither the engine nor cinch-unpack is started again.
        self.env.update({"CINCH_UNPACK": "/bin/false", "PATH": "/nonexistent"})
        self.assertEqual(self.good("localhost/cinch-base:1", "cat /etc/mark"), "image\n")


if __name__ == "__main__":
    harness.main()
