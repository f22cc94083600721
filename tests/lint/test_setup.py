#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""scripts/setup against a pretended machine: dpkg-query, apt-get and friends are stand-ins that log."""

import glob
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

STANDINS = {
    "dpkg-query": r"""
for p in $INSTALLED; do echo "$p installed"; done
exit 1
""",
    "apt-cache": r"""
for p in $OFFERED; do printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n' "$p"; done
""",
    "apt-get": r"""
echo "apt-get $*" >>"$LOG"
case " $* " in
*" indextargets "*) [ -z "$ARCHIVE" ] || printf '%s\n%s\n' "$ARCHIVE" "$ARCHIVE" ;;
*" -s install "*) printf '%s\n' "$PLAN" ;;
*" update "*)
    for word; do
        case $word in Dir::Etc::SourceParts=*) cat "${word#*=}"/* >>"$LOG" ;; esac
    done
    exit "${UPDATE_STATUS:-0}" ;;
esac
""",
    "id": 'echo "${USER_ID:-0}"',
    "sudo": 'echo "sudo $*" >>"$LOG"; [ -n "$SUDO_WORKS" ] || exit 1; shift; exec "$@"',
}


def packages(*groups):
    found = []
    with open(os.path.join(ROOT, "scripts", "packages.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            if words and words[0] in groups and words[1] not in found:
                found.append(words[1])
    return found


BUILD = packages("build")
NEWER = ["libllhttp-dev", "libyyjson-dev"]
OLDER = [p for p in BUILD if p not in NEWER]
needs_keyring = unittest.skipUnless(
    glob.glob("/usr/share/keyrings/debian-archive-trixie-stable.*"), "no keyring of Debian 13 here"
)


class Setup(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.log = os.path.join(folder, "log")
        self.bin = os.path.join(folder, "bin")
        os.mkdir(self.bin)
        for name, body in STANDINS.items():
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/bash\n" + body)
            os.chmod(path, 0o755)

    def run_setup(self, *groups, installed=(), offered=(), **env):
        env = {
            "PATH": self.bin + ":/usr/bin:/bin",
            "LOG": self.log,
            "INSTALLED": " ".join(installed),
            "OFFERED": " ".join(offered),
            "TMPDIR": os.path.dirname(self.log),
            **env,
        }
        result = subprocess.run(
            [os.path.join(ROOT, "scripts", "setup"), *groups], env=env, capture_output=True, text=True, check=False
        )
        calls = ""
        if os.path.exists(self.log):
            with open(self.log, encoding="utf-8") as f:
                calls = f.read()
        return result.returncode, result.stderr, calls

    def test_nothing_missing_asks_nobody(self):
        self.assertEqual(self.run_setup("build", installed=BUILD), (0, "", ""))

    def test_kernels_are_installed_only_when_named(self):
        others = packages("build", "test", "lint", "bench")
        self.assertEqual(self.run_setup(installed=others), (0, "", ""))
        code, said, calls = self.run_setup("kernels", installed=others, offered=packages("kernels"))
        self.assertEqual(code, 0, said)
        self.assertRegex(calls, r"install -y .*\bqemu-system-x86\b")

    def test_unknown_group(self):
        code, said, calls = self.run_setup("everything")
        self.assertEqual((code, calls), (64, ""))
        self.assertIn("unknown group 'everything'", said)

    def test_user_without_sudo_is_told_what_to_run(self):
        code, said, calls = self.run_setup("build", installed=BUILD[1:], offered=BUILD, USER_ID="1000")
        self.assertEqual(code, 69)
        self.assertIn(f"  {BUILD[0]}\n", said)
        self.assertIn(f"  sudo {ROOT}/scripts/setup build\n", said)
        self.assertNotIn("apt-get", calls)

    def test_user_with_sudo(self):
        code, said, calls = self.run_setup(
            "build", installed=BUILD[1:], offered=BUILD, USER_ID="1000", SUDO_WORKS="1"
        )
        self.assertEqual(code, 0, said)
        self.assertIn(f"install -y --no-install-recommends {BUILD[0]}\n", calls)

    def test_root_installs_only_what_is_missing(self):
        code, said, calls = self.run_setup("build", installed=BUILD[2:], offered=BUILD)
        self.assertEqual(code, 0, said)
        self.assertIn(f"install -y --no-install-recommends {BUILD[0]} {BUILD[1]}\n", calls)
        self.assertNotIn("trixie", calls)

    def test_package_that_no_source_offers(self):
        code, said, calls = self.run_setup("build", installed=BUILD[1:], offered=[])
        self.assertEqual(code, 69)
        self.assertIn(f"your package sources do not offer: {BUILD[0]}\n", said)
        self.assertNotIn(" install ", calls)

    def test_optional_package_that_no_source_offers(self):
        lint = [p for p in packages("lint") if p != "clang-format-14"]
        self.assertEqual(self.run_setup("lint", installed=lint), (0, "", ""))

    @needs_keyring
    def test_newer_packages_come_from_an_isolated_apt(self):
        code, said, calls = self.run_setup(
            "build", installed=OLDER, ARCHIVE="http://mirror.example/debian", PLAN="Inst libyyjson0 (0.10)"
        )
        self.assertEqual(code, 0, said)
        self.assertIn("URIs: http://mirror.example/debian\nSuites: trixie\n", calls)
        self.assertIn("Signed-By: /usr/share/keyrings/debian-archive-keyring.", calls)
        lines = [c for c in calls.split("\n") if "libyyjson-dev" in c]
        self.assertEqual(len(lines), 2, "a trial, then the installation")
        for line in lines:
            for option in ("Etc::SourceList=/dev/null", "Etc::SourceParts=", "State::Lists=", "Cache="):
                self.assertIn(f"-o Dir::{option}", line)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.log))), ["bin", "log"], "left-overs")

    @needs_keyring
    def test_given_mirror_wins(self):
        _, _, calls = self.run_setup(
            "build", installed=OLDER, ARCHIVE="http://a.example/debian", CINCH_DEBIAN_MIRROR="http://b.example/d/"
        )
        self.assertIn("URIs: http://b.example/d\n", calls)

    def test_no_debian_archive_known(self):
        code, said, calls = self.run_setup("build", installed=OLDER)
        self.assertEqual(code, 69)
        self.assertIn("CINCH_DEBIAN_MIRROR", said)
        self.assertNotIn(" install ", calls)

    @needs_keyring
    def test_plan_that_replaces_an_installed_package_is_refused(self):
        code, said, calls = self.run_setup(
            "build", installed=OLDER, ARCHIVE="http://a.example/debian", PLAN="Inst libc6 [2.36] (2.41)"
        )
        self.assertEqual(code, 69)
        self.assertIn("would replace installed packages: libc6", said)
        self.assertNotIn("install -y", calls)

    def test_set_up_can_be_skipped(self):
        self.assertEqual(self.run_setup("build", CINCH_SKIP_SETUP="1"), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
