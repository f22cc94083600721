/* SPDX-License-Identifier: MIT
 *
 * Completion for zsh: one _arguments call per command.
 */
#include "cli/shell_completion.h"

#include <stdio.h>

#include "cli/command.h"

/* Text inside [...] or between colons of a specification. */
static void add_spec_text(struct buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '[' || *s == ']' || *s == ':' || *s == '\\') {
            buf_adds(out, "\\");
        }
        buf_add(out, str_n(s, 1));
    }
}

static void add_action(struct buf *out, enum option_complete complete, const char *const *words)
{
    switch (complete) {
    case COMPLETE_FILE:
        buf_adds(out, "_files");
        break;
    case COMPLETE_DIRECTORY:
        buf_adds(out, "_files -/");
        break;
    case COMPLETE_ADAPTER:
        buf_adds(out, "_cinch_adapters");
        break;
    case COMPLETE_COMMAND:
        buf_adds(out, "_cinch_commands");
        break;
    case COMPLETE_WORDS:
        buf_adds(out, "(");
        completion_words(words, out);
        buf_adds(out, ")");
        break;
    case COMPLETE_NOTHING:
    case COMPLETE_FROM_KIND:
        buf_adds(out, " ");
        break;
    }
}

/* One specification, quoted; `name` has its dashes, `others` are excluded once it is used. */
static void add_spec(struct buf *out, const struct option *o, const char *name, const char *others)
{
    CLEANUP(buf) struct buf spec = BUF_INIT(BUF_TEXT);
    bool value = o->kind != OPTION_FLAG;
    if ((o->flags & OPTION_REPEAT) != 0) {
        buf_adds(&spec, "*");
    } else {
        buf_addf(&spec, "(%s)", others);
    }
    /* '=' allows --name=value and --name value, '+' allows -nvalue and -n value. */
    buf_addf(&spec, "%s%s[", name, !value ? "" : name[1] == '-' ? "=" : "+");
    add_spec_text(&spec, o->help);
    buf_adds(&spec, "]");
    if (value) {
        buf_adds(&spec, ":");
        add_spec_text(&spec, o->value != NULL ? o->value : o->name);
        buf_adds(&spec, ":");
        add_action(&spec, completion_of(o), o->words);
    }
    buf_adds(out, " \\\n        ");
    completion_quote_sh(spec.ptr, out);
}

static void add_option(struct buf *out, const struct option *o)
{
    char long_name[OPTION_TEXT_LEN];
    char no_name[OPTION_TEXT_LEN] = "";
    char letter[8] = "";
    CLEANUP(buf) struct buf others = BUF_INIT(BUF_TEXT);
    (void)snprintf(long_name, sizeof long_name, "--%s", o->name);
    if (o->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c", o->letter);
    }
    if ((o->flags & OPTION_NEGATABLE) != 0) {
        (void)snprintf(no_name, sizeof no_name, "--no-%s", o->name);
    }
    buf_addf(&others, "%s%s%s%s%s", letter, letter[0] != '\0' ? " " : "", long_name,
             no_name[0] != '\0' ? " " : "", no_name);
    const char *names[] = { letter, long_name, no_name };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i][0] != '\0') {
            add_spec(out, o, names[i], others.ptr);
        }
    }
}

static void add_options(struct buf *out, const struct option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        if ((o->flags & OPTION_HIDDEN) == 0) {
            add_option(out, o);
        }
    }
}

static void add_positional(struct buf *out, const struct positional *p)
{
    CLEANUP(buf) struct buf spec = BUF_INIT(BUF_TEXT);
    buf_adds(&spec, p->repeat ? "*:" : p->optional ? "::" : ":");
    add_spec_text(&spec, p->name);
    buf_adds(&spec, ":");
    add_action(&spec, p->complete, p->words);
    buf_adds(out, " \\\n        ");
    completion_quote_sh(spec.ptr, out);
}

static void add_command(struct buf *out, const struct command *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_addf(out, "    %s)\n", c->name);
    if (c->rest != NULL) {
        /* After "--" comes another program with its own arguments. */
        buf_adds(out, "        if (( ${words[(I)--]} && ${words[(I)--]} < CURRENT )); then\n"
                      "            shift ${words[(I)--]} words\n"
                      "            (( CURRENT = ${#words} ))\n"
                      "            _normal\n            return\n        fi\n");
    }
    buf_adds(out, "        _arguments -s");
    add_options(out, command_options(c, a));
    add_options(out, command_globals());
    for (const struct positional *p = c->positionals; p != NULL && p->name != NULL; p++) {
        add_positional(out, p);
    }
    buf_adds(out, "\n        ;;\n");
}

void completion_zsh(struct buf *out)
{
    buf_adds(out, "#compdef cinch\n# zsh completion for cinch; made by 'cinch completion zsh'\n\n"
                  "_cinch_adapters() {\n    local -a names\n"
                  "    names=(${(f)\"$(_call_program adapters cinch adapters --format quiet)\"})\n"
                  "    compadd -a names\n}\n\n"
                  "_cinch_commands() {\n    local -a commands\n    commands=(");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        CLEANUP(buf) struct buf entry = BUF_INIT(BUF_TEXT);
        buf_addf(&entry, "%s:", (*c)->name);
        add_spec_text(&entry, (*c)->summary);
        buf_adds(out, "\n        ");
        completion_quote_sh(entry.ptr, out);
    }
    buf_adds(out, "\n    )\n    _describe -t commands 'command' commands\n}\n\n"
                  "_cinch() {\n    local curcontext=\"$curcontext\" state line\n"
                  "    typeset -A opt_args\n"
                  "    _arguments -C -s");
    add_options(out, command_globals());
    buf_adds(
        out,
        " \\\n        '1:command:_cinch_commands' \\\n        '*::argument:->argument' && return\n"
        "    case ${line[1]} in\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        add_command(out, *c);
    }
    /* Autoloaded as a function the file is the body of _cinch; sourced, it must be registered. */
    buf_adds(out, "    esac\n}\n\n"
                  "if [[ ${funcstack[1]} == _cinch ]]; then\n    _cinch \"$@\"\n"
                  "else\n    compdef _cinch cinch\nfi\n");
}
