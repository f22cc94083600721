/* SPDX-License-Identifier: MIT
 *
 * Sets, compiling, loading and the entry into a rendering.
 */
#include "template/template.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "template/template_render_priv.h"

static void set_default(size_t *limit, size_t otherwise)
{
    *limit = *limit == 0 ? otherwise : *limit;
}

struct template_set *template_set_new(const struct template_opts *opts)
{
    struct template_set *set = xcalloc(1, sizeof *set);
    set->arena = arena_new();
    if (opts != NULL) {
        set->loader = opts->loader;
        set->limits = opts->limits;
        set->undefined = opts->undefined;
        set->trim_blocks = opts->trim_blocks;
        set->lstrip_blocks = opts->lstrip_blocks;
        set->keep_trailing_newline = opts->keep_trailing_newline;
    }
    struct template_limits *l = &set->limits;
    set_default(&l->max_source, (size_t)1 << 20);
    set_default(&l->max_output, (size_t)16 << 20);
    set_default(&l->max_memory, (size_t)256 << 20);
    l->max_nesting = l->max_nesting == 0 ? 100 : l->max_nesting;
    l->max_calls = l->max_calls == 0 ? 64 : l->max_calls;
    l->max_rounds = l->max_rounds == 0 ? 1000000 : l->max_rounds;
    l->max_steps = l->max_steps == 0 ? 20000000 : l->max_steps;
    return set;
}

struct template_set *template_set_free(struct template_set *set)
{
    if (set != NULL) {
        while (set->loaded != NULL) {
            struct loaded *next = set->loaded->next;
            free(set->loaded);
            set->loaded = next;
        }
        while (set->captures_len > 0) {
            struct buf *b = set->captures[--set->captures_len];
            buf_done(b);
            free(b);
        }
        free(set->captures);
        (void)arena_free(set->spare);
        (void)arena_free(set->arena);
        free(set);
    }
    return NULL;
}

enum template_fault template_set_fault(const struct template_set *set)
{
    return set->fault;
}

static int compile(struct compile *c, struct str text, struct template *t)
{
    if (text.len > c->set->limits.max_source) {
        return tpl_compile_fail(c, TEMPLATE_FAULT_LIMIT, 1, "the template is larger than %zu bytes",
                                c->set->limits.max_source);
    }
    if (!str_is_utf8(text)) {
        return tpl_compile_fail(c, TEMPLATE_FAULT_SYNTAX, 1, "the template is not valid UTF-8");
    }
    struct arena *scratch = arena_new();
    struct token_list tokens;
    int r = template_lex(c, scratch, text, &tokens);
    r = r < 0 ? r : template_parse_tokens(c, &tokens, &t->body);
    (void)arena_free(scratch);
    return r < 0 ? r : template_resolve(c, t);
}

int template_parse(struct template_set *set, const char *name, struct str text,
                   const struct template **ret, struct err *e)
{
    struct err local;
    struct template *t = ARENA_NEW(set->arena, struct template);
    t->set = set;
    t->name = arena_dup(set->arena, str_of(name));
    struct compile c = { .set = set, .arena = set->arena, .name = t->name, .e = e ? e : &local };
    c.names.arena = set->arena;
    int r = compile(&c, text, t);
    tpl_name_table_done(&c.names);
    if (r == 0) {
        set->fault = TEMPLATE_FAULT_NONE;
        *ret = t;
    }
    return r;
}

