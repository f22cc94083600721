#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Skills in a run: found, checked, installed, asked for, answered; and every package that is not what it
claims to be, refused before anything is started."""

import io
import json
import os
import shutil
import stat
import struct
import zipfile

import harness

HELLO = os.path.join(harness.ROOT, "examples", "skill-hello")
CARD = "---\nname: {name}\ndescription: Does things.\n---\nDo them.\n"
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Skill(harness.Case):
    def setUp(self):
        super().setUp()
        self.witness = self.path("ws", "started")
        self.agent = self.script("agent.sh", f"touch {self.witness}\necho done\n")

    def package(self, name="pack", manifest=None, files=None):
        """A skill package below the test's directory."""
        runner = {"id": name, "execution_modes": ["auto"], **(manifest or {})}
        self.write(f"{name}/SKILL.md", CARD.format(name=name))
        self.write(f"{name}/assets/runner.json", json.dumps(runner))
        self.write(f"{name}/assets/output.schema.json", json.dumps(OUTPUT))
        for path, content in (files or {}).items():
            self.write(f"{name}/{path}", content if isinstance(content, (str, bytes)) else json.dumps(content))
        return self.path(name)

    def answering(self, answer, more=""):
        return self.script("answer.sh", f"touch {self.witness}\n{more}\ncat <<'EOF'\n{answer}\nEOF\n")

    def zip(self, name, entries):
        """A zip archive of (name or ZipInfo, content) pairs."""
        path = self.path(name)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for entry, content in entries:
                z.writestr(entry, content)
        return path

    def refuse(self, code, *args, words=()):
        """Nothing is started, and the record says why."""
        r = self.run_cinch(*args, "--", self.agent)
        self.assert_failed(r, code, *words)
        self.assertFalse(os.path.exists(self.witness), "something was started")
        self.assertNotIn(b"Sanitizer", r.stderr)
        for word in words:
            self.assertIn(word, r.manifest["error"])
        return r


