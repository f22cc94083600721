#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whose credential the provider sees: cinch's own, the user's login with the harness, or a variable of the caller's; on
the real programs, with a provider that writes down what it gets. And what happens where one is missing, has expired or
is refused: told with the command that helps, and never in the record."""

import base64
import json
import os
import time

import harness
from provider import Fail, Provider, Say

FILE_TIMEOUT = 900

KEY = "sk-key-of-the-gateway-0123456789"
DAY = 86400


def web64(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def web_token(seconds):
    """A JSON Web Token that ends in so many seconds."""
    claims = {"exp": int(time.time()) + seconds, "email": "a@example.org",
              "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_account_id": "acc-of-the-user",
                                              "chatgpt_user_id": "user-1"}}
    return ".".join((web64({"alg": "RS256", "typ": "JWT"}), web64(claims), web64(b"the signature of the token")))


class Case(harness.Case):
    program = None  # in tests/harness/packages.txt
    adapter = None

    def setUp(self):
        super().setUp()
        if self.program:
            self.env["PATH"] = os.path.dirname(self.real(self.program)) + ":" + self.env["PATH"]

    def log_in(self, name, content):
        return self.write("userhome/" + name, content if isinstance(content, str) else json.dumps(content), 0o600)

    def run_agent(self, provider, *options, env=None, adapter=None):
        return self.run_cinch("--adapter", adapter or self.adapter, "--upstream", provider.url, "--timeout", "100s", *options,
                              "say hello", env=env)

    def assert_success(self, r):
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-3000:] + r.bytes("stderr.log"))

    def assert_nowhere(self, r, *secrets):
        """In no file of the record, and not in the patch."""
        for folder, _, names in os.walk(r.output):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    data = f.read()
                for secret in secrets:
                    self.assertNotIn(secret.encode(), data, name)
        tape = r.path("evidence", "traffic.cassette")
        exchanges = []
        if os.path.exists(tape):
            exchanges = json.loads(self.cinch("cassette", "show", "--format", "json", tape).stdout)["exchanges"]
            self.assertGreaterEqual(len(exchanges), len(r.events("model.call")))
        for exchange in exchanges:  # their numbers need not begin at 1
            told = self.cinch("cassette", "show", "--exchange", str(exchange["number"]), tape)
            self.assertEqual(told.code, 0, told.stderr)
            for secret in secrets:
                self.assertNotIn(secret.encode(), told.stdout, "the cassette")
        self.assertFalse(r.exists("home"), "the home is still there")
        self.assertEqual(r.bytes("diff.patch") if r.exists("diff.patch") else b"", b"")

    def shown(self, provider):
        """What the provider was shown: the set of credentials."""
        found = set()
        for request in provider.requests:
            for name in ("authorization", "x-api-key", "x-goog-api-key"):
                if name in request.headers:
                    found.add(request.headers[name].removeprefix("Bearer "))
        return found

    def refuse(self, *options, words=(), env=None, adapter=None, code=77, reason="auth"):
        """Nothing is started, nobody is asked."""
        with Provider() as p:
            r = self.run_cinch("--adapter", adapter or self.adapter, *options, "--upstream", p.url, "say hello", env=env)
            self.assertEqual(p.requests, [])
        self.assertEqual((r.code, r.reason), (code, reason), r.stderr)
        self.assertEqual(r.events("process.spawned"), [])
        for word in words:
            self.assertIn(word, r.result["error"])
            self.assertIn(word, r.stdout.decode())
        return r


class Claude(Case):
    program = adapter = "claude-code"
    TOKEN, REFRESH = "sk-ant-oat01-login-of-the-user-0123456789", "sk-ant-ort01-renews-it-0123456789"

    def login(self, seconds=DAY):
        ends = int((time.time() + seconds) * 1000)
        return self.log_in(".claude/.credentials.json", {"claudeAiOauth": {
            "accessToken": self.TOKEN, "refreshToken": self.REFRESH, "expiresAt": ends,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}})

    def test_host(self):
        path = self.login()
        with open(path, "rb") as f:
            before = f.read()
        for adapter in ("claude-code", "claude-code-print"):
            # A key that is around does not come into play.
            with self.subTest(adapter), Provider(Say(f"all of {self.TOKEN}")) as p:
                r = self.run_agent(p, "--auth", "host", "--inherit-env", adapter=adapter, env={"ANTHROPIC_API_KEY": KEY})
                self.assert_success(r)
                self.assertEqual(self.shown(p), {self.TOKEN})
                self.assertIn("oauth", p.requests[-1].headers["anthropic-beta"])
                self.assertEqual(p.requests[-1].path, "/v1/messages?beta=true")
                self.assertEqual(r.metrics["tokens_input"], 10)
                self.assert_nowhere(r, self.TOKEN, self.REFRESH, KEY)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_gateway(self):
        self.login()
        with Provider() as p:
            r = self.run_agent(p, "--set", f"gateway.routes=[{{model: '*', upstream: '{p.url}', key: ANTHROPIC_API_KEY}}]",
                               env={"ANTHROPIC_API_KEY": KEY})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {KEY})
        self.assert_nowhere(r, KEY, self.TOKEN)

    def test_env(self):
        with Provider() as p:
            r = self.run_agent(p, "--auth", "env", env={"ANTHROPIC_API_KEY": KEY})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {KEY})
        self.assert_nowhere(r, KEY)
        with Provider() as p:
            r = self.run_agent(p, "--auth", "env", env={"CLAUDE_CODE_OAUTH_TOKEN": self.TOKEN})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {self.TOKEN})
        self.assert_nowhere(r, self.TOKEN)

    def test_a_login_that_moved(self):
        os.mkdir(self.path("userhome", "elsewhere"))
        os.rename(self.login(), self.path("userhome", "elsewhere", ".credentials.json"))
        with Provider() as p:
            r = self.run_agent(p, "--auth", "host", env={"CLAUDE_CONFIG_DIR": self.path("userhome", "elsewhere")})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {self.TOKEN})

    def test_a_tool_of_the_task_beside_a_login(self):
        """The other door of the gateway is not opened by what the harness shows."""
        self.login()
        self.write("task.yaml", """
