#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Holds every #include under src/ to tools/layers.txt.

Fails on: a layer the table does not know, a header of a layer that may not be used, another layer's
_priv.h, a header that does not exist or is not spelled "layer/file.h", cycles between layers or
headers, a .c file that does not include its own header first, a third-party header outside the one
file that wraps it.

  check_layers.py [--root DIR] [--table FILE] [--graph]

--graph prints the includes between layers as they are, in dot format, for the documentation.
"""

import argparse
import fnmatch
import os
import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


class Table:
    """tools/layers.txt."""

    def __init__(self, path):
        self.uses = {}  # layer -> layers
        self.libraries = []  # (package, header pattern, layer, many)
        self.system = []  # header patterns
        for number, words in tree.table(path):
            kind, rest = words[0], words[1:]
            if kind == "layer" and rest and (len(rest) == 1 or rest[1] == "uses"):
                self.uses[rest[0]] = rest[2:]
            elif kind == "library" and len(rest) in (4, 5) and rest[2] == "in":
                self.libraries.append((rest[0], rest[1], rest[3], "many" in rest[4:]))
            elif kind == "system":
                self.system += rest
            else:
                sys.exit(f"{path}:{number}: cannot read this line")
        for layer, uses in self.uses.items():
            for used in uses:
                if used not in self.uses:
                    sys.exit(f"{path}: layer '{layer}' uses '{used}', which is not in the table")

    def below(self, layer):
        """The layer's used layers, and theirs."""
        found = []
        wanted = list(self.uses[layer])
        while wanted:
            name = wanted.pop()
            if name not in found:
                found.append(name)
                wanted += self.uses[name]
        return found


def find_cycle(graph):
    """A list of nodes that leads back to its start, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node) :] + [node]
        if node in done:
            return None
        path.append(node)
        for after in sorted(graph.get(node, ())):
            cycle = visit(after)
            if cycle:
                return cycle
        path.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


class Checker:
    def __init__(self, root, table):
        self.root = root
        self.table = table
        self.problems = []
        self.layer_graph = {}  # layer -> set of layers it includes
        self.header_graph = {}  # header -> set of own headers it includes
        self.wrappers = {}  # package -> files that include it

    def complain(self, name, line, text):
        self.problems.append(f"{name}:{line}: {text}")

    def check_file(self, name):
        layer = tree.layer_of(name)
        if layer not in self.table.uses:
            self.complain(name, 1, f"layer '{layer}' is not in tools/layers.txt")
            return
        text = tree.blank(tree.read(self.root, name), keep_strings=True)
        first = None
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            style, header = match.groups()
            first = first or header
            if style == '"':
                self.check_own(name, line, layer, header)
            else:
                self.check_foreign(name, line, layer, header)
        own = name[len("src/") : -len(".c")] + ".h"
        if name.endswith(".c") and self.exists(own) and first != own:
            self.complain(name, 1, f'the first include must be "{own}": it proves that it stands alone')

    def exists(self, header):
        return os.path.isfile(os.path.join(self.root, "src", header))

    def check_own(self, name, line, layer, header):
        other = header.split("/")[0]
        if not self.exists(header) or "/" not in header:
            self.complain(name, line, f'"{header}": no such header (own headers are "layer/file.h")')
            return
        self.layer_graph.setdefault(layer, set())
        if other != layer:
            self.layer_graph[layer].add(other)
            if other not in self.table.uses[layer]:
                self.complain(name, line, f"{layer} may not include {header} (tools/layers.txt)")
            if header.endswith("_priv.h"):
                self.complain(name, line, f"{header} is private to layer {other}")
        if name.endswith(".h"):
            self.header_graph.setdefault(name[len("src/") :], set()).add(header)

    def check_foreign(self, name, line, layer, header):
        if any(fnmatch.fnmatch(header, p) for p in self.table.system):
            return
        for package, pattern, home, many in self.table.libraries:
            if not fnmatch.fnmatch(header, pattern):
                continue
            if layer != home:
                self.complain(name, line, f"<{header}> may be included in layer {home} only")
            elif not many:
                self.wrappers.setdefault(package, set()).add(name)
            return
        self.complain(name, line, f"<{header}> is neither a system nor a library header of tools/layers.txt")

    def run(self):
        for name in tree.c_files(self.root):
            self.check_file(name)
        for package, names in self.wrappers.items():
            if len(names) > 1:
                names = ", ".join(sorted(names))
                self.problems.append(f"{package} must be included by one file, but is by: {names}")
        graphs = {"layers": self.layer_graph, "table": self.table.uses, "headers": self.header_graph}
        for what, graph in graphs.items():
            cycle = find_cycle(graph)
            if cycle:
                self.problems.append(f"cycle of {what}: {' -> '.join(cycle)}")
        return self.problems

    def print_graph(self):
        print("digraph layers {")
        for layer in self.table.uses:
            for other in sorted(self.layer_graph.get(layer, ())):
                print(f"    {layer} -> {other};")
        print("}")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(here))
    parser.add_argument("--table", default=os.path.join(here, "layers.txt"))
    parser.add_argument("--graph", action="store_true")
    args = parser.parse_args()
    checker = Checker(args.root, Table(args.table))
    problems = checker.run()
    if args.graph:
        checker.print_graph()
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
