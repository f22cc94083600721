// SPDX-License-Identifier: MIT
//
// @anthropic-ai/sdk in the words of main.mjs.
const STOPS = { end_turn: "end", max_tokens: "length", tool_use: "tool", refusal: "refusal", stop_sequence: "sequence" };

export class Client {
  static package = "@anthropic-ai/sdk";

  constructor(sdk, url, token) {
    this.client = new sdk.Anthropic({ baseURL: url, apiKey: token, maxRetries: 0 });
    this.messages = [];
  }

  say(text) {
    this.messages.push({ role: "user", content: text });
  }

  results(list) {
    this.messages.push({
      role: "user",
      content: list.map((r) => ({ type: "tool_result", tool_use_id: r.id, content: r.text })),
    });
  }

  body({ tools, schema }) {
    return {
      model: "claude-test",
      max_tokens: 4000,
      messages: this.messages,
      ...(tools && { tools: tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema })) }),
      ...(schema && { output_config: { format: { type: "json_schema", schema } } }),
    };
  }

  async models() {
    return (await this.client.models.list()).data.map((m) => m.id);
  }

  async count(text) {
    const { input_tokens } = await this.client.messages.countTokens({ model: "claude-test", messages: [{ role: "user", content: text }] });
    return input_tokens;
  }

  async turn({ stream, ...options }) {
    let pieces = 0;
    let message;
    if (stream) {
      const s = this.client.messages.stream(this.body(options));
      s.on("text", () => pieces++);
      message = await s.finalMessage();
    } else {
      message = await this.client.messages.create(this.body(options));
    }
    this.messages.push({ role: "assistant", content: message.content });
    const of = (type, key) => message.content.filter((b) => b.type === type).map((b) => b[key]).join("");
    const u = message.usage;
    return {
      text: of("text", "text"),
      thinking: of("thinking", "thinking"),
      calls: message.content.filter((b) => b.type === "tool_use").map((b) => ({ id: b.id, name: b.name, args: b.input })),
      stop: STOPS[message.stop_reason] ?? message.stop_reason,
      input: u.input_tokens + (u.cache_read_input_tokens ?? 0) + (u.cache_creation_input_tokens ?? 0),
      cached: u.cache_read_input_tokens ?? 0,
      output: u.output_tokens,
      pieces,
    };
  }
}
