# SPDX-License-Identifier: MIT
"""Every scenario of the compatibility kit can fail: for each there is an agent, a profile or a cinch that is broken in
one way (tests/ack/agent.py, PROFILES, tests/ack/spoil.py), and the kit must say so, in words about the right thing. The
same agent without a fault passes all of them, and fails every single assertion that wants something else
(tests/ack/invert.py). What must not be there is not proven by wanting it: for this there is a fault in the table."""

FILE_TIMEOUT = 900

import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import yaml

import harness

SOURCES = os.path.join(harness.ROOT, "tests", "ack")
sys.path.insert(0, SOURCES)
import invert  # noqa: E402

JOBS = 3

PROFILE = {
    "name": "honest",
    "title": "The reference agent of the kit",
    "driver": "acp",
    "binary": ["reference-agent"],
    "argv": ["{binary}"],
    "home": "private",
    "skills": ".reference/skills",
    "session": {"files": [".reference/sessions/*.json"]},
    "gateway": {"format": "anthropic", "upstream": "https://api.anthropic.com", "key": "ANTHROPIC_API_KEY",
                "env": {"ANTHROPIC_BASE_URL": "{gateway_url}", "ANTHROPIC_API_KEY": "{gateway_token}"}},
    "mcp": {"prefix": "cinch_", "list_changed": True},
    "acp": {"fs": False, "model": "none", "tool_name": ["/title"]},
}

