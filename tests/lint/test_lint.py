#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every check of scripts/lint can fail: each gets a good tree and must be silent, then one bad change
and must name it."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = "/* SPDX-License-Identifier: MIT\n *\n * A file for the tests of the checks.\n */\n"

GOOD = {
    "src/base/num.h": HEAD + "#pragma once\n\nint num_next(int number);\n",
    "src/base/num.c": HEAD
    + '#include "base/num.h"\n\n#include <limits.h>\n\n#include <yyjson.h>\n\n'
    + "static const char *const words[] = { \"one\", \"two\" };\n\n"
    + "int num_next(int number)\n{\n    return number == INT_MAX ? words[0][0] : number + 1;\n}\n",
    "src/io/clock.h": HEAD + "#pragma once\n\nint clock_tick(void);\n",
    "src/io/clock.c": HEAD
    + '#include "io/clock.h"\n\n#include "base/num.h"\n\n'
    + "int clock_tick(void)\n{\n    return num_next(1);\n}\n",
    "scripts/hello": '#!/bin/bash\necho "hello"\n',
    "README.md": "# A tree\n\nAll is well here.\n",
    "tests/fuzz/meson.build": "fuzz_targets = {\n  'num': 'base',\n}\n",
    "tests/fuzz/fuzz_num.c": HEAD + "int fuzz_num;\n",
    "tests/fuzz/corpus/num/one": "1",
    "ARCHITECTURE.md": "| layer | lines | |\n|---|---|---|\n| `io` | 0 | time |\n| `base` | 0 | numbers |\n",
    "tools/globals.txt": "# none\n",
    "tools/ratchet.txt": "# none\n",
}

# Pieces, so that this file itself passes the check of words.
UNFINISHED = "TO" + "DO"
MISSPELT = "recie" + "ve"


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("scripts", "tools"):
            os.mkdir(os.path.join(self.root, folder))
        for name in os.listdir(os.path.join(ROOT, "tools")):
            if name.endswith(".py") or name == "layers.txt":
                shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.root, "tools"))
        shutil.copy(os.path.join(ROOT, "scripts", "lint"), os.path.join(self.root, "scripts"))
        for name in (".clang-format", ".codespellrc"):
            shutil.copy(os.path.join(ROOT, name), self.root)
        for name, text in GOOD.items():
            self.write(name, text)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def append(self, name, text):
        self.write(name, GOOD[name] + text)

    def build(self):
        """One archive a layer, where meson would put it."""
        for layer in sorted(os.listdir(os.path.join(self.root, "src"))):
            source = os.path.join(self.root, "src", layer)
            out = os.path.join(self.root, "build", "src", layer)
            os.makedirs(out, exist_ok=True)
            objects = []
            for name in sorted(os.listdir(source)):
                if name.endswith(".c"):
                    objects.append(os.path.join(out, name + ".o"))
                    self.command(
                        ["gcc", "-std=gnu17", "-fPIC", "-O1", f"-I{self.root}/src", "-c"]
                        + [os.path.join(source, name), "-o", objects[-1]]
                    )
            archive = os.path.join(out, f"lib{layer}.a")
            if os.path.exists(archive):
                os.unlink(archive)
            self.command(["ar", "rcs", archive, *objects])

    def command(self, command):
        subprocess.run(command, check=True, capture_output=True)

    def lint(self, check):
        result = subprocess.run(
            [os.path.join(self.root, "scripts", "lint"), check],
            capture_output=True,
            text=True,
            check=False,
        )
        return result.returncode, result.stdout + result.stderr

    def assert_silent(self, check):
        code, output = self.lint(check)
        if " skipped " in output:
            self.skipTest(output.strip().split("\n")[-1].strip())
        self.assertEqual(code, 0, output)
        self.assertEqual(len(output.strip().split("\n")), 1, output)

    def assert_complains(self, check, *words):
        code, output = self.lint(check)
        self.assertNotEqual(code, 0, f"{check} should have failed")
        for word in words:
            self.assertIn(word, output)


