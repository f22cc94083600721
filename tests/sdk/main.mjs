// SPDX-License-Identifier: MIT
//
// Runs the scenarios with one vendor's SDK against a gateway and prints what came out as JSON, in words
// that are the same for all of them:
//
//   node main.mjs anthropic|responses|chat|gemini DIRECTORY URL TOKEN
//
// DIRECTORY is where npm installed the SDK. A scenario that throws gives {"thrown": "..."}.
import { createRequire } from "node:module";
import path from "node:path";

const [name, directory, url, token] = process.argv.slice(2);
const { Client } = await import(`./${name}.mjs`);
const sdk = createRequire(path.join(directory, "index.js"))(Client.package);

export const TOOLS = [
  {
    name: "get_weather",
    description: "The weather of a city",
    schema: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    },
  },
  { name: "get_time", description: "The time", schema: { type: "object", properties: {} } },
];
const SCHEMA = {
  type: "object",
  properties: { answer: { type: "integer" }, words: { type: "array", items: { type: "string" } } },
  required: ["answer", "words"],
  additionalProperties: false,
};
const RESULTS = { get_weather: "sunny", get_time: "12:00" };

const client = () => new Client(sdk, url, token);

async function once(prompt, options) {
  const c = client();
  c.say(prompt);
  return c.turn(options);
}

// The loop that every agent runs: until the model calls nothing more.
async function loop(options) {
  const c = client();
  const turns = [];
  c.say("use the tools");
  for (let i = 0; i < 4; i++) {
    const answer = await c.turn({ tools: TOOLS, ...options });
    turns.push(answer);
    if (answer.calls.length === 0) break;
    c.results(answer.calls.map((call) => ({ ...call, text: RESULTS[call.name] ?? "no such tool" })));
  }
  return turns.map(({ text, calls, stop }) => ({
    text,
    stop,
    calls: calls.map((call) => [call.name, call.args]),
  }));
}

async function structured(options) {
  const answer = await once("a structured answer", { schema: SCHEMA, ...options });
  return JSON.parse(answer.text);
}

async function failure(prompt, options) {
  try {
    const answer = await once(prompt, options);
    return { answered: answer };
  } catch (error) {
    return { status: error.status ?? 0, error: error.constructor.name, message: String(error.message) };
  }
}

const scenarios = {
  text: () => once("hello", {}),
  stream: () => once("hello", { stream: true }),
  tools: () => loop({}),
  tools_stream: () => loop({ stream: true }),
  structured: () => structured({}),
  structured_stream: () => structured({ stream: true }),
  length: async () => (await once("a long story", {})).stop,
  length_stream: async () => (await once("a long story", { stream: true })).stop,
  server: () => failure("a broken server", {}),
  context: () => failure("too much", {}),
  models: () => client().models(),
  count: () => client().count("hello, how many tokens is this?"),
  late: () => failure("a late error", { stream: true }),
  rate_stream: () => failure("too fast", { stream: true }),
  rate: () => failure("too fast", {}),
};

const found = {};
for (const [key, run] of Object.entries(scenarios)) {
  try {
    found[key] = await run();
  } catch (error) {
    found[key] = { thrown: String(error.stack ?? error) };
  }
}
process.stdout.write(JSON.stringify(found));
process.exit(0);