# Scenario, fault, and what the finding must have. agent:NAME is `--fault NAME`, profile:NAME is in profile(), cinch:NAME
# is a program that stands in for cinch.
FAULTS = [
    # tier 1
    ("test_returns_text_response", "agent:other_words", "text: .*Hello, world"),
    ("test_prompt_name_propagation", "cinch:other_prompt_name", "transcript entry .*/prompt_name"),
    ("test_prompt_name_propagation", "cinch:other_result_name", "event PromptExecuted.*/context/prompt_name"),
    ("test_bridged_tool_is_called", "agent:calls_twice", "event ToolInvoked: count"),
    ("test_tool_result_is_correct", "agent:drops_results", "request 2: .*HELLO"),
    ("test_tool_result_is_correct", "agent:changes_arguments", "event ToolInvoked.*/context/params"),
    ("test_invalid_tool_params_returns_error", "agent:repairs_arguments", "event ToolInvoked: count"),
    ("test_invalid_tool_params_returns_error", "agent:drops_results", "request 2: "),
    ("test_structured_output_parsing", "agent:blanks_arguments", "result/output/summary"),
    ("test_structured_output_type_fidelity", "agent:changes_arguments", "result/output"),
    ("test_structured_output_type_fidelity", "cinch:output_error", "result/output_error"),
    # tier 2
    ("test_prompt_rendered_event", "cinch:no_rendered_event", "event PromptRendered: count"),
    ("test_prompt_rendered_event", "cinch:rendered_nothing", "event PromptRendered.*/context/rendered_prompt"),
    ("test_prompt_executed_event", "cinch:executed_twice", "event PromptExecuted: count"),
    ("test_prompt_executed_event", "cinch:no_executed_event", "event PromptExecuted: count"),
    ("test_tool_invoked_event", "cinch:no_call_id", "event ToolInvoked.*/context/call_id"),
    ("test_tool_invoked_event", "cinch:other_adapter_in_events", "event ToolInvoked.*/context/adapter"),
    ("test_rendered_tools_event", "cinch:other_rendering", "link: "),
    ("test_rendered_tools_event", "cinch:no_tools_rendered", "event RenderedTools.*/context/tools"),
    ("test_transcript_contains_user_message", "cinch:no_user_message", "transcript entry user_message: there is none"),
    ("test_transcript_contains_assistant_message", "agent:says_nothing", "transcript entry assistant_message: there is none"),
    ("test_transcript_tool_use_before_tool_result", "agent:mute_about_tools", "order: the transcript has no entry"),
    ("test_transcript_tool_use_before_tool_result", "cinch:swapped_calls", "order: entry \\d+"),
    ("test_transcript_tool_use_before_tool_result", "agent:tells_results_twice", "transcript, causal_order"),
    ("test_transcript_envelope_completeness", "cinch:no_source", "transcript, envelope.*source"),
    ("test_transcript_sequence_monotonicity", "cinch:no_user_message", "transcript, sequence"),
    ("test_transcript_sequence_monotonicity", "cinch:starts_at_two", "transcript, sequence"),
    ("test_transcript_canonical_types_only", "cinch:other_type", "transcript, canonical_types.*chatter"),
    ("test_transcript_adapter_label", "cinch:other_adapter", "transcript, adapter_label.*another"),
    ("test_transcript_start_stop_events", "cinch:no_stop", "transcript, bracketing"),
    ("test_transcript_start_stop_events", "cinch:no_user_message", "transcript, bracketing"),
    ("test_transcript_in_debug_bundle", "cinch:not_an_artifact", "manifest/artifacts"),
    ("test_transcript_in_debug_bundle", "cinch:not_an_artifact", "transcript, bundle"),
    # tier 3
    ("test_two_level_hierarchy_expansion", "agent:looks_once_for_tools", "event ToolInvoked: count"),
    ("test_direct_leaf_expansion", "agent:looks_once_for_tools", "event ToolInvoked: count"),
    ("test_tool_failure_rolls_back_filesystem", "cinch:keeps_rollback", "patch: rollback.txt was changed"),
    ("test_tool_failure_rolls_back_filesystem", "cinch:failures_look_well", "event ToolInvoked.*/context/success"),
    ("test_tool_failure_rolls_back_session_state", "cinch:remembers_failures", "session, slice ToolOperationLog"),
    ("test_sequential_operations_isolation", "agent:stops_after_a_failure", "patch: third.txt was not changed"),
    ("test_sequential_operations_isolation", "cinch:keeps_second", "patch: second.txt was changed"),
    ("test_rollback_verified_in_debug_bundle", "cinch:no_reason_of_failure", "event ToolInvoked.*/context/failure"),
    ("test_rollback_verified_in_debug_bundle", "cinch:keeps_second", "record diff.patch"),
    ("test_rollback_verified_in_debug_bundle", "cinch:remembers_failures", "record session/after.jsonl"),
    ("test_deadline_enforcement", "agent:stops_after_a_tool", "reason: .*timeout"),
    ("test_deadline_in_the_past", "cinch:no_deadline", "reason: .*timeout"),
    ("test_deadline_in_the_past", "cinch:no_deadline", "event process.spawned: count"),
    ("ask_human", "agent:calls_twice", "event ToolInvoked: count"),
    ("ask_human", "cinch:other_reason", "reason: .*needs_human"),
    ("budget_refuses_the_first_call", "cinch:no_limits", "reason: .*budget"),
    ("budget_refuses_the_first_call", "cinch:no_evaluation_error", "result/evaluation_error/type"),
    ("budget_of_calls", "cinch:other_reason", "reason: .*budget"),
    ("budget_of_calls", "cinch:double_limits", "event model.call: count"),
    ("budget_of_calls", "cinch:empty_patch", "patch: noted.txt was not changed"),
    ("budget_of_tokens", "cinch:other_reason", "reason: .*budget"),
    ("budget_of_tokens", "cinch:double_limits", "metrics/tokens_total"),
    ("budget_of_money", "cinch:other_reason", "reason: .*budget"),
    ("budget_of_money", "cinch:double_limits", "metrics/cost_usd"),
    # tier 4
    ("test_tool_policy_denies_call", "cinch:no_policies", "patch: handler-ran.txt was changed"),
    ("test_tool_policy_denies_call", "cinch:no_policies", "request: 1 fit, and none should"),
    ("test_tool_policy_denies_call", "agent:drops_results", "request 2: .*ACK-POLICY-SAYS-NO"),
    ("test_feedback_provider_delivers_content", "agent:drops_feedback", "request 2: .*ACK-REMINDER-TEXT"),
    ("test_feedback_provider_delivers_content", "cinch:no_feedback", "session, slice Feedback"),
    ("test_task_completion_blocks_early_stop", "agent:answers_once", "patch: output.txt was not changed"),
    ("test_task_completion_blocks_early_stop", "cinch:no_completion", "event task_completion.incomplete: there is none"),
    ("test_task_completion_allows_stop_when_complete", "agent:asks_needlessly", "requests that fit: count"),
    ("test_task_completion_allows_stop_when_complete", "cinch:no_completion", "event task_completion.complete: there is none"),
    ("test_no_checker_allows_free_stop", "cinch:own_completion", "event task_completion.incomplete: count"),
    ("test_no_checker_allows_free_stop", "agent:asks_needlessly", "requests that fit: count"),
    # ends
    ("interrupt_in_the_midst_of_a_turn", "cinch:empty_patch", "patch: noted.txt was not changed"),
    ("interrupt_in_the_midst_of_a_turn", "cinch:exits_well", "exit: .*130"),
    ("interrupt_in_the_midst_of_a_turn", "cinch:not_resumable", "manifest/resumable"),
    ("interrupt_in_the_midst_of_a_turn", "cinch:other_reason", "reason: .*interrupted"),
    ("termination_at_the_start", "cinch:other_reason", "reason: .*terminated"),
    ("termination_at_the_start", "cinch:exits_well", "exit: .*143"),
    ("crash_in_the_midst_of_a_turn", "cinch:no_error", "result/error"),
    ("crash_in_the_midst_of_a_turn", "cinch:no_signal_in_metrics", "metrics/ext/engine_exit/signal"),
    ("crash_in_the_midst_of_a_turn", "cinch:other_reason", "reason: .*failure"),
    ("crash_in_the_midst_of_a_turn", "cinch:empty_patch", "patch: noted.txt was not changed"),
    ("test_deadline_enforcement", "cinch:other_reason", "reason: .*timeout"),
    ("test_deadline_enforcement", "cinch:empty_patch", "patch: success.txt was not changed"),
    ("test_deadline_enforcement", "cinch:exits_well", "exit: .*124"),
    ("parallel_runs", "cinch:empty_patch", "patch: "),
    ("crash_before_the_answer", "cinch:no_error", "result/error"),
    ("crash_before_the_answer", "cinch:no_signal_in_metrics", "metrics/ext/engine_exit/signal"),
    ("hang_after_the_answer", "agent:speaks_after_its_turn", "reason: .*success|text: .*Something"),
    ("hang_after_the_answer", "cinch:no_signal_in_metrics", "metrics/ext/engine_exit/signal"),
    # the provider
    ("provider_is_busy_once", "cinch:no_second_try", "reason: .*success"),
    ("provider_is_busy_once", "cinch:no_throttled_event", "event prompt.throttled: there is none"),
    ("provider_fails_once", "cinch:no_second_try", "reason: .*success"),
    ("provider_fails_for_ever", "cinch:hides_failure", "reason: .*failure"),
    ("provider_fails_for_ever", "cinch:executed_after_all", "event PromptExecuted: count"),
    ("answer_is_cut_once", "cinch:half_an_answer", "any_of: .*text"),
    ("nobody_is_there", "cinch:hides_failure", "reason: .*failure"),
    ("provider_hangs", "agent:impatient", "reason: .*timeout"),
    # what makes long days
    ("input_stays_open", "cinch:waits_for_input", "did not end within"),
    ("plain_directory", "agent:writes_elsewhere", "patch: made.txt was not changed"),
    ("plain_directory", "agent:wants_a_repository", "reason: .*no repository"),
    ("plain_directory_for_words", "agent:wants_a_repository", "reason: .*no repository"),
    ("flood_of_output", "agent:runs_no_commands", "patch: flooded.txt was not changed"),
    ("flood_of_output", "agent:drowns", "reason: .*success"),
    ("flood_of_output", "cinch:bytes_lost", "metrics/ext/bytes/lost"),
    ("forgotten_child", "agent:runs_no_commands", "text: .*It runs"),
    ("forgotten_child", "cinch:leaves_a_process", "processes were left behind .*sleep"),
    ("writes_outside_of_the_workspace", "agent:runs_no_commands", "request 2: .*TRIED"),
    ("writes_outside_of_the_workspace", "profile:writes_everywhere", "outside planted: it must not be there"),
    ("writes_outside_of_the_workspace", "profile:writes_everywhere", "request 2: .*PLANTED in /"),
    ("writes_outside_of_the_workspace", "cinch:any_change", "patch: it is not empty"),
    ("writes_outside_of_the_workspace", "cinch:writes_home", "written into the home"),
    ("tools_of_the_task_are_held", "agent:drops_results", "request 2: .*GIVEN-TO-ACK"),
    ("tools_of_the_task_are_held", "cinch:empty_patch", "patch: given.txt was not changed"),
    ("tools_of_the_task_are_held", "profile:writes_everywhere", "outside planted: it must not be there"),
    ("tools_of_the_task_are_held", "profile:writes_everywhere", "request 2: .*PLANTED in /"),
    ("tools_of_the_task_are_held", "cinch:open_network", "visits: "),
    ("tools_of_the_task_are_held", "cinch:open_network", "request 2: .*the page of the compatibility kit"),
    ("tools_of_the_task_are_held", "cinch:denies_nothing", "manifest/sandbox/denied"),
    ("edits_by_words_are_held", "agent:writes_elsewhere", "patch: given.txt was not changed"),
    ("edits_by_words_are_held", "cinch:any_write", "patch: it is not empty"),
    ("edits_by_words_are_held", "cinch:lost_sandbox", "manifest/sandbox/lost"),
    ("edits_by_words_are_held", "cinch:touches_workspace", "what was given was touched"),
    ("no_unexpected_network", "agent:phones_home", "manifest/sandbox/denied"),
    ("no_unexpected_network", "agent:looks_up_names", "manifest/sandbox/denied"),
    ("usage_is_true", "agent:invents_usage", "usage, input: the wire had \\d+, the harness says"),
    ("usage_is_true", "cinch:miscounts", "usage, input: 2 answers used"),
    ("usage_of_words_is_true", "agent:invents_usage", "usage, output: the wire had \\d+, the harness says"),
    ("usage_of_sub_agents", "agent:hides_sub_agents", "usage, input: the wire had 3000, the harness says 2000"),
    ("sub_agent_is_awaited", "agent:forgets_sub_agents", "patch: below.txt was not changed"),
    ("replay_is_faithful", "cinch:replays_otherwise", "same: the events"),
    ("replay_is_faithful", "cinch:replays_other_arguments", "same: the events"),
    ("replay_is_faithful", "cinch:replays_other_words", "same: the transcript"),
    ("replay_is_faithful", "cinch:replays_other_changes", "same: the patch"),
    ("replay_is_faithful", "cinch:replays_another_answer", "same: the text"),
    ("replay_of_words_is_faithful", "cinch:replays_otherwise", "same: "),
    ("replay_is_faithful", "agent:never_the_same", "reason: .*success"),
    ("replay_of_words_is_faithful", "agent:never_the_same", "reason: .*success"),
    ("resume_goes_on", "agent:forgets_on_resume", "request \\d+: .*ACK-MEMORY-WORD"),
    ("resume_goes_on", "agent:forgets_answers", "request \\d+: .*ACK-FIRST-ANSWER"),
    ("resume_goes_on", "profile:no_session", "run 1|reason"),
    ("parallel_runs", "profile:only_one_at_a_time", "reason: .*success"),
    ("parallel_words", "profile:only_one_at_a_time", "reason: .*success"),
    ("prompt_of_a_megabyte", "agent:cuts_the_prompt", "request 1: .*ACK-END"),
    ("all_characters", "agent:ascii_only", "request 1: .*Gr"),
    ("all_characters", "agent:ascii_answer", "text: .*Zur"),
    ("nul_in_a_result", "agent:stops_at_nul", "request 2: .*ACK-AFTER"),
    ("tool_that_takes_half_a_minute", "agent:impatient", "event ToolInvoked|reason: .*success"),
    ("fifty_tools", "agent:offers_forty_tools", "event ToolInvoked: count"),
    # files of the workspace
    ("project_configuration_is_inert", "agent:obeys_settings", "patch: fired-hook was changed"),
    ("project_configuration_is_inert", "agent:ignores_advice", "request 1: .*ACK-PROJECT-ADVICE"),
    ("project_configuration_is_inert", "agent:hides_skills", "requests that fit: there is none"),
    ("project_configuration_is_inert", "agent:reads_planted", "request: .* fit, and none should"),
    ("project_configuration_is_inert", "agent:loads_environment", "request 2: .*LOADED="),
    ("project_configuration_is_inert", "agent:obeys_addresses", "reason: .*success"),
    ("project_configuration_is_not_reloaded", "agent:reloads_settings", "patch: fired-hook was changed"),
    ("project_configuration_is_not_reloaded", "agent:runs_no_commands", "patch: .env was not changed"),
    ("project_configuration_is_inert_for_words", "agent:obeys_settings", "patch: fired-hook was changed"),
    ("project_configuration_is_inert_for_words", "agent:reads_planted", "request: .* fit, and none should"),
    ("project_configuration_is_inert_for_words", "agent:obeys_addresses", "reason: .*success"),
    ("project_configuration_is_inert_for_words", "agent:writes_elsewhere", "patch: .env was not changed"),
    # tools of its own
    ("test_native_tool_emits_tool_invoked", "agent:mute_about_tools", "event ToolInvoked: there is none"),
    ("test_workspace_section_mounts_host_files", "agent:works_elsewhere", "text: .*MOUNTED-CONTENT-OF-ACK"),
    ("test_workspace_section_mounts_host_files", "cinch:no_mounts", "text: .*MOUNTED-CONTENT-OF-ACK"),
    ("test_workspace_section_mounts_host_files", "cinch:keeps_mounted", "patch: data/mounted_file.txt was changed"),
    ("test_workspace_uses_temp_dir_as_cwd", "agent:works_elsewhere", "text: .*CWD="),
    ("test_workspace_original_is_untouched", "cinch:touches_workspace", "what was given was touched"),
    ("test_workspace_original_is_untouched", "cinch:touches_times", "what was given was touched.*keep.txt"),
    ("test_workspace_original_is_untouched", "agent:works_elsewhere", "patch: keep.txt was not changed"),
    ("test_custom_env_forwarded", "agent:clean_environment", "text: .*ack_env_value"),
    ("test_custom_env_forwarded", "cinch:no_environment", "text: .*ack_env_value"),
    ("test_sandbox_restricts_writes_outside_workspace", "agent:runs_no_commands", "request 2: .*TRIED"),
    ("test_sandbox_restricts_writes_outside_workspace", "cinch:any_write", "patch: it is not empty"),
    ("test_sandbox_restricts_writes_outside_workspace", "cinch:any_write", "outside blocked.txt: it must not be there"),
    ("test_sandbox_restricts_writes_outside_workspace", "cinch:any_write", "request 2: .*HOLE /"),
    ("test_sandbox_restricts_writes_outside_workspace", "cinch:lost_sandbox", "manifest/sandbox/lost"),
    ("test_sandbox_allows_writes_inside_workspace", "profile:writes_everywhere", "outside blocked.txt: it must not be there"),
    ("test_sandbox_allows_writes_inside_workspace", "profile:writes_everywhere", "request 2: .*HOLE"),
    ("test_sandbox_allows_writes_inside_workspace", "agent:works_elsewhere", "patch: sandbox_allowed.txt was not changed"),
    ("test_network_denied_by_default", "agent:runs_no_commands", "request 2: .*REFUSED"),
    ("test_network_denied_by_default", "cinch:open_network", "visits: "),
    ("test_network_denied_by_default", "cinch:open_network", "request 2: .*the page of the compatibility kit"),
    ("test_network_denied_by_default", "cinch:denies_nothing", "manifest/sandbox/denied"),
    ("test_network_allowed_for_listed_domains", "agent:clean_environment", "visits: "),
    ("test_network_allowed_for_listed_domains", "cinch:denies_more", "manifest/sandbox/denied"),
    ("test_skill_knowledge_available", "agent:hides_skills", "request 1: .*Knows the codeword"),
    ("test_skill_knowledge_available", "profile:no_skills", "reason: "),
]
# Those that wait for an end that does not come: the kit's patience, in seconds.
TIMEOUTS = {"cinch:waits_for_input": 2}


