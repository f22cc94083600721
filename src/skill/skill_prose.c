/* SPDX-License-Identifier: MIT
 *
 * A skill of a repository as text; see skill_prose.h.
 */
#include "skill/skill_prose.h"

#include "base/json.h"
#include "skill/package.h"
#include "skill/skill_card.h"
#include "skill/skill_install.h"

/* Claude Code runs !`command` and blocks that begin with ```! when it reads the body of a skill. A
 * space after the former's mark, and before the latter's, makes words of them. */
static bool begins_command(struct str body, size_t at)
{
    return str_starts(str_slice(body, at, body.len), STR("!`"));
}

static bool begins_block(struct str body, size_t at)
{
    return body.ptr[at] == '!' && str_ends(str_slice(body, 0, at), STR("```"));
}

static void add_disarmed(struct buf *out, struct str body)
{
    for (size_t i = 0; i < body.len; i++) {
        buf_add(out, begins_block(body, i) ? STR(" ") : STR_EMPTY);
        buf_add(out, str_slice(body, i, i + 1));
        buf_add(out, begins_command(body, i) ? STR(" ") : STR_EMPTY);
    }
}

int skill_prose_write(struct arena *a, struct str text, const char *file, struct buf *ret,
                      struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(2 * SKILL_TEXT_MAX);
    struct skill_card card;
    int r = skill_card_parse(a, text, file, &card, e);
    if (r < 0) {
        return r;
    }
    /* A string of JSON is one of YAML. */
    buf_add(&out, STR("---\nname: "));
    r = json_write(json_cstr(a, card.name), JSON_COMPACT, &out, e);
    buf_add(&out, STR("\ndescription: "));
    r = r < 0 ? r : json_write(json_cstr(a, card.description), JSON_COMPACT, &out, e);
    buf_add(&out, STR("\n---\n"));
    add_disarmed(&out, card.body);
    return r < 0 ? r : buf_append(ret, buf_str(&out), e);
}

int skill_prose_install(struct arena *a, const struct package *p, const char *name, int skills_fd,
                        struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(4 * SKILL_TEXT_MAX);
    const struct package_file *f = package_find(p, STR("SKILL.md"));
    if (f == NULL || !skill_name_ok(str_of(name))) {
        return ERR(e, ERR_CONFIG,
                   f == NULL ? "there is no SKILL.md in '%s'" : "'%s' is not a name for a skill",
                   name);
    }
    int r = skill_prose_write(a, f->content, arena_printf(a, "%s/SKILL.md", name), &text, e);
    if (r < 0) {
        return r;
    }
    return skill_install_package(package_with(a, p, f->name, arena_str(a, buf_str(&text))), name,
                                 skills_fd, false, e);
}

bool skill_prose_has_commands(struct arena *a, struct str text)
{
    struct skill_card card;
    if (skill_card_parse(a, text, "SKILL.md", &card, NULL) < 0) {
        return false;
    }
    bool found = json_get(card.all, "hooks") != NULL;
    for (size_t i = 0; !found && i < card.body.len; i++) {
        found = begins_command(card.body, i) || begins_block(card.body, i);
    }
    return found;
}
