#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Secrets in what a run leaves: encodings in logs, patches of every kind, artifacts. Whatever the agent does with a
secret that it was given, what cinch writes must not give it back; what cannot be cleaned is withheld and named."""

import base64
import os
import subprocess
import urllib.parse
import zlib

import harness

SECRET = "sk-Zq9/w+7~long.secret_value-0123456789=end"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
PEM = "-----BEGIN KEY-----\n" + "\n".join(("MIIEowIBAAKCAQEA0Z3VS5JJ%02d" % i) * 2 for i in range(5)) + "\n-----END KEY-----"

# Prepared for every agent: the secrets, and a function that writes a file.
AGENT = """
import base64, gzip, json, os, subprocess, sys, zlib
S, T, P = os.environ["S"], os.environ["T"], os.environ["P"]
def put(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
"""

BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def binary_parts(patch):
    """What a patch holds of binary files, decoded by other means than ours."""
    for part in patch.split(b"\nGIT binary patch\n")[1:]:
        for block in part.split(b"\n\n")[:2]:
            lines = block.split(b"\n")[1:]
            data = b""
            for line in lines:
                size = line[0] - 64 if line[0] < 91 else line[0] - 96 + 26
                values = [sum(BASE85.index(chr(c)) * 85 ** (4 - i) for i, c in enumerate(line[at:at + 5]))
                          for at in range(1, len(line), 5)]
                data += b"".join(v.to_bytes(4, "big") for v in values)[:size]
            yield zlib.decompress(data)


class Case(harness.Case):
    def agent(self, script, *options, **kw):
        program = self.write("agent.py", AGENT + script)
        env = {"S": SECRET, "T": TOKEN, "P": PEM}
        return self.run_cinch("--secret", "S", "--secret", "T", "--secret", "P", "--read", program, *options, "--",
                              "/usr/bin/python3", program, env=env, **kw)

    def git(self, *args, cwd=None):
        done = subprocess.run(["git", "-c", "user.email=a@b", "-c", "user.name=n", *args], cwd=cwd or self.workspace,
                              capture_output=True, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def repository(self, path="ws", **files):
        for name, data in {"f": "one\ntwo\n", **files}.items():
            self.write(f"{path}/{name}", data)
        self.git("init", "-q", ".", cwd=self.path(path))
        self.git("add", "-A", cwd=self.path(path))
        self.git("commit", "-qm", "x", cwd=self.path(path))

    def assert_clean(self, r):
        for secret in (SECRET, TOKEN, PEM.splitlines()[2]):
            for needle in (secret.encode(), secret.encode("utf-16-le"), secret.encode().hex().encode(),
                           base64.b64encode(secret.encode())[:40], secret.encode()[:24]):
                self.assert_not_in_tree(needle, r.output)

    def warned(self, r, *words):
        self.assertTrue([w for w in r.manifest["warnings"] if all(x in w for x in words)],
                        f"{words} not in {r.manifest['warnings']}")

    def left_out(self, r):
        return {x["path"]: x["why"] for x in r.json("evidence", "workspace.json")["left_out"]}


class Encodings(Case):
    def test_in_logs(self):
        """As people and tools write them, on a line of its own, in JSON, and in JSON within JSON."""
        r = self.agent('''
import base64, urllib.parse
B = S.encode()
forms = {
    "plain": S, "hex": B.hex(), "HEX": B.hex().upper(), "b64": base64.b64encode(B).decode(),
    "b64url": base64.urlsafe_b64encode(B).decode(), "url": urllib.parse.quote(S, safe=""),
    "url-lower": "".join("%%%02x" % c for c in B), "url-full": "".join("%%%02X" % c for c in B),
    "url-partial": S[:9] + urllib.parse.quote(S[9:], safe="+"), "u": "".join("\\\\u%04x" % c for c in B),
    "U": "".join("\\\\u%04X" % c for c in B), "u-partial": S[:4] + "\\\\u%04x" % B[4] + S[5:],
    "x": "".join("\\\\x%02x" % c for c in B),
}
for name, text in forms.items():
    print(name, text)
    print(json.dumps({name: text}))
    print(json.dumps(json.dumps({name: text})))
for wrap in (64, 76, 60):
    for end in ("\\n", "\\r\\n"):
        data = base64.b64encode(b"x" * (wrap % 3) + T.encode() + b" and more").decode()
        lines = end.join(data[i:i + wrap] for i in range(0, len(data), wrap))
        print("wrapped", lines)
        print(json.dumps({"wrapped": lines}))
        print(json.dumps(json.dumps({"wrapped": lines})))
sys.stdout.flush()
sys.stdout.buffer.write(S.encode("utf-16-le") + b"\\n" + S.encode("utf-16-be") + b"\\n")
print(json.dumps({"utf16": S.encode("utf-16-le").decode("latin-1")}))
''')
        self.assert_clean(r)
        log = r.bytes("stdout.log")
        self.assertGreaterEqual(log.count(b"[REDACTED:S]"), 42)
        self.assertEqual(log.count(b"[REDACTED:T]"), 18)
        for text in (urllib.parse.quote(SECRET, safe=""), "%73%6b", "\\u0073\\u006b", "\\x73\\x6b", "s\0k\0-"):
            self.assertNotIn(text.encode(), log)
        for i in range(0, len(TOKEN) - 12, 4):
            self.assertNotIn(base64.b64encode(TOKEN[i - i % 3:][:12].encode()), log)

    def test_nothing_to_hide(self):
        """Escapes and wrapped data that are no secrets pass byte for byte."""
        text = "100% \\u0041\\n %41%zz \\\\ \\x4 \\" + "\n" + base64.encodebytes(b"ordinary data " * 20).decode()
        path = self.write("text", text)
        r = self.run_command("cat", path, options=["--secret", "S", "--read", path], env={"S": SECRET})
        self.assertEqual(r.bytes("stdout.log").decode(), text)


class Patches(Case):
    def test_text(self):
        """Values that go over several lines leave the number of lines right: the patch applies."""
        self.repository()
        r = self.agent('''
put("token", "a\\n" + base64.encodebytes(b"head " + T.encode() + b" tail").decode() + "z\\n")
put("pem", "a\\n" + P + "\\nz\\n")
put("hex", "\\n".join(T.encode().hex()[i:i + 60] for i in range(0, len(T) * 2, 60)))
put("dir with blank/na\\"me-" + S.replace("/", "_"), "x\\n")
put("f", "one\\n" + S + "\\ntwo\\n")
''')
        self.assert_clean(r)
        self.warned(r, "secrets were removed from diff.patch")
        wrapped = base64.b64encode(b"head " + TOKEN.encode() + b" tail")
        for i in range(12, len(TOKEN), 16):
            self.assertNotIn(wrapped[i:i + 16], r.bytes("diff.patch"))
        self.git("apply", "--check", r.path("diff.patch"))
        self.git("apply", r.path("diff.patch"))
        with open(self.path("ws", "pem")) as f:
            lines = f.read().splitlines()
        self.assertEqual((len(lines), lines[0], lines[-1]), (PEM.count("\n") + 3, "a", "z"))
        with open(self.path("ws", "f")) as f:
            self.assertEqual(f.read(), "one\n[REDACTED:S]\ntwo\n")

    def test_binary_files_are_withheld(self):
        old = os.urandom(3000) + b"\0middle"
        self.repository(old=old)
        r = self.agent('''
old = open("old", "rb").read()
put("literal.bin", b"x\\0" + S.encode() + b"\\n")
put("clean.bin", b"x\\0clean\\n" * 100)
put("archive.gz", gzip.compress(b"key: " + T.encode()))
put("clean.gz", gzip.compress(b"nothing"))
put("wide", S.encode("utf-16"))
put("old", old[:1000] + S.encode() + old[1000:])
put("f", "changed\\n")
''')
        self.assert_clean(r)
        out = self.left_out(r)
        self.assertEqual(sorted(out), ["archive.gz", "literal.bin", "old", "wide"])
        self.assertEqual(set(out.values()), {"it holds a secret"})
        for name in out:
            self.warned(r, name, "withheld", "diff.patch")
        patch = r.bytes("diff.patch")
        for data in binary_parts(patch):
            self.assertNotIn(SECRET.encode(), data)
        self.git("apply", r.path("diff.patch"))
        names = self.git("status", "--porcelain").decode().split()
        self.assertEqual(sorted(names[1::2]), ["clean.bin", "clean.gz", "f"])

    def test_a_delta_is_looked_into(self):
        old = os.urandom(30000) + b"\0"
        self.repository(old=old)
        r = self.agent('''
old = open("old", "rb").read()
put("old", old[:1000] + S.encode() + old[1000:])
''')
        self.assert_clean(r)
        self.assertEqual(r.bytes("diff.patch"), b"")
        self.assertEqual(self.left_out(r), {"old": "it holds a secret"})
        r = self.agent('''
old = open("old", "rb").read()
put("old", old[:1000] + b"ordinary bytes" + old[1000:])
''')
        self.assertIn(b"delta ", r.bytes("diff.patch"))
        self.assertEqual(self.left_out(r), {})

    def test_nested_repositories(self):
        self.repository()
        self.repository("ws/inner")
        r = self.agent('''
put("inner/new", S + "\\n")
put("inner/b.bin", b"\\0" + S.encode())
put("inner/f", "changed\\n")
''')
        self.assert_clean(r)
        patch = r.bytes("evidence", "nested", "1.patch")
        self.assertIn(b"+[REDACTED:S]\n", patch)
        self.assertIn(b"+changed", patch)
        self.assertNotIn(b"b.bin", patch)
        self.warned(r, "b.bin", "withheld", "evidence/nested/1.patch")
        self.assertFalse(r.exists("work"))

    def test_savepoints(self):
        self.repository()
        self.repository("ws/inner")
        r = self.agent('''
put("t", S + "\\n")
put("t.bin", b"\\0" + S.encode())
put("inner/new", S + "\\n")
''', "--set", "workspace.savepoint=turn")
        self.assert_clean(r)
        self.assertIn(b"+[REDACTED:S]\n", r.bytes("savepoints", "turn-1.patch"))
        self.assertIn(b"+[REDACTED:S]\n", r.bytes("savepoints", "turn-1.nested", "1.patch"))
        self.assertNotIn(b"t.bin", r.bytes("savepoints", "turn-1.patch"))

    def test_without_secrets_a_patch_is_what_git_wrote(self):
        self.repository()
        r = self.run_command("sh", "-c", "printf 'x\\0y' > b.bin; echo n > f")
        self.git("apply", r.path("diff.patch"))
        with open(self.path("ws", "b.bin"), "rb") as f:
            self.assertEqual(f.read(), b"x\0y")


class Artifacts(Case):
    SCRIPT = '''
A = os.environ["CINCH_ARTIFACTS_DIR"] + "/"
put(A + "clean.txt", "nothing\\n")
put(A + "text.txt", "key: " + S + "\\n")
put(A + "data.bin", b"\\0" + S.encode())
put(A + "data.gz", gzip.compress(S.encode()))
put(A + "sub/wrapped", base64.encodebytes(T.encode() * 2))
put(A + "sub/name-" + S.replace("/", "%2F"), "x")
put(A + "name-" + S.replace("/", "%2F") + "/inner", "y")
os.symlink(S, A + "link")
put("report.md", "the key is " + S + "\\n")
put("report.bin", b"\\0" + S.encode())
'''

    def test_contents_and_names(self):
        r = self.agent(self.SCRIPT, "--set", 'output.artifacts=[{"path": "report.md"}]')
        self.assert_clean(r)
        self.assertEqual(r.reason, "success")
        self.assertEqual(r.bytes("artifacts", "clean.txt"), b"nothing\n")
        self.assertEqual(r.bytes("artifacts", "text.txt"), b"key: [REDACTED:S]\n")
        self.assertEqual(r.bytes("artifacts", "report.md"), b"the key is [REDACTED:S]\n")
        self.assertEqual(r.bytes("artifacts", "sub", "name-[REDACTED:S]"), b"x")
        self.assertEqual(r.bytes("artifacts", "name-[REDACTED:S]", "inner"), b"y")
        for name in ("data.bin", "data.gz", "link"):
            self.assertFalse(r.exists("artifacts", name))
            self.warned(r, f"'{name}'", "withheld")
        self.warned(r, "secrets were removed from artifact 'text.txt'")

    def test_modes_that_hide_a_file(self):
        """As an ordinary user, whom modes keep out."""
        os.chmod(self.dir, 0o777)
        os.chmod(self.workspace, 0o777)
        os.chmod(self.env["HOME"], 0o777)
        script = self.write("hide.sh", '''cd "$CINCH_ARTIFACTS_DIR"
echo "k $S" > zero; printf "\\0$S" > binary; chmod 0 zero binary
for d in 0 500 100 400; do mkdir d$d d$d/sub; echo "$S" > d$d/sub/x; echo "$S" > d$d/x; chmod $d d$d/sub d$d; done
chmod "$1" .''')
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for mode in ("700", "500", "0"):
            output = self.new_output()
            line = self.command_line(["--secret", "S", "--read", script, "--", "sh", script, mode], output)
            done = subprocess.run(nobody + line, env={**self.env, "S": SECRET}, capture_output=True,
                                  timeout=harness.PATIENCE)
            if done.returncode == 126:
                self.skipTest("another user cannot execute cinch here")
            r = harness.Result(done.returncode, done.stdout, done.stderr, output)
            self.assertEqual(r.reason, "success", r.stderr)
            self.assert_not_in_tree(SECRET.encode(), r.output)
            self.warned(r, "'binary'", "withheld")
            self.assertEqual(r.bytes("artifacts", "d500", "sub", "x"), b"[REDACTED:S]\n")

    def test_a_required_one_that_is_withheld_is_a_failure(self):
        r = self.agent(self.SCRIPT, "--set", 'output.artifacts=[{"path": "report.bin"}]')
        self.assert_clean(r)
        self.assertEqual(r.reason, "failure")
        self.assertIn("report.bin", r.manifest["error"])
        self.warned(r, "'report.bin'", "withheld")


if __name__ == "__main__":
    harness.main()
