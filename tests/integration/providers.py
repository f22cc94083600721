# SPDX-License-Identifier: MIT
"""A server that answers as the four providers do, for loops of several turns: thinking with a signature, a text and
two parallel calls; then another call; then the end. It decides by the results that a request has, and refuses
what the providers document that they refuse. What it was asked is in `seen`: (format, body)."""

import json

import gateway

SIGNATURE = "U0lHTkFUVVJF"  # base64, as all of them are
TEXT = "I look."
END = "Sunny, time unknown."
CALLS = (("c1aaaaaaa", "get_weather", {"city": "Bern"}), ("c2aaaaaaa", "get_time", {}),
         ("c3aaaaaaa", "get_weather", {"city": "Basel"}))
TURNS = [[TEXT, ["get_weather", "get_time"]], ["", ["get_weather"]], [END, []]]


class Refusal(Exception):
    pass


def check(condition, why):
    if not condition:
        raise Refusal(why)


def sse(events, named=False):
    return "".join((f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events).encode()


class Anthropic:
    def results(body):
        last = None
        n = 0
        for m in body["messages"]:
            blocks = m["content"] if isinstance(m["content"], list) else []
            answers = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            n += len(answers)
            if last is not None:
                calls = [b["id"] for b in last if b["type"] == "tool_use"]
                check(set(calls) <= set(answers), "`tool_use` ids were found without `tool_result` blocks")
            last = blocks if m["role"] == "assistant" else None
            if m["role"] == "assistant":
                check(blocks, "assistant message without content")
                for b in blocks:
                    check(b["type"] != "thinking" or b["signature"] == SIGNATURE, "Invalid `signature` in `thinking`")
                thinks = body.get("thinking", {}).get("type") == "enabled"
                check(not thinks or blocks[-1]["type"] != "tool_use" or blocks[0]["type"].endswith("thinking"),
                      "Expected `thinking` or `redacted_thinking`, but found `tool_use`")
        if "thinking" in body and body["thinking"]["type"] != "disabled":
            check("temperature" not in body and "top_k" not in body, "thinking with temperature or top_k")
        return n

    def blocks(turn, first):
        thought = [{"type": "thinking", "thinking": "let me think", "signature": SIGNATURE}]
        text = [{"type": "text", "text": TEXT}] if first else []
        calls = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in turn]
        return thought + text + calls if turn else [{"type": "text", "text": END}]

    def whole(blocks, turn):
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-x", "content": blocks,
                "stop_reason": "tool_use" if turn else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 20}}

    def stream(blocks, turn):
        whole = Anthropic.whole(blocks, turn)
        yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        for i, b in enumerate(blocks):
            empty = {"text": "", "thinking": "", "signature": "", "input": {}}
            yield {"type": "content_block_start", "index": i, "content_block": {k: empty.get(k, v) for k, v in b.items()}}
            for key, kind in (("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")):
                if key in b:
                    yield {"type": "content_block_delta", "index": i, "delta": {"type": kind, key: b[key]}}
            if "input" in b:
                yield {"type": "content_block_delta", "index": i,
                       "delta": {"type": "input_json_delta", "partial_json": json.dumps(b["input"])}}
            yield {"type": "content_block_stop", "index": i}
        yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
               "usage": {"output_tokens": 20}}
        yield {"type": "message_stop"}

    def answer(body, turn, first):
        blocks = Anthropic.blocks(turn, first)
        if not body.get("stream"):
            return json.dumps(Anthropic.whole(blocks, turn)).encode()
        return sse(Anthropic.stream(blocks, turn), named=True)


