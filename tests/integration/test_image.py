#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Adapters that are images: run by a container engine, under the file contract, with nothing of the host but what they
are shown. The images are made here, of one static program; podman has a store of its own for them."""

FILE_TIMEOUT = 900

import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
import ociimage
from provider import Fail, Provider

ADAPTER = harness.program("contract_adapter")
SCRIPT = "turns: [{say: the model speaks}]\n"
SECRET = "s3cr3t-value-of-the-adapter"


def is_static(path):
    """No interpreter is named: the program runs where there is no C library."""
    done = subprocess.run(["readelf", "-l", path], capture_output=True, text=True)
    return done.returncode == 0 and "INTERP" not in done.stdout


def content(path):
    """Of a regular file that may go at any time."""
    if not os.path.isfile(path) or os.path.islink(path):
        return b""
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


class Store:
    """Images of the tests, in directories of their own."""

    def __init__(self):
        # Not below the TMPDIR of the tests: podman takes half a minute for each container where this is long.
        self.dir = tempfile.mkdtemp(prefix="cinch-images-", dir="/tmp")
        conf = os.path.join(self.dir, "storage.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f'[storage]\ndriver = "overlay"\ngraphroot = "{self.dir}/graph"\nrunroot = "{self.dir}/run"\n')
        self.env = {"CONTAINERS_STORAGE_CONF": conf}
        for name in ("CONTAINERS_CONF", "XDG_RUNTIME_DIR", "CINCH_INIT"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.known = set()

    def podman(self, *args, check=True):
        return subprocess.run(["podman", *args], env={**os.environ, **self.env}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE, check=check)

    def archive(self, mode, **config):
        path = os.path.join(self.dir, mode + ".tar")
        if not os.path.exists(path):
            ociimage.archive(path, ADAPTER, ["/bin/adapter", mode], name=f"localhost/cinch-test-{mode}:1", **config)
        return path

    def image(self, mode, **config):
        """The adapter of an image in which the program has that mode."""
        if mode not in self.known:
            self.podman("load", "--quiet", "--input", self.archive(mode, **config))
            self.known.add(mode)
        return f"image:localhost/cinch-test-{mode}:1"

    def remove(self):
        # A test that failed may have left its container, with its mounts.
        self.podman("rm", "--all", "--force", "--time", "0", check=False)
        subprocess.run(["umount", "-l", os.path.join(self.dir, "graph", "overlay")], capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)


@functools.lru_cache(maxsize=None)
def why_not():
    """Why images cannot be run here; None: they can."""
    if shutil.which("podman") is None:
        return "podman is not installed"
    if not is_static(os.environ.get("CINCH_INIT", harness.init())):
        return "cinch-init of this build is not static"
    store = Store()
    try:
        store.image("honest")
        limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
        store.podman("run", "--rm", "--network", "none", *limits, "localhost/cinch-test-honest:1", "--probe", check=False)
        done = store.podman("run", "--rm", "--network", "none", *limits, "--entrypoint", "/bin/adapter",
                            "localhost/cinch-test-honest:1", "large", check=False)
        return None if "working" in done.stdout else "podman does not work here: " + done.stderr.strip()[-300:]
    except subprocess.CalledProcessError as e:
        return "podman does not work here: " + e.stderr.strip()[-300:]
    finally:
        store.remove()


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        if why_not() is not None:
            raise unittest.SkipTest(why_not())
        cls.store = Store()
        cls.addClassCleanup(cls.store.remove)

    def setUp(self):
        super().setUp()
        self.env.update(self.store.env)
        self.env["ADAPTER_KEY"] = SECRET
        self.write("ws/a.txt", "one\n")

    def run_image(self, mode, *options, **kw):
        return self.run_cinch("--adapter", self.store.image(mode), "--secret", "ADAPTER_KEY", *options, "do it", **kw)

    def check_no_container(self):
        """Whatever happened: the engine knows of none."""
        harness.wait_until(lambda: self.store.podman("ps", "--all", "--quiet").stdout.strip() == "", "the container to go")


class Image(Case):
    def test_honest(self):
        r = self.run_image("honest")
        self.assertEqual((r.reason, r.code), ("success", 0), r.stderr + r.bytes("stderr.log"))
        self.assertIn(b"+done", r.bytes("diff.patch"))
        self.assertEqual(r.bytes("summary.md"), b"# Done\n")
        self.assertEqual(r.json("evidence", "adapter", "manifest.json")["outcome"], "success")
        self.assertEqual(r.result["text"], "# Done\n")
        self.assertFalse(os.path.exists(self.path("ws", "contract.txt")), "the workspace itself was changed")
        image = r.json("evidence", "image.json")
        self.assertEqual(image["entrypoint"], ["/bin/adapter", "honest"])
        self.assertIn("podman", image["engine"])
        self.check_no_container()

    def test_place(self):
        """What it is given, and what it is not."""
        r = self.run_image("shows", "--env", "GIVEN=1", "--model", "m1", env={"HTTP_PROXY": "http://caller", "OTHER": "x"})
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        lines = r.bytes("stdout.log").decode().splitlines()
        seen = dict(line.split("=", 1) for line in lines if "=" in line)
        for name, value in {"HOLON_INPUT_DIR": "/holon/input", "HOLON_OUTPUT_DIR": "/holon/output", "MODEL": "m1",
                            "HOLON_WORKSPACE_DIR": "/holon/workspace", "IS_SANDBOX": "1", "GIVEN": "1", "TERM": "dumb",
                            "CINCH_WORKSPACE": "/holon/workspace", "cwd": "/holon/workspace", "tty": "0", "empty": "1",
                            "input": "read-only", "root": "its own", "ADAPTER_KEY": "[REDACTED:ADAPTER_KEY]"}.items():
            self.assertEqual(seen.get(name), value, name)
        for name in ("HTTP_PROXY", "OTHER", "CONTAINERS_STORAGE_CONF"):
            self.assertNotIn(name, seen)
        self.assertNotIn(self.env["PATH"], (seen["PATH"],))
        self.assertNotEqual(seen["HOME"], self.env["HOME"])
        self.assert_not_in_tree(SECRET.encode(), r.output)

    def test_environment_of_the_image(self):
        self.store.image("shows")
        path = self.path("own.tar")
        ociimage.archive(path, ADAPTER, ["adapter"], cmd=["shows"], env=["PATH=/bin", "MINE=1", "TERM=vt100"], user="1234")
        r = self.run_cinch("--adapter", "image:oci-archive:own.tar", "--secret", "ADAPTER_KEY", "do it")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        out = r.bytes("stdout.log").decode()
        self.assertIn("\nMINE=1\n", out)
        self.assertIn("\nPATH=/bin\n", out)
        self.assertIn("\nTERM=dumb\n", out)

    def test_secret_is_nowhere_else(self):
        """Neither arguments of the engine nor its files hold it, while the container runs."""
        process, r = self.start("--adapter", self.store.image("stays"), "--secret", "ADAPTER_KEY", "do it")
        harness.wait_until(lambda: r.exists("stdout.log") and b"working" in r.bytes("stdout.log"), "the agent")
        self.assertIn("cinch-", self.store.podman("ps", "--format", "{{.Names}}").stdout)
        self.assertNotIn(SECRET, self.store.podman("inspect", "--latest").stdout)
        for base, _, files in os.walk(self.store.dir):
            for path in (os.path.join(base, name) for name in files):
                self.assertNotIn(SECRET.encode(), content(path), path)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual(r.manifest["outcome"], "failure")
        self.check_no_container()

    def test_network(self):
        """The gateway, and nothing else."""
        outside = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(outside.close)
        task = self.write("task.yaml", f"prompt: {{text: do it}}\ngateway: {{script: {self.write('s.yaml', SCRIPT)}}}\n")
        r = self.run_cinch("--adapter", self.store.image("network"), "--secret", "ADAPTER_KEY", "--env",
                           f"OUTSIDE_PORT={outside.getsockname()[1]}", task)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        out = r.bytes("stdout.log").decode()
        self.assertIn("1.1.1.1:80 Network is unreachable", out)
        self.assertIn("Connection refused", out)
        self.assertIn("the model speaks", out)
        self.assertEqual(r.metrics["api_calls"], 1)
        self.assertIn("network", r.manifest["sandbox"]["enforced"])

    def test_a_key_that_is_refused(self):
        """The same advice as for any other agent: which variable holds the key, or how to name one."""
        for key, advice in ((", key: MODEL_KEY", "set MODEL_KEY to a valid one"), ("", "name the variable")):
            with self.subTest(advice), Provider(Fail(401)) as p:
                r = self.run_cinch("do it", "--adapter", self.store.image("model"), "--secret", "ADAPTER_KEY", "--set",
                                   f"gateway.routes=[{{model: '*', upstream: '{p.url}'{key}}}]",
                                   env={"MODEL_KEY": "sk-ant-wrong-wrong"})
                self.assertEqual((r.code, r.reason), (77, "auth"), r.stdout + r.stderr)
                self.assertIn("does not accept the credential", r.manifest["error"])
                self.assertIn(advice, r.manifest["error"])

    def test_tools_of_the_task_see_the_same_workspace(self):
        task = self.write("task.yaml", """
