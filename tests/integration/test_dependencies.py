#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Python packages that a skill depends on: installed by the real uv before the run, from an index on loopback."""

import http.server
import inspect
import io
import json
import os
import shutil
import tarfile
import textwrap
import threading
import unittest
import zipfile

import harness
import test_sandbox


class Index(http.server.BaseHTTPRequestHandler):
    """A package index, as pip and uv know it: /simple/NAME/ lists files below /files/."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        files = self.server.files
        self.server.requests.append(self.path)
        if parts[0] == "simple" and len(parts) == 2:
            names = [n for n in files if n.split("-")[0] == parts[1]]
            body = "".join(f'<a href="/files/{n}">{n}</a>' for n in names).encode()
            self.answer(200 if names else 404, body, "text/html")
        else:
            self.answer(200 if parts[-1] in files else 404, files.get(parts[-1], b""), "application/octet-stream")

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *args):
        pass


def wheel(name, code):
    """The file name and bytes of the smallest possible package."""
    out = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(f"{name}.py", code)
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
        z.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}-tool = {name}:main\n")
    return f"{name}-1.0-py3-none-any.whl", out.getvalue()


def source(name, build):
    """The same as source, whose build executes `build` first; its result is the text of the module."""
    body = inspect.getsource(wheel)
    backend = f"import io, os, sys, zipfile\n{body}\ndef build_wheel(directory, config_settings=None, metadata_directory=None):\n"
    backend += textwrap.indent(build, "    ")
    backend += f"\n    file, data = wheel({name!r}, result)\n    open(os.path.join(directory, file), 'wb').write(data)\n    return file\n"
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "pyproject.toml": f'[project]\nname = "{name}"\nversion = "1.0"\n'
                          '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{name}-1.0/{path}")
            info.size = len(text.encode())
            t.addfile(info, io.BytesIO(text.encode()))
    return f"{name}-1.0.tar.gz", out.getvalue()


class Dependencies(test_sandbox.Box):
    """uv installs what a skill needs before the run, from an index of this test."""

    def setUp(self):
        super().setUp()
        uv = self.real("uv")
        if self.uid != os.geteuid():
            uv = shutil.copy(uv, self.tools)
        self.env["PATH"] = os.path.dirname(uv) + ":/usr/bin:/bin"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        self.server.files = dict([wheel("alpha", "ANSWER = 42\n\ndef main():\n    print('tool', ANSWER)\n")])
        self.server.requests = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.env["UV_DEFAULT_INDEX"] = f"http://127.0.0.1:{self.server.server_address[1]}/simple"
        self.env["UV_HTTP_RETRIES"] = "0"
        self.cache = os.path.join(self.env["HOME"], ".cache", "cinch", "dependencies")

    def package(self, *dependencies):
        self.put("pack/SKILL.md", "---\nname: pack\ndescription: Does things.\n---\nDo them.\n")
        self.put("pack/assets/output.schema.json", json.dumps({"type": "object"}))
        self.put("pack/assets/runner.json", json.dumps({"id": "pack", "execution_modes": ["auto"],
                                                        "runtime": {"dependencies": list(dependencies)}}))
        return self.path("pack")

    def play(self, *dependencies, code="import alpha; print(alpha.ANSWER)", options=()):
        """A run whose agent executes `code` by `python3` and prints what that prints on its standard error."""
        self.put("code.py", code)
        return self.sh(f"python3 {self.path('code.py')} >&2; echo '{{}}'", "--read", self.path("code.py"),
                       *options, "--skill", self.package(*dependencies))

    def environments(self):
        return sorted(os.listdir(self.cache))

    def warning(self, r):
        found = [w["message"] for w in r.events("run.warning") if "dependencies" in w["message"]]
        self.assertEqual(len(found), 1, r.events("run.warning"))
        return found[0]

    def test_a_wheel_is_importable_inside_and_installed_once(self):
        r = self.play("alpha>=1")
        self.assertEqual((r.code, r.bytes("stderr.log"), r.manifest["warnings"]), (0, b"42\n", []), r.stderr)
        asked = len(self.server.requests)
        self.assertGreater(asked, 0)
        r = self.play("alpha>=1")
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"42\n"), r.stderr)
        self.assertEqual((len(self.server.requests), len(self.environments())), (asked, 1))

    def test_programs_of_a_package_are_in_path(self):
        r = self.play("alpha", code="import subprocess; print(subprocess.check_output(['alpha-tool']).decode(), end='')")
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"tool 42\n"), r.stderr)
        r = self.play("alpha", options=["-e", "PATH=/usr/bin:/bin"])
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"42\n"), r.stderr)

    def test_read_only_inside_and_no_network(self):
        r = self.play("alpha", code="""