int template_load(struct template_set *set, const char *name, const struct template **ret,
                  struct err *e)
{
    for (const struct loaded *l = set->loaded; l != NULL; l = l->next) {
        if (strcmp(l->name, name) == 0) {
            *ret = l->template;
            return 0;
        }
    }
    if (set->loader.read == NULL) {
        set->fault = TEMPLATE_FAULT_MISSING;
        return ERR(e, ERR_INPUT, "template '%s' not found: there is no directory to look in", name);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(set->limits.max_source);
    int r = set->loader.read(set->loader.self, name, &text, e);
    if (r < 0) {
        set->fault = r == -ERR_INPUT    ? TEMPLATE_FAULT_MISSING
                     : r == -ERR_DENIED ? TEMPLATE_FAULT_UNSAFE
                     : r == -ERR_LIMIT  ? TEMPLATE_FAULT_LIMIT
                                        : TEMPLATE_FAULT_VALUE;
        return r;
    }
    const struct template *t = NULL;
    r = template_parse(set, name, buf_str(&text), &t, e);
    if (r < 0) {
        return r;
    }
    struct loaded *l = xmalloc(sizeof *l + strlen(name) + 1);
    memcpy(l->name, name, strlen(name) + 1);
    l->template = t;
    l->next = set->loaded;
    set->loaded = l;
    *ret = t;
    return 0;
}

/* Gives memory back that only an unusual template needed. */
static void trim_captures(struct template_set *set)
{
    enum { KEEP_BYTES = 64 << 10, KEEP = 16 };
    for (size_t i = set->captures_used; i < set->captures_len; i++) {
        if (set->captures[i]->cap > KEEP_BYTES) {
            buf_done(set->captures[i]);
        }
    }
    while (set->captures_len > KEEP && set->captures_len > set->captures_used) {
        struct buf *b = set->captures[--set->captures_len];
        buf_done(b);
        free(b);
    }
}

static void render_done(struct render *r)
{
    trim_captures(r->set);
    arena_reset(r->arena);
    if (r->set->spare == NULL) {
        r->set->spare = r->arena;
    } else {
        (void)arena_free(r->arena);
    }
}

int template_render(const struct template *t, struct template_vars *vars, struct buf *out,
                    struct err *e)
{
    struct err local;
    struct context context = { .vars = vars };
    struct render r = { .set = t->set, .template = t, .e = e ? e : &local, .line = 1 };
    size_t before = out->len;
    size_t max = out->max;
    size_t captures = t->set->captures_used;
    r.arena = t->set->spare != NULL ? TAKE_PTR(t->set->spare) : arena_new();
    r.out = out;
    if (max > before && max - before > t->set->limits.max_output) {
        out->max = before + t->set->limits.max_output;
    }
    int rc = tpl_exec_template(&r, t, &context);
    out->max = max;
    if (rc < 0 && out->ptr != NULL) {
        out->len = before;
        out->ptr[before] = '\0';
    }
    t->set->captures_used = captures; /* a failure leaves some open */
    t->set->fault = rc < 0 ? t->set->fault : TEMPLATE_FAULT_NONE;
    render_done(&r);
    return rc;
}

/* --- files below a directory --- */

static int open_beneath(const struct template_dir *dir, const char *name, struct err *e)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    int fd = file_open_how(dir->dir_fd, name, &how);
    if (fd >= 0) {
        return fd;
    }
    if (errno == EXDEV || errno == ELOOP) {
        return ERR(e, ERR_DENIED, "template '%s' leads out of the directory", name);
    }
    return errno == ENOENT || errno == ENOTDIR ? ERR(e, ERR_INPUT, "template '%s' not found", name)
                                               : ERR_SYS(e, "open template '%s'", name);
}

static int read_all(int fd, const char *name, size_t max, struct buf *ret, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return ERR(e, ERR_INPUT, "template '%s' not found: it is no regular file", name);
    }
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? 0 : ERR_SYS(e, "read template '%s'", name);
        }
        if (ret->len + (size_t)n > max || buf_append(ret, str_n(chunk, (size_t)n), NULL) < 0) {
            return ERR(e, ERR_LIMIT, "template '%s' is too large", name);
        }
    }
}

static int read_beneath(void *self, const char *name, struct buf *ret, struct err *e)
{
    const struct template_dir *dir = self;
    struct str left = str_of(name);
    if (left.len == 0 || name[0] == '/') {
        return ERR(e, ERR_INPUT, "template '%s' not found: only relative names are", name);
    }
    while (left.ptr != NULL) {
        struct str part = str_split(&left, '/');
        if (str_eqc(part, "..")) {
            return ERR(e, ERR_INPUT, "template '%s' not found: '..' is not followed", name);
        }
    }
    CLEANUP(fd) int fd = open_beneath(dir, name, e);
    if (fd < 0) {
        int r = fd;
        fd = -1;
        return r;
    }
    return read_all(fd, name, dir->max, ret, e);
}

void template_dir_init(struct template_dir *dir, int dir_fd)
{
    *dir = (struct template_dir) { .dir_fd = dir_fd, .max = (size_t)1 << 20 };
    dir->loader = (struct template_loader) { read_beneath, dir };
}