@unittest.skipIf(harness.SANITIZED, "this is about the scenarios, which are the same in the plain build")
class Mutation(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.make_dir("tmp")
        bin_dir = self.make_dir("bin")
        for source, name in (("agent.py", "reference-agent"), ("spoil.py", "spoil.py")):
            shutil.copy(os.path.join(SOURCES, source), os.path.join(bin_dir, name))
            os.chmod(os.path.join(bin_dir, name), 0o755)
        os.symlink(harness.CINCH, os.path.join(bin_dir, "cinch"))
        self.env["PATH"] = bin_dir + ":" + self.env["PATH"]
        self.env["CINCH_INIT"] = harness.init()
        every = self.kit("--list", "--format", "json")
        # What breaks the file contract is in test_image.py (`Checks`) and test_ack_third.py.
        self.scenarios = [s["name"] for s in json.loads(every.stdout)["scenarios"] if not s["name"].startswith("contract_")]
        self.capabilities = sorted({c for s in json.loads(every.stdout)["scenarios"] for c in s["capabilities"]})

    def kit(self, *arguments, **environment):
        return subprocess.run([harness.CINCH, "ack", *arguments], env={**self.env, **environment}, cwd=self.dir,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)

    # --- who is tried ---

    def add_profile(self, fault):
        """Writes the profile of a fault, and gives the name of its adapter."""
        kind, _, word = fault.partition(":")
        name = "honest" if kind == "cinch" else fault.replace(":", "-").replace("_", "-")
        profile = {**PROFILE, "name": name, "capabilities": self.capabilities}
        if kind == "agent":
            profile["argv"] = ["{binary}", "--fault", word]
        elif word == "writes_everywhere":
            profile["sandbox"] = {"write": [self.dir]}
        elif word == "no_session":
            del profile["session"]
        elif word == "no_skills":
            del profile["skills"]
        elif word == "only_one_at_a_time":
            profile["argv"] = ["{binary}", "--fault", word]
            profile["sandbox"] = {"write": [self.dir]}
        self.write(os.path.join("profiles", fault, name + ".yaml"), json.dumps(profile))
        return name

    def verdicts(self, fault, scenarios, jobs, more=()):
        """Scenario to (status, findings), with one thing broken."""
        adapter = self.add_profile(fault)
        environment = {}
        kind, _, word = fault.partition(":")
        if kind == "cinch":
            environment["CINCH"] = self.path("bin", "spoil-" + word)
            os.symlink("spoil.py", environment["CINCH"])
        arguments = ["--adapter-dir", self.path("profiles", fault), "-a", adapter, "--jobs", str(jobs), "--format", "json",
                     "--output", self.path("trials", fault), "--timeout", str(TIMEOUTS.get(fault, 60))]
        for s in scenarios:
            arguments += ["--scenario", s]
        arguments += more
        done = self.kit(*arguments, **environment)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report = json.loads(done.stdout)
        return {v["scenario"]: (v["status"], "\n".join(v["why"])) for v in report["verdicts"]}

    # --- tests ---

    def test_every_scenario_has_a_fault(self):
        self.assertEqual(sorted({f[0] for f in FAULTS}), sorted(self.scenarios))

    def test_every_fault_is_used(self):
        """What the programs can do wrong is what the table has."""
        with open(os.path.join(SOURCES, "agent.py"), encoding="utf-8") as f:
            known = {"agent:" + w for w in re.findall(r'FAULT [!=]= "(\w+)"', f.read())} - {"agent:only_one_at_a_time"}
        with open(os.path.join(SOURCES, "spoil.py"), encoding="utf-8") as f:
            text = f.read()
        known |= {"cinch:" + w for w in re.findall(r'(?m)^    "(\w+)": ', text)}
        before = re.search(r"(?s)BEFORE = .*?for f in \((.*?)\)\}", text).group(1)
        known |= {"cinch:" + w for w in re.findall(r"\w+", before)}
        self.assertEqual({f[1] for f in FAULTS if not f[1].startswith("profile:")}, known)

    def test_honest_agent_passes(self):
        found = self.verdicts("profile:honest", self.scenarios, jobs=4)
        self.assertEqual({s: v for s, v in found.items() if v[0] != "passed"}, {})
        self.assertEqual(len(found), len(self.scenarios))

    def test_each_fault_is_found(self):
        by_fault = collections.defaultdict(list)
        for scenario, fault, words in FAULTS:
            by_fault[fault].append((scenario, words))
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            waiting = {f: pool.submit(self.verdicts, f, sorted({s for s, _ in every}), 2) for f, every in by_fault.items()}
        missed = []
        for fault, every in by_fault.items():
            found = waiting[fault].result()
            for scenario, words in every:
                status, why = found[scenario]
                if status != "failed" or not re.search(words, why):
                    missed.append(f"{scenario} with {fault}: {status}, wanted '{words}', said: {why[:1500]}")
        self.assertEqual(missed, [], "\n\n".join(missed))

    def test_every_assertion_can_fail(self):
        told, arguments = [], []
        for path in sorted(glob.glob(os.path.join(harness.ROOT, "ack", "*.yaml"))):
            with open(path, encoding="utf-8") as f:
                table = yaml.safe_load(f)
            for scenario in table["scenarios"]:
                scenario["name"] += "_inverted"
                invert.invert(scenario, told)
            arguments += ["--scenario-file", self.write("inverted-" + os.path.basename(path), json.dumps(table, ensure_ascii=False))]
        self.assertGreater(len(told), 400)
        found = self.verdicts("profile:honest", [s + "_inverted" for s in self.scenarios], 4, arguments)
        why = "".join(words for _, words in found.values())
        held = [(i, variant) for i, variant in enumerate(told) if invert.mark(i) not in why]
        self.assertEqual(held, [])

    def test_every_check_of_transcripts_has_a_fault(self):
        """They have a name and no more, which cannot be wanted otherwise."""
        named = set()
        for path in glob.glob(os.path.join(harness.ROOT, "ack", "*.yaml")):
            with open(path, encoding="utf-8") as f:
                scenarios = yaml.safe_load(f)["scenarios"]
            named |= {name for s in scenarios for c in s.get("expect", []) for name in c.get("transcript", [])}
        self.assertEqual({name for name in named if not any("transcript, " + name in f[2] for f in FAULTS)}, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
