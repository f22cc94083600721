#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// The entry point of the adapter image: from the files of the contract to Claude Code, and back.
//
//   node adapter.js             runs the task of /holon/input/spec.yaml
//   node adapter.js --probe     checks whether it could
//   node adapter.js --seed DIR  writes the settings of Claude Code below DIR, for the image
//
// Reads   $HOLON_INPUT_DIR/spec.yaml, prompts/{user,system}.md, context/; the workspace; credentials from the environment
// Writes  $HOLON_OUTPUT_DIR/manifest.json, diff.patch, summary.md, evidence/
// Exits   0 success, 1 failure, 2 a person is needed
//
// With $CINCH_EVENTS_FD, what Claude Code does is printed as events (JSON lines) on standard output.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parse } from "./yaml.js";

const VERSION = "1.0.0";
const SPEC_MAX = 1 << 20;
const LOG_MAX = 4 << 20; // evidence/execution.log
const LINE_MAX = 32 << 20; // one event of Claude Code
const RESULT_GRACE = 5000; // ms that Claude Code may keep running after its result
const KILL_GRACE = 2000;
const CREDENTIALS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

const env = process.env;
const input = env.HOLON_INPUT_DIR || "/holon/input";
const output = env.HOLON_OUTPUT_DIR || "/holon/output";
const started = Date.now();

// A problem that is reported in manifest.json, without a stack.
class Failure extends Error {}

// --- secrets ---

const secrets = Object.entries(env)
  .filter(([name, value]) => /(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)/i.test(name) && value.length >= 8)
  .map(([name, value]) => ({ name, value }))
  .sort((a, b) => b.value.length - a.value.length);

function redact(text) {
  for (const { name, value } of secrets) {
    text = text.split(value).join(`[${name}]`);
  }
  return text;
}

// --- files ---

