#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts words with a tool of this process, on the scripted model: no key, no network.

    CINCH=path/to/cinch examples/python/demo.py [ADAPTER]
"""

import os
import sys

from wink_adapter import Prompt, PromptEvaluationError, Tool, evaluate

HERE = os.path.dirname(os.path.abspath(__file__))
counted = []


def count_words(arguments):
    counted.append(arguments["text"])
    return "Counted.", {"words": len(arguments["text"].split())}


prompt = Prompt(
    ns="demo", key="count", name="count_words",
    sections=[{"key": "task", "title": "Task", "body": "Count the words of {{ text }} and write the number to count.txt."}],
    params={"text": "three short words"},
    tools=[Tool("count_words", "Counts the words of a text.", count_words,
                {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})],
    policies=[{"type": "program", "name": "house-rules", "command": [os.path.join(HERE, "guard.py")]}],
    output_schema={"type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"]},
)

try:
    response = evaluate(prompt, adapter=sys.argv[1] if len(sys.argv) > 1 else "api-direct", model="demo-model",
                        workspace=HERE, budget={"calls": 10}, run_context={"request_id": "demo-1"},
                        settings={"gateway": {"script": os.path.join(HERE, "model.yaml")}, "sandbox": {"read": [HERE]}})
except PromptEvaluationError as e:
    sys.exit(f"{e.type} in phase {e.phase}: {e}")
print(response.prompt_name, response.output, response.usage, counted)
print(response.record)