prompt: {text: do it}
completion: {command: [grep, -q, done, contract.txt], files: [contract.txt]}
""")
        for options in ((), ("--sandbox", "off")):
            r = self.run_cinch("--adapter", self.store.image("honest"), "--secret", "ADAPTER_KEY", *options, task)
            self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
            self.assertFalse(os.path.exists(self.path("ws", "contract.txt")))

    def test_further_rounds(self):
        """Another program in the same container; its output directory is empty again."""
        task = self.write("task.yaml", """
prompt: {text: do it}
completion: {command: [test, -e, never], max_rounds: 1}
""")
        r = self.run_cinch("--adapter", self.store.image("honest"), "--secret", "ADAPTER_KEY", task)
        self.assertEqual(r.bytes("stdout.log").count(b"working"), 2)
        self.assertNotIn("not empty", str(r.result["error"]))

    def test_read_only(self):
        r = self.run_image("honest", "--sandbox", "read-only")
        self.assertIn(b"Read-only file system", r.bytes("stderr.log"))
        self.assertTrue(r.manifest["no_changes"])

    def test_git_directories_cannot_be_replaced(self):
        """Else git of the user would obey what was planted, in place and in a kept copy."""
        for folder in ("ws", "ws/nested"):
            os.makedirs(self.path(folder), exist_ok=True)
            subprocess.run(["git", "init", "-q", self.path(folder)], check=True, env={**os.environ, **self.env})
        for mode in ("in-place", "copy"):
            for where in ("/holon/workspace", "/holon/workspace/nested"):
                r = self.run_image("moves-git", "--workspace-mode", mode, "--env", f"GIT_DIR_OF={where}")
                self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
                out = r.bytes("stdout.log").decode()
                self.assertIn("move: Device or resource busy", out, (mode, where))
                self.assertIn("move info: Device or resource busy", out, (mode, where))
        self.assertEqual(sorted(n for n in os.listdir(self.path("ws")) if n.startswith(".git")), [".git"])

    def test_output_does_not_pass_the_engine(self):
        r = self.run_image("large")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(len(r.bytes("stdout.log")), 65536 * 64 + len("working\n"))

    def test_file(self):
        archive = self.store.archive("honest")
        r = self.run_cinch("--adapter", "image:oci-archive:" + archive, "--secret", "ADAPTER_KEY", "do it")
        self.assertEqual(r.reason, "success", r.stderr)


class Ends(Case):
    def test_exit_codes(self):
        r = self.run_image("needs-human")
        self.assertEqual((r.code, r.reason, r.result["outcome"]), (2, "needs_human", "needs_human"))
        self.assertIn("look at it", str(r.result["error"]))
        r = self.run_image("wrong-exit")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        r = self.run_image("dies")
        self.assertEqual((r.code, r.reason), (1, "failure"))

    def test_manifest_is_owed(self):
        r = self.run_image("no-manifest")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("manifest.json", str(r.result["error"]))
        r = self.run_image("bad-manifest")
        self.assertEqual((r.code, r.reason), (1, "failure"))

    def test_missing_secret(self):
        r = self.run_cinch("--adapter", self.store.image("honest"), "do it")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("ADAPTER_KEY is missing", str(r.result["error"]))

    def test_required_artifact(self):
        """Every run has a summary.md; other files must be left by the agent."""
        task = self.write("task.yaml", "prompt: {text: do it}\noutput: {artifacts: [{path: summary.md}]}\n")
        r = self.run_cinch("--adapter", self.store.image("no-summary"), "--secret", "ADAPTER_KEY", task)
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        self.assertIn(b"do it", r.bytes("summary.md"))
        r = self.run_cinch("--adapter", self.store.image("honest"), "--secret", "ADAPTER_KEY", task)
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.bytes("summary.md"), b"# Done\n")
        task = self.write("task.yaml", "prompt: {text: do it}\noutput: {artifacts: [{path: report.md}]}\n")
        r = self.run_cinch("--adapter", self.store.image("honest"), "--secret", "ADAPTER_KEY", task)
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("report.md", str(r.result["error"]))

    def test_timeout(self):
        r = self.run_image("stays", "--timeout", "2", "--grace", "1")
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.check_no_container()

    def test_killed(self):
        """The container does not outlive cinch, whatever ends cinch."""
        process, r = self.start("--adapter", self.store.image("stays"), "--secret", "ADAPTER_KEY", "do it")
        harness.wait_until(lambda: r.exists("stdout.log") and b"working" in r.bytes("stdout.log"), "the agent")
        process.kill()
        process.communicate()
        self.check_no_container()
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        for name in ("home", "door", "adapter-input"):
            self.assertFalse(r.exists(name), name)

    def test_interrupted_while_it_comes_up(self):
        for pause in (0.02, 0.1, 0.2, 0.3):
            process, r = self.start("--adapter", self.store.image("stays"), "--secret", "ADAPTER_KEY", "do it")
            harness.wait_until(lambda: r.exists("state.json"), "the record")
            try:
                process.wait(pause)
            except subprocess.TimeoutExpired:
                pass
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            self.finish(process, r)
            self.assertIn(r.reason, ("terminated", "killed"))
        self.check_no_container()

    def test_what_is_not_there(self):
        r = self.run_cinch("--adapter", "image:localhost/no-such-image", "do it")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn("no-such-image", str(r.result["error"]))
        r = self.run_cinch("--adapter", "image:oci-archive:/no/such.tar", "do it")
        self.assertEqual(r.code, 69)
        task = self.write("task.yaml", "prompt: {text: do it}\nsandbox: {engine: no-such-engine}\n")
        r = self.run_cinch("--adapter", self.store.image("honest"), task)
        self.assertEqual(r.code, 127)
        task = self.write("task.yaml", "prompt: {text: do it}\nsandbox: {deny: [/etc]}\n")
        r = self.run_cinch("--adapter", self.store.image("honest"), task)
        self.assertEqual(r.code, 69)
        ociimage.archive(self.path("e.tar"), ADAPTER, [])
        r = self.run_cinch("--adapter", "image:oci-archive:" + self.path("e.tar"), "do it")
        self.assertEqual(r.code, 69)
        self.assertIn("entry point", str(r.result["error"]))
        ociimage.archive(self.path("e.tar"), ADAPTER, ["/bin/other"])
        r = self.run_cinch("--adapter", "image:oci-archive:" + self.path("e.tar"), "do it")
        self.assertEqual(r.reason, "failure")
        self.assertIn(b"/bin/other", r.bytes("stderr.log"))


# Which check finds which fault; those of images and of programs alike.
FAULTS = {
    "honest": set(),
    "no-manifest": {"manifest", "required_outputs", "missing_secret", "probe"},
    "bad-manifest": {"manifest", "missing_secret", "probe"},
    "no-summary": {"required_outputs"},
    "lists-ghost": {"listed_artifacts"},
    "wrong-exit": {"exit_code", "probe"},
    "empty-patch": {"patch"},
    "leaks-file": {"secrets_redacted"},
    "leaks-output": {"secrets_redacted"},
    "needs-nothing": {"missing_secret"},
    "no-probe": {"probe"},
}


class Checks(harness.Case):
    """ack/contract_check.h finds each fault, and nothing else."""

    def setUp(self):
        super().setUp()
        self.env.update(CINCH=harness.CINCH, CINCH_INIT=harness.init(), CONTRACT_TIMEOUT="60")

    def findings(self, adapter, *secrets, args="", env=None):
        scratch = tempfile.mkdtemp(dir=self.dir)
        done = subprocess.run([harness.program("contract_check"), adapter, scratch, *secrets],
                              env={**self.env, "CONTRACT_ARGS": args, **(env or {})}, cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = {f["check"]: f for f in json.loads(done.stdout)}
        self.assertEqual(done.returncode, int(any(f["verdict"] == "failed" for f in found.values())))
        return found

    def failed(self, *args, **kw):
        return {name for name, f in self.findings(*args, **kw).items() if f["verdict"] == "failed"}

    def program(self, mode):
        return "exec:" + self.script(f"adapter-{mode}", f'exec {ADAPTER} {mode} "$@"\n')

    def grant(self):
        """The program is not where every sandbox looks."""
        return "--read " + ADAPTER

    def test_programs(self):
        for mode, faults in FAULTS.items():
            with self.subTest(mode):
                self.assertEqual(self.failed(self.program(mode), "ADAPTER_KEY", args=self.grant()), faults)

    def test_input_that_is_changed(self):
        """In a sandbox it cannot be; without one it is seen."""
        adapter = self.program("changes-input")
        self.assertEqual(self.failed(adapter, "ADAPTER_KEY", args=self.grant()), set())
        self.assertEqual(self.failed(adapter, "ADAPTER_KEY", args="--sandbox off"), {"inputs_untouched"})

    def test_state_that_is_kept(self):
        adapter = self.program("keeps-state")
        args = f"--sandbox off --env ADAPTER_STATE={self.path('state')}"
        self.assertEqual(self.failed(adapter, "ADAPTER_KEY", args=args), {"no_contamination"})

    def test_questions(self):
        failed = self.failed(self.program("waits"), "ADAPTER_KEY", args=self.grant(), env={"CONTRACT_TIMEOUT": "3"})
        self.assertIn("no_prompts", failed)

    def shell(self, work, probe="exit 0", manifest=""):
        """A program that leaves that manifest, and then ends as it is told to."""
        leave = f"""printf '{manifest}' > "$HOLON_OUTPUT_DIR/manifest.json"\n""" if manifest else ""
        self.scripts = getattr(self, "scripts", 0) + 1
        return "exec:" + self.script(f"shell-{self.scripts}", f'{leave}if [ "$1" = --probe ]; then {probe}; fi\n{work}\n')

    def test_exit_without_a_manifest(self):
        """It need not say anything to end in a wrong way."""
        for work, verdict, words in (("exit 42", "failed", "it exited with 42"), ("kill -9 $$", "failed", "signal 9 (KILL)"),
                                     ("sleep 1000", "failed", "did not end"), ("exit 1", "skipped", "it exited with 1")):
            with self.subTest(work):
                found = self.findings(self.shell(work), env={"CONTRACT_TIMEOUT": "3"})["exit_code"]
                self.assertEqual(found["verdict"], verdict, found)
                self.assertIn(words, found["detail"])

    def test_exit_of_the_probe(self):
        manifest = '{"status":"completed","outcome":"success","duration":"1s","artifacts":[]}'
        for probe, words in (("exit 1", "it exited with 1"), ("exit 77", "it exited with 77"), ("kill -9 $$", "signal 9 (KILL)")):
            with self.subTest(probe):
                found = self.findings(self.shell("exit 0", probe, manifest))
                for check in ("probe", "exit_code"):
                    self.assertEqual(found[check]["verdict"], "failed", found[check])
                    self.assertIn(words, found[check]["detail"])

    def test_no_secret_declared(self):
        found = self.findings(self.program("needs-nothing"), args=self.grant())
        self.assertEqual(found["missing_secret"]["verdict"], "skipped")
        self.assertEqual({n for n, f in found.items() if f["verdict"] == "failed"}, set())

    def test_adapter_that_is_not_there(self):
        done = subprocess.run([harness.program("contract_check"), "image:localhost/none", self.make_dir("s")],
                              env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 70)
        self.assertIn("cannot be tried", done.stderr)

    def test_images(self):
        if why_not() is not None:
            self.skipTest(why_not())
        store = Store()
        self.addCleanup(store.remove)
        self.env.update(store.env)
        for mode in ("honest", "changes-input", "no-manifest", "leaks-file", "no-probe"):
            with self.subTest(mode):
                self.assertEqual(self.failed(store.image(mode), "ADAPTER_KEY"), FAULTS.get(mode, set()))


if __name__ == "__main__":
    harness.main()
