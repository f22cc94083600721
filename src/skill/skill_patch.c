/* SPDX-License-Identifier: MIT
 *
 * The sections that are appended to an installed SKILL.md; see skill_patch.h.
 */
#include "skill/skill_patch.h"

#include <stdio.h>

#include "skill/skill.h"
#include "skill/skill_artifact.h"
#include "skill/skill_contract.h"
#include "skill/skill_priv.h"

/* Who writes an output schema can reach this; a model would not read it. */
enum { SECTION_MAX = 256 << 10 };

struct patcher {
    const struct skill *skill;
    const struct skill_patch *patch;
    struct err *e;
};

static int write_runtime(const struct patcher *p, struct buf *out)
{
    return buf_append(out,
                      STR("# Runtime rules\n\n"
                          "This skill runs under cinch. The rules from here to the end of the file "
                          "come from the runtime; where they and the instructions above disagree, "
                          "these rules hold. Do the task that the skill describes for the inputs "
                          "you were given, and nothing beyond it.\n"),
                      p->e);
}

static int write_artifacts(const struct patcher *p, struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct skill_artifact_fields fields = skill_artifact_fields(a, p->skill);
    const char *dir = p->patch->artifacts_dir;
    int r =
        dir == NULL
            ? buf_append(out,
                         STR("## Files\n\nWrite the files that are results into the directory "
                             "`artifacts/` below the directory in which you were started, "
                             "whatever other path the instructions name; give a script that "
                             "takes an output path this one. Other files may go elsewhere.\n\n"),
                         p->e)
            : buf_printf(out, p->e,
                         "## Files\n\nWrite the files that are results into `%s/`, whatever "
                         "other path the instructions name; give a script that takes an output "
                         "path this one. Other files may go elsewhere.\n\n",
                         dir);
    dir = dir == NULL ? "artifacts" : dir;
    for (size_t i = 0; r == 0 && i < fields.len; i++) {
        r = buf_printf(out, p->e, "- %.*s (`%.*s`): into `%s/`%s\n", STR_ARG(fields.items[i].role),
                       STR_ARG(fields.items[i].pattern), dir,
                       fields.items[i].required ? "" : ", if there is one");
    }
    return r < 0 ? r
                 : buf_append(out,
                              STR("\n"
                                  "In the answer, name the paths that you really wrote.\n"),
                              p->e);
}

static int write_format(const struct patcher *p, struct buf *out)
{
    return buf_append(
        out,
        STR("## Answer\n\n"
            "Your final answer is one JSON object and nothing else: no text before or after it, no "
            "Markdown fence around it. It has the fields below and, at its root, "
            "`\"" SKILL_DONE_KEY "\": true` once the task is done.\n"),
        p->e);
}

static int write_details(const struct patcher *p, struct buf *out)
{
    int r = buf_append(out, STR("### Fields of the answer\n\n"), p->e);
    return r < 0
               ? r
               : skill_contract_write(p->skill, p->patch->mode, p->patch->artifacts_dir, out, p->e);
}

static int write_auto(const struct patcher *p, struct buf *out)
{
    return buf_append(
        out,
        STR("## Mode: auto\n\n"
            "Nobody can answer while this runs. Do not ask for clarification, "
            "confirmation or a decision, and do not wait. Where something is unclear, "
            "do what the instructions give as the default; where they give none, "
            "choose what is most sensible and go on. Finish the task in one go.\n"),
        p->e);
}

static int write_interactive(const struct patcher *p, struct buf *out)
{
    return buf_append(out,
                      STR("## Mode: interactive\n\n"
                          "A user can answer between turns. Do as much as you can on your own, ask "
                          "where the instructions say so or a decision is the user's, and ask one "
                          "question a turn. Every turn ends with one JSON object: the answer, or a "
                          "question in the form given above, never both.\n"),
                      p->e);
}

static bool has_artifacts(const struct skill *s)
{
    CLEANUP(arena) struct arena *a = arena_new();
    return skill_artifact_fields(a, s).len > 0;
}

/* Whether the text has the line. */
static bool has_line(struct str text, struct str line)
{
    while (text.ptr != NULL) {
        if (str_eq(str_trim(str_split(&text, '\n')), line)) {
            return true;
        }
    }
    return false;
}

static int append_section(const struct patcher *p, const char *name,
                          int (*write)(const struct patcher *, struct buf *), struct buf *out)
{
    char marker[64];
    (void)snprintf(marker, sizeof marker, "<!-- cinch: %s -->", name);
    if (has_line(buf_str(out), str_of(marker))) {
        return 0;
    }
    CLEANUP(buf) struct buf section = BUF_INIT(SECTION_MAX);
    int r = write(p, &section);
    if (r < 0) {
        (void)err_wrap(p->e, "skill '%s': section '%s' of the patch", p->skill->name, name);
        return skill_refuse(r, p->e);
    }
    bool line_open = out->len > 0 && out->ptr[out->len - 1] != '\n';
    return buf_printf(out, p->e, "%s\n%s\n%s", line_open ? "\n" : "", marker, section.ptr);
}

int skill_patch_write(const struct skill *s, const struct skill_patch *patch, struct str text,
                      struct buf *out, struct err *e)
{
    const struct patcher p = { .skill = s, .patch = patch, .e = e };
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    int r = buf_append(&b, text, e);
    if (s->manifest != NULL) {
        bool interactive = patch->mode == SKILL_INTERACTIVE;
        const struct {
            const char *name;
            int (*write)(const struct patcher *, struct buf *);
            bool wanted;
        } sections[] = {
            { "runtime", write_runtime, true },
            { "artifacts", write_artifacts, has_artifacts(s) },
            { "output-format", write_format, true },
            { "output-details", write_details, true },
            { "mode-auto", write_auto, !interactive },
            { "mode-interactive", write_interactive, interactive },
        };
        for (size_t i = 0; r == 0 && i < ARRAY_LEN(sections); i++) {
            r = sections[i].wanted ? append_section(&p, sections[i].name, sections[i].write, &b)
                                   : 0;
        }
    }
    return r < 0 ? r : buf_append(out, buf_str(&b), e);
}