prompt: do it
tools:
  - {name: note, description: Notes., input_schema: {type: object, properties: {}}, command: [sh, -c, echo noted]}
""")
        with Provider(Say("", calls=(("mcp__cinch__note", {}),)), Say("done")) as p:
            r = self.run_cinch("--adapter", self.adapter, "--auth", "host", "--upstream", p.url, "--timeout", "100s",
                               self.path("task.yaml"))
            self.assert_success(r)
            self.assertEqual([e["context"]["success"] for e in r.events("ToolInvoked")], [True])
        self.assert_nowhere(r, self.TOKEN)

    def test_refused_by_the_provider(self):
        self.login()
        for status in (401, 403):
            body = {"error": {"type": "authentication_error" if status == 401 else "permission_error", "message": "no"}}
            for options, env, words in ((("--auth", "host"), {}, "claude auth login"),
                                        (("--auth", "env"), {"ANTHROPIC_API_KEY": KEY}, "export ANTHROPIC_API_KEY=")):
                with self.subTest(status=status, options=options), Provider(Fail(status, body=body)) as p:
                    r = self.run_agent(p, *options, env=env)
                    self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
                    self.assertIn(words, r.result["error"])

    def test_not_logged_in(self):
        self.refuse("--auth", "host", words=["claude auth login", ".claude/.credentials.json"])
        self.login(-60)
        self.refuse("--auth", "host", words=["claude auth login", "expired at"])
        self.log_in(".claude/.credentials.json", "{}")
        self.refuse("--auth", "host", words=["claude auth login"])
        self.refuse("--auth", "env", words=["export ANTHROPIC_API_KEY="])

    def test_no_key(self):
        r = self.run_cinch("--adapter", self.adapter, "say hello")
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("export ANTHROPIC_API_KEY=", r.result["error"])
        self.assertIn("--auth host", r.result["error"])

    def test_another_format(self):
        self.login()
        r = self.refuse("--auth", "host", "--set", "gateway.routes=[{model: '*', upstream: 'http://127.0.0.1:1', format: chat}]",
                        words=["another format"], code=65, reason="bad_task")
        self.assert_nowhere(r, self.TOKEN)


class Codex(Case):
    program = adapter = "codex"
    REFRESH = "rt-renews-it-0123456789abcdef"

    def login(self, seconds=DAY):
        self.token = web_token(seconds)
        self.log_in(".codex/auth.json", {
            "auth_mode": "chatgpt", "OPENAI_API_KEY": None, "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "tokens": {"id_token": web_token(seconds), "access_token": self.token, "refresh_token": self.REFRESH,
                       "account_id": "acc-of-the-user"}})

    def test_host(self):
        self.login()
        for adapter in ("codex", "codex-exec"):
            with self.subTest(adapter), Provider() as p:
                r = self.run_agent(p, "--auth", "host", "--inherit-env", env={"OPENAI_API_KEY": KEY}, adapter=adapter)
                self.assert_success(r)
                self.assertEqual(self.shown(p), {self.token})
                self.assertEqual(p.requests[-1].headers["chatgpt-account-id"], "acc-of-the-user")
                self.assertTrue(p.requests[-1].path.endswith("/responses"))
                self.assertEqual(r.metrics["tokens_input"], 10)
                self.assert_nowhere(r, self.token, self.REFRESH, KEY)

    def test_a_key_as_login(self):
        self.log_in(".codex/auth.json", {"OPENAI_API_KEY": "sk-login-0123456789abcdef"})
        with Provider() as p:
            r = self.run_agent(p, "--auth", "host")
            self.assert_success(r)
            self.assertEqual(self.shown(p), {"sk-login-0123456789abcdef"})
        self.assert_nowhere(r, "sk-login-0123456789abcdef")

    def test_env(self):
        with Provider() as p:
            r = self.run_agent(p, "--auth", "env", env={"OPENAI_API_KEY": KEY})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {KEY})
        self.assert_nowhere(r, KEY)

    def test_not_logged_in(self):
        self.refuse("--auth", "host", words=["codex login"])
        self.login(-60)
        self.refuse("--auth", "host", words=["codex login", "expired at"])

    def test_refused_by_the_provider(self):
        self.login()
        with Provider(Fail(401)) as p:
            r = self.run_agent(p, "--auth", "host")
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("codex login", r.result["error"])


class Gemini(Case):
    program = adapter = "gemini"
    TOKEN = "AIza-login-of-the-user-0123456789"

    def test_host(self):
        self.log_in(".gemini/.env", f'# mine\nexport GEMINI_API_KEY="{self.TOKEN}"\n')
        for adapter in ("gemini", "gemini-print"):
            with self.subTest(adapter), Provider() as p:
                r = self.run_agent(p, "--auth", "host", "--inherit-env", env={"GEMINI_API_KEY": KEY}, adapter=adapter)
                self.assert_success(r)
                self.assertEqual(self.shown(p), {self.TOKEN})
                self.assert_nowhere(r, self.TOKEN, KEY)

    def test_env(self):
        with Provider() as p:
            r = self.run_agent(p, "--auth", "env", env={"GEMINI_API_KEY": KEY})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {KEY})
        self.assert_nowhere(r, KEY)

    def test_another_login(self):
        self.log_in(".gemini/oauth_creds.json", {"access_token": "ya29.0123456789abcdef", "refresh_token": "1//0123456789"})
        self.refuse("--auth", "host", words=["GEMINI_API_KEY"], code=69, reason="unavailable")

    def test_not_logged_in(self):
        self.refuse("--auth", "host", words=[".gemini/.env"])


class OpenCode(Case):
    program = adapter = "opencode"

    def test_env(self):
        with Provider() as p:
            r = self.run_agent(p, "--auth", "env", env={"OPENAI_API_KEY": KEY})
            self.assert_success(r)
            self.assertEqual(self.shown(p), {KEY})
        self.assert_nowhere(r, KEY)

    def test_host(self):
        self.refuse("--auth", "host", words=["--auth env"], code=69, reason="unavailable")


PROFILE = {
    "name": "fake", "binary": ["fake-agent"], "argv": ["{binary}"], "home": "private",
    "auth": {"login": "fake login", "env": ["FAKE_KEY"], "refused": ["I do not know you"],
             "host": [{"file": ".fake/login.json", "has": "/token", "expires": "/ends"}]},
}


class Programs(Case):
    """Any program, by a profile of the user's."""

    adapter = "fake"

    def setUp(self):
        super().setUp()
        self.write("adapters/fake.yaml", json.dumps(PROFILE))
        self.env["PATH"] = self.make_dir("bin") + ":" + self.env["PATH"]

    def fake(self, script, *options, env=None):
        self.write("bin/fake-agent", "#!/bin/sh\n" + script, 0o755)
        return self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "fake", "--read", self.path("bin"), *options,
                              "say hello", env=env)

    def test_the_copy(self):
        """It has the login and may renew it there; the user's stays as it is, and the copy goes."""
        content = {"token": "a-token-of-the-user-0123456789", "ends": int(time.time()) + DAY}
        path = self.log_in(".fake/login.json", content)
        r = self.fake('cat $HOME/.fake/login.json; stat -c "mode %a" $HOME/.fake/login.json; cp $HOME/.fake/login.json copy\n',
                      "--auth", "host")
        self.assert_success(r)
        self.assertIn(b"mode 600", r.bytes("stdout.log"))
        self.assertIn(b"[REDACTED:LOGIN]", r.bytes("stdout.log"))
        self.assertNotIn(content["token"].encode(), r.bytes("stdout.log"))
        self.assertNotIn(b"login.json", r.bytes("diff.patch"))
        self.assertNotIn(content["token"].encode(), r.bytes("diff.patch"))
        self.assertFalse(r.exists("home"))
        self.assertNotIn("renewed", str(r.manifest["warnings"]))
        r = self.fake("echo '{\"token\": \"another\"}' > $HOME/.fake/login.json\n", "--auth", "host")
        self.assert_success(r)
        self.assertIn("fake login", str(r.manifest["warnings"]))
        with open(path) as f:
            self.assertEqual(json.load(f), content)

    def test_the_program_says_so(self):
        r = self.fake("echo 'Error: I do not know you.' >&2; exit 1\n", "--auth", "env", env={"FAKE_KEY": "0123456789"})
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("export FAKE_KEY=", r.result["error"])
        self.log_in(".fake/login.json", {"token": "0123456789"})
        r = self.fake("echo 'Error: I do not know you.'; exit 1\n", "--auth", "host")
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("fake login", r.result["error"])
        r = self.fake("echo 'Error: I do not know you.'\n", "--auth", "host")
        self.assertEqual(r.reason, "success", "it talks about it, and succeeds")

    def test_expired(self):
        r = self.fake("true\n", "--auth", "env", env={"FAKE_KEY": web_token(-5)})
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("expired at", r.result["error"])
        for ends, code in ((int(time.time()) - 5, 77), (int(time.time() * 1000) - 5000, 77), (web_token(-5), 77),
                           (int(time.time()) + DAY, 0), (web_token(DAY), 0), ("never", 0), (None, 0)):
            with self.subTest(ends):
                self.log_in(".fake/login.json", {"token": "0123456789abcdef", "ends": ends})
                self.assertEqual(self.fake("true\n", "--auth", "host").code, code)

    def test_strange_files(self):
        for content in ("", "[]", "null", "{" * 100, "\x00", "token", '{"token": ""}', '{"token": 5}', "x" * 300000):
            with self.subTest(content[:20]):
                self.log_in(".fake/login.json", content)
                self.assertEqual(self.fake("true\n", "--auth", "host").code, 77)
        os.remove(self.path("userhome", ".fake", "login.json"))
        os.mkdir(self.path("userhome", ".fake", "login.json"))
        self.assertEqual(self.fake("true\n", "--auth", "host").code, 77)

    def test_where_there_is_none(self):
        r = self.run_cinch("--adapter", "command", "--auth", "host", "--", "true")
        self.assertEqual(r.code, 69, r.stderr)
        r = self.run_cinch("--adapter", "api-direct", "--auth", "env", "hello")
        self.assertEqual(r.code, 69, r.stderr)
        r = self.run_cinch("--auth", "nonsense", "--", "true", valid=False)
        self.assertEqual(r.code, 64)

    def test_a_project_does_not_choose(self):
        """A repository must not lay hands on a login."""
        self.write("ws/.cinch/config.yaml", "agent: {auth: host}\n")
        r = self.cinch("config", "--workspace", self.workspace, "--adapter", "command")
        self.assertEqual(r.code, 65)
        self.assertIn(b"agent.auth", r.stderr)

    def test_a_program_behind_the_gateway(self):
        """With its own key it reaches the provider, and the address alone lets it in."""
        agent = self.write("ws/ask.py", '''
import json, os, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
for headers in ({"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
                {"authorization": "Bearer " + os.environ["CINCH_GATEWAY_TOKEN"]}, {}):
    request = urllib.request.Request(url, body, {"content-type": "application/json", "cookie": "a=b", **headers})
    print(urllib.request.urlopen(request).status)
''')
        with Provider() as p:
            r = self.run_cinch("--auth", "env", "--upstream", p.url, "--", "/usr/bin/python3", agent, env={"OPENAI_API_KEY": KEY})
            self.assert_success(r)
            seen = [q.headers.get("authorization") for q in p.requests]
            self.assertEqual(seen, ["Bearer " + KEY, None, None], "the gateway's token left the house")
            self.assertNotIn("cookie", p.requests[0].headers)
            self.assertEqual({q.path for q in p.requests}, {"/v1/chat/completions"})
        self.assert_nowhere(r, KEY)


if __name__ == "__main__":
    harness.main()