class Layers(Tree):
    def test_good_tree(self):
        self.assert_silent("layers")

    def test_upward_include(self):
        self.append("src/base/num.c", '#include "io/clock.h"\n')
        self.assert_complains("layers", "src/base/num.c", "base may not include io/clock.h")

    def test_unknown_layer(self):
        self.write("src/attic/old.c", HEAD + "int old;\n")
        self.assert_complains("layers", "src/attic/old.c", "layer 'attic' is not in tools/layers.txt")

    def test_file_without_layer(self):
        self.write("src/stray.c", HEAD + "int stray;\n")
        self.assert_complains("layers", "src/stray.c")

    def test_private_header_of_another_layer(self):
        self.write("src/base/num_priv.h", HEAD + "#pragma once\n")
        self.append("src/base/num.c", '#include "base/num_priv.h"\n')
        self.assert_silent("layers")
        self.append("src/io/clock.c", '#include "base/num_priv.h"\n')
        self.assert_complains("layers", "src/io/clock.c", "private to layer base")

    def test_header_that_is_not_spelled_with_its_layer(self):
        self.append("src/base/num.c", '#include "num.h"\n')
        self.assert_complains("layers", '"num.h": no such header')

    def test_cycle_of_headers(self):
        self.append("src/base/num.h", '#include "base/odd.h"\n')
        self.write("src/base/odd.h", HEAD + '#pragma once\n#include "base/num.h"\n')
        self.assert_complains("layers", "cycle of headers: base/num.h -> base/odd.h -> base/num.h")

    def test_cycle_in_the_table(self):
        path = "tools/layers.txt"
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            table = f.read()
        self.write(path, table.replace("layer base\n", "layer base uses io\n"))
        self.assert_complains("layers", "cycle of table: base -> io -> base")

    def test_own_header_must_come_first(self):
        text = GOOD["src/io/clock.c"].replace('#include "io/clock.h"', "#include <errno.h>")
        self.write("src/io/clock.c", text)
        self.assert_complains("layers", 'the first include must be "io/clock.h"')

    def test_library_in_two_files(self):
        self.write("src/base/odd.c", HEAD + "#include <yyjson.h>\n")
        self.assert_complains("layers", "yyjson must be included by one file", "src/base/odd.c")

    def test_library_in_the_wrong_layer(self):
        self.append("src/base/num.c", "#include <uv.h>\n")
        self.assert_complains("layers", "<uv.h> may be included in layer io only")

    def test_libuv_in_several_files_of_io(self):
        self.append("src/io/clock.c", "#include <uv.h>\n")
        self.write("src/io/loop.c", HEAD + "#include <uv.h>\n")
        self.assert_silent("layers")

    def test_library_that_nobody_registered(self):
        self.append("src/base/num.c", "#include <surprise.h>\n")
        self.assert_complains("layers", "<surprise.h> is neither")

    def test_helper_program_knows_base_only(self):
        self.write("src/proc/spawn.h", HEAD + "#pragma once\n")
        self.write("src/init/init_main.c", HEAD + '#include "base/num.h"\n')
        self.assert_silent("layers")
        self.write("src/init/init_main.c", HEAD + '#include "proc/spawn.h"\n')
        self.assert_complains("layers", "init may not include proc/spawn.h")

    def test_include_in_a_comment_is_none(self):
        self.append("src/base/num.c", '/*\n#include "io/clock.h"\n*/\n')
        self.assert_silent("layers")


class Map(Tree):
    def fix(self):
        self.command([os.path.join(self.root, "tools", "check_map.py"), "--fix"])

    def test_good_tree(self):
        self.fix()
        self.assert_silent("map")

    def test_old_size(self):
        self.fix()
        self.append("src/io/clock.c", "\n" * 100)
        self.assert_complains("map", "layer 'io' has", "check_map.py --fix")

    def test_missing_layer(self):
        self.write("src/wire/line.c", HEAD + "int line;\n")
        self.assert_complains("map", "no row for layer 'wire'")

    def test_wrong_order(self):
        self.write("ARCHITECTURE.md", "| `base` | 0 | numbers |\n| `io` | 0 | time |\n")
        self.assert_complains("map", "'io' uses 'base'")

    def test_unknown_row(self):
        self.append("ARCHITECTURE.md", "| `attic` | 0 | old things |\n")
        self.assert_complains("map", "'attic' is not a layer")


