// SPDX-License-Identifier: MIT
//
// Chat Completions of the openai package in the words of main.mjs.
const STOPS = { stop: "end", length: "length", tool_calls: "tool", content_filter: "refusal" };

export class Client {
  static package = "openai";

  constructor(sdk, url, token) {
    this.client = new sdk.OpenAI({ baseURL: url + "/v1", apiKey: token, maxRetries: 0 });
    this.messages = [];
  }

  say(text) {
    this.messages.push({ role: "user", content: text });
  }

  results(list) {
    for (const r of list) {
      this.messages.push({ role: "tool", tool_call_id: r.id, content: r.text });
    }
  }

  body({ tools, schema }) {
    return {
      model: "gpt-test",
      messages: this.messages,
      ...(tools && {
        tools: tools.map((t) => ({ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } })),
      }),
      ...(schema && { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } }),
    };
  }

  async models() {
    return (await this.client.models.list()).data.map((m) => m.id);
  }

  async count() {
    return null; // there is no such call
  }

  async turn({ stream, ...options }) {
    let pieces = 0;
    let thinking = "";
    let completion;
    if (stream) {
      const s = this.client.chat.completions.stream({ ...this.body(options), stream_options: { include_usage: true } });
      s.on("chunk", (chunk) => {
        thinking += chunk.choices[0]?.delta?.reasoning_content ?? "";
        pieces += chunk.choices[0]?.delta?.content ? 1 : 0;
      });
      completion = await s.finalChatCompletion();
    } else {
      completion = await this.client.chat.completions.create(this.body(options));
      thinking = completion.choices[0].message.reasoning_content ?? "";
    }
    const { message, finish_reason } = completion.choices[0];
    this.messages.push({ role: "assistant", content: message.content, ...(message.tool_calls?.length && { tool_calls: message.tool_calls }) });
    return {
      text: message.content ?? "",
      thinking,
      calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, args: JSON.parse(c.function.arguments) })),
      stop: STOPS[finish_reason] ?? finish_reason,
      input: completion.usage?.prompt_tokens,
      cached: completion.usage?.prompt_tokens_details?.cached_tokens ?? 0,
      output: completion.usage?.completion_tokens,
      pieces,
    };
  }
}
