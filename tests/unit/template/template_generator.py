# SPDX-License-Identifier: MIT
"""Random templates for template_against_jinja2.py: mostly meaningful, sometimes wrong in types or names, now and
then broken in syntax. The same seed gives the same templates on every Python."""

import random

CONTEXT = {
    "n": 7,
    "z": 0,
    "x": 2.5,
    "s": "Hello wörld",
    "e": "",
    "t": True,
    "f": False,
    "nil": None,
    "l": [3, 1, 2],
    "w": ["b", "A", "c"],
    "d": {"k": 1, "b": [1, 2], "c": {"d": "deep"}},
    "us": [{"name": "bob", "age": 3}, {"name": "Al", "age": 1}, {"name": "cy", "age": 3, "x": None}],
    "m": [1, "a", None, 2.5, True],
}
NAMES = list(CONTEXT) + ["i", "j", "q", "undef"]
STRINGS = ["", "a", "b", " pad ", "x-y z", "<i>&\"'", "é😀", "1", "2.5", "a\nb\n\nc", "%s", "k", "name"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "length", "first", "last", "list", "sort", "unique|list",
    "reverse|list", "join", "join('-')", "string", "int", "float", "abs", "round", "round(1)", "sum", "min", "max",
    "tojson", "e", "default('D')", "d('', true)", "batch(2)|list", "slice(2)|list", "map('string')|list",
    "select|list", "reject('none')|list", "select('number')|list", "map(attribute='name')|list",
    "selectattr('age')|list", "groupby('age')", "dictsort", "items|list", "indent", "indent(2, true)",
    "wordcount", "center(9)", "replace('a', 'b')", "truncate(5)", "count", "sort(reverse=true)",
    "sort(attribute='age')", "map('upper')|join(',')", "sum(attribute='age')", "format(1)", "string|urlencode",
    "map(attribute='x', default=0)|list", "rejectattr('x', 'defined')|list", "unique(attribute='age')|list",
]
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
    "iterable", "even", "odd", "lower", "upper", "divisibleby 2", "in [1, 'a']", "eq 1", "sameas none", "gt 1",
    "true", "false", "callable", "filter", "test", "ne 'a'", "le 3",
]
METHODS = [
    "upper()", "lower()", "split()", "strip()", "items()|list", "keys()|list", "values()|list", "get('k')",
    "startswith('H')", "replace('a', 'b')", "title()", "splitlines()", "find('l')", "join(w)",
    "endswith('d')", "capitalize()", "split('l', 1)", "lstrip('H')",
]


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.pick = rng.choice

    def atom(self):
        kind = self.rng.randrange(10)
        if kind < 4:
            return self.pick(NAMES)
        if kind < 6:
            return self.pick(["0", "1", "2", "3", "10", "-1", "1.5", "0.1", "100", "1e3"])
        if kind < 8:
            return "'" + self.pick(STRINGS).replace("'", "\\'").replace("\n", "\\n") + "'"
        return self.pick(["true", "false", "none", "[]", "{}", "()", "d.b", "us[0].name", "d['c'].d", "l[1:]", "s[0]"])

    def expr(self, depth):
        if depth <= 0:
            return self.atom()
        kind = self.rng.randrange(16)
        sub = lambda: self.expr(depth - 1)  # noqa: E731
        if kind < 3:
            return f"{sub()} {self.pick(BINARY)} {sub()}"
        if kind < 4:
            return f"({sub()} {self.pick(BINARY)} {sub()})"
        if kind < 7:
            return f"{self.wrapped(depth)}|{self.pick(FILTERS)}"
        if kind < 9:
            return f"{self.wrapped(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 9:
            return f"({sub()} if {sub()} else {sub()})"
        if kind == 10:
            return f"{self.pick(['not ', '-', '+'])}{self.wrapped(depth)}"
        if kind == 11:
            return "[" + ", ".join(sub() for _ in range(self.rng.randrange(4))) + "]"
        if kind == 12:
            return "{" + ", ".join(f"{self.atom()}: {sub()}" for _ in range(self.rng.randrange(3))) + "}"
        if kind == 13:
            return f"{self.wrapped(depth)}.{self.pick(METHODS)}"
        if kind == 14:
            return self.subscript(depth)
        return f"{self.pick(NAMES)}.{self.pick(['name', 'k', 'c', 'age', 'nope', '0', '1'])}"

    def wrapped(self, depth):
        inner = self.expr(depth - 1)
        return inner if self.rng.randrange(3) == 0 and inner.isidentifier() else f"({inner})"

    def subscript(self, depth):
        if self.rng.randrange(3) == 0:
            return f"{self.wrapped(depth)}[{self.expr(depth - 1)}]"
        # Slices of variables only: Jinja2 folds slices of constants when compiling, with errors of its own.
        part = lambda: self.pick(["", "1", "-1", "0", "2", "n"])  # noqa: E731
        step = self.pick(["", ":1", ":-1", ":2"])
        return f"{self.pick(['l', 'w', 's', 'us', 'd', 'n', 'm', 'undef'])}[{part()}:{part()}{step}]"

    def name(self):
        return self.pick(["i", "j", "q", "n", "s"])

    def block(self, depth):
        kind = self.rng.randrange(13)
        body = lambda: self.body(depth - 1)  # noqa: E731
        left, right = self.pick(["{%", "{%", "{%-"]), self.pick(["%}", "%}", "-%}"])
        tag = lambda text: f"{left} {text} {right}"  # noqa: E731
        if kind < 3:
            other = tag("else") + body() if self.rng.randrange(2) else ""
            middle = tag(f"elif {self.expr(1)}") + body() if self.rng.randrange(4) == 0 else ""
            return tag(f"if {self.expr(2)}") + body() + middle + other + tag("endif")
        if kind < 6:
            target = self.pick([self.name(), self.name(), f"{self.name()}, j"])
            what = self.pick(["l", "w", "us", "d", "d.items()", "s", "range(3)", "m", "[[1, 2], [3, 4]]", self.expr(2)])
            test = f" if {self.expr(1)}" if self.rng.randrange(4) == 0 else ""
            other = tag("else") + body() if self.rng.randrange(4) == 0 else ""
            return tag(f"for {target} in {what}{test}") + body() + self.loop() + other + tag("endfor")
        if kind < 8:
            return tag(f"set {self.name()} = {self.expr(2)}")
        if kind == 8:
            return tag(f"set {self.name()}{self.pick(['', '|upper'])}") + body() + tag("endset")
        if kind == 9:
            return tag(f"with {self.name()} = {self.expr(1)}") + body() + tag("endwith")
        if kind == 10:
            return tag(f"filter {self.pick(['upper', 'trim', 'replace(1, n)', 'indent'])}") + body() + tag("endfilter")
        if kind == 11:
            call = self.pick(["mac()", "mac(1)", "mac(1, 2)", "mac(i=n)", "mac(j=1, i=2)", "mac(3, k=4)"])
            return tag(f"macro mac(i{self.pick(['', '=5'])}, j={self.expr(1)})") + body() + tag("endmacro") + "{{ " + call + " }}"
        return tag("call(i) mac2()") + body() + tag("endcall")

    def loop(self):
        part = self.pick(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "depth"])
        return "{{ loop." + part + " }}" if self.rng.randrange(3) == 0 else ""

    def body(self, depth):
        parts = []
        for _ in range(self.rng.randrange(1, 4)):
            kind = self.rng.randrange(6)
            if kind < 2 or depth <= 0:
                parts.append(self.pick(["text ", "\n", " a\n  b ", "|", "{", "é"]))
            if kind < 4:
                parts.append(self.pick(["{{ ", "{{ ", "{{- "]) + self.expr(self.rng.randrange(3)) + self.pick([" }}", " -}}"]))
            elif depth > 0:
                parts.append(self.block(depth))
        return "".join(parts)


