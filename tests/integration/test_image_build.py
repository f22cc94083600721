#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--image-build: agents that cannot be used from the host are installed into a copy of the image. A stand-in for the engine
shows what cinch does with one; where podman works, the real one builds, too."""

FILE_TIMEOUT = 900

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import unittest

import harness
import ociimage
import test_image
import test_image_root
import test_sandbox

# Does what `podman build --tag=oci-archive:FILE` does: the base has one more layer, with the agent.
ENGINE = """#!{python}
import os, sys, time
sys.path.insert(0, {tests!r})
if sys.argv[1] == "inspect":
    sys.exit({known})
with open({calls!r}, "a") as f:
    f.write("call " + " ".join(sys.argv[1:]) + chr(10))
words = dict(w.split("=", 1) for w in sys.argv if w.startswith("--") and "=" in w)
with open(words["--file"]) as f:
    text = f.read()
print("STEP 1/3: FROM something")
{behaviour}
import ociimage, pickle
with open({layers!r}, "rb") as f:
    layers = pickle.load(f)
ociimage.image(words["--tag"].split(":", 1)[1], layers, config={{"Env": ["PATH=/usr/local/bin:/bin", "BUILT=yes"]}})
"""
AGENT = b"#!/bin/sh\necho \"agent of the image $BUILT $*\"\necho new > made\n"


def start_as(uid, argv, **kw):
    def become():
        if uid != os.geteuid():
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
    return subprocess.Popen(argv, preexec_fn=become, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, **kw)


class Box(test_image_root.Box):
    def setUp(self):
        super().setUp()
        self.put(".config-of/cinch/adapters/my-agent.yaml",
                 "name: my-agent\ntitle: Mine\ndriver: oneshot\nbinary: [my-agent]\nargv: ['{binary}', '{prompt}']\n"
                 "prompt: argument\noutput: {format: text}\ncapabilities: [text_response]\n")
        self.layer("install.sh", "echo installing\n")
        for where, dirs, files in os.walk(self.path(".config-of")):
            for name in [where, *(os.path.join(where, x) for x in dirs + files)]:
                self.give(name)
        self.env["XDG_CONFIG_HOME"] = self.path(".config-of")
        self.env["PATH"] = "/usr/bin:/bin"

    def layer(self, name, text, adapter="my-agent"):
        path = self.put(f".config-of/cinch/layers/{adapter}/{name}", text)
        self.give(os.path.dirname(path))
        return path

    def engine(self, behaviour="", name="podman", known=0):
        layers = [ociimage.tar_bytes(test_image_root.base()), ociimage.tar_bytes([("usr/local/bin/my-agent", AGENT)])]
        self.put("layers.pickle", pickle.dumps(layers))
        self.put("calls", "") if not os.path.exists(self.path("calls")) else None
        tests = self.make_dir("lib")
        for module in ("ociimage.py", "harness.py"):
            self.give(shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), module), tests))
        return self.put(f"engines/{name}", ENGINE.format(python="/usr/bin/python3 -B", tests=tests, calls=self.path("calls"),
                                                         behaviour=behaviour, known=known, layers=self.path("layers.pickle")), 0o755)

    def calls(self):
        with open(self.path("calls"), encoding="utf-8") as f:
            return f.read().splitlines()

    def command(self, image, *options, adapter="my-agent", output=None):
        return [self.cinch_path, "run", "--workspace", self.workspace, "--output", output, "--env", "CINCH_TEST_MARK",
                "--adapter", adapter, "--image", image, *options, "do it"]

    def agent(self, image, *options, adapter="my-agent", valid=True, env=None):
        output = self.new_output()
        done = test_sandbox.run_as(self.uid, self.command(image, *options, adapter=adapter, output=output),
                                   env={**self.env, **(env or {})}, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        if valid:
            self.assert_valid(r)
        return r

    def assert_built(self, r):
        self.assertEqual(r.reason, "success", r.stdout + r.stderr)
        self.assertIn("agent of the image", r.result["text"])
        self.assertIn(b"+new", r.bytes("diff.patch"))
        self.assertEqual(r.json("evidence", "image.json")["build"]["adapter"], "my-agent")

    def images(self, *args):
        done = test_sandbox.run_as(self.uid, [self.cinch_path, "images", "--format", "json", *args], env=self.env,
                                   cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["images"]


class Build(Box):
    def with_engine(self, **kw):
        return ("--set", "sandbox.engine=" + self.engine(**kw))

    def test_built_once(self):
        image = self.archive()
        engine = self.with_engine()
        self.assert_built(self.agent(image, *engine))
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("build --pull=never --layers=false", self.calls()[0])
        # The next run starts neither an engine nor cinch-unpack.
        self.assert_built(self.agent(image, env={"CINCH_UNPACK": "/bin/false"}))
        self.assertEqual((len(self.calls()), os.listdir(self.cache("tmp"))), (1, []))

    def test_two_runs_at_once(self):
        image = self.archive()
        engine = self.with_engine(behaviour="time.sleep(1)")
        runs = []
        for _ in range(3):
            output = self.new_output()
            p = start_as(self.uid, self.command(image, *engine, output=output), env=self.env, cwd=self.dir)
            self.addCleanup(self.reap, p)
            runs.append((p, output))
        for p, output in runs:
            p.wait(timeout=harness.PATIENCE)
            self.assert_built(harness.Result(p.returncode, b"", b"", output))
        self.assertEqual(len(self.calls()), 1)

    def test_what_a_build_is_known_by(self):
        """Base, layer and version; not the times of files."""
        image = self.archive()
        engine = self.with_engine()
        script = self.layer("install.sh", "echo one\n")
        self.agent(image, *engine)
        os.utime(script, (1, 1))
        self.assert_built(self.agent(image, *engine))
        self.assertEqual(len(self.calls()), 1)
        self.layer("install.sh", "echo two\n")
        self.assert_built(self.agent(image, *engine))
        self.assertEqual(len(self.calls()), 2)
        self.layer("layer.txt", "a-package 2.0.0\n")
        r = self.agent(image, *engine)
        self.assertEqual((r.json("evidence", "image.json")["build"]["version"], len(self.calls())), ("2.0.0", 3))
        other = self.archive(test_image_root.base(("other", b"x")), file="other.tar")
        self.assert_built(self.agent(other, *engine))
        self.assertEqual(len(self.calls()), 4)

    def test_containerfile(self):
        image = self.archive(name="localhost/base:1")
        self.layer("layer.txt", "@scope/package 1.2.3\n")
        self.layer("vendor/file", "x")
        self.agent(image, *self.with_engine(behaviour="print(text, file=open(" + repr(self.path("seen")) + ", 'w'))"))
        with open(self.path("seen"), encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[1], "FROM " + self.image_id)
        self.assertIn('sh /tmp/.cinch-layer/install.sh "@scope/package" "1.2.3"', lines[3])
        self.assertIn("--network=none", self.calls()[0])
        self.layer("layer.txt", "x; evil 1\n")
        r = self.agent(image, *self.with_engine())
        self.assertEqual((r.code, r.reason), (65, "bad_task"))
        self.assertIn(b"expected one line: PACKAGE VERSION", r.stdout)

    def test_a_build_that_fails(self):
        image = self.archive()
        r = self.agent(image, *self.with_engine(behaviour="print('first line\\n' * 3000 + 'npm: no such package')\n"
                                                          "print('Error: building at STEP \"RUN x\": while running runtime: exit status 1')\n"
                                                          "sys.exit(7)"))
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        error = r.result["error"]["message"] if isinstance(r.result["error"], dict) else r.manifest["error"]
        self.assertIn("podman build failed (exit status 7, output: ", error)
        self.assertIn("npm: no such package", error)
        self.assertNotIn("STEP", error)
        with open(re.search(r"output: (\S*)\)", error).group(1), encoding="utf-8") as f:
            self.assertEqual(f.read().count("first line"), 3000)
        self.assertEqual(os.listdir(self.cache("tmp")), [])
        # Nothing of it is remembered.
        self.assert_built(self.agent(image, *self.with_engine()))

    def test_an_engine_that_leaves_no_image(self):
        r = self.agent(self.archive(), *self.with_engine(behaviour="sys.exit(0)"))
        self.assertIn((r.code, r.reason), ((66, "missing_input"), (65, "bad_task")), r.stdout)
        self.assertEqual(os.listdir(self.cache("tmp")), [])

    def test_a_layer_without_the_program(self):
        image = self.archive()
        engine = self.with_engine(behaviour="open(words['--tag'].split(':', 1)[1], 'wb').write(open(" + repr(image) +
                                            ", 'rb').read())\nsys.exit(0)")
        r = self.agent(image, *engine)
        self.assertEqual((r.code, r.reason), (127, "not_found"))
        self.assertIn(b"has not installed 'my-agent'", r.stdout)

    def test_no_engine(self):
        image = self.archive()
        nothing = self.make_dir("nothing")
        r = self.agent(image, env={"PATH": nothing})
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stdout)
        self.assertIn(b"building needs podman or buildah, which is not installed", r.stdout)
        r = self.agent(image, "--set", "sandbox.engine=docker")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stdout)
        self.assertIn(b"building needs podman or buildah, and sandbox.engine is 'docker'", r.stdout)

    def test_never(self):
        r = self.agent(self.archive(), "--image-build", "never", *self.with_engine())
        self.assertEqual((r.code, r.reason), (127, "not_found"))
        self.assertEqual(self.calls(), [])

    def test_a_program_of_the_host_that_cannot_be_used(self):
        """Its loader is none that can be brought along: built, with a warning."""
        with open("/bin/true", "rb") as f:
            data = f.read()
        loader = b"/lib64/ld-linux-x86-64.so.2"
        self.assertIn(loader, data)
        self.put("host/my-agent", data.replace(loader, b"/lib/ld-musl-x86_64.so.1".ljust(len(loader), b"\0")), 0o755)
        self.env["PATH"] = self.path("host") + ":" + self.env["PATH"]
        image = self.archive()
        engine = self.with_engine()
        r = self.agent(image, *engine)
        self.assert_built(r)
        self.assertTrue(any("cannot be used in image" in w for w in r.manifest["warnings"]), r.manifest["warnings"])
        r = self.agent(image, "--image-build", "never", *engine)
        self.assertNotEqual(r.code, 0)
        self.assertEqual(len(self.calls()), 1)

    def test_always(self):
        """Also if the host has it."""
        self.put("host/my-agent", "#!/bin/sh\necho agent of the host; echo new > made\n", 0o755)
        self.env["PATH"] = self.path("host") + ":" + self.env["PATH"]
        image = self.archive()
        r = self.agent(image, *self.with_engine())
        self.assertIn("agent of the host", r.result["text"], r.stdout)
        self.assertEqual(self.calls(), [])
        self.assert_built(self.agent(image, "--image-build", "always", *self.with_engine()))

    def test_an_image_that_has_it(self):
        image = self.archive(test_image_root.base(("usr/local/bin/my-agent", AGENT)))
        r = self.agent(image, *self.with_engine())
        self.assertEqual(r.reason, "success", r.stdout)
        self.assertIn("agent of the image", r.result["text"])
        self.assertEqual(self.calls(), [])

    def test_a_directory_is_no_base(self):
        r = self.agent(self.root(), *self.with_engine())
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stdout)
        self.assertIn(b"nothing can be built on a directory", r.stdout)

    def test_an_adapter_without_a_layer(self):
        shutil.rmtree(self.path(".config-of/cinch/layers"))
        r = self.agent(self.archive(), *self.with_engine())
        self.assertEqual((r.code, r.reason), (127, "not_found"), r.stdout)
        self.assertIn(b"layers/my-agent/install.sh", r.stdout)

    def test_a_run_that_is_stopped_while_it_builds(self):
        image = self.archive()
        engine = self.with_engine(behaviour="open(" + repr(self.path("building")) + ", 'w'); time.sleep(600)")
        output = self.new_output()
        p = start_as(self.uid, self.command(image, *engine, output=output), env=self.env, cwd=self.dir)
        self.addCleanup(self.reap, p)
        self.give(self.dir)
        harness.wait_until(lambda: os.path.exists(self.path("building")), "the build")
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=harness.PATIENCE)
        self.assertEqual(harness.Result(p.returncode, b"", b"", output).reason, "terminated")
        # The next build sweeps what is left of it.
        self.assert_built(self.agent(image, *self.with_engine()))
        self.assertEqual(os.listdir(self.cache("tmp")), [])

    def test_list_and_prune(self):
        image = self.archive()
        self.agent(image, *self.with_engine())
        found = {x["reference"]: x["build"] for x in self.images()}
        self.assertEqual(set(found), {image, image + " + my-agent"})
        self.assertEqual((found[image], found[image + " + my-agent"]["base"]), (None, self.image_id))
        self.assertTrue(all(x["removed"] for x in self.images("prune")))
        self.assertEqual([x for x in os.listdir(self.cache("builds")) if x.endswith(".json")], [])
        self.assert_built(self.agent(image, *self.with_engine()))
        self.assertEqual(len(self.calls()), 2)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class OrdinaryUserBuild(Build):
    uid = test_sandbox.OTHER


class Podman(Box):
    """The real engine: what it is asked for is what it does."""

    @classmethod
    def setUpClass(cls):
        if test_image.why_not() is not None:
            raise unittest.SkipTest(test_image.why_not())
        cls.store = test_image.Store()
        cls.addClassCleanup(cls.store.remove)

    def setUp(self):
        super().setUp()
        self.env.update({k: v for k, v in self.store.env.items() if k != "CINCH_INIT"})
        self.layer("install.sh", "set -e\ntest \"$1\" = a-package\ntest \"$2\" = 1.0\nmkdir -p /usr/local/bin\n"
                                 "cat \"$VENDOR/agent\" > /usr/local/bin/my-agent\nchmod 755 /usr/local/bin/my-agent\n")
        self.layer("layer.txt", "a-package 1.0\n")
        self.layer("vendor/agent", AGENT.decode())

    def import_base(self):
        self.write("base.tar", ociimage.tar_bytes([*test_image_root.base(), ("bin/chmod", ociimage.link("busybox")),
                                                   ("bin/test", ociimage.link("busybox"))]))
        self.store.podman("import", "--quiet", self.path("base.tar"), "localhost/cinch-build-base:1")

    def test_real_builds(self):
        self.import_base()
        before = self.store.podman("images", "--all", "--quiet").stdout
        self.assert_built(self.agent("cinch-build-base:1"))
        # Neither an image nor a container is left in the store.
        self.assertEqual(self.store.podman("images", "--all", "--quiet").stdout, before)
        self.assertEqual(self.store.podman("ps", "--all", "--external", "--quiet").stdout, "")
        # The same image from files: it is in the store, too.
        for form in ("oci-archive", "docker-archive"):
            self.store.podman("save", "--quiet", "--format", form, "--output", self.path(form), "localhost/cinch-build-base:1")
            shutil.rmtree(self.cache())
            self.assert_built(self.agent(f"{form}:{self.path(form)}"))
        os.symlink("/usr/bin/git", os.path.join(self.make_dir("only-git"), "git"))
        self.env["PATH"] = self.path("only-git")
        self.assert_built(self.agent(f"docker-archive:{self.path('docker-archive')}"))
        self.env["PATH"] = "/usr/bin:/bin"
        r = self.agent(self.archive(test_image_root.base(("else", b"x")), file="unknown.tar"))
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn(b"podman load --input " + self.path("unknown.tar").encode(), r.stdout)

    def test_an_installation_that_fails(self):
        self.import_base()
        self.layer("install.sh", "echo 'no such package' >&2\nexit 3\n")
        r = self.agent("cinch-build-base:1")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn(b"podman build failed", r.stdout)
        self.assertIn(b"no such package", r.stdout)
        self.assertEqual(self.store.podman("ps", "--all", "--external", "--quiet").stdout, "")


class Table(unittest.TestCase):
    def test_versions(self):
        """The built-in layers install what the tests have tried."""
        def rows(*names):
            with open(os.path.join(harness.ROOT, *names), encoding="utf-8") as f:
                return [line.split() for line in f if line.strip() and line[0] != "#"]
        tried = {row[2].split(",")[0]: row[3] for row in rows("tests", "harness", "packages.txt")}
        layers = rows("images", "layers.txt")
        self.assertEqual({r[0]: r[2] for r in layers}, {r[0]: tried.get(r[1]) for r in layers})
        with open(os.path.join(harness.ROOT, "images", "claude-code", "Containerfile"), encoding="utf-8") as f:
            self.assertIn(f"ARG VERSION={tried['@anthropic-ai/claude-code']}\n", f.read())


if __name__ == "__main__":
    harness.main()
