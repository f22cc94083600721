/* SPDX-License-Identifier: MIT
 *
 * The lines of a plan, one function each.
 */
#include "sandbox/compose_priv.h"

#include <sys/stat.h>

void draft_number(struct draft *d, enum plan_op op, uint32_t number)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_number(d->b, op, number, d->e);
}

void draft_text(struct draft *d, enum plan_op op, const char *text)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_text(d->b, op, text, d->e);
}

static void add(struct draft *d, enum plan_op op, const struct plan_paths *p, const char *from,
                const char *to)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_paths(d->b, op, p, from, to, d->e);
}

/* As root the directory has to be handed to the program; a user's is the program's already. */
void draft_dir(struct draft *d, const char *to, uint32_t mode, bool give)
{
    struct plan_paths p = { .mode = mode };
    if (give && d->c->who.root) {
        p.host_uid = d->c->who.uid;
        p.host_gid = d->c->who.gid;
    }
    add(d, PLAN_OP_DIR, &p, NULL, to);
}

void draft_symlink(struct draft *d, const char *from, const char *to)
{
    draft_paths(d, PLAN_OP_SYMLINK, from, to, 0);
}

void draft_file(struct draft *d, const char *to, const char *text)
{
    d->rc = d->rc < 0 ? d->rc : plan_add_file(d->b, to, 0644, str_of(text), d->e);
}

void draft_paths(struct draft *d, enum plan_op op, const char *from, const char *to, uint32_t flags)
{
    add(d, op, &(struct plan_paths) { .flags = flags }, from, to);
}

void draft_bind(struct draft *d, const char *from, const char *to, uint32_t flags)
{
    draft_paths(d, PLAN_OP_BIND, from, to, flags);
}

static void bind_shown(struct draft *d, const char *from, const char *to, uint32_t flags,
                       bool no_group)
{
    struct plan_paths p = { .flags = flags };
    struct stat st;
    bool shift = d->c->who.root && !compose_without(d->c, SANDBOX_IDENTITY);
    if (shift && stat(from, &st) == 0) {
        p.flags |= (flags & PLAN_WRITABLE) != 0 ? PLAN_SHIFT : PLAN_SHIFT_TRY;
        p.uid = st.st_uid;
        p.gid = no_group ? PLAN_NO_GROUP : st.st_gid;
        p.host_uid = d->c->who.uid;
        p.host_gid = no_group ? PLAN_NO_GROUP : d->c->who.gid;
    }
    add(d, PLAN_OP_BIND, &p, from, to);
}

void draft_bind_shown(struct draft *d, const char *from, const char *to, uint32_t flags)
{
    bind_shown(d, from, to, flags, false);
}

void draft_bind_read(struct draft *d, const char *from, const char *to, uint32_t flags)
{
    bind_shown(d, from, to, flags, true);
}
