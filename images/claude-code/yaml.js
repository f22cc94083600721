// SPDX-License-Identifier: MIT
//
// Reads the part of YAML 1.2 that specs are written in: block and flow collections, plain, quoted and block scalars,
// comments. Anchors, aliases, tags, complex keys and several documents are errors, so nothing is misread silently.
//
//   parse("goal: {description: fix it}\n")  ->  { goal: { description: "fix it" } }

const TEXT_MAX = 1 << 20;
const DEPTH_MAX = 64;

export class YamlError extends Error {}

class Reader {
  constructor(text) {
    this.lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
    this.at = 0; // next line
    this.depth = 0;
  }

  fail(what, line = this.at) {
    throw new YamlError(`line ${line + 1}: ${what}`);
  }

  enter() {
    if (++this.depth > DEPTH_MAX) this.fail("nested too deeply");
  }

  indentOf(line) {
    const indent = line.match(/^ */)[0].length;
    if (line[indent] === "\t") this.fail("a tab is not allowed as indentation");
    return indent;
  }

  // Skips empty lines and comments; the next line with content, or null.
  peek() {
    while (this.at < this.lines.length) {
      const line = this.lines[this.at];
      const text = line.trim();
      if (text !== "" && text[0] !== "#") {
        return { indent: this.indentOf(line), text: line.trimEnd() };
      }
      this.at++;
    }
    return null;
  }

  document() {
    let line = this.peek();
    while (line && line.text[0] === "%") {
      this.at++;
      line = this.peek();
    }
    if (line && /^---(\s|$)/.test(line.text)) {
      const rest = line.text.slice(3);
      this.lines[this.at] = "   " + rest;
      if (rest.trim() === "") this.at++;
    }
    const value = this.block(-1);
    const end = this.peek();
    if (end && /^\.\.\.(\s|$)/.test(end.text)) {
      this.at++;
    } else if (end) {
      this.fail(/^---/.test(end.text) ? "more than one document" : "unexpected text");
    }
    return value;
  }

  // A value whose lines are indented deeper than `parent`.
  block(parent) {
    const line = this.peek();
    if (!line || line.indent <= parent || /^(---|\.\.\.)(\s|$)/.test(line.text)) return null;
    this.enter();
    const rest = line.text.slice(line.indent);
    let value;
    if (/^-(\s|$)/.test(rest)) value = this.sequence(line.indent);
    else if (this.keyEnd(rest) >= 0) value = this.mapping(line.indent);
    else value = this.inline(rest, parent);
    this.depth--;
    return value;
  }

  sequence(indent) {
    const list = [];
    for (let line = this.peek(); line && line.indent === indent; line = this.peek()) {
      const rest = line.text.slice(indent);
      if (!/^-(\s|$)/.test(rest)) break;
      const body = rest.slice(1);
      if (body.trim() === "" || body.trim()[0] === "#") {
        this.at++;
        list.push(this.block(indent));
      } else {
        // "- key: value" is a mapping that begins after the dash.
        this.lines[this.at] = " ".repeat(indent + 1) + body;
        list.push(this.block(indent));
      }
    }
    const next = this.peek();
    if (next && next.indent > indent) this.fail("wrong indentation");
    return list;
  }

