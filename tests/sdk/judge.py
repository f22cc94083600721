# SPDX-License-Identifier: MIT
"""Judges requests with software of others: the vendors' own types, and for Chat Completions the validator of
Mistral's servers (mistral-common), which also checks the order of roles and that every call has its result.

  python judge.py < '[{"format": "chat", "body": {...}}, ...]'

Prints a list: null, or what is wrong with the request.
"""

import copy
import json
import sys
import typing

import anthropic.types.message_create_params as messages
import openai.types.chat.completion_create_params as completions
import openai.types.responses.response_create_params as responses
import pydantic
from google.genai import types as gemini
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13

PARAMS = {
    "anthropic": (messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming),
    "chat": (completions.CompletionCreateParamsNonStreaming, completions.CompletionCreateParamsStreaming),
    "responses": (responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming),
}
# Members that the SDKs' newest types have dropped and the APIs still take.
LEGACY = {"anthropic": {"temperature", "top_p", "top_k"}}
# Of the wire, not of the SDK's call.
GEMINI_BODY = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}


def check_types(format, body):
    params = PARAMS[format][bool(body.get("stream"))]
    unknown = set(body) - set(typing.get_type_hints(params)) - LEGACY.get(format, set())
    if unknown:
        raise ValueError(f"unknown members: {sorted(unknown)}")
    pydantic.TypeAdapter(params).validate_python(body)


def check_gemini(body):
    unknown = set(body) - GEMINI_BODY
    if unknown:
        raise ValueError(f"unknown members: {sorted(unknown)}")
    gemini.GenerationConfig.model_validate(body.get("generationConfig", {}))
    for content in [*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])]:
        content = copy.deepcopy(content)
        for part in content["parts"]:
            # a word that Google documents for this place; the type wants base64 of bytes
            if part.get("thoughtSignature") == "skip_thought_signature_validator":
                del part["thoughtSignature"]
        gemini.Content.model_validate(content)
    for tool in body.get("tools", []):
        gemini.Tool.model_validate(tool)
    if "toolConfig" in body:
        gemini.ToolConfig.model_validate(body["toolConfig"])


def check_mistral(body):
    """Its ids have nine letters; ours are those of the servers that made them."""
    ids = {}

    def short(id):
        return ids.setdefault(id, f"call{len(ids):05d}")

    conversation = copy.deepcopy(body["messages"])
    for message in conversation:
        message.pop("reasoning_details", None)  # another server's, and this one signed nothing
        for call in message.get("tool_calls") or []:
            call["id"] = short(call["id"])
        if message["role"] == "tool":
            message["tool_call_id"] = short(message["tool_call_id"])
    request = ChatCompletionRequest.from_openai(messages=conversation, tools=body.get("tools"))
    MistralRequestValidatorV13().validate_request(request)


def judge(format, body):
    try:
        if format == "gemini":
            check_gemini(body)
        else:
            check_types(format, body)
        if format == "chat":
            check_mistral(body)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {str(error)[:1500]}"
    return None


def main():
    json.dump([judge(r["format"], r["body"]) for r in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