class Package(Skill):
    NAMES = os.path.join(HELLO, "references", "names.txt")

    def hello(self, *options, **kw):
        return self.run_cinch(*options, "--", "sh", "-c",
                              'exec "$CINCH_SKILLS_DIR/skill-hello/scripts/agent.sh" "$CINCH_PROMPT_FILE"', **kw)

    def test_example(self):
        r = self.hello("--skill", HELLO, "--input", f"names={self.NAMES}", "--param", "shout=true")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(r.result["output"], {"count": 3, "greetings": "artifacts/greetings.txt"})
        self.assertEqual((r.result["output_source"], r.result["output_repair"]), ("text", "none"))
        self.assertEqual(r.bytes("artifacts", "greetings.txt"), b"HELLO, ADA!\nHELLO, GRACE!\nHELLO, MARGARET!\n")
        self.assertEqual(r.bytes("uploads", "names", "names.txt"), open(self.NAMES, "rb").read())
        self.assertEqual(r.json("input.json")["parameter"], {"greeting": "Hello", "shout": True})
        prompt = r.bytes("logs", "prompt.txt").decode()
        self.assertIn("skill-hello", prompt.splitlines()[0])
        self.assertIn(r.path("uploads", "names", "names.txt"), prompt)
        self.assertFalse(r.exists("home"), "the home with the skill is gone")

    def test_zip_and_task_file(self):
        entries = []
        for base, _, names in os.walk(HELLO):
            for name in names:
                full = os.path.join(base, name)
                info = zipfile.ZipInfo(os.path.join("skill-hello", os.path.relpath(full, HELLO)))
                info.external_attr = os.stat(full).st_mode << 16
                entries.append((info, open(full, "rb").read()))
        self.make_dir("sub")
        self.zip("sub/hello.zip", entries)
        shutil.copy(self.NAMES, self.path("sub", "n.txt"))
        # Paths of a task are relative to it, those of the command line to the current directory.
        task = self.write("sub/task.yaml", "skills: [hello.zip]\ninputs: {names: n.txt}\nparams: {greeting: Hi}\n")
        r = self.hello(task)
        self.assertEqual(r.bytes("artifacts", "greetings.txt"), b"Hi, Ada!\nHi, Grace!\nHi, Margaret!\n")
        shutil.copy(self.NAMES, self.path("m.txt"))
        r = self.hello(task, "--input", "names=m.txt")
        self.assertTrue(r.exists("uploads", "names", "m.txt"))

    def test_goal_comes_after(self):
        r = self.hello("--skill", HELLO, "--input", f"names={self.NAMES}", "Be nice.")
        self.assertTrue(r.bytes("logs", "prompt.txt").decode().rstrip().endswith("Be nice."))

    def test_installed_and_patched_once(self):
        pack = self.package()
        agent = self.answering('{"n": 1, "__SKILL_DONE__": true}', 'cat "$CINCH_SKILLS_DIR/pack/SKILL.md" >&2')
        r = self.run_cinch("--skill", pack, "--", agent)
        self.assertEqual((r.code, r.result["output"]), (0, {"n": 1}), r.stderr)
        text = r.bytes("stderr.log").decode()
        for name in ("runtime", "output-format", "output-details", "mode-auto"):
            self.assertEqual(text.count(f"<!-- cinch: {name} -->"), 1, text)
        self.assertNotIn("cinch:", open(os.path.join(pack, "SKILL.md")).read(), "the source is never changed")

    def test_missing_input(self):
        r = self.refuse(66, "--skill", HELLO, "--input", "names=nowhere.txt",
                        words=["MissingInputError", "names", "nowhere.txt"])
        self.assertEqual(r.reason, "missing_input")
        self.refuse(66, "--skill", HELLO, words=["MissingInputError", "names"])
        self.refuse(66, "--skill", HELLO, "--input", f"names={self.workspace}", words=["MissingInputError"])
        self.refuse(65, "--skill", HELLO, "--input", f"nmes={self.NAMES}", words=["did you mean 'names'"])
        self.refuse(65, "--skill", HELLO, "--input", f"names={self.NAMES}", "--param", "shout=maybe", words=["shout"])
        self.refuse(65, "--input", "a=b", words=["'inputs' are for a skill package"])

    def test_answer_does_not_fit(self):
        r = self.run_cinch("--skill", self.package(), "--", self.answering('{"n": "x"}'))
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertEqual(r.result["output_error"]["type"], "OutputParseError")
        self.assertEqual(r.bytes("evidence", "output.txt").strip(), b'{"n": "x"}')

    def test_artifacts_must_be_there(self):
        schema = {"type": "object", "required": ["report"],
                  "properties": {"report": {"type": "string", "x-type": "artifact", "x-role": "report"}}}
        pack = self.package(files={"assets/output.schema.json": schema})
        r = self.run_cinch("--skill", pack, "--", self.answering('{"report": "artifacts/r.md"}'))
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("r.md", r.manifest["error"])
        r = self.run_cinch("--skill", pack, "--", self.answering('{"report": "../../etc/passwd"}'))
        self.assertEqual(r.reason, "failure")
        make = 'echo x > "$CINCH_ARTIFACTS_DIR/r.md"'
        r = self.run_cinch("--skill", pack, "--", self.answering('{"report": "artifacts/r.md"}', make))
        self.assertEqual((r.code, r.result["output"]), (0, {"report": "artifacts/r.md"}))

    REPORT = {"type": "object", "required": ["report"],
              "properties": {"report": {"type": "string", "x-type": "artifact", "x-role": "report"},
                             "log": {"type": "string", "x-type": "file"}}}

    def reporting(self, answer, more="", *options, schema=None, manifest=None, code=0):
        """A run of a package with artifacts, whose agent runs `more` in the workspace."""
        pack = self.package(manifest=manifest, files={"assets/output.schema.json": schema or self.REPORT})
        r = self.run_cinch("--skill", pack, *options, "--", self.answering(json.dumps(answer), more))
        self.assertEqual(r.code, code, r.stderr + r.stdout)
        return r

    def test_artifacts_are_collected_from_the_workspace(self):
        """A skill writes below its own directory, as its text says; the record has the files."""
        r = self.reporting({"report": "result/r.md"}, "mkdir result; echo one > result/r.md")
        self.assertEqual(r.result["output"], {"report": "artifacts/result/r.md"})
        self.assertEqual(r.bytes("artifacts", "result", "r.md"), b"one\n")
        r = self.reporting({"report": "artifacts/r.md"}, "mkdir artifacts; echo two > artifacts/r.md")
        self.assertEqual(r.result["output"], {"report": "artifacts/r.md"})
        self.assertEqual(r.bytes("artifacts", "r.md"), b"two\n")
        r = self.reporting({"report": "./r.md", "log": self.path("ws", "sub", "r.md")},
                           "mkdir sub; echo a > r.md; echo b > sub/r.md")
        self.assertEqual(r.result["output"], {"report": "artifacts/r.md", "log": "artifacts/sub/r.md"})
        # Two files of one name stay two.
        r = self.reporting({"report": "r.md", "log": "artifacts/r.md"},
                           "mkdir artifacts; echo a > r.md; echo b > artifacts/r.md")
        self.assertEqual(r.result["output"], {"report": "artifacts/r.md", "log": "artifacts/r-2.md"})
        self.assertEqual((r.bytes("artifacts", "r.md"), r.bytes("artifacts", "r-2.md")), (b"a\n", b"b\n"))
        # What the agent did not change is a file of its directory, too.
        self.write("ws/there.md", "old")
        r = self.reporting({"report": "there.md"})
        self.assertEqual(r.bytes("artifacts", "there.md"), b"old")

    def test_artifacts_in_the_run_directory(self):
        r = self.reporting({"report": "artifacts/r.md"}, 'echo x > "$CINCH_ARTIFACTS_DIR/r.md"')
        self.assertEqual(r.result["output"], {"report": "artifacts/r.md"})
        self.assertNotIn(b"r.md", r.bytes("diff.patch"))

    def test_artifacts_elsewhere_are_refused(self):
        secret = self.write("outside.md", "no")
        for path in (secret, "../outside.md", "/etc/passwd", "link.md", "dir"):
            with self.subTest(path=path):
                r = self.reporting({"report": path}, f"ln -s {secret} link.md; mkdir dir", code=1)
                self.assertIn("required artifact", r.manifest["error"])
                self.assertEqual(os.listdir(r.path("artifacts")), [])

    def test_artifact_manifest(self):
        schema = {"type": "object", "required": ["m"],
                  "properties": {"m": {"type": "string", "x-type": "artifact-manifest", "x-role": "all"}}}
        r = self.reporting({"m": "out/m.json"}, 'mkdir out; echo 1 > out/a; echo 2 > b; '
                           'echo \'{"first": "out/a", "second": "b"}\' > out/m.json', schema=schema)
        self.assertEqual(r.result["output"], {"m": "artifacts/out/m.json"})
        self.assertEqual(r.json("artifacts", "out", "m.json"), {"first": "artifacts/out/a", "second": "artifacts/b"})
        self.assertEqual((r.bytes("artifacts", "out", "a"), r.bytes("artifacts", "b")), (b"1\n", b"2\n"))
        r = self.reporting({"m": "m.json"}, 'echo \'{"first": "gone"}\' > m.json', schema=schema, code=1)
        self.assertIn("gone", r.manifest["error"])

    def test_artifacts_of_the_manifest_by_pattern(self):
        manifest = {"artifacts": [{"role": "log", "pattern": "logs/*.txt", "required": True}]}
        r = self.reporting({"n": 1}, "mkdir -p artifacts/logs; echo 1 > artifacts/logs/1.txt", schema=OUTPUT,
                           manifest=manifest)
        self.assertEqual(r.bytes("artifacts", "logs", "1.txt"), b"1\n")
        self.reporting({"n": 1}, "mkdir -p artifacts/logs", schema=OUTPUT, manifest=manifest, code=1)

    def test_optional_artifact_that_is_missing(self):
        r = self.reporting({"report": "r.md", "log": "gone.log"}, "echo x > r.md")
        self.assertEqual(r.result["output"], {"report": "artifacts/r.md", "log": "gone.log"})
        self.assertEqual(len([w for w in r.manifest["warnings"] if "OUTPUT_ARTIFACT_PATH_MISSING" in w and "gone.log" in w]), 1)

    def test_artifacts_hold_no_secret(self):
        self.env["TOKEN"] = "sesame-open-4711"
        r = self.reporting({"report": "r.md"}, 'echo "$TOKEN" > r.md', "-s", "TOKEN")
        self.assertNotIn(b"sesame", r.bytes("artifacts", "r.md"))

    def test_patch_and_example_agree(self):
        pack = self.package(files={"assets/output.schema.json": self.REPORT})
        show = 'cat "$CINCH_SKILLS_DIR/pack/SKILL.md" >&2; echo x > r.md'
        r = self.run_cinch("--skill", pack, "--", self.answering('{"report": "r.md"}', show))
        text = r.bytes("stderr.log").decode()
        self.assertIn("`artifacts/` below the directory in which you were started", text)
        self.assertIn('"report": "artifacts/report"', text)
        r = self.run_cinch("--skill", pack, "--sandbox", "read-only", "--",
                           self.answering('{"report": "' + self.path("x") + '"}', 'cat "$CINCH_SKILLS_DIR/pack/SKILL.md" >&2'))
        text = r.bytes("stderr.log").decode()
        self.assertIn(f"`{r.path('artifacts')}/`", text)
        self.assertIn(f'"report": "{r.path("artifacts")}/report"', text)

    def test_what_is_not_given_is_empty(self):
        prompt = {"entrypoint": {"prompts": {"common": "a{{ input.tags }}b{{ parameter.topic }}c{{ parameter.topic }}"}}}
        pack = self.package(manifest=prompt)
        agent = self.answering('{"n": 1}')
        r = self.run_cinch("--skill", pack, "--", agent)
        self.assertEqual((r.code, r.bytes("logs", "prompt.txt").splitlines()[-1]), (0, b"abc"), r.stderr)
        self.assertEqual(len([w for w in r.manifest["warnings"] if "'tags', 'topic'" in w]), 1, r.manifest["warnings"])
        # A package without a schema of its parameters takes those that its prompt uses.
        r = self.run_cinch("--skill", pack, "--param", "topic=T", "--", agent)
        self.assertEqual((r.code, r.bytes("logs", "prompt.txt").splitlines()[-1]), (0, b"abTcT"), r.stderr)
        # What a template expects to be absent is no reason for a warning.
        pack = self.package(manifest={"entrypoint": {"prompts": {"common": "{% if input.x %}x{% endif %}{{ input.x|default('d') }}"}}})
        r = self.run_cinch("--skill", pack, "--", agent)
        self.assertNotIn("not given", str(r.manifest["warnings"]))

    def test_rendered_paths_are_those_of_the_run(self):
        shown = self.cinch("task", "render", "--skill", HELLO, "--input", f"names={self.NAMES}", "--", "agent")
        self.assertEqual(shown.code, 0, shown.stderr)
        self.assertIn(b"RUN/uploads/names/names.txt", shown.stdout)

    def test_harness_without_skills_gets_the_text(self):
        """The text of a package is its prompt where no skill can be loaded; its files are there."""
        profiles = self.make_dir("profiles")
        self.write("profiles/none.yaml", "name: none\nbinary: [sh]\nargv: ['{binary}', -c, '{args...}']\n")
        pack = self.package(files={"scripts/x.sh": "echo run"})
        line = 'cat $CINCH_PROMPT_FILE >&2; sh "$CINCH_SKILLS_DIR/pack/scripts/x.sh" >&2; echo \'{"n": 1}\''
        r = self.run_cinch("--adapter-dir", profiles, "--adapter", "none", "--skill", pack, "--", line)
        self.assertEqual((r.code, r.result["output"]), (0, {"n": 1}), r.stderr)
        text = r.bytes("stderr.log").decode()
        self.assertIn("<skill>\nDo them.", text)
        self.assertIn("<!-- cinch: output-details -->", text)
        self.assertTrue(text.endswith("run\n"), text)

    def test_package_from_before_there_were_modes(self):
        pack = self.package()
        self.write("pack/assets/runner.json", '{"id": "pack"}')
        r = self.run_cinch("--skill", pack, "--", self.answering('{"n": 1}'))
        self.assertEqual(r.code, 0, r.stderr)

    def test_time_limit_of_a_package(self):
        """What a package says about itself is a default: the task and the command line win."""
        pack = self.package(manifest={"runtime": {"default_options": {"hard_timeout_seconds": 2400, "no_cache": True}}})
        agent = self.answering('{"n": 1}')
        task = self.write("task.yaml", "limits: {timeout: 77}\n")
        for options, timeout in (((), 2400), ((task,), 77), (("-t", "99"), 99)):
            r = self.run_cinch(*options, "--skill", pack, "--", agent)
            self.assertEqual((r.code, r.json("task.json")["limits"]["timeout"]), (0, timeout), r.stderr)
        pack = self.package(manifest={"runtime": {"default_options": {"hard_timeout_seconds": "soon"}}})
        self.refuse(65, "--skill", pack, words=["runner.json", "timeout"])

    def test_question(self):
        pack = self.package(manifest={"execution_modes": ["interactive"]})
        question = {"__SKILL_DONE__": False, "message": "Which one?", "ui_hints": {"kind": "open_text"}}
        r = self.run_cinch("--skill", pack, "--", self.answering(json.dumps(question)))
        self.assertEqual((r.code, r.reason), (2, "needs_human"))
        self.assertIn("Which one?", r.manifest["error"])

    def test_engines(self):
        pack = self.package(manifest={"engines": ["codex"]})
        r = self.refuse(69, "--skill", pack, words=["codex"])
        self.assertEqual(r.reason, "unavailable")

    def test_engine_configuration_is_a_layer(self):
        profiles = self.make_dir("profiles")
        self.write("profiles/gemini.yaml", "name: gemini\nbinary: [sh]\nargv: ['{binary}', -c, 'cat $HOME/.gemini/settings.json']\n"
                   "skills: .gemini/skills\nskill_packages: {configs: [assets/gemini_settings.json]}\nfiles: [{name: settings, path: .gemini/settings.json}]\n"
                   "settings: {files: {settings: {a: adapter, b: adapter, c: adapter}}}\n"
                   "enforced: {files: {settings: {c: enforced}}}\n")
        pack = self.package(files={"assets/gemini_settings.json": {k: "skill" for k in "abcd"}})
        task = self.write("task.yaml", "files: {settings: {d: task}}\n")
        r = self.run_cinch(task, "--adapter-dir", profiles, "--adapter", "gemini", "--skill", pack,
                           "--set", "files.settings.b=request", valid=False)
        self.assertEqual(json.loads(r.bytes("stdout.log")), {"a": "skill", "b": "request", "c": "enforced", "d": "task"})
        origin = {c["path"]: c for c in r.json("evidence", "config.json")}["files.settings.a"]
        self.assertEqual(origin["layer"], "skill")
        self.assertIn("assets/gemini_settings.json", origin["source"])


