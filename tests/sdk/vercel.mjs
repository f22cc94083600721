// SPDX-License-Identifier: MIT
//
// The loop of the AI SDK, with each of its providers, through each gateway:
//
//   node vercel.mjs DIRECTORY < {"token": ..., "gateways": {"anthropic": url, ...}}
//
// DIRECTORY is where npm installed it. Prints the same as loops.py.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.argv[2], "index.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, streamText, tool, stepCountIs } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createGoogleGenerativeAI } = await load("@ai-sdk/google");
const { z } = await load("zod");

const { token, gateways } = JSON.parse(readFileSync(0, "utf8"));
const PNG = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(16)]);
const models = {
  anthropic: (url) => createAnthropic({ baseURL: url + "/v1", apiKey: token })("m-x"),
  chat: (url) => createOpenAI({ baseURL: url + "/v1", apiKey: token }).chat("m-x"),
  responses: (url) => createOpenAI({ baseURL: url + "/v1", apiKey: token })("m-x"),
  gemini: (url) => createGoogleGenerativeAI({ baseURL: url + "/v1beta", apiKey: token })("m-x"),
};
const inputSchema = z.object({ city: z.string().optional() });
const tools = {
  get_weather: tool({ description: "The weather", inputSchema, execute: async () => "sunny" }),
  get_time: tool({
    description: "The time",
    inputSchema,
    execute: async () => {
      throw new Error("no clock");
    },
  }),
};

async function loop(model, stream) {
  const request = {
    model,
    tools,
    maxRetries: 0,
    stopWhen: stepCountIs(4),
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "file", data: PNG, mediaType: "image/png" },
        ],
      },
    ],
  };
  let steps;
  if (stream) {
    let failure;
    const result = streamText({ ...request, onError() {} });
    for await (const part of result.fullStream) {
      failure = part.type === "error" ? part.error : failure;
    }
    if (failure) throw failure;
    steps = await result.steps;
  } else {
    steps = (await generateText(request)).steps;
  }
  return steps.map((s) => [s.text, s.toolCalls.map((c) => c.toolName)]);
}

const found = {};
for (const [name, make] of Object.entries(models)) {
  for (const [upstream, url] of Object.entries(gateways)) {
    for (const stream of [false, true]) {
      const key = `${name} ${upstream} ${stream ? "stream" : "whole"}`;
      try {
        found[key] = await loop(make(url), stream);
      } catch (error) {
        found[key] = `${error.name}: ${String(error.message).slice(0, 500)}`;
      }
    }
  }
}
process.stdout.write(JSON.stringify(found));
