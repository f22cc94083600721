#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad input is normal input: each kind has its exit code and one clear message, starts nothing and loses
nothing. Where the output directory could be made, the refusal is a complete record."""

import os

import harness


class BadInput(harness.Case):
    def setUp(self):
        super().setUp()
        self.witness = self.path("started")
        self.agent = self.script("agent.sh", f"touch {self.witness}\n")

    def refuse(self, code, *args, words=(), record=True, env=None):
        """cinch run with these arguments is refused; returns the result."""
        r = self.run_cinch(*args, valid=False, env=env)
        text = r.stderr + r.stdout
        self.assertEqual(r.code, code, text)
        for word in words:
            self.assertIn(word.encode(), text)
        self.assertFalse(os.path.exists(self.witness), "something was started")
        self.assertNotIn(b"Sanitizer", text)
        # A line of options that makes no sense leaves nothing; all else is a record.
        if record or code == 65 or os.path.exists(r.output):
            self.assert_valid(r)
            self.assertEqual(r.manifest["outcome"], "failure")
            self.assertEqual(r.manifest["exit_code"], code)
            self.assertTrue(r.manifest["error"])
            self.assertTrue(r.exists("metrics.json"))
            self.assertNotEqual(r.metrics["exit_code"], 0)
        if not record:
            self.assertEqual(len(r.stderr.strip().splitlines()), len(r.stderr.strip().splitlines()[:2]),
                             "more than a message and a hint")
        return r

    def test_unknown_adapter(self):
        r = self.refuse(69, "--adapter", "comand", "--", self.agent, words=["comand", "did you mean 'command'"])
        self.assertEqual(r.reason, "unavailable")

    def test_no_adapter_and_no_command(self):
        self.refuse(64, "a goal", words=["--adapter"], record=False)

    def test_adapter_command_without_command(self):
        self.refuse(64, "--adapter", "command", words=["needs a command"], record=False)

    def test_missing_prompt_file(self):
        r = self.refuse(66, "--prompt", self.path("none.md"), "--", self.agent, words=["none.md", "No such file"])
        self.assertEqual(r.reason, "missing_input")

    def test_prompt_file_is_a_directory(self):
        self.refuse(66, "--prompt", self.workspace, "--", self.agent, words=["directory"])

    def test_workspace_is_a_file(self):
        path = self.write("file", "x")
        self.refuse(66, "--set", f"workspace={path}", "--", self.agent, words=["not a directory"])

    def test_workspace_is_missing(self):
        self.refuse(66, "--set", f"workspace={self.path('gone')}", "--", self.agent, words=["gone"])

    def test_timeout_zero(self):
        self.refuse(64, "--timeout", "0", "--", self.agent, words=["timeout"], record=False)

    def test_timeout_negative(self):
        self.refuse(64, "--timeout=-5", "--", self.agent, words=["timeout"], record=False)
        self.refuse(64, "--timeout", "-5", "--", self.agent, words=["timeout"], record=False)

    def test_timeout_is_no_duration(self):
        self.refuse(64, "--timeout", "soon", "--", self.agent, words=["soon", "10m"], record=False)

    def test_timeout_zero_in_a_task(self):
        task = self.write("t.yaml", f"agent: {{command: [{self.agent}]}}\nlimits:\n  timeout: 0\n")
        self.refuse(65, task, words=["t.yaml:3:12", "greater than 0"], record=False)

    def test_output_is_a_file(self):
        out = self.write("file", "precious")
        r = self.run_cinch("--", self.agent, output=out, valid=False)
        self.assert_failed(r, 73, "file")
        with open(out, encoding="utf-8") as f:
            self.assertEqual(f.read(), "precious")

    def test_output_below_a_file(self):
        self.write("file", "precious")
        r = self.run_cinch("--", self.agent, output=self.path("file", "out"), valid=False)
        self.assert_failed(r, 73, "file")

    def test_unwritable_output(self):
        r = self.run_cinch("--", self.agent, output="/proc/cinch-out", valid=False)
        self.assert_failed(r, 73, "/proc/cinch-out")

    def test_yaml_with_a_tab(self):
        task = self.write("t.yaml", "agent:\n\tcommand: [x]\n")
        self.refuse(65, task, words=["t.yaml:2:", "tab"], record=False)

    def test_yaml_with_a_duplicate_key(self):
        task = self.write("t.yaml", "name: a\nname: b\n")
        self.refuse(65, task, words=["t.yaml:2:1", "name"], record=False)

    def test_yaml_bomb(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
        task = self.write("t.yaml", "\n".join(lines) + "\n")
        self.refuse(65, task, words=["t.yaml"], record=False)

    def test_json_with_nan(self):
        task = self.write("t.json", '{"limits": {"timeout": NaN}}')
        self.refuse(65, task, words=["t.json:1:24"], record=False)

    def test_task_with_an_unknown_key(self):
        task = self.write("t.yaml", "agent:\n  comand: [x]\n")
        self.refuse(65, task, words=["t.yaml:2:3", "agent.comand", "did you mean 'command'"], record=False)

    def test_task_is_missing(self):
        self.refuse(66, self.path("none.yaml"), words=["none.yaml"], record=False)

    def test_task_is_binary(self):
        task = self.write("t.yaml", bytes(range(256)) * 10)
        self.refuse(65, task, words=["t.yaml"], record=False)

    def test_profile_with_an_unknown_key(self):
        self.write("adapters/bad.yaml", "name: bad\nargv: [x]\nfoo: 1\n")
        self.refuse(65, "--adapter-dir", self.path("adapters"), "--", self.agent, words=["adapter profile: ", "bad.yaml:3:1", "foo"],
                    record=False)

    def test_profile_directory_is_missing(self):
        self.refuse(66, "--adapter-dir", self.path("none"), "--", self.agent, words=["--adapter-dir", "none"], record=False)

    def test_binary_not_found(self):
        r = self.refuse(127, "--", "no-such-program-anywhere", words=["no-such-program-anywhere"])
        self.assertEqual(r.reason, "not_found")

    def test_binary_path_not_found(self):
        self.refuse(127, "--", "./nothing-here", words=["nothing-here"])

    def test_binary_not_executable(self):
        path = self.write("plain", "#!/bin/sh\n", 0o644)
        r = self.refuse(126, "--", path, words=["plain"])
        self.assertEqual(r.reason, "not_executable")

    def test_binary_is_a_directory(self):
        self.refuse(126, "--", self.workspace, words=["directory"])

    def test_script_with_a_missing_interpreter(self):
        path = self.write("script", "#!/no/such/interpreter\n", 0o755)
        self.refuse(126, "--", path, words=["interpreter"])

    def test_garbage_with_an_execute_bit(self):
        path = self.write("garbage", b"\x7fGARBAGE", 0o755)
        self.refuse(126, "--", path, words=["garbage"])

    def test_missing_secret(self):
        r = self.refuse(77, "--secret", "NOT_SET_ANYWHERE", "--", self.agent, words=["NOT_SET_ANYWHERE"])
        self.assertEqual(r.reason, "auth")

    def test_missing_secret_file(self):
        self.refuse(77, "--secret-file", self.path("none"), "--", self.agent, words=["none"])

    def test_unknown_option(self):
        self.refuse(64, "--tiemout", "5", "--", self.agent, words=["--tiemout", "--timeout"], record=False)

    def test_bad_variable_name(self):
        self.refuse(65, "--env", "1BAD=x", "--", self.agent, words=["1BAD"])

    def test_a_setting_of_the_wrong_kind_beside_a_command(self):
        for value in ("[1]", "[a, b, c]", "x", "5"):
            self.refuse(65, "--set", "agent=" + value, "--", self.agent, words=["'agent' must be a map"], record=False)

    def test_a_key_nested_too_deep(self):
        self.refuse(64, "--set", "config" + ".a" * 5000 + "=1", "--", self.agent, words=["parts"], record=False)

    def test_removing_what_a_run_needs(self):
        self.refuse(65, "--set", "workspace=null", "--", self.agent, words=["workspace"], record=False)
        r = self.run_command("true", options=["--set", "limits=null"])
        self.assertEqual((r.code, r.reason), (0, "success"))

    def test_a_version_of_the_future(self):
        task = self.write("t.yaml", f"name: x\nversion: 2\nagent: {{command: [{self.agent}]}}\n")
        self.refuse(65, task, words=["t.yaml:2:10", "version 2"], record=False)

    def test_run_number_zero(self):
        self.refuse(65, "--set", "eval.run_number=0", "--", self.agent, words=["between 1 and 99"], record=False)

    def test_a_timeout_of_ten_years(self):
        self.assertEqual(self.run_command("true", options=["--timeout", "3650d"]).code, 0)
        self.refuse(64, "--timeout", "3651d", "--", self.agent, words=["timeout"], record=False)

    def test_input_that_is_too_large(self):
        self.refuse(66, "--prompt", "/dev/zero", "--", self.agent, words=["/dev/zero", "larger than"])
        self.refuse(65, "--config", "/dev/zero", "--", self.agent, words=["/dev/zero", "larger than"], record=False)

    def test_goal_and_prompt(self):
        p = self.write("p.md", "x")
        self.refuse(64, "goal", "--prompt", p, "--", self.agent, words=["a goal and --prompt cannot be used together"], record=False)

    def test_unknown_config_file_name(self):
        self.refuse(65, "--set", "files.settings.a=1", "--", self.agent, words=["settings"])


if __name__ == "__main__":
    harness.main()