class Reply(Skill):
    """A package that asks a question goes on in another run, with the reply alone."""

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real("codex")) + ":" + self.env["PATH"]

    def play(self, *options, answer):
        script = self.write("model.yaml", json.dumps({"steps": [{"say": json.dumps(answer)}]}))
        return self.run_cinch(*options, "--script", script, "--timeout", "100s")

    def ask(self):
        pack = self.package(manifest={"execution_modes": ["interactive"], "engines": ["codex"]}, files={
            "assets/input.schema.json": {"type": "object", "properties": {"list": {"type": "string"}}, "required": ["list"]}})
        question = {"__SKILL_DONE__": False, "message": "Which one?", "ui_hints": {"kind": "open_text"}}
        names = self.write("names.txt", "Ada\n")
        r = self.play("-a", "codex", "-m", "m", "--skill", pack, "--input", f"list={names}", answer=question)
        self.assertEqual((r.code, r.reason), (2, "needs_human"), r.stderr)
        os.remove(names)  # the reply does not need it again
        return r

    def test_the_reply_alone_is_sent_and_the_answer_is_checked(self):
        first = self.ask()
        r = self.play("--resume", first.output, "the second", answer={"__SKILL_DONE__": True, "n": 2})
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 2}), r.result["error"])
        self.assertEqual(r.bytes("logs", "prompt.txt").decode().strip(), "the second")
        r = self.play("--resume", first.output, "the second", "--set", "output.repairs=0",
                      answer={"__SKILL_DONE__": True, "n": "two"})
        self.assertEqual((r.reason, r.result["output_error"]["type"]), ("failure", "OutputParseError"), r.stderr)

    def test_with_the_skill_named_again(self):
        first = self.ask()
        r = self.play("--resume", first.output, "-a", "codex", "-m", "m", "--skill", self.path("pack"), "the second",
                      answer={"__SKILL_DONE__": True, "n": 2})
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 2}), r.result["error"])
        self.assertEqual(r.bytes("logs", "prompt.txt").decode().strip(), "the second")