class Link(Tree):
    def test_good_tree(self):
        self.build()
        self.assert_silent("link")

    def test_hand_written_extern(self):
        self.append("src/base/num.c", "int clock_tick(void);\nint num_up(void)\n{\n    return clock_tick();\n}\n")
        self.build()
        self.assert_complains("link", "layer base uses 'clock_tick'")

    def test_missing_archive(self):
        self.assert_complains("link", "layer base: no archive")

    def test_helper_program_with_a_library(self):
        self.build()
        self.write("src/init/init_main.c", HEAD + "#include <math.h>\nint main(int c, char **v)\n{\n    return (int)cos(c);\n}\n")
        out = os.path.join(self.root, "build", "src", "init")
        os.makedirs(out)
        source = os.path.join(self.root, "src", "init", "init_main.c")
        self.command(["gcc", source, "-o", os.path.join(out, "cinch-init"), "-lm"])
        self.assert_complains("link", "needs libm.so")


class Globals(Tree):
    def test_good_tree(self):
        self.build()
        self.assert_silent("globals")

    def test_file_scope_variable(self):
        self.append("src/base/num.c", "int counter;\n")
        self.build()
        self.assert_complains("globals", "num.c.o: writable variable 'counter'")

    def test_static_local_variable(self):
        self.append("src/io/clock.c", "int tick(void);\nint tick(void)\n{\n    static int ticks = 3;\n    return ticks++;\n}\n")
        self.build()
        self.assert_complains("globals", "io: clock.c.o: writable variable 'ticks'")

    def test_allowed_variable(self):
        self.append("src/base/num.c", "int counter;\n")
        self.write("tools/globals.txt", "base counter because of the test\n")
        self.build()
        self.assert_silent("globals")

    def test_stale_exception(self):
        self.write("tools/globals.txt", "base counter gone since long\n")
        self.build()
        self.assert_complains("globals", "'base counter' is not needed any more")

    def test_nothing_built(self):
        self.assert_complains("globals", "no archives")


class Headers(Tree):
    def test_good_tree(self):
        self.assert_silent("headers")

    def test_header_that_needs_another(self):
        self.append("src/base/num.h", "size_t num_size(void);\n")
        self.assert_complains("headers", "src/base/num.h: does not compile alone", "size_t")

    def test_header_without_guard(self):
        self.write("src/base/num.h", GOOD["src/base/num.h"].replace("#pragma once\n", ""))
        self.assert_complains("headers", "src/base/num.h:1: no #pragma once")


def function(name="num_big", lines=0, parameters="void", body=""):
    return f"int {name}({parameters})\n{{\n" + "    num_next(1);\n" * lines + body + "    return 0;\n}\n"


