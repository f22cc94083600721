#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A task file from its first byte to the verdict: what is rendered, what is recorded, what is read out of
the answer, and everything that is wrong with a task, told with its place before anything is started."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import textwrap

import harness

SCHEMAS = os.path.join(harness.ROOT, "schema")

WHOLE = """
version: 1
name: whole
description: All keys.
metadata: {owner: me}
agent:
  adapter: command
  model: m
  command: ["true"]
  args: []
  sampling: {temperature: 0.5, max_tokens: 10, top_p: 1, presence_penalty: 0, frequency_penalty: 0, stop: [END], seed: 1}
  effort: high
prompt:
  ns: demo
  key: whole
  name: all of it
  delivery: file
  sections:
    - {key: guide, title: Guide, body: "Look at {{ repo }}.", tools: [run_tests]}
params: {repo: cinch}
tools:
  - {name: run_tests, description: Runs the tests., command: [./t], timeout: 10s, max_output: 1M,
     input_schema: {type: object, properties: {path: {type: string}}}, examples: [{description: All., input: {}, output: ok}]}
  - {name: other, description: Upstream., mcp: {url: "http://127.0.0.1:1/mcp", tools: [a]}}
feedback: [{type: deadline, every_n_seconds: 60}, {type: static, text: x, on_file_created: a}]
completion: {files: [report.md], all: [{command: ["true"]}], max_rounds: 3}
session: {slices: [{name: plan, policy: log}], reducers: [{event: a, slice: b, reducer: upsert_by, key: /id}]}
output: {schema: {type: object}, artifacts: [{path: report.md, required: false}]}
workspace: {path: ., mode: in-place}
sandbox: {mode: "off", net: open, allow_degraded: false}
limits: {timeout: 60, first_output: 0, idle: 0, grace: 5, drain: 5, tokens_input: 0, usd: 0}
throttle: {max_attempts: 5, base_ms: 500, cap_ms: 8000, total_ms: 30000}
env: {set: {A: b}, pass: [LANG], inherit: false}
secrets: []
home: private
exit_profile: native
eval: {test_id: t, tier: T1, run_number: 1}
config: {x: 1}
"""


class Task(harness.Case):
    def setUp(self):
        super().setUp()
        self.witness = self.path("ws", "started")
        self.agent = self.script("agent.sh", f"touch {self.witness}\ncat \"$CINCH_PROMPT_FILE\"\n")

    def task(self, text, name="task.yaml"):
        return self.write(name, textwrap.dedent(text))

    def answer(self, answer, schema, options=(), code=None):
        """A run whose agent prints `answer`, held against the schema."""
        agent = self.script("answer.sh", f"cat <<'EOF'\n{answer}\nEOF\nexit {code or 0}\n")
        path = self.write("answer.schema.json", json.dumps(schema))
        return self.run_command(agent, options=["--output-schema", path, *options])