class DependenciesWithoutUv(Skill):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = self.make_dir("bin") + ":" + self.env["PATH"]
        self.pack = self.package(manifest={"runtime": {"dependencies": ["pandas>=2"]}})
        self.agent = self.answering('{"n": 1}')

    def test_no_uv_only_warns(self):
        if shutil.which("uv", path=self.env["PATH"]):
            self.skipTest("a real uv is installed here")
        r = self.run_cinch("--skill", self.pack, "--", self.agent)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertTrue([w for w in r.events("run.warning") if "uv" in w["message"] and "pandas>=2" in w["message"]])

    def test_interrupted_while_installing(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.script("bin/uv", f"case $1 in --version) echo uv;; venv) echo x > {fifo}; sleep 600;; esac\n")
        process, r = self.start("--skill", self.pack, "--", self.agent)
        with open(fifo) as f:
            f.read()
        process.terminate()
        process.wait(timeout=60)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (143, "terminated"))
        self.assertFalse(os.path.exists(self.witness))


class Plain(Skill):
    def test_installed_beside_a_goal(self):
        self.write("style/SKILL.md", CARD.format(name="style"))
        self.write("style/more/x.txt", "x")
        single = self.write("single.md", CARD.format(name="single"))
        agent = self.script("list.sh", 'cd "$CINCH_SKILLS_DIR"; find . -type f | sort\n')
        r = self.run_cinch("a goal", "--skill", self.path("style"), "--skill", single, "--", agent)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(r.bytes("stdout.log").decode().split(), ["./single/SKILL.md", "./style/SKILL.md", "./style/more/x.txt"])
        self.assertEqual(r.bytes("logs", "prompt.txt"), b"a goal")

    def test_only_what_is_shown(self):
        for name in ("shown", "hidden", "free"):
            self.write(f"{name}/SKILL.md", CARD.format(name=name))
        task = self.write("task.yaml", """
prompt:
  ns: n
  key: k
  sections:
    - {key: a, title: A, body: x, skills: [shown]}
    - {key: b, title: B, body: y, skills: [hidden], enabled: false}
skills: [shown, hidden, free]
""")
        agent = self.script("list.sh", 'ls "$CINCH_SKILLS_DIR"\n')
        r = self.run_cinch(task, "--", agent)
        self.assertEqual(r.bytes("stdout.log").decode().split(), ["free", "shown"])
        self.write("task.yaml", "prompt: [{key: a, title: A, skills: [nope]}]\n")
        self.refuse(65, task, words=["skill 'nope'"])

    def test_shared_home_is_left_alone(self):
        self.write("style/SKILL.md", CARD.format(name="style"))
        self.refuse(69, "--skill", self.path("style"), "--home", "shared", words=["--home private"])
        self.assertEqual(os.listdir(self.path("userhome")), [])

    def test_adapter_without_folder(self):
        profiles = self.make_dir("profiles")
        self.write("profiles/none.yaml", "name: none\nbinary: [sh]\nargv: ['{binary}']\n")
        self.write("style/SKILL.md", CARD.format(name="style"))
        r = self.run_cinch("goal", "--adapter-dir", profiles, "--adapter", "none", "--skill", self.path("style"))
        self.assert_failed(r, 69, "no skills folder")

    def test_same_name_twice(self):
        for place in ("one", "two"):
            self.write(f"{place}/style/SKILL.md", CARD.format(name="style"))
        self.refuse(65, "--skill", self.path("one", "style"), "--skill", self.path("two", "style"), words=["style"])


