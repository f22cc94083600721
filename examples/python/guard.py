#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A policy as a program: reads a call, prints a decision (docs/tools.md)."""

import json
import sys

call = json.load(sys.stdin)
text = str(call["arguments"].get("text", ""))
if "secret" in text:
    print(json.dumps({"decision": "deny", "reason": "Texts with secrets are not counted."}))
else:
    print(json.dumps({"decision": "allow"}))
