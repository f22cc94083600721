#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The documentation is true: every code block of README.md, docs/start.md and docs/guides/ is executed, in order, in a
directory of the page's own, with the program under test. Links lead somewhere, and the command map knows every option.

What happens to a block is said by its language and by comments before it, which a reader of the page does not see:

    ```sh                            run by bash -e; variables that it exports hold for the rest of the page
    ```console                       lines after `$ ` are run, and must print what follows; `…` is any text, a line `…` any lines
    ```text                          not code
    <!-- test: file NAME -->         the block is the content of the file NAME (executable if it begins with #!)
    <!-- test: exit N -->            the block must exit with N
    <!-- test: workflow -->          a workflow of GitHub Actions: each `run` of its steps is run
    <!-- test: skip REASON -->       not run here; counts as skipped
    <!-- test: with PROGRAM -->      skipped where the program is not installed
    <!-- test: needs PROGRAM -->     for the rest of the page: a real agent program of scripts/harness, in PATH; or
                                     plain-build, a build without sanitizers
    <!-- test: model                 for the rest of the page: this script answers in place of the provider, set in the
    ... -->                          user's configuration, so that the commands of the page are run as they are
    <!-- test: setup                 shell commands that prepare what the reader has already
    ... -->
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import uuid

import yaml

import harness

FILE_TIMEOUT = 900
COMMENT = re.compile(r"<!-- test: (\w+)\s*(.*?)\s*-->", re.DOTALL)
FENCE = re.compile(r"^( *)(```+)(\w*)\n(.*?)^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
PROGRESS = re.compile(r"^\[ *\d+\.\ds\] \w+$")
SECONDS = re.compile(r"\d+\.\d+ ?s\b")
PAGES = ["README.md", "docs/start.md"] + sorted(os.path.relpath(p, harness.ROOT)
                                                for p in glob.glob(os.path.join(harness.ROOT, "docs/guides/*.md")))
WAYS = {"file", "exit", "workflow", "skip", "with", "needs", "model", "setup"}


def read(name):
    with open(os.path.join(harness.ROOT, name), encoding="utf-8") as f:
        return f.read()


class Step:
    """One thing to do for a page: a directive that stands alone, or a block with its own."""

    def __init__(self, line, kind, text, ways):
        self.line, self.kind, self.text, self.ways = line, kind, text, ways


def steps(page):
    """The steps of a page in order. A comment belongs to the block that follows it, unless it is for the rest of the page."""
    tokens = sorted([*COMMENT.finditer(page), *FENCE.finditer(page)], key=lambda m: m.start())
    fences = [m.span() for m in FENCE.finditer(page)]
    pending = {}
    for token in tokens:
        line = page.count("\n", 0, token.start()) + 1
        if token.re is COMMENT:
            if any(start <= token.start() < end for start, end in fences):
                continue
            way, value = token.groups()
            if way not in WAYS:
                raise AssertionError(f"line {line}: there is no 'test: {way}'")
            if way in ("needs", "model", "setup"):
                yield Step(line, way, value, {})
            else:
                pending[way] = value
        else:
            indent, _, language, text = token.groups()
            text = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
            yield Step(line, language, text, pending)
            pending = {}
    if pending:
        raise AssertionError(f"'test: {next(iter(pending))}' has no block after it")


def commands(text):
    """(command, expected lines) of a console block; a command may go on with `> ` lines."""
    found = []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            raise AssertionError(f"a console block begins with '$ ', not with: {line}")
        elif line.startswith("> "):
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        else:
            found[-1][1].append(line)
    return found


def matches(expected, got):
    """Whether the lines fit; `…` alone stands for any number of lines, within a line for any text. Times are not compared."""
    pattern = ""
    for line in expected:
        if line == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(SECONDS.sub("0s", line)).replace("…", ".*") + r"\n"
    return re.fullmatch(pattern, "".join(SECONDS.sub("0s", line) + "\n" for line in got)) is not None