import os, sys, urllib.request
try:
    open(os.path.join(sys.prefix, "lib", "planted"), "w")
except OSError as e:
    print(type(e).__name__, e.errno)
try:
    urllib.request.urlopen("%s/alpha/", timeout=5)
except OSError as e:
    print("no index")
""" % self.env["UV_DEFAULT_INDEX"])
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"OSError 30\nno index\n"), r.stderr)

    def test_without_a_sandbox(self):
        r = self.play("alpha", options=["--sandbox", "off"])
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"42\n"), r.stderr)

    def test_a_source_package_is_built_in_a_sandbox(self):
        secret = self.put("secret.txt", "do not read")
        private = self.put("userhome/private.txt", "do not read")
        name, data = source("beta", f"""
import socket
result = ""
for what in ("{secret}", "{private}"):
    try:
        result += open(what).read()
    except OSError:
        result += "hidden "
try:
    open("{self.path('planted')}", "w").write("x")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", {self.server.server_address[1]}), 5)
    result += "connected"
except OSError:
    result += "unreachable"
result = f"SEEN = {{result!r}}"
""")
        self.server.files[name] = data
        r = self.play("beta", "alpha", code="import alpha, beta; print(alpha.ANSWER, beta.SEEN)")
        self.assertEqual(r.code, 0, r.stderr)
        seen = r.bytes("stderr.log").decode()
        self.assertTrue(seen.startswith("42 hidden hidden "), (seen, r.manifest["warnings"]))
        self.assertTrue(seen.endswith(" unreachable\n"), seen)
        self.assertFalse(os.path.exists(self.path("planted")))
        self.assertEqual([e for e in self.environments() if e.startswith(".")], [])

    def test_a_build_cannot_widen_the_view_of_the_run(self):
        for change in ("open(os.path.join(env, 'pyvenv.cfg'), 'a').write('home = /etc/ssl\\n')",
                       "os.rename(env + '/lib', env + '/old'); os.symlink('old', env + '/lib')"):
            name, data = source("gamma", f"env = {self.cache!r}\nimport glob\n"
                                f"env = glob.glob(env + '/.new-*/env')[0]\n{change}\nresult = ''")
            self.server.files[name] = data
            r = self.play("gamma", code="print('without')")
            self.assertEqual(r.bytes("stderr.log"), b"without\n", r.stderr)
            self.assertIn("changed the virtual environment", self.warning(r))
            self.assertEqual(self.environments(), [])

    def test_failures_name_uv_and_the_package(self):
        r = self.play("alpha", "nosuch>=3", code="print('without')")
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"without\n"), r.stderr)
        self.assertIn("uv could not install nosuch>=3: ", self.warning(r))
        self.assertNotIn("alpha", self.warning(r))
        self.server.files.update([source("delta", "raise SystemExit('the compiler is missing')\nresult = ''")])
        r = self.play("delta", code="print('without')")
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"without\n"), r.stderr)
        self.assertIn("uv could not install delta: ", self.warning(r))
        self.assertIn("the compiler is missing", self.warning(r))
        self.assertEqual(self.environments(), [])

    def test_a_harness_elsewhere_stays_visible(self):
        """An npm package outside of the home, whose program needs the packages beside it."""
        self.write("harness/node_modules/other/lib.sh", "echo 'beside'\n")
        real = self.script("harness/node_modules/tool/cli.sh",
                           f'. "{self.path("harness")}/node_modules/other/lib.sh" >&2\n'
                           "python -c 'import alpha; print(alpha.ANSWER)' >&2\necho '{}'\n")
        os.makedirs(self.path("harness", "node_modules", ".bin"))
        os.symlink(real, self.path("harness", "node_modules", ".bin", "tool"))
        r = self.run_box([self.path("harness", "node_modules", ".bin", "tool")], "--skill", self.package("alpha"))
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"beside\n42\n"), r.stderr)

    def test_a_broken_environment_is_made_again(self):
        self.play("alpha")
        python = os.path.join(self.cache, self.environments()[0], "bin", "python")
        os.remove(python)
        os.symlink("/nonexistent/python", python)
        r = self.play("alpha")
        self.assertEqual((r.code, r.bytes("stderr.log")), (0, b"42\n"), r.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class OrdinaryUserDependencies(Dependencies):
    uid = test_sandbox.OTHER


if __name__ == "__main__":
    harness.main()