class Size(Tree):
    def test_good_tree(self):
        self.assert_silent("size")

    def test_long_file(self):
        self.append("src/base/num.h", "/* filler */\n" * 800)
        self.assert_complains("size", "src/base/num.h: 807 lines in the file, at most 800")

    def test_long_function(self):
        self.append("src/base/num.c", "\n" + function(lines=76))
        self.assert_silent("size")
        self.append("src/base/num.c", "\n" + function(lines=77))
        self.assert_complains("size", "src/base/num.c:num_big: 81 lines in the function, at most 80")

    def test_many_parameters(self):
        six = "int a, int b, int c, int d, int e, int (*f)(int, int)"
        self.append("src/base/num.c", "\n" + function(parameters=six))
        self.assert_silent("size")
        self.append("src/base/num.c", "\n" + function(parameters=six + ",\n            int g"))
        self.assert_complains("size", "src/base/num.c:num_big: 7 parameters, at most 6")

    def test_complexity(self):
        self.append("src/base/num.c", "\n" + function(body="    if (num_next(1)) {\n        return 1;\n    }\n" * 20))
        self.assert_complains("size", "src/base/num.c:num_big: 21 complexity, at most 20")

    def test_many_members(self):
        twenty = "struct num {\n    int a, b, c;\n    void (*call)(int x, int y);\n    struct {\n        int p, q;\n    } in;\n"
        twenty += "".join(f"    int m{i};\n" for i in range(15))
        self.append("src/base/num.c", twenty + "};\n")
        self.assert_silent("size")
        self.append("src/base/num.c", twenty.replace("num", "big") + "    char *one_more; /* a; b; c */\n};\n")
        self.assert_complains("size", "src/base/num.c:big: 21 members of the struct, at most 20")

    def test_many_functions_in_a_private_header(self):
        head = "/* SPDX-License-Identifier: MIT\n *\n * Shared. */\n#pragma once\n"
        head += "".join(f"int num_f{i}(int a,\n           int b);\n" for i in range(25))
        self.write("src/base/num_priv.h", head)
        self.assert_silent("size")
        self.write("src/base/num_priv.h", head + "const char *num_more(void (*f)(int));\n")
        self.assert_complains("size", "src/base/num_priv.h: 26 functions in the private header, at most 25")

    def test_exceptions_for_members_are_in_steps(self):
        members = "".join(f"    int m{i};\n" for i in range(23))
        self.append("src/base/num.c", "struct big {\n" + members + "};\n")
        self.write("tools/ratchet.txt", "members src/base/num.c:big 25 because of the test\n")
        self.assert_silent("size")
        self.write("tools/ratchet.txt", "members src/base/num.c:big 30 because of the test\n")
        self.assert_complains("size", "can be lowered to 25")

    def test_exception(self):
        self.append("src/base/num.c", "\n" + function(lines=77))
        self.write("tools/ratchet.txt", "lines src/base/num.c:num_big 81 because of the test\n")
        self.assert_silent("size")

    def test_exception_that_could_be_lower(self):
        self.append("src/base/num.c", "\n" + function(lines=77))
        self.write("tools/ratchet.txt", "lines src/base/num.c:num_big 90 because of the test\n")
        self.assert_complains("size", "can be lowered to 81")

    def test_exception_that_is_not_needed(self):
        self.append("src/base/num.c", "\n" + function())
        self.write("tools/ratchet.txt", "lines src/base/num.c:num_big 90 because of the test\n")
        self.assert_complains("size", "not needed any more")

    def test_exception_for_nothing(self):
        self.write("tools/ratchet.txt", "lines src/base/num.c:num_gone 90 because of the test\n")
        self.assert_complains("size", "nothing to except")

    def test_exception_without_reason(self):
        self.write("tools/ratchet.txt", "lines src/base/num.c:num_big 90\n")
        self.assert_complains("size", "expected KIND")


