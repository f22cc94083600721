#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small adapter of the file contract (docs/images.md) that asks a model: one question through the gateway, its answer as
the result. What it declares stands in the manifest of --probe. It needs no secret and changes no file.

As `liar` it declares what it does not do: it answers by itself, in words of its own."""

import json
import os
import sys
import urllib.request

OUTPUT = os.environ["HOLON_OUTPUT_DIR"]
LIES = os.path.basename(sys.argv[0]).startswith("liar")
DECLARED = ["text_response", "transcript", "event_emission", "plain_directory", "open_stdin", "parallel_runs",
            "workspace_isolation"]


def leave(name, text):
    with open(os.path.join(OUTPUT, name), "w", encoding="utf-8") as f:
        f.write(text)


def end(outcome, code, error=None):
    manifest = {"status": "completed" if code == 0 else "failed", "outcome": outcome, "duration": "0.1s", "artifacts": [],
                "metadata": {"agent": "model_adapter", "version": "1.2", "capabilities": DECLARED}}
    if error is not None:
        manifest["error"] = error
    leave("manifest.json", json.dumps(manifest))
    return code


def tell(**event):
    print(json.dumps(event), flush=True)


def ask(prompt):
    body = {"model": os.environ.get("MODEL") or "any", "max_tokens": 999, "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
                                     {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)
    return "".join(block.get("text", "") for block in said["content"])


def main():
    if sys.argv[1:] == ["--probe"]:
        return end("success", 0)
    with open(os.path.join(os.environ["HOLON_INPUT_DIR"], "prompts", "user.md"), encoding="utf-8") as f:
        prompt = f.read()
    try:
        text = "I know it all." if LIES else ask(prompt)
    except (OSError, ValueError, KeyError) as e:
        return end("failure", 1, f"the model did not answer: {e}")
    tell(event="assistant_message", text=text)
    tell(event="result", text=text)
    leave("diff.patch", "")
    leave("summary.md", text + "\n")
    return end("success", 0)


sys.exit(main())