class Render(Task):
    def test_sections_params_tools(self):
        self.write("part.md", "Included {{ repo }}.")
        path = self.task("""
            prompt:
              ns: demo
              key: review
              sections:
                - key: guide
                  title: Guidelines
                  body: |
                    Review {{ repo }} with care.
                  tools: [run_tests]
                  children:
                    - {key: inc, title: More, body: "{% include 'part.md' %}"}
                    - {key: "off", title: Off, body: never, enabled: false}
                - {key: deep, title: Deep, body: hidden, summary: Short., visibility: summary}
            params: {repo: cinch}
            tools:
              - {name: run_tests, description: Runs the tests., command: [./t],
                 input_schema: {type: object, properties: {path: {type: string}}, required: [path]}}
              - {name: always, description: For the whole prompt., command: [./a]}
            """)
        r = self.run_cinch(path, "--", self.agent)
        want = ("## 1. Guidelines (guide)\n\nReview cinch with care.\n\n"
                "### 1.1. More (guide.inc)\n\nIncluded cinch.\n\n"
                "## 2. Deep (deep)\n\nShort.\n\n---\n[This section is summarized. To view full content, "
                'call `read_section` with key "deep".]')
        self.assertEqual(r.bytes("logs", "prompt.txt").decode(), want)
        self.assertEqual(r.bytes("stdout.log").decode(), want)
        rendered = r.events("PromptRendered")[0]["context"]
        self.assertEqual((rendered["prompt_ns"], rendered["prompt_key"]), ("demo", "review"))
        tools = {t["name"]: t for t in r.events("RenderedTools")[0]["context"]["tools"]}
        self.assertEqual(list(tools), ["always", "run_tests", "read_section"])
        self.assertEqual(tools["run_tests"]["parameters"]["required"], ["path"])
        done = r.events("prompt.render.complete")[0]["context"]
        self.assertEqual(done["tool_count"], 3)

    def test_params_of_the_command_line_win(self):
        path = self.task("""
            prompt: "{{ a }}-{{ b }}"
            params: {a: 1, b: 2}
            """)
        r = self.run_cinch(path, "--param", "b=three", "--", self.agent)
        self.assertEqual(r.bytes("stdout.log"), b"1-three")

    def test_text_without_params_is_left_alone(self):
        r = self.run_cinch("say {{ hello }} {% if %}", "--", self.agent)
        self.assertEqual(r.bytes("stdout.log"), b"say {{ hello }} {% if %}")
        r = self.run_cinch("{{ 1 + 1 }}", "--set", "prompt.template=true", "--", self.agent)
        self.assertEqual(r.bytes("stdout.log"), b"2")

    def test_prompt_file_as_template(self):
        self.write("sub/inc.txt", "included")
        self.write("sub/p.md", "{% include 'inc.txt' %} {{ x }}")
        path = self.task("prompt: {file: sub/p.md}\nparams: {x: y}\n")
        # Includes are found beside the task, whose directory is the border.
        r = self.run_cinch(path, "--", self.agent, valid=False)
        self.assert_failed(r, 66, "inc.txt")
        self.write("inc.txt", "beside the task")
        r = self.run_cinch(path, "--", self.agent)
        self.assertEqual(r.bytes("stdout.log"), b"beside the task y")

    def test_overrides(self):
        body = "Original."
        path = self.task(f"""
            prompt:
              ns: demo
              key: over
              overrides: {{dir: overrides}}
              sections:
                - {{key: a, title: A, body: "{body}"}}
                - {{key: b, title: B, body: "Stays."}}
            """)
        digest = hashlib.sha256(body.encode()).hexdigest()
        self.write("overrides/demo/over/latest.json", json.dumps({
            "version": 2, "ns": "demo", "prompt_key": "over", "tag": "latest",
            "sections": {"a": {"expected_hash": digest, "body": "Replaced."},
                         "b": {"expected_hash": "0" * 64, "body": "Stale."}},
            "tools": {}, "task_example_overrides": []}))
        r = self.run_cinch(path, "--", self.agent)
        text = r.bytes("stdout.log").decode()
        self.assertIn("Replaced.", text)
        self.assertIn("Stays.", text)
        self.assertTrue([w for w in r.events("run.warning") if "stale" in w["message"]],
                        [e["event"] for e in r.events()])

    def test_example(self):
        shutil.copytree(os.path.join(harness.ROOT, "examples", "review"), self.path("review"))
        r = self.run_cinch(self.path("review", "task.yaml"))
        self.assertEqual((r.code, r.result["output"]), (0, {"findings": 0, "verdict": "good"}), r.stderr)
        self.assertIn(b"2 files were read", r.bytes("artifacts", "review.md"))

    def test_seeded_overrides(self):
        path = self.task("""
            prompt:
              ns: demo
              key: seed
              overrides: {dir: overrides, tag: mine}
              sections: [{key: a, title: A, body: "Original."}]
            """)
        seed = json.loads(self.cinch("task", "seed", path).stdout)
        self.assertEqual(seed["sections"]["a"]["body"], "Original.")
        seed["sections"]["a"]["body"] = "Edited."
        self.write("overrides/demo/seed/mine.json", json.dumps(seed))
        r = self.run_cinch(path, "--", self.agent)
        self.assertIn(b"Edited.", r.bytes("stdout.log"))
        self.assertEqual(r.events("run.warning"), [])
        self.assert_failed(self.cinch("task", "seed", self.task("prompt: x\n")), 65, "sections")

    def test_every_key_is_read_and_recorded(self):
        path = self.task(WHOLE)
        changes = ("--set", "output.schema=null", "--set", "agent.command=[\"true\"]")
        r = self.run_cinch(path, *changes)
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)  # nobody listens at that server
        self.assertIn("other", json.dumps(r.result["error"]))
        r = self.run_cinch(path, *changes, "--set", "tools=[]", "--set", "prompt.sections=null", "--set", "prompt.text=x")
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)       # report.md is never written
        self.assertEqual(len(r.events("task_completion.incomplete")), 3)
        self.write(os.path.join(self.workspace, "report.md"), "there")
        r = self.run_cinch(path, *changes, "--set", "tools=[]", "--set", "prompt.sections=null", "--set", "prompt.text=x")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.json("task.json")["metadata"], {"owner": "me"})
        self.assertEqual(r.json("task.json")["agent"]["effort"], "high")

    def test_schema_for_editors_takes_what_we_take(self):
        self.task(WHOLE)
        with open(os.path.join(harness.ROOT, "docs", "task.md")) as f:
            blocks = re.findall("```yaml\n(.*?)```", f.read(), re.S)
        self.assertEqual(len(blocks), 3)
        documented = [self.write(f"documented{i}.yaml", block) for i, block in enumerate(blocks)]
        done = subprocess.run(["/usr/bin/python3", "-c", textwrap.dedent("""
            import json, sys, jsonschema, yaml
            schema = json.load(open(sys.argv[1]))
            jsonschema.Draft202012Validator.check_schema(schema)
            check = jsonschema.Draft202012Validator(schema)
            for name in sys.argv[2:]:
                for e in check.iter_errors(yaml.safe_load(open(name))):
                    sys.exit(f"{name}: {e.json_path}: {e.message}")
            for text in ('prompt: text', 'workspace: .', 'output: out', 'secrets: [A]', 'sandbox: read-only',
                         'gateway: http://x', 'skills: [a, {path: b}]', 'limits: {timeout: null}', 'prompt: [{key: a, title: b}]'):
                check.validate(yaml.safe_load(text))
            for text in ('prompt: 5', 'sandbox: jail', 'limts: {}', 'tools: [{description: x}]', 'agent: {effort: huge}'):
                assert not check.is_valid(yaml.safe_load(text)), text
            """), os.path.join(SCHEMAS, "task-file.schema.json"), self.path("task.yaml"),
            *documented, os.path.join(harness.ROOT, "examples", "hello", "task.yaml"),
            os.path.join(harness.ROOT, "examples", "review", "task.yaml")], capture_output=True, text=True)
        if "No module named" in done.stderr:
            self.skipTest("python3-yaml or python3-jsonschema is not installed")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)