class Source(Tree):
    def test_good_tree(self):
        self.assert_silent("source")

    def test_banned_functions(self):
        for name in ("strcpy", "strcat", "sprintf", "strtok", "atoi", "system", "popen", "signal", "alloca", "gmtime"):
            with self.subTest(name):
                self.append("src/base/num.c", f"int x(void)\n{{\n    return {name}(1);\n}}\n")
                self.assert_complains("source", f"src/base/num.c:19: {name}() is banned")

    def test_names_in_comments_and_strings_are_no_calls(self):
        self.append("src/base/num.c", '/* unlike strcpy() */\nconst char *word = "system()";\n')
        self.assert_silent("source")

    def test_longer_names_and_members_are_no_calls(self):
        self.append("src/base/num.c", "int y(void)\n{\n    return my_system(1) + ops.signal(2) + o->exit(3);\n}\n")
        self.assert_silent("source")

    def test_fork_outside_init(self):
        self.append("src/io/clock.c", "int f(void)\n{\n    return fork();\n}\n")
        self.assert_complains("source", "fork() has no place in io")
        self.write("src/io/clock.c", GOOD["src/io/clock.c"])
        self.write("src/init/init_main.c", HEAD + "int f(void)\n{\n    return fork();\n}\n")
        self.assert_silent("source")

    def test_exit_and_print_below_cli(self):
        for call in ('exit(1)', 'printf("x")', 'fprintf(stderr, "x")', 'fputs("x", stdout)'):
            with self.subTest(call):
                self.append("src/io/clock.c", f"void f(void)\n{{\n    {call};\n}}\n")
                self.assert_complains("source", "src/io/clock.c")

    def test_last_words_before_abort(self):
        self.append("src/io/clock.c", 'void f(void)\n{\n    (void)fprintf(stderr, "x");\n    abort();\n}\n')
        self.assert_silent("source")

    def test_cli_may_print(self):
        self.write("src/cli/main.c", HEAD + 'void f(void)\n{\n    printf("x");\n}\n')
        self.assert_silent("source")

    def test_line_comment(self):
        self.append("src/base/num.c", "// no\n")
        self.assert_complains("source", "comments are /* */")

    def test_head_comment(self):
        self.write("src/base/odd.c", "int odd;\n")
        self.assert_complains("source", "src/base/odd.c:1: must start with")

    def test_long_line(self):
        comment = "/* " + "é" * 94 + " */\n"
        self.append("src/base/num.h", comment)
        self.assert_silent("source")
        self.append("src/base/num.h", comment.replace("é ", "éé "))
        self.assert_complains("source", "src/base/num.h:8: 101 columns; the limit is 100")

    def test_long_line_of_a_table_laid_out_by_hand(self):
        table = "/* clang-format off */\n" + "/* " + "x" * 100 + " */\n/* clang-format on */\n"
        self.append("src/base/num.h", table)
        self.assert_silent("source")
        self.append("src/base/num.h", table + "/* " + "x" * 100 + " */\n")
        self.assert_complains("source", "src/base/num.h:11: 106 columns")

    def test_empty_names(self):
        self.write("src/base/utils.c", HEAD)
        self.assert_complains("source", "'utils' says nothing")

    def test_fuzz_target_without_corpus(self):
        os.unlink(os.path.join(self.root, "tests/fuzz/corpus/num/one"))
        self.assert_complains("source", "no corpus in tests/fuzz/corpus/num/")

    def test_fuzz_target_that_is_not_listed(self):
        self.write("tests/fuzz/meson.build", "fuzz_targets = {}\n")
        self.assert_complains("source", "not listed in tests/fuzz/meson.build")


class Words(Tree):
    def test_good_tree(self):
        self.assert_silent("words")

    def test_unfinished_work(self):
        self.append("README.md", f"{UNFINISHED}: more\n")
        self.assert_complains("words", f"README.md:4: '{UNFINISHED}'")

    def test_template_of_a_temporary_file_is_no_unfinished_work(self):
        self.append("README.md", "mkstemp takes /tmp/cinch." + "X" * 6 + "\n")
        self.assert_silent("words")

    def test_machine_path(self):
        for path in ("/wo" + "rk/main/x", "/ro" + "ot/.cache"):
            with self.subTest(path):
                self.append("README.md", f"see {path}\n")
                self.assert_complains("words", "path of one machine")

    def test_merge_conflict(self):
        self.append("README.md", "<" * 7 + " HEAD\n")
        self.assert_complains("words", "merge conflict")

    def test_blanks_at_line_end(self):
        self.append("scripts/hello", "echo \n")
        self.assert_complains("words", "blanks at the end")

    def test_no_newline_at_end(self):
        self.append("README.md", "end")
        self.assert_complains("words", "no newline")


