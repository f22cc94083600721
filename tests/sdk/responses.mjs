// SPDX-License-Identifier: MIT
//
// Responses of the openai package in the words of main.mjs.
export class Client {
  static package = "openai";

  constructor(sdk, url, token) {
    this.client = new sdk.OpenAI({ baseURL: url + "/v1", apiKey: token, maxRetries: 0 });
    this.input = [];
  }

  say(text) {
    this.input.push({ role: "user", content: text });
  }

  results(list) {
    for (const r of list) {
      this.input.push({ type: "function_call_output", call_id: r.id, output: r.text });
    }
  }

  body({ tools, schema }) {
    return {
      model: "gpt-test",
      input: this.input,
      store: false,
      ...(tools && {
        tools: tools.map((t) => ({ type: "function", name: t.name, description: t.description, parameters: t.schema, strict: false })),
      }),
      ...(schema && { text: { format: { type: "json_schema", name: "answer", strict: true, schema } } }),
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
    let response;
    if (stream) {
      const s = this.client.responses.stream(this.body(options));
      s.on("response.output_text.delta", () => pieces++);
      response = await s.finalResponse();
    } else {
      response = await this.client.responses.create(this.body(options));
    }
    if (response.status === "failed") {
      throw Object.assign(new Error(response.error?.message), { code: response.error?.code });
    }
    this.input.push(...response.output.map(({ parsed_arguments, ...item }) => item));
    const calls = response.output.filter((i) => i.type === "function_call");
    const thoughts = response.output.filter((i) => i.type === "reasoning");
    return {
      text: response.output_text,
      thinking: thoughts.flatMap((i) => i.summary.map((s) => s.text)).join(""),
      calls: calls.map((c) => ({ id: c.call_id, name: c.name, args: JSON.parse(c.arguments) })),
      stop: response.status === "incomplete" ? "length" : calls.length > 0 ? "tool" : "end",
      input: response.usage?.input_tokens,
      cached: response.usage?.input_tokens_details?.cached_tokens ?? 0,
      output: response.usage?.output_tokens,
      pieces,
    };
  }
}