class Chat:
    def results(body):
        n, open_calls = 0, []
        for m in body["messages"]:
            if m["role"] == "tool":
                check(m["tool_call_id"] in open_calls, "a tool message must follow the message with its tool_calls")
                open_calls.remove(m["tool_call_id"])
                n += 1
                continue
            check(not open_calls, "tool_calls must be followed by tool messages for each tool_call_id")
            open_calls = [c["id"] for c in m.get("tool_calls") or []]
            check(m["role"] != "assistant" or m.get("content") or open_calls, "empty assistant message")
        check(not open_calls, "tool_calls must be followed by tool messages for each tool_call_id")
        return n

    def answer(body, turn, first):
        details = [{"type": "reasoning.text", "text": "let me think", "signature": SIGNATURE}]
        m = {"role": "assistant", "content": (TEXT if first else None) if turn else END}
        if turn:
            m |= {"reasoning": "let me think", "reasoning_details": details, "tool_calls": [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                for i, n, a in turn]}
        head = {"id": "chatcmpl-1", "created": 1, "model": "m-x",
                "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}
        choice = {"index": 0, "finish_reason": "tool_calls" if turn else "stop"}
        if not body.get("stream"):
            return json.dumps({**head, "object": "chat.completion", "choices": [{**choice, "message": m}]}).encode()
        for i, call in enumerate(m.get("tool_calls", [])):
            call["index"] = i
        return sse([{**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": m}]}]) + \
            b"data: [DONE]\n\n"


class Responses:
    def results(body):
        calls = [i["call_id"] for i in body["input"] if i.get("type") == "function_call"]
        outputs = [i["call_id"] for i in body["input"] if i.get("type") == "function_call_output"]
        check(sorted(calls) == sorted(outputs), "No tool output found for function call")
        for i in body["input"]:
            check(i.get("type") != "item_reference", f"Item with id '{i.get('id')}' not found")
            check(i.get("type") != "reasoning" or i["encrypted_content"] == SIGNATURE and i["id"].startswith("rs_"),
                  "The encrypted content for item could not be verified")
        return len(outputs)

    def resolve(body):
        """A client that lets the provider store responses may refer to their items."""
        if body.get("store", True):
            known = {i["id"]: i for turn, first in ((CALLS[0:2], True), (CALLS[2:3], False))
                     for i in Responses.output(turn, first)}
            body["input"] = [known.get(i.get("id"), i) if i.get("type") == "item_reference" else i
                             for i in body["input"]]

    def output(turn, first):
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "let me think"}],
                   "encrypted_content": SIGNATURE}
        text = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT if turn else END, "annotations": []}]}
        calls = [{"type": "function_call", "id": "fc_" + i, "status": "completed", "call_id": i, "name": n,
                  "arguments": json.dumps(a)} for i, n, a in turn]
        return [thought, *([text] if first or not turn else []), *calls] if turn else [text]

    def answer(body, turn, first):
        output = Responses.output(turn, first)
        whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m-x",
                 "output": output, "error": None, "incomplete_details": None, "instructions": None,
                 "metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
                 "temperature": 1.0, "top_p": 1.0,
                 "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                           "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120}}
        if not body.get("stream"):
            return json.dumps(whole).encode()
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
        for i, item in enumerate(output):
            events.append({"type": "response.output_item.added", "output_index": i, "item": item})
            if item["type"] == "message":
                part = item["content"][0]
                place = {"output_index": i, "content_index": 0, "item_id": item["id"]}
                events.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
                events.append({"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []})
                events.append({"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []})
                events.append({"type": "response.content_part.done", **place, "part": part})
            events.append({"type": "response.output_item.done", "output_index": i, "item": item})
        events.append({"type": "response.completed", "response": whole})
        for i, event in enumerate(events):
            event["sequence_number"] = i
        return sse(events, named=True)


class Gemini:
    def results(body):
        n, calls = 0, []
        for c in body["contents"]:
            answers = [p["functionResponse"]["name"] for p in c["parts"] if "functionResponse" in p]
            check(len(answers) == len(calls), "the number of function response parts must equal that of the calls")
            n += len(answers)
            made = [p for p in c["parts"] if "functionCall" in p]
            calls = [p["functionCall"]["name"] for p in made]
            check(not made or made[0].get("thoughtSignature"), "Function call is missing a thought_signature")
            for p in c["parts"]:
                check(p.get("thoughtSignature", SIGNATURE) in (SIGNATURE, "skip_thought_signature_validator"),
                      "Thought signature is not valid")
        return n

    def answer(body, turn, first):
        parts = [{"text": "let me think", "thought": True}] if turn else []
        parts += [{"text": TEXT if turn else END}] if first or not turn else []
        for i, (id, name, args) in enumerate(turn):
            parts.append({"functionCall": {"id": id, "name": name, "args": args},
                          **({"thoughtSignature": SIGNATURE} if i == 0 else {})})
        whole = {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
                 "modelVersion": "m-x", "responseId": "r1",
                 "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}}
        return sse([whole]) if body.get("stream") else json.dumps(whole).encode()


FORMATS = {"anthropic": Anthropic, "chat": Chat, "responses": Responses, "gemini": Gemini}


class Provider(gateway.Handler):
    def format_of(self):
        for end, name in (("/messages", "anthropic"), ("/chat/completions", "chat"), ("/responses", "responses")):
            if self.path.split("?")[0].endswith(end):
                return name
        return "gemini"

    def do_POST(self):
        name = self.format_of()
        body = json.loads(self.read_body())
        self.server.upstream.seen.append((name, json.loads(json.dumps(body))))
        if name == "gemini" and "streamGenerateContent" in self.path:
            body["stream"] = True
        try:
            if name == "responses":
                Responses.resolve(body)
            n = FORMATS[name].results(body)
        except Refusal as why:
            self.answer(400, json.dumps({"error": {"message": f"{name}: {why}", "type": "invalid_request_error"}})
                        .encode())
            return
        turn = CALLS[0:2] if n == 0 else CALLS[2:3] if n == 2 else ()
        kind = "text/event-stream" if body.get("stream") else "application/json"
        self.answer(200, FORMATS[name].answer(body, turn, n == 0), type=kind)