class RetiredPhrases(Tree):
    """Phrases that docs/glossary.md retires, where people read them."""

    PHRASES = ("It is told.", "They are told.", "Whoever it was.", "Nobody reads it.", "Somebody's file.", "The status is none.",
               "It could not be had.", "What comes of it.", "A habit of its makers.", "In an order of chance.", "An errand.")

    def test_in_documentation(self):
        for phrase in self.PHRASES:
            with self.subTest(phrase):
                self.append("README.md", phrase + "\n")
                self.assert_complains("words", "README.md:4: '", "is retired (docs/glossary.md)")

    def test_over_a_line_break(self):
        self.append("README.md", "What is missing is\ntold.\n")
        self.assert_complains("words", "README.md:4: 'is told' is retired (docs/glossary.md): reported")

    def test_ordinary_english_and_code(self):
        self.append("README.md", "It is none of these. If there is none, fine. He told us. `nobody` is a user.\n\n```\nnobody is told\n```\n"
                    "See [this](nobody.md).\n")
        self.assert_silent("words")

    def test_in_strings_of_c(self):
        for text in ('"the status is none"', '"a status that is "\n    "none: %d"'):
            with self.subTest(text):
                self.append("src/base/num.c", f"const char *num_text = {text};\n")
                self.assert_complains("words", "src/base/num.c:", "'is none' is retired")

    def test_not_in_comments_of_c(self):
        self.append("src/base/num.c", '/* Nobody is told. */\n#include "base/errand.h"\nconst char *num_user = "nobody";\n')
        self.assert_silent("words")

    def test_in_a_public_header(self):
        self.write("include/num.h", HEAD + "/* Whoever calls this. */\n")
        self.assert_complains("words", "include/num.h:5: 'Whoever'")

    def test_in_texts_of_profiles(self):
        self.write("adapters/x.yaml", "quirks: [an experiment of its makers]\n")
        self.assert_complains("words", "adapters/x.yaml:1: 'of its makers'")

    def test_the_glossary_names_them(self):
        self.write("docs/glossary.md", "Do not write: is told.\n")
        self.assert_silent("words")

    def test_a_file_that_is_not_converted(self):
        self.append("README.md", "It is told, and nobody listens.\n")
        self.write("tools/words.txt", "# not converted yet\nREADME.md 2\n")
        self.assert_silent("words")
        self.append("README.md", "It is told, and nobody listens. Whoever.\n")
        self.assert_complains("words", "words.txt:2: README.md has 3 retired phrases, at most 2")

    def test_the_list_only_shrinks(self):
        self.append("README.md", "It is told.\n")
        self.write("tools/words.txt", "README.md 2\nsrc/base/num.c 1\nREADME.txt 1\n")
        self.assert_complains("words", "words.txt:1: can be lowered to 1", "words.txt:2: not needed any more",
                              "words.txt:3: not needed any more")
        self.command([os.path.join(self.root, "tools", "check_words.py"), "--prune"])
        with open(os.path.join(self.root, "tools", "words.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "README.md 1\n")
        self.assert_silent("words")

    def test_prune_does_not_hide_new_ones(self):
        self.append("README.md", "It is told, and nobody listens.\n")
        self.write("tools/words.txt", "README.md 1\n")
        code = subprocess.run([os.path.join(self.root, "tools", "check_words.py"), "--prune"], capture_output=True,
                              check=False).returncode
        self.assertEqual(code, 1)
        self.assert_complains("words", "README.md has 2 retired phrases, at most 1")

    def test_a_list_that_cannot_be_read(self):
        self.write("tools/words.txt", "README.md two\n")
        self.assert_complains("words", "words.txt:1: expected PATH COUNT")


class Programs(Tree):
    def test_format(self):
        self.assert_silent("format")
        self.append("src/base/num.c", "int   x;\n")
        self.assert_complains("format", "code should be clang-formatted", "make format")

    def test_shellcheck(self):
        self.assert_silent("shellcheck")
        self.append("scripts/hello", "echo $1\n")
        self.assert_complains("shellcheck", "SC2086")

    def test_spelling(self):
        self.assert_silent("spelling")
        self.append("README.md", f"You {MISSPELT} it.\n")
        self.assert_complains("spelling", MISSPELT)

    def test_spelling_of_tests(self):
        self.append("tests/fuzz/fuzz_num.c", f'const char *typo = "{MISSPELT}";\n')
        self.assert_silent("spelling of tests")
        self.append("tests/fuzz/fuzz_num.c", f"int {MISSPELT};\n")
        self.assert_complains("spelling of tests", MISSPELT)

    def test_python(self):
        self.assert_silent("python")
        self.write("tools/odd.py", "def f(:\n")
        self.assert_complains("python", "tools/odd.py")

    def test_python_name_that_nobody_defined(self):
        self.write("tools/odd.py", "print(surprise)\n")
        self.assert_complains("python", "undefined name 'surprise'")

    def test_unknown_check(self):
        code, output = self.lint("surprise")
        self.assertEqual(code, 2)
        self.assertIn("no check 'surprise'", output)


if __name__ == "__main__":
    unittest.main()