function writeOutput(name, text) {
  const file = path.join(output, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

function readText(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

function isWritable(dir) {
  try {
    fs.accessSync(dir, fs.constants.W_OK | fs.constants.X_OK);
    return fs.statSync(dir).isDirectory();
  } catch {
    return false;
  }
}

// Regular files below a directory, relative to it.
function listFiles(dir, below = "") {
  let found = [];
  for (const entry of fs.readdirSync(path.join(dir, below), { withFileTypes: true })) {
    const name = path.join(below, entry.name);
    if (entry.isDirectory()) found = found.concat(listFiles(dir, name));
    else if (entry.isFile()) found.push(name);
  }
  return found.sort();
}

// --- the spec ---

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function seconds(text) {
  const units = { h: 3600, m: 60, s: 1, ms: 0.001 };
  let rest = String(text).trim();
  if (/^[0-9.]+$/.test(rest)) return Number(rest);
  let sum = 0;
  for (let found; rest !== "" && (found = rest.match(/^([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)/)); ) {
    sum += Number(found[1]) * units[found[2]];
    rest = rest.slice(found[0].length);
  }
  if (rest !== "" || sum <= 0) throw new Failure(`spec.yaml: constraints.timeout: '${text}' is not a duration (10m, 90s)`);
  return sum;
}

function readSpec() {
  const file = path.join(input, "spec.yaml");
  let size;
  try {
    size = fs.statSync(file).size;
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${error.code}`);
  }
  if (size > SPEC_MAX) throw new Failure(`${file} is larger than 1 MiB`);
  let doc;
  try {
    doc = parse(fs.readFileSync(file, "utf8"));
  } catch (error) {
    throw new Failure(`${file}: ${error.message}`);
  }
  if (!isObject(doc)) throw new Failure(`${file} is not a mapping`);
  if (doc.version !== "v1" || doc.kind !== "Holon") {
    throw new Failure(`${file}: expected version 'v1' and kind 'Holon'`);
  }
  const goal = isObject(doc.goal) ? doc.goal.description ?? doc.goal.issue : doc.goal;
  if (typeof goal !== "string" || goal.trim() === "") throw new Failure(`${file}: goal.description is missing`);
  const artifacts = doc.output?.artifacts ?? [];
  if (!Array.isArray(artifacts) || artifacts.some((item) => !isObject(item) || typeof item.path !== "string")) {
    throw new Failure(`${file}: output.artifacts is not a list of {path, required}`);
  }
  for (const item of artifacts) {
    if (path.isAbsolute(item.path) || item.path.split("/").includes("..")) {
      throw new Failure(`${file}: artifact '${item.path}' is not below the output directory`);
    }
  }
  return {
    goal,
    name: doc.metadata?.name ?? "adhoc",
    workspace: env.HOLON_WORKSPACE_DIR || doc.context?.workspace || "/holon/workspace",
    files: Array.isArray(doc.context?.files) ? doc.context.files.map(String) : [],
    env: isObject(doc.context?.env) ? doc.context.env : {},
    required: artifacts.filter((item) => item.required !== false).map((item) => item.path),
    timeout: doc.constraints?.timeout == null ? 0 : seconds(doc.constraints.timeout),
    maxSteps: Number.isInteger(doc.constraints?.max_steps) ? doc.constraints.max_steps : 0,
  };
}

function contextFiles() {
  const dir = path.join(input, "context");
  try {
    return fs.readdirSync(dir).sort().map((name) => path.join(dir, name));
  } catch {
    return [];
  }
}

function prompts(spec) {
  let user = readText(path.join(input, "prompts", "user.md"))?.trim() || spec.goal;
  const context = [...contextFiles(), ...spec.files];
  const unnamed = context.filter((file) => !user.includes(file));
  if (unnamed.length > 0) {
    user += `\n\nContext files:\n${unnamed.map((file) => `- ${file}`).join("\n")}\n`;
  }
  const own = ["manifest.json", "diff.patch", "summary.md"];
  const asked = spec.required.filter((name) => !own.includes(name));
  const system = [
    readText(path.join(input, "prompts", "system.md"))?.trim() ?? "",
    `You work without a person beside you, in ${spec.workspace}. Change files there; diff.patch is made from your changes.`,
    asked.length > 0 ? `Write these files to ${output}: ${asked.join(", ")}.` : "",
    `If you write a report for the reader, write it to ${output}/summary.md.`,
    `If you cannot go on without a person, write your question to ${output}/needs-human.md and stop.`,
  ];
  return { user, system: system.filter((part) => part !== "").join("\n\n") };
}

// --- Claude Code's home ---

const SEEDS = {
  ".claude.json": { hasCompletedOnboarding: true, bypassPermissionsModeAccepted: true, autoUpdates: false },
  ".claude/settings.json": { env: { DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" } },
};

// Without these files Claude Code would ask a person at its first start.
function seed(home) {
  for (const [name, value] of Object.entries(SEEDS)) {
    const file = path.join(home, name);
    let there = {};
    try {
      const parsed = JSON.parse(fs.readFileSync(file, "utf8"));
      there = isObject(parsed) ? parsed : {};
    } catch {
      // missing or damaged
    }
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, JSON.stringify({ ...there, ...value }, null, 2) + "\n");
  }
}

// A home that can be written to: an engine may run the image for any user.
function chooseHome() {
  const home = [env.HOLON_AGENT_HOME, env.HOME].find((dir) => dir && isWritable(dir));
  return home ?? fs.mkdtempSync(path.join(os.tmpdir(), "home-"));
}

function findProgram(name) {
  for (const dir of (env.PATH || "/usr/local/bin:/usr/bin:/bin").split(":")) {
    const file = path.join(dir || ".", name);
    try {
      fs.accessSync(file, fs.constants.X_OK);
      if (fs.statSync(file).isFile()) return file;
    } catch {
      // elsewhere
    }
  }
  throw new Failure(`the image has no program '${name}' in PATH`);
}

// --- the patch ---

// Two states of the workspace in a repository of our own: neither the history nor the settings of the workspace's
// repository are used or changed, and commits of the agent do not hide what it did.
class Baseline {
  constructor(workspace) {
    this.workspace = workspace;
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), "baseline-"));
    this.git("init", "--quiet");
    const ignored = readText(path.join(workspace, ".git", "info", "exclude"));
    if (ignored !== null) {
      fs.mkdirSync(path.join(this.dir, "info"), { recursive: true });
      fs.writeFileSync(path.join(this.dir, "info", "exclude"), ignored);
    }
    this.before = this.tree();
  }

  git(...args) {
    const settings = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "gc.auto=0",
                      "core.autocrlf=false", "core.quotePath=true", "diff.noprefix=false", "core.bare=false"];
    const done = spawnSync("git", [...settings.flatMap((s) => ["-c", s]), ...args], {
      cwd: this.workspace,
      env: { PATH: env.PATH, HOME: this.dir, GIT_DIR: this.dir, GIT_WORK_TREE: this.workspace, GIT_CONFIG_NOSYSTEM: "1",
             GIT_CONFIG_GLOBAL: "/dev/null", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" },
      maxBuffer: 1 << 30,
      stdio: ["ignore", "pipe", "pipe"],
    });
    if (done.error) throw new Failure(`cannot run git: ${done.error.code}`);
    if (done.status !== 0) throw new Failure(`git ${args[0]}: ${done.stderr.toString().trim().slice(-500)}`);
    return done.stdout;
  }

  tree() {
    this.git("add", "--all", "--", ".");
    return this.git("write-tree").toString().trim();
  }

  patch() {
    const after = this.tree();
    const names = this.git("diff-tree", "-r", "--name-status", "--no-renames", this.before, after).toString();
    const patch = this.git("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
                           "--no-renames", this.before, after);
    return { patch, names: names.split("\n").filter((line) => line !== "") };
  }

  remove() {
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

// --- events ---

function emit(event) {
  if (env.CINCH_EVENTS_FD) {
    process.stdout.write(JSON.stringify(event) + "\n");
  }
}

class Log {
  constructor() {
    fs.mkdirSync(path.join(output, "evidence"), { recursive: true });
    this.fd = fs.openSync(path.join(output, "evidence", "execution.log"), "w", 0o600);
    this.left = LOG_MAX;
  }

  add(text) {
    if (this.left <= 0) return;
    const clean = redact(text) + "\n";
    const bytes = Buffer.from(clean.length > this.left ? clean.slice(0, this.left) + "\n(the log ends here)\n" : clean);
    this.left -= clean.length;
    fs.writeSync(this.fd, bytes);
  }

  close() {
    fs.closeSync(this.fd);
  }
}

function contentText(content) {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.filter((part) => part?.type === "text").map((part) => part.text).join("");
}

function emitContent(message, names) {
  for (const part of Array.isArray(message?.content) ? message.content : []) {
    if (part.type === "text" && message.role === "assistant") {
      emit({ event: "assistant_message", text: part.text });
    } else if (part.type === "thinking") {
      emit({ event: "thinking", text: part.thinking });
    } else if (part.type === "tool_use") {
      names.set(part.id, part.name);
      emit({ event: "tool_use", tool_name: part.name, tool_call_id: part.id, input: part.input });
    } else if (part.type === "tool_result") {
      emit({ event: "tool_result", tool_name: names.get(part.tool_use_id) ?? "", tool_call_id: part.tool_use_id,
             text: contentText(part.content), is_error: part.is_error === true });
    }
  }
}

// --- Claude Code ---

function childEnvironment(spec, home) {
  const own = { ...env };
  for (const name of ["CLAUDECODE", "CINCH_EVENTS_FD", "NODE_OPTIONS"]) delete own[name];
  for (const [name, value] of Object.entries(spec.env)) {
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !(name in own)) own[name] = String(value ?? "");
  }
  return {
    ...own,
    HOME: home,
    IS_SANDBOX: "1", // else root may not use bypassPermissions
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: "1", // CLAUDE.md is read although project settings are not
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "core.fsmonitor",
    GIT_CONFIG_VALUE_0: "false",
  };
}

function childArguments(spec, system) {
  const model = env.HOLON_MODEL || env.MODEL;
  const args = ["--print", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions",
                "--strict-mcp-config", "--setting-sources", "user", "--add-dir", spec.workspace,
                "--append-system-prompt", system];
  if (model) args.push("--model", model);
  if (env.HOLON_FALLBACK_MODEL) args.push("--fallback-model", env.HOLON_FALLBACK_MODEL);
  if (spec.maxSteps > 0) args.push("--max-turns", String(spec.maxSteps));
  return args;
}

// Runs it to its end; resolves to {result, error, version, model}.
function runClaude(program, spec, home, log) {
  const { user, system } = prompts(spec);
  return new Promise((resolve) => {
    const about = { result: null, error: null, version: null, model: null };
    const names = new Map();
    const child = spawn(program, childArguments(spec, system),
                        { cwd: spec.workspace, env: childEnvironment(spec, home), detached: true, stdio: ["pipe", "pipe", "pipe"] });
    let pending = "";
    let last = "";
    const timers = [];

    const kill = (signal) => {
      try {
        process.kill(-child.pid, signal); // with all that it has started
      } catch {
        // it has exited
      }
    };
    const stop = (why) => {
      about.error ??= why;
      kill("SIGTERM");
      timers.push(setTimeout(() => kill("SIGKILL"), KILL_GRACE));
    };
    const onLine = (line) => {
      log.add(line);
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        return;
      }
      if (message.type === "system" && message.subtype === "init") {
        about.model = message.model ?? null;
        about.version = message.claude_code_version ?? null;
      } else if (message.type === "assistant" || message.type === "user") {
        emitContent(message.message, names);
      } else if (message.type === "result") {
        about.result = message;
        timers.push(setTimeout(() => kill("SIGKILL"), RESULT_GRACE));
      }
    };

    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
      process.on(signal, () => stop(`interrupted by ${signal}`));
    }
    if (spec.timeout > 0) {
      timers.push(setTimeout(() => stop(`Claude Code did not end within ${spec.timeout} s`), Math.min(spec.timeout * 1000, 2 ** 31 - 1)));
    }
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text) => {
      const lines = (pending + text).split("\n");
      pending = lines.pop();
      lines.filter((line) => line.trim() !== "").forEach(onLine);
      if (pending.length > LINE_MAX) stop("an event of Claude Code is too large");
    });
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => {
      last = (last + text).slice(-2000);
      log.add(text.trimEnd());
      process.stderr.write(redact(text));
    });
    child.stdin.on("error", () => {}); // it may exit without reading
    child.stdin.end(user);
    child.on("error", (error) => {
      about.error ??= `cannot start ${program}: ${error.code}`;
      timers.forEach(clearTimeout);
      resolve(about);
    });
    child.on("exit", () => kill("SIGKILL")); // what it left behind keeps the pipes open
    child.on("close", (code, signal) => {
      timers.forEach(clearTimeout);
      if (pending.trim() !== "") onLine(pending);
      if (about.result === null && about.error === null) {
        const how = signal ? `was killed by ${signal}` : `exited with ${code}`;
        about.error = `Claude Code ${how} without a result${last.trim() ? ": " + last.trim().split("\n").pop() : ""}`;
      }
      resolve(about);
    });
  });
}

// --- results ---

function writeManifest(status, outcome, about) {
  const artifacts = listFiles(output).filter((name) => name !== "manifest.json");
  const manifest = {
    status,
    outcome,
    duration: `${((Date.now() - started) / 1000).toFixed(1)}s`,
    artifacts: ["manifest.json", ...artifacts],
    metadata: {
      agent: "claude-code",
      version: VERSION,
      mode: about.mode ?? env.HOLON_MODE ?? "solve",
      engine: { name: "claude-code", model: about.model ?? null, version: about.version ?? null },
      ...(about.no_changes === undefined ? {} : { no_changes: about.no_changes }),
    },
  };
  if (about.error) manifest.error = redact(about.error);
  writeOutput("manifest.json", JSON.stringify(manifest, null, 2) + "\n");
}

function summaryOf(spec, outcome, text, about) {
  const lines = [`# ${spec.name}`, "", `**Outcome:** ${outcome}`, ""];
  if (about.error) lines.push(`**Error:** ${about.error}`, "");
  lines.push("## Goal", "", spec.goal.trim(), "", "## Answer", "", text.trim() || "(none)", "", "## Changes", "");
  lines.push(...(about.names.length > 0 ? about.names.map((line) => `- ${line.replace("\t", " ")}`) : ["(none)"]), "");
  return lines.join("\n");
}

function emitResult(about, text) {
  const usage = about.result?.usage;
  if (usage) {
    emit({ event: "token_usage", input: usage.input_tokens ?? 0, output: usage.output_tokens ?? 0,
           cache_read: usage.cache_read_input_tokens ?? 0, cache_write: usage.cache_creation_input_tokens ?? 0,
           cost_usd: about.result.total_cost_usd ?? 0 });
  }
  emit({ event: "result", text, session_id: about.result?.session_id, model: about.model ?? undefined,
         ...(about.error ? { failed: true, error: redact(about.error) } : {}) });
}

function missing(names) {
  return names.filter((name) => name !== "manifest.json" && !fs.existsSync(path.join(output, name)));
}

async function work() {
  const spec = readSpec();
  if (!isWritable(spec.workspace) && !fs.existsSync(spec.workspace)) {
    throw new Failure(`the workspace ${spec.workspace} does not exist`);
  }
  if (!CREDENTIALS.some((name) => env[name])) {
    throw new Failure(`no credential: set one of ${CREDENTIALS.join(", ")}`);
  }
  const program = findProgram("claude");
  const home = chooseHome();
  seed(home);
  const baseline = new Baseline(spec.workspace);
  const log = new Log();
  let about;
  try {
    about = await runClaude(program, spec, home, log);
    const { patch, names } = baseline.patch();
    about.names = names;
    about.no_changes = names.length === 0;
    writeOutput("diff.patch", patch);
  } finally {
    log.close();
    baseline.remove();
  }
  const text = typeof about.result?.result === "string" ? about.result.result : "";
  if (about.result?.is_error === true) {
    about.error ??= text.trim() || about.result.subtype || "Claude Code reported an error";
  }
  const asked = readText(path.join(output, "needs-human.md"));
  let outcome = about.error ? "failure" : asked !== null ? "needs_human" : "success";
  if (readText(path.join(output, "summary.md")) === null) {
    writeOutput("summary.md", redact(summaryOf(spec, outcome, text, about)));
  }
  const lacking = outcome === "success" ? missing(spec.required) : [];
  if (lacking.length > 0) {
    about.error = `required artifacts are missing: ${lacking.join(", ")}`;
    outcome = "failure";
  }
  emitResult(about, text);
  writeManifest("completed", outcome, about);
  return { success: 0, failure: 1, needs_human: 2 }[outcome];
}

function probe() {
  const spec = readSpec();
  if (!fs.existsSync(spec.workspace)) throw new Failure(`the workspace ${spec.workspace} does not exist`);
  findProgram("claude");
  findProgram("git");
  writeManifest("completed", "success", { mode: "probe" });
  return 0;
}

async function main() {
  const words = process.argv.slice(2);
  if (words[0] === "--seed" && words.length === 2) {
    seed(words[1]);
    return 0;
  }
  try {
    if (words[0] === "--probe") return probe();
    if (words.length > 0) throw new Failure(`unknown argument '${words[0]}'`);
    return await work();
  } catch (error) {
    const text = error instanceof Failure ? error.message : error.stack ?? String(error);
    process.stderr.write(`adapter: ${redact(text)}\n`);
    try {
      writeManifest("failed", "failure", { error: text });
    } catch (again) {
      process.stderr.write(`adapter: cannot write manifest.json: ${again.message}\n`);
    }
    return 1;
  }
}

process.exitCode = await main();