class Hostile(Skill):
    """Packages that are not what they claim to be: 65 or 66, and not a file is written."""

    def test_cards(self):
        for text, word in (("no front matter", "---"), ("---\nname: x\n", "---"), ("---\nname: style\n---\n", "description"),
                           ("---\nname: Other\ndescription: x\n---\n", "name"),
                           ("---\nname: style\ndescription: " + "x" * 2000 + "\n---\n", "1024"),
                           ("---\nname: [\n---\n", "SKILL.md:")):
            self.write("style/SKILL.md", text)
            self.refuse(65, "--skill", self.path("style"), words=["SKILL.md", word])

    def test_front_matter_of_ten_megabytes(self):
        self.write("style/SKILL.md", "---\nname: style\ndescription: x\nmetadata:\n" + "  k: v\n" * (10 << 20 >> 3) + "---\n")
        self.refuse(65, "--skill", self.path("style"), words=["SKILL.md"])

    def test_not_there(self):
        self.refuse(66, "--skill", self.path("nowhere"), words=["nowhere"])

    def test_manifests(self):
        for manifest, word in (({"execution_modes": []}, "execution_modes"), ({"id": "other"}, "other"),
                               ({"schemas": {"output": "../out.json"}}, ".."), ({"engines": "all"}, "engines")):
            shutil.rmtree(self.path("pack"), ignore_errors=True)
            self.refuse(65, "--skill", self.package(manifest=manifest), words=[word])

    def test_schemas_of_packages(self):
        pack = self.package(files={"assets/output.schema.json": {"type": "object", "$ref": "#/$defs/a",
                                                                 "$defs": {"a": {"$ref": "#/$defs/a"}}}})
        self.refuse(65, "--skill", pack, words=["output.schema.json"])

    def test_prompt_template(self):
        pack = self.package(manifest={"entrypoint": {"prompts": {"common": "{{ nobody.at.home }}"}}})
        self.refuse(65, "--skill", pack, words=["runner.json", "'nobody' is undefined"])
        pack = self.package(manifest={"entrypoint": {"prompts": {"common": "{% for i in range(90000) %}{% for j in range(90000) %}"
                                                                           "{% endfor %}{% endfor %}"}}})
        self.refuse(65, "--skill", pack, words=["runner.json"])

    def test_zip_slip(self):
        for name in ("../evil.txt", "/evil.txt", "pack/../../evil.txt", "pack\\..\\evil.txt", "C:/evil.txt"):
            path = self.zip("archive.zip", [("pack/SKILL.md", CARD.format(name="pack")), (name, "x")])
            self.refuse(65, "--skill", path, words=["evil"])
        self.assertFalse(os.path.exists(self.path("evil.txt")))

    def test_symbolic_link_in_a_zip(self):
        link = zipfile.ZipInfo("pack/link")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        path = self.zip("archive.zip", [("pack/SKILL.md", CARD.format(name="pack")), (link, "/etc/passwd")])
        self.refuse(65, "--skill", path, words=["link"])

    def test_zip_bombs(self):
        path = self.zip("bomb.zip", [("pack/SKILL.md", CARD.format(name="pack")), ("pack/zeros", b"\0" * (80 << 20))])
        self.assertLess(os.path.getsize(path), 1 << 20)
        self.refuse(65, "--skill", path, words=["bomb.zip"])
        path = self.zip("many.zip", [(f"pack/{i}", "") for i in range(5000)])
        self.refuse(65, "--skill", path, words=["many.zip"])

    def test_lying_zip(self):
        """The directory says ten bytes, the data says a megabyte."""
        path = self.zip("lie.zip", [("pack/SKILL.md", CARD.format(name="pack")), ("pack/x", b"a" * (1 << 20))])
        data = bytearray(open(path, "rb").read())
        for signature, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
            where = data.rindex(signature)
            data[where + at:where + at + 4] = struct.pack("<I", 10)
        open(path, "wb").write(data)
        self.refuse(65, "--skill", path)

    def test_not_a_zip(self):
        self.refuse(65, "--skill", self.write("x.zip", "PK\3\4 and nothing more"), words=["x.zip"])
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as z:
            z.writestr("pack/SKILL.md", CARD.format(name="pack"))
        self.refuse(65, "--skill", self.write("torn.zip", buffer.getvalue()[:-30]), words=["torn.zip"])

    def test_links_in_a_directory_are_not_followed(self):
        secret = self.write("secret.txt", "hidden")
        self.write("style/SKILL.md", CARD.format(name="style"))
        os.symlink(secret, self.path("style", "link"))
        agent = self.script("list.sh", 'ls "$CINCH_SKILLS_DIR/style"\n')
        r = self.run_cinch("goal", "--skill", self.path("style"), "--", agent)
        self.assertEqual(r.bytes("stdout.log"), b"SKILL.md\n")


if __name__ == "__main__":
    harness.main()
