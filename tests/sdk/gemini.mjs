// SPDX-License-Identifier: MIT
//
// @google/genai in the words of main.mjs.
const STOPS = { STOP: "end", MAX_TOKENS: "length", SAFETY: "refusal" };

export class Client {
  static package = "@google/genai";

  constructor(sdk, url, token) {
    this.client = new sdk.GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: url } });
    this.contents = [];
  }

  say(text) {
    this.contents.push({ role: "user", parts: [{ text }] });
  }

  results(list) {
    this.contents.push({
      role: "user",
      parts: list.map((r) => ({ functionResponse: { ...(r.id && { id: r.id }), name: r.name, response: { output: r.text } } })),
    });
  }

  body({ tools, schema }) {
    return {
      model: "gemini-test",
      contents: this.contents,
      config: {
        thinkingConfig: { includeThoughts: true },
        ...(tools && {
          tools: [{ functionDeclarations: tools.map((t) => ({ name: t.name, description: t.description, parametersJsonSchema: t.schema })) }],
        }),
        ...(schema && { responseMimeType: "application/json", responseJsonSchema: schema }),
      },
    };
  }

  async models() {
    const found = [];
    for await (const model of await this.client.models.list()) {
      found.push(model.name);
    }
    return found;
  }

  async count(text) {
    return (await this.client.models.countTokens({ model: "gemini-test", contents: text })).totalTokens;
  }

  async turn({ stream, ...options }) {
    const parts = [];
    let pieces = 0;
    let usage;
    let finish;
    const add = (response) => {
      const got = response.candidates?.[0]?.content?.parts ?? [];
      parts.push(...got);
      pieces += got.some((p) => p.text && !p.thought) ? 1 : 0;
      usage = response.usageMetadata ?? usage;
      finish = response.candidates?.[0]?.finishReason ?? finish;
    };
    if (stream) {
      for await (const response of await this.client.models.generateContentStream(this.body(options))) {
        add(response);
      }
    } else {
      add(await this.client.models.generateContent(this.body(options)));
    }
    this.contents.push({ role: "model", parts });
    const calls = parts.filter((p) => p.functionCall).map((p) => p.functionCall);
    const words = (thought) => parts.filter((p) => p.text && !!p.thought === thought).map((p) => p.text).join("");
    return {
      text: words(false),
      thinking: words(true),
      calls: calls.map((c) => ({ id: c.id, name: c.name, args: c.args ?? {} })),
      stop: calls.length > 0 ? "tool" : (STOPS[finish] ?? finish),
      input: usage?.promptTokenCount,
      cached: usage?.cachedContentTokenCount ?? 0,
      output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
      pieces,
    };
  }
}
