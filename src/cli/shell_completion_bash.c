/* SPDX-License-Identifier: MIT
 *
 * Completion for bash: the tables become case statements, the walk over the words is fixed text.
 */
#include "cli/shell_completion.h"

#include "cli/command.h"

static const char *const kinds[] = {
    [COMPLETE_FROM_KIND] = "nothing", [COMPLETE_NOTHING] = "nothing",
    [COMPLETE_FILE] = "files",        [COMPLETE_DIRECTORY] = "directories",
    [COMPLETE_ADAPTER] = "adapters",  [COMPLETE_COMMAND] = "commands",
    [COMPLETE_WORDS] = "words",
};

static void add_offer(struct buf *out, enum option_complete complete, const char *const *words)
{
    buf_addf(out, "offer=(%s", kinds[complete]);
    if (complete == COMPLETE_WORDS) {
        buf_adds(out, " ");
        completion_words(words, out);
    }
    buf_adds(out, ") ;;\n");
}

static void add_values(struct buf *out, const char *command, const struct option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (o->kind == OPTION_FLAG) {
            continue;
        }
        buf_addf(out, "    %s:--%s", command, o->name);
        if (o->letter != 0) {
            buf_addf(out, " | %s:-%c", command, o->letter);
        }
        buf_adds(out, ") ");
        add_offer(out, completion_of(o), o->words);
    }
}

static void add_value_function(struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_adds(out, "# What to offer for the value of option $2 of command $1; fails for a flag.\n"
                  "_cinch_value() {\n    case $1:$2 in\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        add_values(out, (*c)->name, command_options(*c, a));
    }
    add_values(out, "*", command_globals());
    buf_adds(out, "    *) return 1 ;;\n    esac\n}\n\n");
}

static void add_names(struct buf *out, const struct option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        if ((o->flags & OPTION_HIDDEN) == 0) {
            buf_addf(out, " --%s", o->name);
            if ((o->flags & OPTION_NEGATABLE) != 0) {
                buf_addf(out, " --no-%s", o->name);
            }
        }
    }
}

static void add_option_function(struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_adds(out, "# The options of command $1.\n_cinch_options() {\n    offer=(words");
    add_names(out, command_globals());
    buf_adds(out, ")\n    case $1 in\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        const struct option *options = command_options(*c, a);
        if (options != NULL) {
            buf_addf(out, "    %s) offer+=(", (*c)->name);
            add_names(out, options);
            buf_adds(out, ") ;;\n");
        }
    }
    buf_adds(out, "    esac\n}\n\n");
}

static void add_argument_function(struct buf *out)
{
    buf_adds(out, "# What to offer for argument number $2 of command $1.\n"
                  "_cinch_argument() {\n    case $1:$2 in\n");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        const struct positional *p = (*c)->positionals;
        for (int i = 0; p != NULL && p->name != NULL; i++, p++) {
            if (p->repeat) {
                buf_addf(out, "    %s:*) ", (*c)->name);
            } else {
                buf_addf(out, "    %s:%d) ", (*c)->name, i);
            }
            add_offer(out, p->complete, p->words);
        }
        if ((*c)->rest != NULL) {
            buf_addf(out, "    %s:--) offer=(programs) ;;\n", (*c)->name);
        }
    }
    buf_adds(out, "    *) offer=(nothing) ;;\n    esac\n}\n\n");
}

static const char reply[] =
    "# Fills COMPREPLY with what fits $cur.\n"
    "_cinch_reply() {\n"
    "    local words=\"${offer[*]:1}\"\n"
    "    case ${offer[0]} in\n"
    "    words) ;;\n"
    "    commands) words=$_cinch_commands ;;\n"
    "    adapters) words=$(cinch adapters --format quiet 2>/dev/null) ;;\n"
    "    files) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "    directories) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
    "    programs) mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$cur\") ;;\n"
    "    *) return ;;\n"
    "    esac\n"
    "    case ${offer[0]} in\n"
    "    files | directories | programs) compopt -o filenames 2>/dev/null ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n\n";

/* '=' is a word of its own in COMP_WORDS as long as it is in COMP_WORDBREAKS; both cases work. */
static const char walk[] =
    "_cinch() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command='' count=0 i word offer prefix\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == -- ]]; then\n"
    "            _cinch_argument \"$command\" --\n"
    "            ((i + 1 < COMP_CWORD)) && offer=(files)\n"
    "            _cinch_reply\n"
    "            return\n"
    "        elif [[ $word != -?* ]]; then\n"
    "            if [[ -z $command ]]; then command=$word; else ((count += 1)); fi\n"
    "        elif _cinch_value \"$command\" \"$word\"; then\n"
    "            ((i += 1))\n"
    "            [[ ${COMP_WORDS[i]} == = ]] && ((i += 1))\n"
    "            if ((i >= COMP_CWORD)); then\n"
    "                [[ $cur == = ]] && cur=\n"
    "                _cinch_reply\n"
    "                return\n"
    "            fi\n"
    "        fi\n"
    "    done\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        prefix=${cur%%=*}\n"
    "        cur=${cur#*=}\n"
    "        _cinch_value \"$command\" \"$prefix\" && _cinch_reply\n"
    "        COMPREPLY=(\"${COMPREPLY[@]/#/$prefix=}\")\n"
    "        return\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _cinch_options \"$command\"\n"
    "    elif [[ -z $command ]]; then\n"
    "        offer=(commands)\n"
    "    else\n"
    "        _cinch_argument \"$command\" \"$count\"\n"
    "    fi\n"
    "    _cinch_reply\n"
    "}\n\n"
    "complete -F _cinch cinch\n";

void completion_bash(struct buf *out)
{
    buf_adds(out, "# bash completion for cinch; made by 'cinch completion bash'\n"
                  "# shellcheck shell=bash\n\n_cinch_commands='");
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        buf_addf(out, "%s%s", c == command_all() ? "" : " ", (*c)->name);
    }
    buf_adds(out, "'\n\n");
    add_value_function(out);
    add_option_function(out);
    add_argument_function(out);
    buf_adds(out, reply);
    buf_adds(out, walk);
}
