# SPDX-License-Identifier: MIT
"""`cinch ack` on a terminal: one line that says how far it is, what failed at once, and a table at the end."""

import re

import harness
from screen import on_terminal

MINE = """\
bases: {greets: {task: {prompt: Say good day.}, script: {turns: [{say: Good day.}]}}}
scenarios:
  - {name: says_good_day, summary: It greets., capability: text_response, base: greets, expect: [{text: Good day.}]}
  - {name: says_good_night, summary: It does not., capability: text_response, base: greets, expect: [{text: Good night.}]}
  - {name: says_it_late, summary: It takes its time., capability: text_response, base: greets, expect: [{reason: success}],
     script: {turns: [{say: Good day., delay: 700ms}]}}
"""


class Screen(harness.Case):
    def setUp(self):
        super().setUp()
        self.env.update(TMPDIR=self.make_dir("tmp"), TERM="xterm-256color")
        self.mine = self.write("mine.yaml", MINE)

    def ack(self, columns, **environment):
        code, raw = on_terminal(["ack", "-a", "api-direct", "--scenario-file", self.mine, "--scenario", "says_*", "-j", "1"],
                                {**self.env, **environment}, columns)
        self.assertEqual(code, 1, raw)
        return raw.decode()

    def test_progress_and_table(self):
        text = self.ack(100)
        self.assertRegex(text, r"\r[^\n]*2/3  [^\n]*1 passed, 1 failed  \|  api-direct says_it_late")
        # What failed is told while the rest is still under way, and again, whole, at the end.
        self.assertLess(text.index("failed    api-direct  says_good_night"), text.index("says_it_late"))
        last = re.sub(r"\033\[[0-9;]*[A-Za-z]", "", text).rsplit("adapter ", 1)[1]
        self.assertRegex(last, r"(?m)^api-direct +\S+ +2/3\r?$")
        self.assertIn('text: wanted "Good night.", found "Good day."', last)
        self.assertRegex(last, r"2 passed, 1 failed in ")

    def test_nothing_is_wider_than_the_terminal(self):
        for columns in (60, 80, 120):
            for line in re.split(r"[\r\n]+", re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", self.ack(columns))):
                if "kept: " not in line: # a path is told whole
                    self.assertLessEqual(len(line), columns, line)

    def test_without_colour(self):
        self.assertNotRegex(self.ack(80, NO_COLOR="1"), r"\033\[[0-9;]*m")


if __name__ == "__main__":
    harness.main()