class Look(Task):
    """cinch task check, cinch task render: the same eyes as a run, and nothing is touched."""

    def test_check(self):
        path = self.task(WHOLE)
        before = sorted(os.listdir(self.dir))
        r = self.cinch("task", "check", path)
        self.assertEqual((r.code, r.stderr), (0, b""))
        for word in ("ok", "whole", "guide", "run_tests", "command"):
            self.assertIn(word, r.stdout.decode())
        found = json.loads(self.cinch("task", "check", path, "--format", "json").stdout)
        self.assertTrue(found["ok"])
        self.assertEqual([s["path"] for s in found["prompt"]["sections"]], ["guide"])
        self.assertEqual([t["name"] for t in found["tools"]], ["other", "run_tests"])
        self.assertNotIn("sent", found)
        self.assertEqual(self.cinch("task", "check", path, "--quiet").stdout, b"")
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_render_is_what_a_run_sends(self):
        path = self.task(WHOLE)
        r = self.cinch("task", "render", path, "--format", "json")
        sent = json.loads(r.stdout)["sent"]
        run = self.run_cinch(path, "--", self.agent, valid=False)
        self.assertEqual(sent["prompt"].encode(), run.bytes("logs", "prompt.txt"))
        self.assertEqual(self.cinch("task", "render", path, "--quiet").stdout, run.bytes("logs", "prompt.txt"))
        self.assertEqual(sent["sampling"]["seed"], 1)
        self.assertEqual(sent["effort"], "high")
        r = self.cinch("task", "render", path, "--", "agent", "{prompt_file}", "{output_schema_file}", "{effort}")
        for word in (b"RUN/home/.cinch/prompt.md", b"RUN/home/.cinch/output.schema.json", b"high"):
            self.assertIn(word, r.stdout)

    def test_terminal_is_safe(self):
        path = self.task('prompt: "a\\e]0;title\\a"\n')
        self.assertNotIn(b"\x1b", self.cinch("task", "render", path).stdout)

    def test_wrong(self):
        path = self.task("prompt: '{{ x }}'\nparams: {y: 1}\n")
        r = self.cinch("task", "check", path)
        self.assert_failed(r, 65, f"{path}:1:9: prompt:1", "'x' is undefined")
        error = json.loads(self.cinch("task", "check", path, "--format", "json").stderr)["error"]
        self.assertEqual(error["exit"], 65)
        self.assert_failed(self.cinch("task", "check", self.path("none.yaml")), 66, "none.yaml")
        self.assert_failed(self.cinch("task", "chek", path), 64, "chek")

    def test_what_a_run_would_refuse(self):
        path = self.task("prompt: x\nlimits: {usd: 1}\n")
        self.assertIn(b"would be refused", self.cinch("task", "check", path).stdout)


    def test_what_a_task_names_is_read(self):
        self.write("bad.yaml", "turns:\n  - sai: x\n")
        self.write("text", "no cassette")
        for text, code, word in (
                ("gateway: {script: none.yaml}", 66, "none.yaml"),
                ("gateway: {script: bad.yaml}", 65, "bad.yaml:2:5: unknown key"),
                ("gateway: {cassette: text}", 65, "text"),
                ("gateway: {upstream: 'ftp://x'}", 65, "ftp://x"),
                ("gateway: {routes: [{model: m, upstream: 'http://h:99999'}]}", 65, "99999"),
                ("gateway: {upstream: 'http://h', prices: none.yaml}", 66, "none.yaml"),
                ("workspace: none", 66, "none"),
                ("env: {set: {'A=B': c}}", 65, "'A=B' is not a name"),
                ("env: {pass: [a b]}", 65, "'a b' is not a name"),
                ("files: {none: {}}", 65, "no configuration file 'none'")):
            path = self.task(f"agent: {{command: [x]}}\nprompt: x\n{text}\n")
            self.assert_failed(self.cinch("task", "check", path), code, word)
        # The credential is the business of the run.
        path = self.task("prompt: x\ngateway: {upstream: 'https://api.anthropic.com'}\n")
        self.assertEqual(self.cinch("task", "check", path, "--quiet").code, 0)


