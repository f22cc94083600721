# SPDX-License-Identifier: MIT
"""Agents in Python: three turns with two parallel calls, a tool that fails and an image, with the vendors' SDKs and
with LangChain, through each gateway.

  python loops.py sdk|langchain < '{"token": ..., "gateways": {"anthropic": url, ...}}'

Prints {"client upstream stream": [turn, ...]}; a turn is [text, [names of calls]]; a loop that throws is a string.
"""

import base64
import json
import sys

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (("get_weather", "The weather of a city"), ("get_time", "The time"))
RESULTS = {"get_weather": "sunny", "get_time": "no clock"}  # the second one is a failure
MODEL = "m-x"
TURNS = 4


class Anthropic:
    def __init__(self, url, token):
        import anthropic
        self.client = anthropic.Anthropic(base_url=url, api_key=token, max_retries=0, timeout=60)
        self.messages = [{"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]}]

    def turn(self, stream):
        body = {"model": MODEL, "max_tokens": 16000, "messages": self.messages,
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "tools": [{"name": n, "description": d, "input_schema": SCHEMA} for n, d in TOOLS]}
        if stream:
            with self.client.messages.stream(**body) as s:
                m = s.get_final_message()
        else:
            m = self.client.messages.create(**body)
        self.messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True, exclude={"parsed_output"})
                                                               for b in m.content]})
        calls = [b for b in m.content if b.type == "tool_use"]
        self.messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": b.id, "content": RESULTS[b.name], "is_error": b.name == "get_time"}
            for b in calls]})
        return "".join(b.text for b in m.content if b.type == "text"), [b.name for b in calls]


class Chat:
    def __init__(self, url, token):
        import openai
        self.client = openai.OpenAI(base_url=url + "/v1", api_key=token, max_retries=0, timeout=60)
        self.messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}}]}]

    def turn(self, stream):
        body = {"model": MODEL, "messages": self.messages, "reasoning_effort": "low", "tools": [
            {"type": "function", "function": {"name": n, "description": d, "parameters": SCHEMA}} for n, d in TOOLS]}
        if stream:
            with self.client.chat.completions.stream(**body) as s:
                m = s.get_final_completion().choices[0].message
        else:
            m = self.client.chat.completions.create(**body).choices[0].message
        calls = m.tool_calls or []
        self.messages.append({"role": "assistant", "content": m.content, "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in calls]} if calls else {"role": "assistant", "content": m.content})
        for c in calls:
            self.messages.append({"role": "tool", "tool_call_id": c.id, "content": RESULTS[c.function.name]})
        return m.content or "", [c.function.name for c in calls]


class Responses:
    def __init__(self, url, token):
        import openai
        self.client = openai.OpenAI(base_url=url + "/v1", api_key=token, max_retries=0, timeout=60)
        self.input = [{"role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64," + PNG, "detail": "auto"}]}]

    def turn(self, stream):
        body = {"model": MODEL, "input": self.input, "store": False, "reasoning": {"effort": "low", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", "name": n, "description": d, "parameters": SCHEMA, "strict": False}
                          for n, d in TOOLS]}
        if stream:
            with self.client.responses.stream(**body) as s:
                r = s.get_final_response()
        else:
            r = self.client.responses.create(**body)
        calls = [i for i in r.output if i.type == "function_call"]
        for item in r.output:
            self.input.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            for part in self.input[-1].get("content") or []:
                part.pop("parsed", None)
        for c in calls:
            self.input.append({"type": "function_call_output", "call_id": c.call_id, "output": RESULTS[c.name]})
        return r.output_text, [c.name for c in calls]