  // Where the ":" of a key is; -1: the text does not begin with a key.
  keyEnd(text) {
    if (text[0] === '"' || text[0] === "'") {
      const end = this.quotedEnd(text, 0);
      const rest = end < 0 ? null : text.slice(end).match(/^\s*:(\s|$)/);
      return rest ? end + rest[0].indexOf(":") : -1;
    }
    if (/^[[{|>!&*%@`]/.test(text)) return -1;
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "#" && i > 0 && /\s/.test(text[i - 1])) return -1;
      if (text[i] === ":" && (i + 1 === text.length || /\s/.test(text[i + 1]))) return i;
    }
    return -1;
  }

  mapping(indent) {
    const map = Object.create(null);
    for (let line = this.peek(); line && line.indent === indent; line = this.peek()) {
      const text = line.text.slice(indent);
      if (/^-(\s|$)/.test(text)) break;
      const end = this.keyEnd(text);
      if (end < 0) this.fail("expected a key, followed by ':'");
      if (/^\?(\s|$)/.test(text)) this.fail("complex keys are not supported");
      const raw = text.slice(0, end).trim();
      const key = String(/^["']/.test(raw) ? this.quoted(raw) : raw);
      if (key in map) this.fail(`duplicate key '${key}'`);
      map[key] = this.after(text.slice(end + 1), indent);
    }
    const next = this.peek();
    if (next && next.indent > indent) this.fail("wrong indentation");
    return map;
  }

  // What follows the ":" of a key.
  after(text, indent) {
    const rest = text.trim();
    if (rest !== "" && rest[0] !== "#") return this.inline(rest, indent);
    this.at++;
    const line = this.peek();
    // A list may be as far left as its key.
    if (line && line.indent === indent && /^-(\s|$)/.test(line.text.slice(indent))) {
      this.enter();
      const list = this.sequence(indent);
      this.depth--;
      return list;
    }
    return this.block(indent);
  }

  // A value that begins on this line, after a key, a dash or the indentation.
  inline(text, parent) {
    if (text[0] === "|" || text[0] === ">") return this.blockScalar(text, parent);
    if (/^[!&*]/.test(text)) this.fail("anchors, aliases and tags are not supported");
    if (/^[%@`]/.test(text)) this.fail(`a plain value cannot begin with '${text[0]}'`);
    if (/^["'[{]/.test(text)) return this.spanning(text, parent);
    return this.plain(text, parent);
  }

  // Quoted scalars and flow collections may go on for several lines.
  spanning(first, parent) {
    let text = first;
    const start = this.at;
    this.at++;
    while (this.flowEnd(text) < 0) {
      if (this.at >= this.lines.length) this.fail("it does not end", start);
      const line = this.lines[this.at++];
      if (line.trim() !== "" && this.indentOf(line) <= parent) this.fail("it does not end", start);
      text += "\n" + line.trim();
    }
    const end = this.flowEnd(text);
    const rest = text.slice(end).trim();
    if (rest !== "" && rest[0] !== "#") this.fail("text after the value", this.at - 1);
    const flow = new Flow(this, text.slice(0, end), start);
    return flow.whole();
  }

  quotedEnd(text, from) {
    const quote = text[from];
    for (let i = from + 1; i < text.length; i++) {
      if (quote === '"' && text[i] === "\\") i++;
      else if (text[i] === quote && quote === "'" && text[i + 1] === "'") i++;
      else if (text[i] === quote) return i + 1;
    }
    return -1;
  }

  // Where the quoted scalar or the collection at the beginning ends; -1: further down.
  flowEnd(text) {
    if (text[0] === '"' || text[0] === "'") return this.quotedEnd(text, 0);
    let open = 0;
    for (let i = 0; i < text.length; i++) {
      const begins = i === 0 || /[\s,[{:]/.test(text[i - 1]);
      if ((text[i] === '"' || text[i] === "'") && begins) {
        const end = this.quotedEnd(text, i);
        if (end < 0) return -1;
        i = end - 1;
      } else if (text[i] === "#" && i > 0 && /\s/.test(text[i - 1])) {
        while (i < text.length && text[i] !== "\n") i++;
      } else if (text[i] === "[" || text[i] === "{") {
        open++;
      } else if ((text[i] === "]" || text[i] === "}") && --open === 0) {
        return i + 1;
      }
    }
    return -1;
  }

  quoted(text) {
    const inner = fold(text.slice(1, -1).split("\n"));
    return text[0] === "'" ? inner.replace(/''/g, "'") : this.unescape(inner);
  }

  unescape(text) {
    const simple = { 0: "\0", a: "\x07", b: "\b", t: "\t", n: "\n", v: "\v", f: "\f", r: "\r", e: "\x1b",
                     " ": " ", '"': '"', "/": "/", "\\": "\\", N: "\x85", _: "\xa0", L: "\u2028", P: "\u2029" };
    return text.replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^])/g, (all, what) => {
      if (what.length > 1) {
        const code = parseInt(what.slice(1), 16);
        return code > 0x10ffff ? this.fail("invalid character") : String.fromCodePoint(code);
      }
      return what in simple ? simple[what] : this.fail(`unknown escape '${all}'`);
    });
  }

  plain(first, parent) {
    const parts = [uncomment(first)];
    const ended = parts[0].length < first.trimEnd().length;
    this.at++;
    while (!ended && this.at < this.lines.length) {
      const line = this.lines[this.at];
      const text = line.trim();
      if (text === "") {
        parts.push("");
      } else if (this.indentOf(line) <= parent || text[0] === "#") {
        break;
      } else if (this.keyEnd(text) >= 0) {
        this.fail("a key is not allowed in a value of several lines");
      } else {
        parts.push(uncomment(text));
      }
      this.at++;
    }
    while (parts.length > 1 && parts[parts.length - 1] === "") parts.pop();
    return scalar(fold(parts));
  }

  blockScalar(header, parent) {
    const found = header.match(/^([|>])([+-]?)([1-9]?)([+-]?)\s*(#.*)?$/);
    if (!found || (found[2] && found[4])) this.fail("a wrong block scalar");
    const keep = found[2] || found[4];
    let indent = found[3] ? Math.max(parent, 0) + Number(found[3]) : 0;
    const lines = [];
    this.at++;
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at];
      const own = line.match(/^ */)[0].length;
      if (line.trim() === "" && (indent === 0 || own <= indent)) {
        lines.push("");
        continue;
      }
      if (indent === 0 && own > parent) indent = own;
      if (indent === 0 || own < indent) break;
      lines.push(line.slice(indent));
    }
    let n = lines.length;
    while (n > 0 && lines[n - 1] === "") n--;
    const empty = lines.length - n;
    const body = found[1] === "|" ? lines.slice(0, n).join("\n") : foldBlock(lines.slice(0, n));
    if (keep === "+") return body + "\n".repeat(empty + (n > 0 ? 1 : 0));
    return n === 0 ? "" : keep === "-" ? body : body + "\n";
  }
}

// Flow collections, and quoted scalars.
class Flow {
  constructor(reader, text, line) {
    Object.assign(this, { reader, text, line, i: 0 });
  }

  fail(what) {
    this.reader.fail(what, this.line);
  }

  skip() {
    for (;;) {
      while (/\s/.test(this.text[this.i] ?? "")) this.i++;
      if (this.text[this.i] !== "#") return;
      while (this.i < this.text.length && this.text[this.i] !== "\n") this.i++;
    }
  }

  whole() {
    const value = this.value();
    this.skip();
    if (this.i < this.text.length) this.fail("text after the value");
    return value;
  }

  value() {
    this.skip();
    const c = this.text[this.i];
    if (c === "[") return this.list();
    if (c === "{") return this.map();
    if (c === '"' || c === "'") return this.quoted();
    return scalar(this.word());
  }

  quoted() {
    const end = this.reader.quotedEnd(this.text, this.i);
    if (end < 0) this.fail("a quote is missing");
    const value = this.reader.quoted(this.text.slice(this.i, end));
    this.i = end;
    return value;
  }

  word() {
    const start = this.i;
    while (this.i < this.text.length) {
      const c = this.text[this.i];
      if (",[]{}".includes(c) || (c === "#" && /\s/.test(this.text[this.i - 1] ?? ""))) break;
      if (c === ":" && /[\s,[\]{}]|^$/.test(this.text[this.i + 1] ?? "")) break;
      this.i++;
    }
    const word = this.text.slice(start, this.i).trim();
    if (/^[!&*%@`|>]/.test(word)) this.fail("anchors, aliases and tags are not supported");
    return fold(word.split("\n").map((part) => part.trim()));
  }

  // Calls `item` until the closing bracket.
  items(close, item) {
    this.reader.enter();
    this.i++;
    for (;;) {
      this.skip();
      if (this.i >= this.text.length) this.fail(`'${close}' is missing`);
      if (this.text[this.i] === close) break;
      item();
      this.skip();
      if (this.text[this.i] === ",") this.i++;
      else if (this.text[this.i] !== close) this.fail(`expected ',' or '${close}'`);
    }
    this.i++;
    this.reader.depth--;
  }

  list() {
    const list = [];
    this.items("]", () => {
      if (this.text[this.i] === ",") this.fail("a value is missing");
      const value = this.value();
      this.skip();
      if (this.text[this.i] === ":") {
        this.i++;
        list.push({ [String(value)]: this.value() });
      } else {
        list.push(value);
      }
    });
    return list;
  }

  map() {
    const map = Object.create(null);
    this.items("}", () => {
      const quoted = /["']/.test(this.text[this.i]);
      const key = quoted ? this.quoted() : this.word();
      if (key === "" && !quoted) this.fail("a key is missing");
      if (key in map) this.fail(`duplicate key '${key}'`);
      this.skip();
      let value = null;
      if (this.text[this.i] === ":") {
        this.i++;
        this.skip();
        value = ",}".includes(this.text[this.i]) ? null : this.value();
      }
      map[key] = value;
    });
    return map;
  }
}

function uncomment(text) {
  const comment = text.search(/\s#/);
  return (comment < 0 ? text : text.slice(0, comment)).trim();
}

// Line ends are spaces, empty lines are line ends.
function fold(parts) {
  let out = parts[0];
  for (let i = 1; i < parts.length; i++) {
    if (parts[i] === "") {
      out += "\n";
    } else {
      const escaped = /(^|[^\\])(\\\\)*\\$/.test(out);
      out = escaped ? out.slice(0, -1) + parts[i] : out + (parts[i - 1] === "" && i > 1 ? "" : " ") + parts[i];
    }
  }
  return out;
}

// As fold(), but lines that are indented further keep their line ends.
function foldBlock(lines) {
  let out = "";
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    if (i === 0) {
      out = line === "" ? "\n" : line;
      continue;
    }
    let last = i - 1;
    while (last >= 0 && lines[last] === "") last--;
    const deep = /^[ \t]/.test(line) || (last >= 0 && /^[ \t]/.test(lines[last]));
    if (line === "") out += "\n";
    else if (deep || last < 0) out += (last < 0 ? "" : "\n") + line;
    else out += (lines[i - 1] === "" ? "" : " ") + line;
  }
  return out;
}

function scalar(text) {
  if (/^(~|null|Null|NULL|)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?[0-9]+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  if (/^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(text)) return Number(text);
  return text;
}

export function parse(text) {
  if (text.length > TEXT_MAX) throw new YamlError("larger than 1 MiB");
  return new Reader(text).document();
}
