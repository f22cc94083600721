#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The test runner tells the truth: failures, crashes, hangs and lost output are never counted as passed."""

import os
import sys
import tempfile
import textwrap
import time
import unittest
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True

import cases  # noqa: E402
import run_integration  # noqa: E402
import run_tests  # noqa: E402

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] first
[       OK ] first
[ RUN      ] second
no such kernel feature
[  SKIPPED ] second
[ RUN      ] third
"""


def meson(stdout="", stderr="", result="OK", returncode=0):
    return {
        "name": "cinch:unit / buf",
        "stdout": stdout,
        "stderr": stderr,
        "result": result,
        "returncode": returncode,
        "duration": 0.5,
    }


class Meson(unittest.TestCase):
    def verdicts(self, **test):
        return [(c.name, c.status) for c in cases.from_meson_test("unit", meson(**test))]

    def test_cmocka_cases_are_counted_one_by_one(self):
        found = self.verdicts(stdout=CMOCKA + "[       OK ] third\n[==========] 3 test(s) run.\n")
        self.assertEqual(
            found, [("buf: first", "passed"), ("buf: second", "skipped"), ("buf: third", "passed")]
        )

    def test_skipped_case_has_its_reason(self):
        found = cases.from_meson_test("unit", meson(stdout=CMOCKA + "[       OK ] third\n"))
        self.assertEqual(found[1].text, "no such kernel feature")

    def test_failed_case(self):
        for group in ("", "tests: "):  # cmocka 1 and 2
            stderr = "[  ERROR   ] --- 1 != 2\n[  FAILED  ] third\n"
            stderr += f"[  FAILED  ] {group}1 test(s), listed below:\n[  FAILED  ] third\n"
            found = cases.from_meson_test("unit", meson(CMOCKA, stderr, "FAIL", 1))
            self.assertEqual([c.status for c in found], ["passed", "skipped", "failed"])
            self.assertIn("1 != 2", found[2].text)

    def test_crash_in_a_case(self):
        self.assertIn(("buf: third", "failed"), self.verdicts(stdout=CMOCKA, result="FAIL", returncode=-11))

    def test_verdict_that_came_by_the_other_stream(self):
        self.assertIn(("buf: third", "passed"), self.verdicts(stdout=CMOCKA, stderr="[       OK ] third\n"))

    def test_lost_verdict_of_a_program_that_is_content(self):
        self.assertIn(("buf: third", "passed"), self.verdicts(stdout=CMOCKA))

    def test_lost_verdict_beside_a_failure_that_is_known(self):
        found = self.verdicts(stdout=CMOCKA, stderr="[  FAILED  ] first\n", result="FAIL", returncode=1)
        self.assertEqual([status for _, status in found], ["failed", "skipped", "passed"])

    def test_output_that_a_forked_child_repeats_counts_once(self):
        found = self.verdicts(stdout=CMOCKA + CMOCKA + "[       OK ] third\n")
        self.assertEqual([status for _, status in found], ["passed", "skipped", "passed"])

    def test_crash_with_lost_output(self):
        self.assertEqual(self.verdicts(result="FAIL", returncode=-6), [("buf", "failed")])

    def test_leak_found_after_all_cases_passed(self):
        found = self.verdicts(stdout="[ RUN      ] a\n[       OK ] a\n", stderr="leak", result="FAIL", returncode=23)
        self.assertEqual(found, [("buf: a", "passed"), ("buf", "failed")])

    def test_timeout(self):
        self.assertEqual(self.verdicts(result="TIMEOUT", returncode=-15), [("buf", "failed")])

    def test_exit_77_is_skipped_with_its_last_line(self):
        found = cases.from_meson_test("unit", meson("no strace\n", "", "SKIP", 77))
        self.assertEqual((found[0].status, found[0].text), ("skipped", "no strace"))

    def test_plain_program(self):
        self.assertEqual(self.verdicts(stdout="replayed 3 inputs\n"), [("buf", "passed")])


class Files(unittest.TestCase):
    """run_file() on test files of all kinds."""

    def run_text(self, text):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "test_it.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write("import os, subprocess, sys, time, unittest\n" + textwrap.dedent(text))
        return run_integration.run_file(path, "files", dict(os.environ, MARK="here"), folder)

    def statuses(self, text):
        return [c.status for c in self.run_text(text)]

    def test_pass_fail_error_skip(self):
        found = self.run_text(
            """
            class T(unittest.TestCase):
                def test_a(self): self.assertEqual(os.environ["MARK"], "here")
                def test_b(self): self.fail("because b")
                def test_c(self): raise ValueError("because c")
                @unittest.skip("because d")
                def test_d(self): pass
                def test_e(self): self.skipTest("because e")
            """
        )
        self.assertEqual([c.status for c in found], ["passed", "failed", "failed", "skipped", "skipped"])
        for case, word in zip(found[1:], ("because b", "because c", "because d", "because e")):
            self.assertIn(word, case.text)

    def test_one_bad_subtest_fails_the_test_once(self):
        found = self.run_text(
            """
            class T(unittest.TestCase):
                def test_a(self):
                    for i in range(3):
                        with self.subTest(i=i):
                            self.assertNotEqual(i, 1)
            """
        )
        self.assertEqual([c.status for c in found], ["failed"])
        self.assertIn("i=1", found[0].text)

    def test_expected_failure(self):
        text = """
            class T(unittest.TestCase):
                @unittest.expectedFailure
                def test_a(self): self.fail()
                @unittest.expectedFailure
                def test_b(self): pass
            """
        self.assertEqual(self.statuses(text), ["passed", "failed"])

    def test_class_fixture_that_fails_or_skips(self):
        text = """
            class A(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise ValueError("no")
                def test_a(self): pass
            class B(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise unittest.SkipTest("no")
                def test_b(self): pass
            """
        self.assertEqual(self.statuses(text), ["failed", "skipped"])

    def test_file_that_skips_itself(self):
        found = self.run_text('raise unittest.SkipTest("not here")\n')
        self.assertEqual([(c.status, c.text) for c in found], [("skipped", "not here")])

    def test_file_that_does_not_load(self):
        self.assertEqual(self.statuses("import no_such_module\n"), ["failed"])

    def test_file_without_tests(self):
        self.assertEqual(self.statuses("x = 1\n"), ["failed"])

    def test_process_that_ends_early(self):
        text = """
            class T(unittest.TestCase):
                def test_a(self): pass
                def test_b(self): os._exit(0)
                def test_c(self): pass
            """
        self.assertEqual(self.statuses(text), ["passed", "failed"])

    def test_hanging_file_is_killed_with_all_its_processes(self):
        found = self.run_text(
            """
            FILE_TIMEOUT = 3
            class T(unittest.TestCase):
                def test_a(self): pass
                def test_b(self):
                    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                    print("child", child.pid, flush=True)
                    time.sleep(1000)
            """.replace("            ", "")
        )
        self.assertEqual([c.status for c in found], ["passed", "failed"])
        self.assertIn("not done after 3 s", found[1].text)
        self.assertIn("in test_b", found[1].text, "no word about where it hung")
        child = int(found[1].text.split("child ")[1].split()[0])
        self.assertTrue(gone(child), f"process {child} is still there")

    def test_temporary_directory_is_removed(self):
        found = self.run_text(
            """
            class T(unittest.TestCase):
                def test_a(self):
                    open(os.path.join(os.environ["TMPDIR"], "x"), "w").close()
                    self.fail("in " + os.environ["TMPDIR"] + " end")
            """
        )
        folder = found[0].text.rsplit("in ", 1)[1].split(" end")[0]
        self.assertFalse(os.path.exists(folder))


def gone(pid):
    """Dead, or dead and not yet collected by whoever inherited it."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                if f.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


class Fuzz(unittest.TestCase):
    OUTPUT = "fuzz: json passed 100 runs\nfuzz: yaml failed; see a log\nERROR: deadly signal\nfuzz: zip passed 7 runs\n"

    def found(self, code, output):
        return [(c.name, c.status) for c in run_tests.fuzz_cases("fuzz", code, output)]

    def test_a_target_that_failed_is_a_failure(self):
        """With the end of its own log, whatever came after it."""
        self.assertEqual(self.found(1, self.OUTPUT), [("json", "passed"), ("yaml", "failed"), ("zip", "passed")])
        self.assertIn("deadly signal", run_tests.fuzz_cases("fuzz", 1, self.OUTPUT)[1].text)

    def test_a_failure_without_a_target_is_one(self):
        self.assertEqual(self.found(1, "fuzz: json passed 100 runs\n")[-1], ("fuzz", "failed"))
        self.assertEqual(self.found(0, ""), [("fuzz", "failed")])


class Junit(unittest.TestCase):
    def test_any_output_gives_valid_xml(self):
        with tempfile.NamedTemporaryFile(suffix=".xml") as f:
            found = [
                cases.Case("a", "one", "passed"),
                cases.Case("a", "two", "failed", 1.5, "<noise> \x00\x1b[31m \ud800 & \ufffe"),
                cases.Case("b", "three", "skipped", 0.0, "no kernel"),
            ]
            cases.write_junit(f.name, found)
            root = xml.parse(f.name).getroot()
        self.assertEqual([s.get("tests") for s in root], ["2", "1"])
        self.assertEqual(root[0].get("failures"), "1")
        self.assertEqual(root[1][0][0].get("message"), "no kernel")

    def test_summary(self):
        found = [cases.Case("a", "b", s) for s in ("passed", "passed", "failed")]
        self.assertEqual(cases.summary(found), "2 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