class Gemini:
    def __init__(self, url, token):
        from google import genai
        self.types = genai.types
        self.client = genai.Client(api_key=token, http_options={"base_url": url, "timeout": 60000})
        self.contents = [self.types.Content(role="user", parts=[
            self.types.Part(text="look"),
            self.types.Part(inline_data=self.types.Blob(mime_type="image/png", data=base64.b64decode(PNG)))])]

    def parts(self, config, stream):
        if not stream:
            return self.client.models.generate_content(
                model=MODEL, contents=self.contents, config=config).candidates[0].content.parts
        found = []
        for chunk in self.client.models.generate_content_stream(model=MODEL, contents=self.contents, config=config):
            content = chunk.candidates[0].content if chunk.candidates else None
            found += (content.parts if content else None) or []
        return found

    def turn(self, stream):
        t = self.types
        config = t.GenerateContentConfig(
            thinking_config=t.ThinkingConfig(include_thoughts=True, thinking_budget=2000),
            tools=[t.Tool(function_declarations=[
                t.FunctionDeclaration(name=n, description=d, parameters_json_schema=SCHEMA) for n, d in TOOLS])],
            automatic_function_calling=t.AutomaticFunctionCallingConfig(disable=True))
        parts = self.parts(config, stream)
        calls = [p.function_call for p in parts if p.function_call]
        self.contents.append(t.Content(role="model", parts=parts))
        self.contents.append(t.Content(role="user", parts=[
            t.Part(function_response=t.FunctionResponse(
                id=c.id, name=c.name, response={"error" if c.name == "get_time" else "output": RESULTS[c.name]}))
            for c in calls]))
        return "".join(p.text or "" for p in parts if not p.thought), [c.name for c in calls]


class LangChain:
    """Any chat model of LangChain: only its own message types, as programs use it."""

    def __init__(self, model):
        from langchain_core.messages import HumanMessage
        self.model = model.bind_tools([{"type": "function", "function": {
            "name": n, "description": d, "parameters": SCHEMA}} for n, d in TOOLS])
        self.messages = [HumanMessage(content=[
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}}])]

    def turn(self, stream):
        from langchain_core.messages import ToolMessage
        if stream:
            m = None
            for chunk in self.model.stream(self.messages):
                m = chunk if m is None else m + chunk
        else:
            m = self.model.invoke(self.messages)
        self.messages.append(m)
        for c in m.tool_calls:
            self.messages.append(ToolMessage(content=RESULTS[c["name"]], tool_call_id=c["id"], name=c["name"],
                                             status="error" if c["name"] == "get_time" else "success"))
        text = m.text if isinstance(m.text, str) else m.text()
        return str(text), [c["name"] for c in m.tool_calls]


def langchain_anthropic(url, token):
    from langchain_anthropic import ChatAnthropic
    return LangChain(ChatAnthropic(model=MODEL, base_url=url, api_key=token, max_retries=0, max_tokens=4000))


def langchain_chat(url, token):
    from langchain_openai import ChatOpenAI
    return LangChain(ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=token, max_retries=0))


def langchain_responses(url, token):
    from langchain_openai import ChatOpenAI
    return LangChain(ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=token, max_retries=0,
                                use_responses_api=True, store=False))


def langchain_gemini(url, token):
    from langchain_google_genai import ChatGoogleGenerativeAI
    return LangChain(ChatGoogleGenerativeAI(model=MODEL, google_api_key=token, base_url=url, max_retries=1))


CLIENTS = {
    "sdk": {"anthropic": Anthropic, "chat": Chat, "responses": Responses, "gemini": Gemini},
    "langchain": {"anthropic": langchain_anthropic, "chat": langchain_chat, "responses": langchain_responses,
                  "gemini": langchain_gemini},
}


def loop(make, url, token, stream):
    turns = []
    try:
        client = make(url, token)
        for _ in range(TURNS):
            text, calls = client.turn(stream)
            turns.append([text, calls])
            if not calls:
                break
    except Exception as error:  # whatever an SDK throws is the finding
        return f"{type(error).__name__}: {str(error)[:500]} after {turns}"
    return turns


def main():
    given = json.load(sys.stdin)
    found = {}
    for name, make in CLIENTS[sys.argv[1]].items():
        for upstream, url in given["gateways"].items():
            for stream in (False, True):
                found[f"{name} {upstream} {'stream' if stream else 'whole'}"] = loop(make, url, given["token"], stream)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
