#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Validates a run directory against the schemas in schema/, with a foreign validator (python3-jsonschema).

    validate.py [--schemas DIR] [--running] RUNDIR...

Prints one line per violation ("RUNDIR: file[:line]: where: what") and exits with 1 when there is any, with
2 when it cannot do its work. Beyond the schemas it checks what they cannot say: that the files agree with
each other, that sequences have no gaps, that starts and stops pair up, that listed artifacts exist. With
--running, files that only a finished run has may be missing.

As a module: validate.check(rundir) returns the list of violations.
"""
import argparse
import json
import pathlib
import re
import sys

try:
    import jsonschema
except ImportError:
    sys.exit("validate.py: needs the package python3-jsonschema (use /usr/bin/python3 on Debian)")

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schema"

SEED_FIELDS = ["tokens_input", "tokens_output", "tokens_total", "cost_usd", "api_calls", "duration_seconds",
               "exit_code", "error", "started_at", "ended_at", "ext"]

TABLE = pathlib.Path(__file__).resolve().parents[2] / "src/record/record_file.c"
DIRECTORIES = ["logs", "evidence", "artifacts"]


class RecordFile:
    """A row of the table of record files."""

    def __init__(self, path, schema, form, recovery, flags):
        self.path, self.schema, self.form = path, None if schema == "NULL" else schema.strip('"'), form
        self.at_start = "RECORD_AT_START" in flags
        self.final = recovery == "RECORD_REWRITE"
        self.always = self.at_start or recovery == "RECORD_WRITE_END"


def record_files(table=TABLE):
    row = r'\{\s*"([^"]+)",\s*(NULL|"\w+"),\s*(RECORD_\w+),\s*(RECORD_\w+)([^}]*)\}'
    rows = [RecordFile(*m.groups()) for m in re.finditer(row, table.read_text())]
    if len(rows) < 20:
        raise ValueError(f"{table}: only {len(rows)} rows found")
    return rows


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError("duplicate key")
    return dict(pairs)


def parse(text):
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_duplicates)


def load_schema(name, schemas=SCHEMAS):
    schema = json.loads((schemas / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def load_validators(schemas):
    names = {row.schema for row in record_files()} - {None}
    return {name: jsonschema.Draft202012Validator(load_schema(name, schemas)) for name in names}


class Record:
    """One run directory and what is wrong with it."""

    def __init__(self, rundir, validators):
        self.dir = pathlib.Path(rundir)
        self.validators = validators
        self.violations = []
        self.rows = record_files()
        self.files = {}
        self.lines = {}

    def bad(self, where, what):
        self.violations.append(f"{self.dir}: {where}: {what}")

    def check_value(self, schema, value, where):
        for error in self.validators[schema].iter_errors(value):
            path = "/".join(str(part) for part in error.absolute_path) or "(top)"
            self.bad(where, f"{path}: {error.message[:300]}")

    def load_file(self, name, schema):
        try:
            self.files[name] = parse((self.dir / name).read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            self.bad(name, error)
            return
        self.check_value(schema, self.files[name], name)

    def load_lines(self, name, schema):
        self.lines[name] = []
        try:
            data = (self.dir / name).read_bytes()
        except OSError as error:
            self.bad(name, error)
            return
        if data and not data.endswith(b"\n"):
            self.bad(name, "the last line is torn")
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                value = parse(line.decode("utf-8"))
            except ValueError as error:
                self.bad(f"{name}:{number}", error)
                continue
            self.check_value(schema, value, f"{name}:{number}")
            self.lines[name].append(value)

    def damaged(self):
        """Recovery takes damaged lines out; numbers then have gaps, and say so."""
        return any(e.get("event") == "run.recovered" for e in self.lines["events.jsonl"])

    def check_events(self, running):
        events = self.lines["events.jsonl"]
        for number, event in enumerate(events, 1):
            if event.get("seq") != number and not self.damaged():
                self.bad(f"events.jsonl:{number}", f"seq is {event.get('seq')}")
                break
        last = events[-1].get("event") if events else None
        if not running and last not in ("run.finished", "run.recovered"):
            self.bad("events.jsonl", f"ends with {last}, not with run.finished")
        if self.damaged():
            return
        rendered = [e["context"].get("event_id") for e in events if e.get("event") == "PromptRendered"]
        for event in events:
            if event.get("event") == "RenderedTools" and event["context"].get("render_event_id") not in rendered:
                self.bad("events.jsonl", "RenderedTools without its PromptRendered")

    def check_transcript(self, running):
        name = "transcript.jsonl"
        is_open, sources, types = False, {}, {}
        for number, line in enumerate(self.lines[name], 1):
            event = line.get("event")
            if (event == "transcript.start") == is_open:
                self.bad(f"{name}:{number}", f"{event} {'within' if is_open else 'outside'} a conversation")
            if event == "transcript.start":
                is_open, sources, types = True, {}, {}
            elif event == "transcript.entry":
                source = line.get("source")
                sources[source] = sources.get(source, 0) + 1
                types[line.get("entry_type")] = types.get(line.get("entry_type"), 0) + 1
                if line.get("sequence_number") != sources[source] and not self.damaged():
                    self.bad(f"{name}:{number}", f"sequence_number is {line.get('sequence_number')}")
            elif event == "transcript.stop":
                is_open = False
                counts = (line.get("total_entries"), line.get("entries_by_source"), line.get("entries_by_type"))
                if counts != (sum(types.values()), sources, types) and not self.damaged():
                    self.bad(f"{name}:{number}", "the counts are wrong")
        if is_open and not running:
            self.bad(name, "transcript.stop is missing")

    def check_agreement(self):
        manifest, metrics, result, state = (self.files.get(name) or {} for name in
                                            ("manifest.json", "metrics.json", "result.json", "state.json"))
        ext = metrics.get("ext") or {}
        for key, values in {
                "run_id": [f.get("run_id") for f in (manifest, ext, result, state)],
                "reason": [f.get("reason") for f in (manifest, ext, result, state)],
                "outcome": [f.get("outcome") for f in (manifest, ext, result)],
                "state": [f.get("state") for f in (manifest, result, state)],
                "exit_code": [manifest.get("exit_code"), ext.get("contract_exit"), state.get("exit_code")],
                "error": [manifest.get("error"), metrics.get("error"), result.get("error")],
                "started_at": [f.get("started_at") for f in (manifest, metrics, state)],
                "ended_at": [f.get("ended_at") for f in (manifest, metrics, state)],
        }.items():
            if len(set(values)) > 1:
                self.bad("manifest, metrics, result, state", f"{key} differs: {values}")
        if metrics and list(metrics) != SEED_FIELDS:
            self.bad("metrics.json", f"fields are not in the order of the contract: {list(metrics)}")
        if ext.get("reason") == "timeout" and metrics.get("exit_code") != 124:
            self.bad("metrics.json", "exit_code is not 124 after a timeout")
        if metrics and metrics["tokens_total"] != metrics["tokens_input"] + metrics["tokens_output"]:
            self.bad("metrics.json", "tokens_total is not the sum")
        for path in manifest.get("artifacts") or []:
            if "[REDACTED:" not in path and not (self.dir / path).is_file():
                self.bad("manifest.json", f"artifact {path} does not exist")

    def check(self, running):
        if not self.dir.is_dir():
            self.bad("(directory)", "does not exist")
            return self.violations
        for row in self.rows:
            expected = row.always or (row.final and not running)
            found = sorted(str(path.relative_to(self.dir)) for path in self.dir.glob(row.path))
            for name in found or ([row.path] if expected else []):
                if row.schema is None:
                    if expected and not (self.dir / name).is_file():
                        self.bad(name, "is missing")
                elif row.form == "RECORD_LINES":
                    self.load_lines(name, row.schema)
                else:
                    self.load_file(name, row.schema)
        for name in DIRECTORIES:
            if not (self.dir / name).is_dir():
                self.bad(name + "/", "is missing")
        for path in self.dir.rglob("*.tmp"):
            if not {"home", "work"} & set(path.relative_to(self.dir).parts):
                self.bad(path.relative_to(self.dir), "a temporary file was left behind")
        if not self.violations:  # the rest assumes that the fields are there
            self.check_events(running)
            self.check_transcript(running)
            if not running:
                self.check_agreement()
        return self.violations


def check(rundir, schemas=SCHEMAS, running=False, validators=None):
    return Record(rundir, validators or load_validators(pathlib.Path(schemas))).check(running)


def main():
    parser = argparse.ArgumentParser(description="Check run directories against the schemas.")
    parser.add_argument("--schemas", type=pathlib.Path, default=SCHEMAS)
    parser.add_argument("--running", action="store_true", help="the run is not over")
    parser.add_argument("rundir", nargs="+")
    options = parser.parse_args()
    try:
        validators = load_validators(options.schemas)
    except (OSError, ValueError, jsonschema.SchemaError) as error:
        print(f"validate.py: {error}", file=sys.stderr)
        return 2
    count = 0
    for rundir in options.rundir:
        for violation in check(rundir, running=options.running, validators=validators):
            print(violation)
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
