#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cinch query: SQL over records. Rows are held against the records themselves, read by Python; the index follows what
changes; nothing but the cache is written; broken records give what is readable."""

import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import time
import unittest

import harness

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "0.1.0")
NAMES = ("edit", "failed", "fix", "tools")


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Query(harness.Case):
    def setUp(self):
        super().setUp()
        self.runs = self.make_dir("runs")
        for name in NAMES:
            shutil.copytree(os.path.join(GOLDEN, name), os.path.join(self.runs, name))
        self.cache = self.path("cache")

    def ask(self, *args, form="json"):
        return self.cinch("query", "--format", form, *args, env={"XDG_CACHE_HOME": self.cache})

    def rows(self, *args):
        r = self.ask(*args)
        self.assertEqual(r.code, 0, r.stderr)
        return json.loads(r.stdout)

    def record(self, name, *parts):
        return os.path.join(self.runs, name, *parts)

    def index(self):
        return [n for n in os.listdir(os.path.join(self.cache, "cinch", "query")) if n.endswith(".sqlite")]

    def tree(self, directory):
        return sorted((os.path.join(d, n), os.lstat(os.path.join(d, n)).st_mtime_ns)
                      for d, dirs, files in os.walk(directory) for n in dirs + files)

    # --- rows are those of the record ---

    def test_runs(self):
        rows = {os.path.basename(r["path"]): r for r in self.rows(self.runs, "SELECT * FROM runs")}
        self.assertEqual(sorted(rows), sorted(NAMES))
        for name, row in rows.items():
            with open(self.record(name, "manifest.json"), encoding="utf-8") as f:
                manifest = json.load(f)
            with open(self.record(name, "metrics.json"), encoding="utf-8") as f:
                metrics = json.load(f)
            self.assertEqual((row["id"], row["reason"], row["outcome"], row["exit_code"]),
                             (manifest["run_id"], manifest["reason"], manifest["outcome"], manifest["exit_code"]))
            self.assertEqual(row["duration_s"], metrics["duration_seconds"])
            self.assertEqual(row["model_calls"], metrics["api_calls"])
        self.assertEqual((rows["edit"]["files_changed"], rows["edit"]["input_tokens"], rows["edit"]["cost_usd"]),
                         (3, None, None))
        self.assertEqual(rows["failed"]["status"], "failed")

    def test_events_and_calls(self):
        for name in NAMES:
            events = lines_of(self.record(name, "events.jsonl"))
            rows = self.rows(self.record(name), "SELECT * FROM events ORDER BY seq")
            self.assertEqual([(r["seq"], r["event"], r["timestamp"], json.loads(r["context"])) for r in rows],
                             [(e["seq"], e["event"], e["timestamp"], e["context"]) for e in events])
            tools = [e for e in events if e["event"] == "ToolInvoked"]
            rows = self.rows(self.record(name), "SELECT * FROM tool_calls ORDER BY seq")
            self.assertEqual([(r["tool_name"], r["call_id"], r["success"], r["duration_ms"]) for r in rows],
                             [(e["context"]["name"], e["context"]["call_id"], int(e["context"]["success"]),
                               e["context"]["duration_ms"]) for e in tools])
            calls = [e["context"] for e in events if e["event"] == "model.call"]
            rows = self.rows(self.record(name), "SELECT * FROM model_calls ORDER BY call")
            for row, call in zip(rows, calls, strict=True):
                self.assertEqual({k: row[k] for k in ("model", "status", "input_tokens", "output_tokens", "cost_usd")},
                                 {k: call[k] for k in ("model", "status", "input_tokens", "output_tokens", "cost_usd")})

    def test_transcript(self):
        entries = [e for e in lines_of(self.record("tools", "transcript.jsonl")) if e["event"] == "transcript.entry"]
        rows = self.rows(self.record("tools"), "SELECT * FROM transcript ORDER BY sequence")
        self.assertEqual([(r["sequence"], r["entry_type"], r["source"], json.loads(r["detail"])) for r in rows],
                         [(e["sequence_number"], e["entry_type"], e["source"], e["detail"]) for e in entries])
        pairs = self.rows(self.record("tools"), "SELECT * FROM transcript_tools")
        self.assertEqual([p["tool_name"] for p in pairs], ["fail_always", "write_note"])
        self.assertTrue(all(p["result"] for p in pairs))

    def test_every_view_and_named_query(self):
        schema = json.loads(self.ask("--schema").stdout)
        for query in schema["queries"]:
            self.rows(self.runs, query["name"])
        for view in schema["views"] + schema["tables"]:
            self.rows(self.runs, f"SELECT * FROM {view['name']}")
        self.assertEqual(self.rows(self.runs, "slowest-tools")[0]["tool_name"], "write_note")

    def test_full_text(self):
        sql = "SELECT t.run, t.content FROM transcript_fts f JOIN transcript t ON t.rowid = f.rowid " \
              "WHERE transcript_fts MATCH 'repository'"
        found = self.rows(self.runs, sql)
        self.assertTrue(found)
        self.assertTrue(all("repository" in r["content"] for r in found))
        shutil.rmtree(self.record("fix"))
        self.assertEqual(self.rows(self.runs, sql), [])
        shutil.copytree(os.path.join(GOLDEN, "fix"), self.record("fix"))
        self.assertEqual(len(self.rows(self.runs, sql)), len(found))

    # --- the index follows ---

    def append(self, name, file, text):
        with open(self.record(name, file), "a", encoding="utf-8") as f:
            f.write(text)

    def test_only_new_lines_are_read(self):
        count = "SELECT count(*) AS n, count(DISTINCT seq) AS d FROM events"
        before = self.rows(self.record("edit"), count)[0]["n"]
        event = lines_of(self.record("edit", "events.jsonl"))[-1]
        half = json.dumps({**event, "seq": before + 2})
        self.append("edit", "events.jsonl", json.dumps({**event, "seq": before + 1}) + "\n" + half[:20])
        self.assertEqual(self.rows(self.record("edit"), count), [{"n": before + 1, "d": before + 1}])
        self.append("edit", "events.jsonl", half[20:] + "\n")
        self.assertEqual(self.rows(self.record("edit"), count), [{"n": before + 2, "d": before + 2}])

    def test_a_file_that_was_replaced(self):
        count = "SELECT count(*) AS n FROM events"
        whole = lines_of(self.record("edit", "events.jsonl"))
        self.assertEqual(self.rows(self.record("edit"), count)[0]["n"], len(whole))
        with open(self.record("edit", "new"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(e) + "\n" for e in whole[:5])
        os.rename(self.record("edit", "new"), self.record("edit", "events.jsonl"))
        self.assertEqual(self.rows(self.record("edit"), count)[0]["n"], 5)

    def test_runs_come_and_go(self):
        names = "SELECT path FROM runs ORDER BY path"
        self.assertEqual(len(self.rows(self.runs, names)), 4)
        shutil.rmtree(self.record("edit"))
        self.assertEqual(len(self.rows(self.runs, names)), 3)
        self.assertEqual(self.rows(self.runs, "SELECT count(*) AS n FROM events WHERE run NOT IN "
                                              "(SELECT run FROM runs)"), [{"n": 0}])
        shutil.copytree(os.path.join(GOLDEN, "edit"), self.record("edit"))
        self.assertEqual(len(self.rows(self.runs, names)), 4)

    def test_a_run_that_goes_on(self):
        sql = "SELECT status, outcome FROM runs"
        process, result = self.start("--", "sh", "-c", "echo hello; sleep 600")
        harness.wait_until(lambda: result.exists("stdout.log") and b"hello" in result.bytes("stdout.log"), "output")
        self.assertEqual(self.rows(result.output, sql), [{"status": "running", "outcome": None}])
        process.terminate()
        self.finish(process, result)
        self.assertEqual(self.rows(result.output, sql), [{"status": "canceled", "outcome": "failure"}])

    def test_a_damaged_index_is_made_anew(self):
        self.rows(self.runs, "runs")
        path = os.path.join(self.cache, "cinch", "query", self.index()[0])
        with open(path, "r+b") as f:
            f.write(b"this is no database, and never was one" * 20)
        self.assertEqual(len(self.rows(self.runs, "runs")), 4)
        db = sqlite3.connect(path)
        db.execute("PRAGMA user_version = 999")
        db.close()
        self.assertEqual(len(self.rows(self.runs, "runs")), 4)

    def test_old_indexes_are_removed(self):
        self.rows(self.runs, "runs")
        place = os.path.join(self.cache, "cinch", "query")
        for name, days in (("old.sqlite", 40), ("new.sqlite", 10)):
            self.write(os.path.join(place, name), "x")
            past = time.time() - days * 86400
            os.utime(os.path.join(place, name), (past, past))
        self.rows(self.runs, "runs")
        self.assertNotIn("old.sqlite", self.index())
        self.assertIn("new.sqlite", self.index())
        self.assertEqual(len(self.index()), 2)

    # --- broken records ---

    def test_broken_records(self):
        with open(self.record("tools", "events.jsonl"), "r+b") as f:
            f.seek(0)
            f.write(b"\xff\xfe{]")
        self.append("tools", "transcript.jsonl", "[1]\nnot json\n" + "x" * 100)
        os.remove(self.record("edit", "metrics.json"))
        os.remove(self.record("edit", "events.jsonl"))
        os.mkfifo(self.record("edit", "events.jsonl"))
        os.remove(self.record("fix", "manifest.json"))
        os.symlink("/etc/passwd", self.record("fix", "manifest.json"))
        with open(self.record("failed", "state.json"), "w", encoding="utf-8") as f:
            f.write('{"state":')
        self.assertEqual(len(self.rows(self.runs, "runs")), 4)
        found = {(os.path.basename(r["path"]), r["file"], r["line"]): r["problem"]
                 for r in self.rows(self.runs, "SELECT path, file, line, problem FROM problems JOIN runs USING (run)")}
        self.assertIn(("tools", "events.jsonl", 1), found)
        self.assertEqual(found[("edit", "events.jsonl", None)], "is not a regular file")
        self.assertEqual(found[("fix", "manifest.json", None)], "is a symbolic link")
        self.assertIn("damaged", found[("failed", "state.json", None)])
        self.assertEqual(len([k for k in found if k[:2] == ("tools", "transcript.jsonl")]), 2, found)
        self.assertNotIn("root:", json.dumps(self.rows(self.runs, "SELECT * FROM runs")))

    def test_a_name_that_is_no_text(self):
        self.append("edit", "diff.patch", "")
        with open(self.record("edit", "diff.patch"), "ab") as f:
            f.write(b'diff --git "a/\\377\\376" "b/\\377\\376"\nnew file mode 100644\n')
        for form in ("json", "jsonl", "csv", "text", "quiet"):
            r = self.ask(self.runs, "SELECT path FROM changes", form=form)
            self.assertEqual(r.code, 0, r.stderr)
        json.loads(self.ask(self.runs, "SELECT path FROM changes").stdout)

    def test_long_values_are_cut(self):
        entry = lines_of(self.record("edit", "transcript.jsonl"))[1]
        entry["detail"] = {"text": "é" * 100000}
        self.append("edit", "transcript.jsonl", json.dumps(entry, ensure_ascii=False) + "\n")
        row = self.rows(self.record("edit"), "SELECT content, content_bytes, detail FROM transcript "
                                             "ORDER BY rowid DESC LIMIT 1")[0]
        self.assertEqual((row["content_bytes"], row["detail"]), (200000, None))
        self.assertEqual(set(row["content"]), {"é"})
        self.assertLessEqual(len(row["content"].encode()), 65536)

    # --- reading only ---

    def test_sql_that_writes(self):
        self.rows(self.runs, "runs")
        before = self.tree(self.runs)
        for sql in ("DELETE FROM runs", "DROP TABLE runs", "INSERT INTO runs (run) VALUES (9)",
                    "UPDATE runs SET id = 1", "ATTACH '/tmp/x' AS y", "CREATE TABLE t (a)",
                    "CREATE TEMP TABLE t (a)", "VACUUM INTO '/tmp/cinch-query-test'", "PRAGMA journal_mode = DELETE",
                    "PRAGMA writable_schema = 1", "SELECT load_extension('/tmp/x.so')", "REINDEX", "BEGIN",
                    "UPDATE sqlite_master SET sql = ''", "INSERT INTO transcript_fts VALUES ('x')",
                    "SELECT 1; SELECT 2", "", "  ", "-- nothing", "SELECT FROM", "SELECT nothing FROM runs"):
            with self.subTest(sql=sql):
                r = self.ask(self.runs, sql)
                self.assertEqual(r.code, 64, r.stdout)
                self.assertIn(b"error", r.stdout + r.stderr)
        self.assertFalse(os.path.exists("/tmp/cinch-query-test"))
        self.assertEqual(len(self.rows(self.runs, "runs")), 4)
        self.assertEqual(self.tree(self.runs), before)

    def test_nothing_is_written_but_the_cache(self):
        before = self.tree(self.runs)
        home = self.make_dir("home")
        r = self.cinch("query", self.runs, "runs", env={"XDG_CACHE_HOME": self.cache, "HOME": home})
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(self.tree(self.runs), before)
        self.assertEqual(os.listdir(home), [])
        self.assertEqual(os.listdir(os.path.join(self.cache, "cinch")), ["query"])
        self.assertEqual(os.stat(os.path.join(self.cache, "cinch", "query")).st_mode & 0o777, 0o700)

    @unittest.skipIf(os.geteuid() != 0, "needs a file that cannot be written even by its owner")
    def test_no_room_for_the_cache(self):
        self.write("cache", "a file")
        r = self.ask(self.runs, "runs")
        self.assertEqual(r.code, 73, r.stdout + r.stderr)

    # --- forms ---

    def test_forms(self):
        sql = "SELECT 1 AS n, 'a,\"b\"' || char(10) || 'c' AS text, NULL AS empty, 0.5 AS half, x'ff00' AS bytes"
        values = {"n": 1, "text": 'a,"b"\nc', "empty": None, "half": 0.5, "bytes": "ff00"}
        self.assertEqual(self.rows(self.runs, sql), [values])
        self.assertEqual(json.loads(self.ask(self.runs, sql, form="jsonl").stdout), values)
        table = list(csv.reader(io.StringIO(self.ask(self.runs, sql, form="csv").stdout.decode(), newline="")))
        self.assertEqual(table, [list(values), ["1", 'a,"b"\nc', "", "0.5", "ff00"]])
        self.assertEqual(self.ask(self.runs, sql, form="quiet").stdout, b'1\ta,"b" c\t\t0.5\tff00\n')
        self.assertEqual(self.ask(self.runs, "SELECT 1 AS n WHERE 0", form="text").stdout, b"no rows\n")
        self.assertEqual(self.rows(self.runs, "SELECT 1 WHERE 0"), [])

    def test_a_table(self):
        sql = "SELECT 'x' AS name, NULL AS n UNION ALL SELECT 'long' || char(27) || '[31m', 12"
        lines = self.ask(self.runs, sql, form="text").stdout.decode().splitlines()
        self.assertEqual([line.split() for line in lines], [["name", "n"], ["x"], ["long\\x1b[31m", "12"]])
        self.assertTrue(lines[0].endswith(" n") and lines[2].endswith("12"))
        self.assertEqual(len(lines[0]), len(lines[2]))

    def test_long_values_of_a_table(self):
        sql = "SELECT hex(zeroblob(40)) AS long, 1 AS n"
        self.assertNotIn(b"0" * 80, self.ask(self.runs, sql, form="text").stdout)
        self.assertIn(b"0" * 80, self.ask("--full", self.runs, sql, form="text").stdout)

    def test_many_columns(self):
        r = self.ask(self.runs, "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(40)), form="text")
        self.assertEqual(len(r.stdout.splitlines()), 41)

    def test_many_rows(self):
        sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n"
        numbers = [line.strip() for line in self.ask(self.runs, sql, form="text").stdout.decode().splitlines()]
        self.assertEqual([int(n) for n in numbers if n.isdigit()], list(range(1, 2501)))

    # --- arguments ---

    def test_wrong_arguments(self):
        for args, code, word in ((("cost-by",), 64, "cost-by-model"), ((), 64, "no query"),
                                 (("nosuch", "runs"), 66, "nosuch"), ((self.path("none"), "runs"), 66, "none"),
                                 (("/dev/null", "runs"), 66, "/dev/null")):
            with self.subTest(args=args):
                r = self.ask(*args, form="text")
                self.assertEqual(r.code, code, r.stdout + r.stderr)
                self.assertIn(word, r.stderr.decode())

    def test_two_at_once(self):
        """Both make the same index; none of the rows is there twice."""
        env = {**self.env, "XDG_CACHE_HOME": self.cache}
        command = [harness.CINCH, "query", "-q", self.runs, "SELECT count(*), count(DISTINCT run || ' ' || seq) "
                   "FROM events"]
        started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(4)]
        expected = sum(len(lines_of(self.record(n, "events.jsonl"))) for n in NAMES)
        for p in started:
            out, err = p.communicate(timeout=harness.PATIENCE)
            self.assertEqual((p.returncode, err), (0, b""))
            self.assertEqual(out.split(), [str(expected).encode()] * 2)


if __name__ == "__main__":
    harness.main()
