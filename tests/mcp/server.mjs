// SPDX-License-Identifier: MIT
// The official server over HTTP, with answers in JSON: server.mjs SDK_DIRECTORY. Says {"url":…} and serves one session.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + name)).href);
const { McpServer } = await load("server/mcp.js");
const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");

const server = new McpServer({ name: "official", version: "1" });
server.registerTool("hello", { description: "Greets" }, () => ({ content: [{ type: "text", text: "Hello" }] }));
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true });
await server.connect(transport);
const listener = createServer((request, response) => transport.handleRequest(request, response));
listener.listen(0, "127.0.0.1", () =>
  console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}/mcp` })));