class Wrong(Task):
    """Each is 65 with its place, in the record too, and starts nothing."""

    def refuse(self, text, *words, code=65, args=()):
        path = self.task(text)
        r = self.run_cinch(path, *args, "--", self.agent)
        self.assert_failed(r, code, *words)
        self.assertFalse(os.path.exists(self.witness), "something was started")
        self.assertNotIn(b"Sanitizer", r.stderr)
        self.assertEqual(r.manifest["exit_code"], code)
        check = self.cinch("task", "check", path, *args)
        self.assert_failed(check, code, *words)
        return r

    def sections(self, *lines):
        return "prompt:\n  ns: n\n  key: k\n  sections:\n" + "".join(f"    - {line}\n" for line in lines)

    def test_unknown_keys(self):
        self.refuse("prmpt: x\n", "task.yaml:1:1: unknown key 'prmpt' (did you mean 'prompt'?)")
        self.refuse("agent:\n  smapling: {}\n", "task.yaml:2:3: unknown key 'agent.smapling' (did you mean 'sampling'?)")
        self.refuse("tools:\n  - {name: a, descripton: x, command: [y]}\n",
                    "task.yaml:2:15: unknown key 'tools[0].descripton' (did you mean 'description'?)")
        self.refuse(self.sections("{key: a, titel: A}"), "task.yaml:5:16", "did you mean 'title'?")

    def test_duplicates(self):
        tool = "{name: a, description: x, command: [y]}"
        self.refuse(f"tools:\n  - {tool}\n  - {tool}\n", "task.yaml:3:12: tool 'a' is there twice; the first is in line 2")
        self.refuse(self.sections("{key: a, title: A}", "{key: a, title: B}"), "task.yaml:6", "'a'")
        self.refuse(self.sections("{key: a, title: A, tools: [t]}", "{key: b, title: B, tools: [t]}") +
                    "tools: [{name: t, description: x, command: [y]}]\n", "task.yaml:6", "'t'")

    def test_unknown_tool_of_a_section(self):
        self.refuse(self.sections("{key: a, title: A, tools: [nope]}"), "task.yaml:5:34", "there is no tool 'nope'")

    def test_wrong_types(self):
        self.refuse("prompt: 5\n", "'prompt' must be a map")
        self.refuse("agent: {sampling: {temperature: hot}}\n", "task.yaml:1:33", "must be a number, not 'hot'")
        self.refuse("output: {artifacts: [5]}\n", "'output.artifacts[0]' must be a map")
        self.refuse(self.sections("{key: a, title: 5}"), "task.yaml:5:23", "must be a string")
        self.refuse("params: [1]\n", "'params' must be a map")

    def test_given_twice(self):
        self.refuse("prompt: {text: x, sections: [{key: a, title: A}]}\n", "given twice", code=64)

    def test_template_bombs(self):
        for body, word in (
                ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper than 64"),
                ("{% for i in range(90000) %}{% for j in range(90000) %}x{% endfor %}{% endfor %}", "rounds"),
                ("{{ 'x' * 100000000 }}", "16777216"),
                ("{{ range(10000000) }}", "100000"),
                ("{{ " + "(" * 5000, "too deep"),
                ("{% if 1 %}" * 500, "deep")):
            text = json.dumps(body)
            self.refuse(f"prompt: {{text: {text}, template: true}}\n", "task.yaml:1:16: prompt", word)
            self.refuse(self.sections(f"{{key: a, title: A, body: {text}}}"), "task.yaml:5:", word)

    def test_cyclic_includes(self):
        self.write("a.md", "{% include 'b.md' %}")
        self.write("b.md", "{% include 'a.md' %}")
        self.refuse("prompt: {text: \"{% include 'a.md' %}\", template: true}\n", ".md:1", "64")

    def test_include_stays_in_the_directory(self):
        self.write("outside.md", "secret")
        os.makedirs(self.path("inner"), exist_ok=True)
        path = self.write("inner/task.yaml", "prompt: {text: \"{% include '../outside.md' %}\", template: true}\n")
        os.symlink("../outside.md", self.path("inner", "link.md"))
        for name in ("../outside.md", "/etc/passwd", "link.md"):
            self.write("inner/task.yaml", f"prompt: {{text: \"{{% include '{name}' %}}\", template: true}}\n")
            r = self.run_cinch(path, "--", self.agent, valid=False)
            self.assertIn(r.code, (65, 66), r.stderr)
            self.assertFalse(os.path.exists(self.witness))

    def test_undefined_variable(self):
        r = self.refuse(self.sections('{key: a, title: A, body: "{{ nobody }}"}'), "task.yaml:5:32", "section 'a'",
                        "'nobody' is undefined")
        self.assertEqual(r.reason, "bad_task")

    def test_schemas(self):
        self.refuse("output: {schema: {$ref: '#/$defs/a', $defs: {a: {$ref: '#/$defs/a'}}}}\n", "task.yaml:1:18", "schema")
        self.refuse("output: {schema: {$ref: 'https://x.example/s.json'}}\n", "output.schema", "x.example")
        self.refuse("output: {schema: {pattern: '('}}\n", "output.schema", "pattern")
        self.refuse("output: {schema: none.json}\n", "none.json", code=66)
        self.write("bad.json", '{"type": 5}')
        self.refuse("output: {schema: bad.json}\n", "bad.json", "type")
        self.write("torn.json", '{"type": ')
        self.refuse("output: {schema: torn.json}\n", "torn.json:1:")

    def test_too_large_and_too_deep(self):
        self.refuse("x: " + "[" * 500 + "]" * 500, "task.yaml")
        self.refuse("a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(8)), "task.yaml")
        self.refuse("description: " + "x" * (9 << 20), "task.yaml")

    def test_secrets_by_name_only(self):
        self.refuse("secrets: ['TOKEN=value']\n", "task.yaml:1:11", "never by its value")

    def test_what_nobody_keeps(self):
        """A guarantee that the adapter cannot give is refused before anything is started."""
        for text in ("limits: {usd: 1}", "limits: {tokens_total: 5}", "policies: [{type: deny, tools: [x]}]"):
            r = self.run_cinch(self.task(text + "\n"), "--", self.agent)
            self.assert_failed(r, 69, text.split(":")[0])
            self.assertFalse(os.path.exists(self.witness))


class Answer(Task):
    """Structured output: the ladder, the schema, and what stays when there is none."""

    SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}

    def test_the_ladder(self):
        for text, repair, level in (
                ('{"n": 1}', "none", 0),
                ('{"result": {"n": 1}, "cost": 3}', "envelope", 1),
                ('Here you are:\n```json\n{"n": 1}\n```\nBye.', "fence", 2),
                ('I think {"n": 1} is it, not {"n": "x"}.', "balanced", 3)):
            r = self.answer(text, self.SCHEMA)
            self.assertEqual((r.code, r.result["output"]), (0, {"n": 1}), text)
            self.assertEqual((r.result["output_repair"], r.result["repair_level"], r.result["output_source"]),
                             (repair, level, "text"))
            self.assertIsNone(r.result["output_error"])
            self.assertEqual(r.events("PromptExecuted")[0]["context"]["result"]["output"], {"n": 1})

    def test_the_agent_is_told(self):
        path = self.write("s.json", json.dumps(self.SCHEMA))
        agent = self.script("told.sh", 'cat "$CINCH_PROMPT_FILE" >&2; cat "$CINCH_OUTPUT_SCHEMA" >&2; echo "{\\"n\\": 2}"\n')
        r = self.run_cinch("count", "--output-schema", path, "--", agent)
        self.assertEqual(r.code, 0)
        text = r.bytes("stderr.log").decode()
        self.assertTrue(text.startswith("count\n\nAnswer with one JSON value"), text)
        self.assertEqual(text.count('"additionalProperties": false'), 2)

    def test_no_valid_answer(self):
        for text, words in (("I could not do it.", "JSON"), ('{"n": "many"}', "/n: expected integer"),
                            ('{"n": 1, "extra": 2}', "extra"), ('{"n": ', "does not parse")):
            r = self.answer(text, self.SCHEMA)
            self.assertEqual((r.code, r.reason), (1, "failure"), text)
            self.assertIn("OutputParseError", r.manifest["error"])
            error = r.result["output_error"]
            self.assertEqual(error["type"], "OutputParseError")
            self.assertIn(words, error["message"])
            self.assertIsNone(r.result["output"])
            self.assertEqual(r.bytes("evidence", "output.txt").decode(), text.strip())
            self.assertIn("evidence/output.txt", json.dumps(r.manifest["artifacts"]))
            self.assertEqual(r.events("PromptExecuted"), [])

    def test_array_in_items(self):
        r = self.answer('{"items": [1, 2]}', {"type": "array", "items": {"type": "integer"}})
        self.assertEqual(r.result["output"], [1, 2])

    def test_valid_answer_and_bad_exit(self):
        r = self.answer('{"n": 1}', self.SCHEMA, code=3)
        self.assertEqual((r.code, r.result["output"]), (0, {"n": 1}))
        r = self.answer('{"n": 1}', self.SCHEMA, code=3, options=["--exit-profile", "scylla"])
        self.assertEqual(r.code, 3)
        r = self.answer("no", self.SCHEMA, code=3)
        self.assertIn("exited with 3", r.manifest["error"])

    def test_catastrophic_pattern(self):
        schema = {"type": "string", "pattern": "^(a+)+$"}
        r = self.answer('"' + "a" * 5000 + '!"', schema)
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertTrue(r.result["output_error"]["message"])

    def test_native_answer(self):
        profiles = self.make_dir("profiles")
        self.write("profiles/native.yaml", textwrap.dedent("""
            name: native
            binary: [sh]
            argv: ["{binary}", -c, "echo \\"$1\\"; cat \\"$2\\" >&2", sh, "{args...}", {when: output_schema_file, args: ["{output_schema_file}"]}]
            prompt: file
            output: {format: ndjson, rules: [{when: {/type: result}, text: /text, structured: /value}]}
            """))
        schema = self.write("s.json", json.dumps(self.SCHEMA))
        line = json.dumps({"type": "result", "text": "prose", "value": {"n": 7}})
        r = self.run_cinch("go", "--adapter-dir", profiles, "--adapter", "native", "--output-schema", schema, "--", line)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual((r.result["output"], r.result["output_source"]), ({"n": 7}, "native"))
        self.assertEqual(r.bytes("logs", "prompt.txt"), b"go", "a native schema needs no words")
        self.assertIn(b'"integer"', r.bytes("stderr.log"))
        line = json.dumps({"type": "result", "text": '{"n": 8}', "value": {"n": "bad"}})
        r = self.run_cinch("go", "--adapter-dir", profiles, "--adapter", "native", "--output-schema", schema, "--", line)
        self.assertEqual((r.result["output"], r.result["output_source"]), ({"n": 8}, "text"))


    def test_dialects_of_schemas(self):
        """What is sent has the harness' form, what comes back is held against ours."""
        schema = {"type": "array", "items": {"type": "object", "properties": {
            "n": {"type": "integer", "minimum": 2}, "note": {"type": "string"}}, "required": ["n"]}}
        path = self.write("s.json", json.dumps(schema))
        profiles = self.make_dir("profiles")

        def run(form, answer):
            self.write("profiles/p.yaml", "name: p\nbinary: [sh]\nargv: ['{binary}', -c, 'cat \"$1\" >&2; echo \"$2\"', sh, "
                       "'{output_schema_file}', '{args...}']\noutput_schema: {form: " + form + "}\n")
            r = self.run_cinch("go", "--adapter-dir", profiles, "--adapter", "p", "--output-schema", path, "--", answer)
            return r, json.loads(r.bytes("stderr.log"))

        r, sent = run("openai", '{"items": [{"n": 3, "note": null}]}')
        self.assertEqual(r.result["output"], [{"n": 3}], r.stderr)
        item = sent["properties"]["items"]["items"]
        self.assertEqual((sent["additionalProperties"], sorted(item["required"])), (False, ["n", "note"]))
        r, sent = run("wrapped", '{"items": [{"n": 3}]}')
        self.assertEqual((r.result["output"], sent["required"]), ([{"n": 3}], ["items"]))
        r, sent = run("plain", '[{"n": 3, "note": null}]')
        self.assertEqual((r.reason, sent), ("failure", schema))
        r, _ = run("openai", '{"items": [{"n": 1, "note": null}]}')
        self.assertEqual(r.reason, "failure", "the strict form knows no minimum, the task does")