class Reader:
    """Does what a page says. Home, directory and environment live as long as the page."""

    def __init__(self, mark):
        self.dir = tempfile.mkdtemp(prefix="cinch-docs-")
        self.home, self.cwd = os.path.join(self.dir, "home"), os.path.join(self.dir, "project")
        self.exports = os.path.join(self.dir, "exports")
        for path in (self.home, self.cwd, os.path.join(self.dir, "tmp")):
            os.mkdir(path)
        with open(os.path.join(self.home, ".gitconfig"), "w", encoding="utf-8") as f:
            f.write("[user]\nname = Reader\nemail = reader@example.org\n[init]\ndefaultBranch = main\n")
        self.env = {
            "PATH": os.path.dirname(harness.CINCH) + ":" + os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.home,
            "TMPDIR": os.path.join(self.dir, "tmp"),
            "CINCH_SITE_DIR": os.path.join(self.dir, "no-site"),
            "CINCH_SOURCE": harness.ROOT,
            "CINCH_BUILD": harness.BUILD,
            "CINCH_TEST_MARK": mark,
            "LANG": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def shell(self, text):
        """(exit status, lines printed); what the text exports, and where it went, holds for the next one."""
        script = f'set -e\n[ ! -e "{self.exports}" ] || . "{self.exports}"\n' \
                 f'trap \'status=$?; export -p > "{self.exports}"; pwd > "{self.exports}.pwd"; exit $status\' EXIT\n{text}\n'
        done = subprocess.run(["bash", "-c", script], cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
        if os.path.exists(self.exports + ".pwd"):
            with open(self.exports + ".pwd", encoding="utf-8") as f:
                self.cwd = f.read().rstrip("\n")
        lines = done.stdout.decode(errors="replace").split("\n")
        return done.returncode, [line for line in lines if line and not PROGRESS.match(line)]

    def expect(self, text, status):
        code, lines = self.shell(text)
        if code != status:
            raise AssertionError(f"exit {code}, not {status}:\n{text}\nprinted:\n" + "\n".join(lines))

    def console(self, text, status):
        found = commands(text)
        for i, (command, expected) in enumerate(found):
            code, lines = self.shell(command)
            # Only the last command decides; a page shows failures, too.
            if i == len(found) - 1 and status is not None and code != status:
                raise AssertionError(f"$ {command}\nexit {code}, not {status}:\n" + "\n".join(lines))
            expected = [line for line in expected if line]
            if not matches(expected, lines):
                raise AssertionError(f"$ {command}\nthe page says:\n" + "\n".join(expected) + "\nit printed:\n" + "\n".join(lines))

    def write(self, name, text):
        path = os.path.join(self.cwd, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if text.startswith("#!"):
            os.chmod(path, 0o755)

    def model(self, text):
        """The provider's part is played by a script, for every run without another model."""
        script = os.path.join(self.home, "model.yaml")
        folder = os.path.join(self.home, ".config", "cinch")
        os.makedirs(folder, exist_ok=True)
        with open(script, "w", encoding="utf-8") as f:
            f.write(text + "\n")
        with open(os.path.join(folder, "config.yaml"), "w", encoding="utf-8") as f:
            f.write(f"gateway: {{script: {script}}}\n")

    def workflow(self, text):
        ran = 0
        for job in yaml.safe_load(text)["jobs"].values():
            for step in job["steps"]:
                if "run" in step and not step["run"].startswith(("sudo ", "npm ", "make ")):
                    self.expect(step["run"], 0)
                    ran += 1
        if not ran:
            raise AssertionError("no step of the workflow was run")

    def do(self, step):
        """Carries out one step; raises SkipTest or AssertionError."""
        ways = step.ways
        status = int(ways.get("exit", 0))
        if "skip" in ways:
            if not ways["skip"]:
                raise AssertionError("'test: skip' needs a reason")
            raise unittest.SkipTest(ways["skip"])
        if "with" in ways and shutil.which(ways["with"]) is None:
            raise unittest.SkipTest(f"{ways['with']} is not installed")
        if step.kind == "needs":
            if harness.SANITIZED:
                raise unittest.SkipTest("real agent programs and the library are tried with the plain build")
            if step.text == "plain-build":
                return
            path, why = harness.real(step.text)
            if path is None:
                raise unittest.SkipTest(f"{step.text}: {why}")
            self.expect(f'export PATH="{os.path.dirname(path)}:$PATH"', 0)
        elif step.kind == "model":
            self.model(step.text)
        elif step.kind == "setup":
            self.expect(step.text, 0)
        elif "file" in ways:
            self.write(ways["file"], step.text)
        elif "workflow" in ways:
            self.workflow(step.text)
        elif step.kind == "text":
            return
        elif step.kind == "sh":
            self.expect(step.text, status)
        elif step.kind == "console":
            self.console(step.text, status if "exit" in ways else None)
        else:
            raise AssertionError(f"nothing says what to do with a block of '{step.kind}'")


class Page(unittest.TestCase):
    """The steps of one page; each is a test. A page whose program is missing is skipped from there on."""

    name, reader, lost = None, None, None

    @classmethod
    def setUpClass(cls):
        cls.mark = uuid.uuid4().hex
        cls.reader = Reader(cls.mark)

    @classmethod
    def tearDownClass(cls):
        cls.reader.close()
        mark = "CINCH_TEST_MARK=" + cls.mark
        try:
            harness.wait_until(lambda: not harness.marked(mark), "processes of the page", patience=10)
        except AssertionError:
            left = harness.marked(mark)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"{cls.name}: processes are left: {left}") from None

    def carry_out(self, step):
        if type(self).lost:
            self.skipTest(type(self).lost)
        try:
            self.reader.do(step)
        except unittest.SkipTest as reason:
            if step.kind == "needs":
                type(self).lost = str(reason)
            raise


def page_class(name):
    body = {"name": name}
    for number, step in enumerate(steps(read(name)), 1):
        def test(self, step=step):
            self.carry_out(step)
        test.__doc__ = f"{name}:{step.line}"
        body[f"test_{number:03}_line_{step.line}_{next(iter(step.ways), step.kind)}"] = test
    return type("Page_" + re.sub(r"\W", "_", name), (Page,), body)


for page_name in PAGES:
    made = page_class(page_name)
    globals()[made.__name__] = made
del made


class Checks(unittest.TestCase):
    """A page that is wrong is found out."""

    def setUp(self):
        self.reader = Reader(uuid.uuid4().hex)
        self.addCleanup(self.reader.close)

    def read_page(self, page):
        for step in steps(page):
            self.reader.do(step)

    def assert_wrong(self, page, *words):
        with self.assertRaises(AssertionError) as caught:
            self.read_page(page)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_a_good_page(self):
        self.read_page("<!-- test: file a.txt -->\n```text\nhi\n```\n\n```sh\nexport A=1; mkdir d; cd d\n```\n"
                       "```console\n$ echo $A; cat ../a.txt; pwd\n1\nhi\n…/d\n$ false\n```\n"
                       "<!-- test: exit 3 -->\n```sh\nexit 3\n```\n")

    def test_a_command_that_fails(self):
        self.assert_wrong("```sh\ncinch no-such-command\n```\n", "exit 64, not 0", "unknown command")

    def test_a_command_in_the_middle_that_fails(self):
        self.assert_wrong("```sh\ncinch no-such-command\ntrue\n```\n", "exit 64")

    def test_a_command_that_should_fail(self):
        self.assert_wrong("<!-- test: exit 1 -->\n```sh\ntrue\n```\n", "exit 0, not 1")

    def test_output_that_is_different(self):
        self.assert_wrong("```console\n$ echo one\ntwo\n```\n", "the page says:\ntwo", "it printed:\none")
        self.assert_wrong("```console\n$ echo one; echo two\none\n```\n", "it printed")
        self.assert_wrong("```console\n$ echo one\none\n…\nthree\n```\n", "it printed")

    def test_times_are_not_compared(self):
        self.read_page("```console\n$ echo 'success in 12.3s'\nsuccess in 0.1s\n```\n")

    def test_a_block_without_a_purpose(self):
        self.assert_wrong("```yaml\na: 1\n```\n", "nothing says what to do with a block of 'yaml'")

    def test_an_unknown_directive(self):
        self.assert_wrong("<!-- test: sikp x -->\n```sh\ntrue\n```\n", "there is no 'test: sikp'")

    def test_a_skip_without_a_reason(self):
        self.assert_wrong("<!-- test: skip -->\n```sh\nfalse\n```\n", "needs a reason")

    def test_a_skip_counts_as_one(self):
        with self.assertRaises(unittest.SkipTest) as caught:
            self.read_page("<!-- test: skip needs a key -->\n```sh\nfalse\n```\n")
        self.assertEqual(str(caught.exception), "needs a key")

    def test_a_directive_without_a_block(self):
        self.assert_wrong("<!-- test: exit 1 -->\n", "has no block after it")

    def test_a_workflow(self):
        page = "<!-- test: workflow -->\n```yaml\njobs: {a: {steps: [{uses: x}, {run: %s}]}}\n```\n"
        self.read_page(page % "'true'")
        self.assert_wrong(page % "'false'", "exit 1, not 0")
        self.assert_wrong(page % "sudo x", "no step of the workflow was run")

    def test_a_task_that_is_wrong(self):
        self.assert_wrong("<!-- test: file t.yaml -->\n```yaml\nlimit: {timeout: 1m}\n```\n```sh\ncinch task check t.yaml\n```\n",
                          "exit 65", "unknown key")

    def test_the_stand_in_for_a_model(self):
        self.read_page("<!-- test: model\nsteps: [{say: I am a script.}]\n-->\n"
                       "```sh\ncinch run -a api-direct -m m -o out hello\ngrep 'I am a script' out/result.json\n```\n")


class Links(unittest.TestCase):
    """Every relative link of the documentation leads to a file, and to a heading of it."""

    LINK = re.compile(r"\]\(([^)\s]+)\)")

    def anchors(self, text):
        """Anchors as GitHub makes them."""
        text = FENCE.sub("", text)
        heads = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", h) for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
        return {re.sub(r"[^\w\- ]", "", head.lower().strip()).replace(" ", "-") for head in heads}

    def test_links(self):
        names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGES.md"]
        names += [os.path.relpath(p, harness.ROOT) for p in glob.glob(os.path.join(harness.ROOT, "docs/**/*.md"), recursive=True)]
        for name in names:
            for target in self.LINK.findall(FENCE.sub("", read(name))):
                if re.match(r"\w+:", target):
                    continue
                with self.subTest(f"{name}: {target}"):
                    path, _, anchor = target.partition("#")
                    path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                    self.assertTrue(os.path.exists(os.path.join(harness.ROOT, path)), "no such file")
                    if anchor and path.endswith(".md"):
                        self.assertIn(anchor, self.anchors(read(path)))

    def test_every_page_is_in_the_index(self):
        index = read("docs/README.md")
        for pattern in ("docs/*.md", "docs/guides/*.md", "docs/adr/*.md"):
            for path in glob.glob(os.path.join(harness.ROOT, pattern)):
                target = os.path.relpath(path, os.path.join(harness.ROOT, "docs"))
                if target != "README.md":
                    self.assertIn(f"({target})", index)


class Guides(unittest.TestCase):
    def test_a_guide_begins_with_something_to_paste(self):
        for name in PAGES[2:]:
            with self.subTest(name):
                text = read(name)
                fence = FENCE.search(text)
                self.assertLess(fence.start(), text.index("\n## "), "something to paste comes first")
                self.assertLessEqual(fence.group(4).count("\n"), 16)
                self.assertRegex(text, r"(?m)^## (Reference|Read on)$")

    def test_the_name_of_a_file_is_visible(self):
        for name in PAGES:
            page = read(name)
            for match in re.finditer(r"<!-- test: file (\S+) -->\n```\w+\n(.*\n.*)", page):
                before = COMMENT.sub("", page[: match.start()]).rstrip().split("\n\n")[-1]
                with self.subTest(f"{name}: {match.group(1)}"):
                    self.assertIn(match.group(1), before + match.group(2))

    def test_code_is_fenced(self):
        """Indented code would not be run."""
        for name in PAGES:
            with self.subTest(name):
                self.assertNotRegex(FENCE.sub("", COMMENT.sub("", read(name))), r"\n\n {4}\S")


class CommandMap(unittest.TestCase):
    """docs/adr/0012-command-map.md knows every command and every letter of today's program."""

    def setUp(self):
        self.map = read("docs/adr/0012-command-map.md")
        self.today = read("docs/cli.md")

    def sections(self):
        for part in self.today.split("\n## ")[1:]:
            title, _, body = part.partition("\n")
            if title.startswith("cinch "):
                yield title.split()[1], body

    def test_commands(self):
        for command, _ in self.sections():
            with self.subTest(command):
                self.assertRegex(self.map, rf"`{command}\b")

    def test_letters(self):
        meanings = dict(re.findall(r"^\| `(-\w)` \| `--([\w-]+)", self.map, re.MULTILINE))
        self.assertGreater(len(meanings), 15)
        old = self.map.partition("## Collisions of 0.1.0")[2].partition("\n## ")[0]
        for command, body in self.sections():
            for letter, name in re.findall(r"^\| `(-\w), --([\w-]+)", body, re.MULTILINE):
                with self.subTest(f"{command} {letter}"):
                    if meanings.get(letter) != name:
                        self.assertRegex(old, rf"`{command}( \w+)? {letter}`", f"{letter} means --{name} here")


if __name__ == "__main__":
    harness.main()
