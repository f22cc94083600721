#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real agent programs behind the gateway of a run, with a scripted model: a used-up budget ends them at once, and
what they report stands beside what the wire says. The profiles are as small as they can be."""

import json
import os

import harness

FILE_TIMEOUT = 900

SCRIPT = """
defaults: {usage: {input: 1000, output: 50}}
turns:
  - call: {tool: native.shell, args: {command: "echo hi"}}
  - say: done
"""

CLAUDE = {
    "name": "x", "prompt": "argument",
    "argv": ["{binary}", "-p", "{prompt}", "--model", "claude-opus-5", "--permission-mode", "bypassPermissions",
             "--output-format", "json"],
    "env": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"},
    "gateway": {"format": "anthropic", "env": {"ANTHROPIC_BASE_URL": "{gateway_url}",
                                               "ANTHROPIC_API_KEY": "{gateway_token}"}},
    "output": {"format": "json", "rules": [
        {"text": "/result", "failed": "/is_error", "usage": {
            "input": "/usage/input_tokens", "output": "/usage/output_tokens", "cost_usd": "/total_cost_usd",
            "cache_read": "/usage/cache_read_input_tokens"}}]},
}

CODEX = {
    "name": "x", "prompt": "argument",
    "argv": ["{binary}", "exec", "--skip-git-repo-check", "-s", "danger-full-access", "-m", "gpt-5", "--json",
             "{prompt}"],
    "files": [{"name": "config", "path": ".codex/config.toml", "format": "toml"}],
    "settings": {"files": {"config": {"analytics": {"enabled": False}, "check_for_update_on_startup": False,
                                      "features": {"plugins": False, "apps": False, "remote_plugin": False}}}},
    "gateway": {"format": "responses", "env": {"OPENAI_API_KEY": "{gateway_token}"}, "files": {"config": {
        "model_provider": "cinch",
        "model_providers": {"cinch": {"name": "cinch", "base_url": "{gateway_url}/v1", "env_key": "OPENAI_API_KEY",
                                      "wire_api": "responses"}}}}},
    "output": {"format": "ndjson", "rules": [
        {"when": {"/type": "turn.completed"}, "add_usage": True,
         "usage": {"input": "/usage/input_tokens", "output": "/usage/output_tokens",
                   "cache_read": "/usage/cached_input_tokens"}},
        {"when": {"/type": "item.completed", "/item/type": "agent_message"}, "text": "/item/text"},
        {"when": {"/type": "turn.failed"}, "error": "/error/message", "failed": "/type"}]},
}

GEMINI = {
    "name": "x", "prompt": "argument",
    "argv": ["{binary}", "-p", "{prompt}", "-m", "gemini-2.5-pro", "-o", "json", "--yolo", "--skip-trust"],
    "env": {"GEMINI_CLI_NO_RELAUNCH": "true"},
    "files": [{"name": "settings", "path": ".gemini/settings.json"}],
    "settings": {"files": {"settings": {"security": {"auth": {"selectedType": "gemini-api-key"}},
                                        "privacy": {"usageStatisticsEnabled": False},
                                        "general": {"enableAutoUpdate": False}}}},
    "gateway": {"format": "gemini", "env": {"GOOGLE_GEMINI_BASE_URL": "{gateway_url}",
                                            "GEMINI_API_KEY": "{gateway_token}"}},
    "output": {"format": "json", "rules": [{"text": "/response"}]},
}

OPENCODE = {
    "name": "x", "prompt": "argument", "argv": ["{binary}", "run", "--format", "json", "--title", "t", "{prompt}"],
    "env": {"OPENCODE_CONFIG": "{home}/opencode.json", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "XDG_CONFIG_HOME": "{home}/config", "XDG_DATA_HOME": "{home}/data", "XDG_STATE_HOME": "{home}/state",
            "XDG_CACHE_HOME": "{home}/cache", "TMPDIR": "{home}"},
    "files": [{"name": "config", "path": "opencode.json"}, {"name": "seed", "path": "config/opencode/package.json"},
              {"name": "lock", "path": "config/opencode/package-lock.json"},
              {"name": "none", "path": "config/opencode/node_modules/none.json"}],
    "settings": {"files": {
        "seed": {"dependencies": {"@opencode-ai/plugin": "1.18.33"}},
        "lock": {"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "1.18.33"}}}},
        "config": {"model": "cinch/small", "small_model": "cinch/small", "enabled_providers": ["cinch"],
                   "autoupdate": False, "share": "disabled", "permission": {"edit": "allow", "bash": "allow"}}}},
    "gateway": {"format": "chat", "files": {"config": {"provider": {"cinch": {
        "npm": "@ai-sdk/openai-compatible", "name": "cinch",
        "options": {"baseURL": "{gateway_url}/v1", "apiKey": "{gateway_token}"},
        "models": {"small": {"name": "small", "limit": {"context": 200000, "output": 8000}}}}}}}},
    "output": {"format": "ndjson", "rules": [{"when": {"/type": "text"}, "text": "/part/text"}]},
}


class Real(harness.Case):
    def run_real(self, name, profile, *options):
        program = os.path.realpath(self.real(name))
        installed = program.split("/node_modules/")[0]
        self.write("adapters/x.yaml", json.dumps({**profile, "binary": [program]}))
        return self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "x", "--timeout", "100s",
                              "--set", f"sandbox.read=[{installed}]", "--script",
                              self.write("model.yaml", SCRIPT), *options, "run echo hi")

    def check_budget(self, name, profile):
        r = self.run_real(name, profile, "--max-calls", "1")
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr + r.bytes("stderr.log"))
        self.assertEqual(len(r.events("model.call")), 1)
        self.assertEqual(len(r.events("gateway.refused")), 1, "it tried again")
        self.assertEqual(r.events("process.signal"), [], "it had to be stopped")
        return r

    def check_success(self, name, profile):
        r = self.run_real(name, profile)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"].strip(), "done")
        wire = r.metrics["ext"]["usage"]["wire"]
        self.assertEqual((wire["input"], wire["output"], wire["calls"]), (2000, 100, 2))
        return r

    def test_claude_stops(self):
        self.check_budget("claude-code", CLAUDE)

    def test_codex_stops(self):
        self.check_budget("codex", CODEX)

    def test_gemini_stops(self):
        self.check_budget("gemini", GEMINI)

    def test_opencode_stops(self):
        self.check_budget("opencode", OPENCODE)

    def test_claude_tells_the_same_as_the_wire(self):
        r = self.check_success("claude-code", CLAUDE)
        difference = r.metrics["ext"]["usage"]["difference"]
        self.assertEqual((difference["input"], difference["output"]), (0, 0))
        self.assertAlmostEqual(difference["cost_usd"], 0, places=6)  # its price list and ours agree

    def test_codex_tells_the_same_as_the_wire(self):
        difference = self.check_success("codex", CODEX).metrics["ext"]["usage"]["difference"]
        self.assertEqual((difference["input"], difference["output"]), (0, 0))

    def test_gemini(self):
        self.check_success("gemini", GEMINI)

    def test_opencode(self):
        self.check_success("opencode", OPENCODE)


if __name__ == "__main__":
    harness.main()