class Artifacts(Task):
    def run_task(self, artifacts, script):
        path = self.task(f"output: {{artifacts: {artifacts}}}\n")
        return self.run_cinch(path, "--", self.script("work.sh", script))

    def test_from_both_places(self):
        r = self.run_task("[a.md, deep/b.md, {path: c.md, required: false}]",
                          'echo a > "$CINCH_ARTIFACTS_DIR/a.md"; mkdir deep; echo b > deep/b.md\n')
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(r.bytes("artifacts", "a.md"), b"a\n")
        self.assertEqual(r.bytes("artifacts", "deep", "b.md"), b"b\n")
        self.assertFalse(r.exists("artifacts", "c.md"))

    def test_missing(self):
        r = self.run_task("[a.md]", "true\n")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("a.md", r.manifest["error"])

    def test_links_and_devices_do_not_count(self):
        secret = self.write("secret.txt", "hidden")
        for script in (f"ln -s {secret} a.md\n", f'ln -s {secret} "$CINCH_ARTIFACTS_DIR/a.md"\n', "mkfifo a.md\n",
                       "mkdir a.md\n"):
            r = self.run_task("[a.md]", script)
            self.assertEqual((r.code, r.reason), (1, "failure"), script)
            kept = r.path("artifacts", "a.md")
            self.assertFalse(os.path.isfile(kept) and not os.path.islink(kept))
            subprocess.run(["rm", "-rf", os.path.join(self.workspace, "a.md")], check=True)

    def test_kept_also_after_a_failure(self):
        r = self.run_task("[a.md]", "echo a > a.md; exit 3\n")
        self.assertIn("exited with 3", r.manifest["error"])
        self.assertEqual(r.bytes("artifacts", "a.md"), b"a\n")


if __name__ == "__main__":
    harness.main()
