# SPDX-License-Identifier: MIT
"""What the benchmarks share: where things are, how to measure, how to print a table."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("CINCH_BUILD", os.path.join(HERE, "..", "build")))
CINCH = os.path.join(BUILD, "src", "cli", "cinch")
MEASURE = os.path.join(BUILD, "bench", "measure")


class Scratch:
    """A directory that is gone afterwards; new() gives a path in it that does not exist."""

    def __init__(self, place=None):
        self.place = place

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="cinch-bench-", dir=self.place)
        self.count = 0
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def new(self):
        self.count += 1
        return os.path.join(self.dir, f"out{self.count}")


def environment(scratch, **more):
    return {"PATH": os.environ["PATH"], "HOME": scratch.dir, "CINCH_SITE_DIR": scratch.dir, **more}


def once(command, env, stdout=None):
    """Runs a command through bench/measure: (seconds, peak RSS in KiB). A small starter, because the peak of a
    process includes what its parent had mapped before exec."""
    line = [MEASURE] + (["-o", stdout] if stdout else ["-o", "/dev/null"]) + ["--"] + command
    done = subprocess.run(line, env=env, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    o = json.loads(done.stdout)
    if o["status"] != 0:
        raise SystemExit(f"{command[0]} failed with {o['status']}")
    return o["seconds"], o["maxrss_kb"]


def spread(values, scale=1.0, digits=2):
    """"median (min)" of a list."""
    return f"{statistics.median(values) * scale:.{digits}f} (min {min(values) * scale:.{digits}f})"


def table(rows):
    """Rows of strings, first one the head, aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for n, row in enumerate(rows):
        print("  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
        if n == 0:
            print("  " + "  ".join("-" * w for w in widths))
