// SPDX-License-Identifier: MIT
// The official client against a server: client.mjs SDK_DIRECTORY URL TOKEN [CINCH]. Prints what it saw as one JSON object.
// With CINCH it talks to the program `cinch mcp` instead of to the URL.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [directory, url, token, cinch] = process.argv.slice(2);
const require = createRequire(directory + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + name)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = await load("types.js");

const client = new Client({ name: "test", version: "1" });
const headers = { Authorization: "Bearer " + token };
const program = { command: cinch, args: ["mcp", "--url", url], env: { CINCH_MCP_TOKEN: token } };
const transport = cinch
  ? new StdioClientTransport(program)
  : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const changed = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
const seen = {};
await client.connect(transport);
seen.server = client.getServerVersion().name;
await client.ping();

const names = [];
let cursor;
seen.pages = 0;
do {
  const page = await client.listTools(cursor ? { cursor } : undefined);
  names.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
  seen.pages++;
} while (cursor);
seen.names = names;
const text = (result) => result.content[0].text;
const call = (name, extra = {}, options) => client.callTool({ name, arguments: {}, ...extra }, undefined, options);

seen.text = text(await call("test_simple_text"));
seen.image = (await call("test_image_content")).content[0].mimeType;
seen.failed = (await call("test_error_handling")).isError;
const structured = await call("test_structured");
seen.structured = [structured.structuredContent, text(structured)];
seen.lying = (await call("test_lying")).isError;
seen.large = text(await call("test_large")).length;
seen.meta = JSON.parse(text(await call("test_meta", { _meta: { traceparent: "00-1-2-01" } }))).traceparent;
seen.progress = [];
await call("test_tool_with_progress", {}, { onprogress: (p) => seen.progress.push(p.progress) });
seen.unknown = await call("no_such_tool").catch((error) => error.code);

const stop = new AbortController();
const never = call("test_never", {}, { signal: stop.signal }).catch(() => "stopped");
while (text(await call("test_waiting")) === "0");
stop.abort();
seen.never = await never;
// The cancellation is a message of its own and may overtake nothing: ask until it has come.
while (text(await call("test_waiting")) === "1");
seen.cancelled = text(await call("test_cancelled"));

await call("test_trigger_tool_change");
await changed;
seen.after = (await client.listTools()).tools.length;
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
