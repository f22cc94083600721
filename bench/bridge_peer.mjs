// SPDX-License-Identifier: MIT
// The peer of bench/bridge: a server of the official SDK whose tools start the same programs, without a transaction
// and without a sandbox. bridge_peer.mjs SDK_DIRECTORY TOOLS CWD; says {"url":…}.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [directory, tools, cwd] = process.argv.slice(2);
const require = createRequire(directory + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + name)).href);
const { McpServer } = await load("server/mcp.js");
const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");

const run = ([program, ...args], input) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (chunk) => (out += chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out }));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(input) + "\n");
  });

const server = new McpServer({ name: "peer", version: "1" });
for (const tool of JSON.parse(readFileSync(tools, "utf8"))) {
  server.registerTool(tool.name, { description: tool.description, inputSchema: {} }, async (input) => {
    const { code, out } = await run(tool.command, input);
    return { content: [{ type: "text", text: out }], isError: code !== 0 };
  });
}
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true });
await server.connect(transport);
const http = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    transport.handleRequest(request, response, body);
  });
});
http.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` }));
});