class Scopes:
    """Templates about what a name means where: sets, branches, loops, macros and includes over few names."""

    FILES = {
        "inc": "<{{ a|default('-') }}{{ b|default('-') }}{% set a = 'i' %}{{ a }}>",
        "loop": "{% for a in [1] %}{{ b|default('-') }}{% set b = a %}{{ b }}{% endfor %}{% include 'inc' %}",
    }

    def __init__(self, rng):
        self.rng = rng
        self.pick = rng.choice
        self.count = 0

    def show(self):
        return "{{ " + self.pick("abn") + "|default('-') }}"

    def value(self):
        self.count += 1
        return self.pick([str(self.count), f"'v{self.count}'", self.pick("abn") + "|default('d')"])

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.rng.randrange(1, 4)))

    def statement(self, depth):
        kind = self.rng.randrange(14) if depth > 0 else self.rng.randrange(4)
        name = self.pick("abn")
        body = lambda: self.body(depth - 1)  # noqa: E731
        if kind < 2:
            return self.show()
        if kind < 4:
            return f"{{% set {name} = {self.value()} %}}"
        if kind < 7:
            other = "{% else %}" + body() if self.rng.randrange(2) else ""
            middle = "{% elif t %}" + body() if self.rng.randrange(3) == 0 else ""
            return "{% if " + self.pick("tf") + " %}" + body() + middle + other + "{% endif %}"
        if kind < 9:
            test = f" if {self.pick('abn')}|default(1) != 5" if self.rng.randrange(3) == 0 else ""
            recursive = " recursive" if self.rng.randrange(6) == 0 else ""
            other = "{% else %}" + body() if self.rng.randrange(3) == 0 else ""
            again = "{{ loop([]) if loop.depth < 2 }}" if recursive else ""
            items = self.pick(["[1, 2]", "[]", "[3]", f"[{self.value()}]"])
            return f"{{% for {name} in {items}{test}{recursive} %}}" + body() + again + other + "{% endfor %}"
        if kind == 9:
            return f"{{% with {name} = {self.value()}, b = a|default(0) %}}" + body() + "{% endwith %}"
        if kind == 10:
            return f"{{% set {name} %}}" + body() + "{% endset %}"
        if kind == 11:
            self.count += 1
            macro = f"m{self.count}"
            call = self.pick([macro + "()", macro + "(7)", f"{macro}({name}=8)"])
            definition = f"{{% macro {macro}({name}={self.value()}) %}}" + body() + "{% endmacro %}"
            return definition + "{{ " + call + " }}" + self.statement(0) + "{{ " + call + " }}"
        if kind == 12:
            return "{% filter upper %}" + body() + "{% endfilter %}"
        return "{% include '" + self.pick(["inc", "loop"]) + "' %}"


def broken(rng, text):
    """The text with one small damage."""
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + rng.choice("{}%()[]'\"|.,:-+ \n#") + text[at:]
    return text[:at]


def cases(seed, count):
    rng = random.Random(seed)
    made = []
    for number in range(count):
        maker = Maker(rng)
        kind = rng.randrange(10)
        files = {}
        if kind == 0:
            text, files = Scopes(rng).body(3), Scopes.FILES
        elif kind < 5:
            text = "{{ " + maker.expr(rng.randrange(1, 4)) + " }}"
        else:
            text = maker.body(rng.randrange(1, 4))
            if "mac2" in text:
                text = "{% macro mac2() %}<{{ caller(n) }}>{% endmacro %}" + text
        if rng.randrange(12) == 0:
            text = broken(rng, text)
        made.append({"name": f"random {seed}/{number}", "template": text, "context": CONTEXT, "files": files})
    return made
