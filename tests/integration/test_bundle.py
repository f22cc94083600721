#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Agent bundles of Holon: unpacked once, run as adapter programs, refused when they are not what they should be."""

import io
import json
import os
import platform
import tarfile

import harness

ENTRY = """#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$(cat "$root/lib/word") $GREETING $(grep -c kind: "$HOLON_INPUT_DIR/spec.yaml")"
test -d "$HOLON_STATE_DIR" && test -d "$HOLON_AGENT_HOME" || exit 1
echo x > "$root/lib/new" 2>/dev/null && echo "the bundle can be changed"
echo '{"status": "completed", "outcome": "success", "duration": "1.0s", "artifacts": []}' > "$HOLON_OUTPUT_DIR/manifest.json"
"""
MANIFEST = {"bundleVersion": "1", "name": "agent-x", "version": "0.7.0", "entry": "bin/agent", "platform": "linux",
            "arch": platform.machine(), "libc": "glibc", "engine": {"name": "x", "sdk": "x", "sdkVersion": "1.0.0"},
            "runtime": {"type": "node", "version": "20.0.0"}, "env": {"GREETING": "{hello}"}, "capabilities": {}}


class Bundle(harness.Case):
    def bundle(self, manifest=MANIFEST, more=(), name="agent.tar.gz"):
        path = self.path(name)
        with tarfile.open(path, "w:gz") as tar:
            files = [("./bin/agent", ENTRY, 0o755), ("./lib/word", "hi", 0o644)]
            if manifest is not None:
                files.append(("./manifest.json", json.dumps(manifest), 0o644))
            for file, text, mode in files:
                info = tarfile.TarInfo(file)
                info.size, info.mode = len(text), mode
                tar.addfile(info, io.BytesIO(text.encode()))
            for info in more:
                tar.addfile(info)
        return path

    def link(self, name, target, kind=tarfile.SYMTYPE):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        return info

    def test_it_runs(self):
        path = self.bundle(more=[self.link("node_modules/.bin/x", "../../lib/word"),
                                 self.link("lib/hard", "./lib/word", tarfile.LNKTYPE)])
        for _ in range(2):  # the second time from the cache
            r = self.run_cinch("--agent", path, "do it")
            self.assertEqual((r.reason, r.result["text"]), ("success", "hi {hello} 1"), r.stderr + r.bytes("stderr.log"))
        cache = os.listdir(self.path("userhome", ".cache", "cinch", "bundles"))
        self.assertEqual(len(cache), 1)
        r = self.run_cinch("-a", "bundle:" + path, "-e", "GREETING=you", "do it")
        self.assertEqual(r.result["text"], "hi you 1", r.stderr)
        self.assert_failed(self.cinch("run", "--agent", path, "-a", "codex", "x"), 64, "--agent")

    def refused(self, path, code, *words):
        r = self.run_cinch("--agent", path, "do it", valid=False)
        self.assert_failed(r, code, *words)
        cache = self.path("userhome", ".cache", "cinch", "bundles")
        self.assertEqual([n for n in os.listdir(cache) if n.startswith(".new")] if os.path.isdir(cache) else [], [])

    def test_wrong_bundles(self):
        self.refused(self.path("nowhere.tar.gz"), 66, "nowhere.tar.gz")
        self.refused(self.write("no.tar.gz", b"not an archive"), 65, "no.tar.gz")
        with open(self.bundle(name="cut.tar.gz"), "rb") as f:
            whole = f.read()
        self.refused(self.write("cut.tar.gz", whole[:-40]), 65, "cut.tar.gz")
        self.refused(self.bundle(None, name="a.tar.gz"), 65, "manifest.json")
        for i, (change, code, word) in enumerate([
                ({"bundleVersion": "2"}, 65, "bundleVersion"), ({"platform": "darwin"}, 69, "darwin"),
                ({"arch": "s390x"}, 69, "s390x"), ({"entry": "../x"}, 65, "../x"), ({"entry": "bin/no"}, 65, "bin/no"),
                ({"entry": "lib/word"}, 65, "executable"), ({"env": {"A": 1}}, 65, "'A'"), ({"env": []}, 65, "env")]):
            with self.subTest(str(change)):
                self.refused(self.bundle({**MANIFEST, **change}, name=f"m{i}.tar.gz"), code, word)

    def test_hostile_entries(self):
        outside = self.path("outside")
        fifo = tarfile.TarInfo("fifo")
        fifo.type = tarfile.FIFOTYPE
        for i, more in enumerate([
                [tarfile.TarInfo("../outside")], [tarfile.TarInfo(outside)], [self.link("x", "/etc")],
                [self.link("a/x", "../../..")], [self.link("h", "../../outside", tarfile.LNKTYPE)], [fifo],
                [self.link("up", "lib"), tarfile.TarInfo("up/new")], [tarfile.TarInfo("lib/word")]]):
            with self.subTest(str(more)):
                self.refused(self.bundle(more=more, name=f"h{i}.tar.gz"), 65, f"h{i}.tar.gz")
        self.assertFalse(os.path.exists(outside))


if __name__ == "__main__":
    harness.main()
