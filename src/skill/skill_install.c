/* SPDX-License-Identifier: MIT
 *
 * Writing a skill into a skills folder, once; see skill_install.h.
 */
#include "skill/skill_install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "skill/package.h"
#include "skill/skill.h"

enum { TEMP_LEN = SKILL_NAME_MAX + ID_LEN + 8 };

/* The package with its SKILL.md as it will be read. */
static int patched(struct arena *a, const struct skill *s, const struct skill_patch *patch,
                   const struct package **ret, struct err *e)
{
    const struct package_file *f = package_find(s->package, STR("SKILL.md"));
    if (s->manifest == NULL || f == NULL) {
        *ret = s->package;
        return 0;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = skill_patch_write(s, patch, f->content, &text, e);
    if (r == 0) {
        *ret = package_with(a, s->package, f->name, arena_str(a, buf_str(&text)));
    }
    return r;
}

/* Whether the folder holds exactly this already. */
static bool is_installed(struct arena *a, const struct package *p, int skills_fd, const char *name)
{
    CLEANUP(fd)
    int fd = openat(skills_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct package *there = NULL;
    return fd >= 0 && package_read_dir(a, fd, name, NULL, &there, NULL) == 0 &&
           there->skipped == 0 && package_equal(p, there);
}

static int write_beside(const struct package *p, int skills_fd, const char *temp, struct err *e)
{
    if (mkdirat(skills_fd, temp, 0755) < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s' in the skills folder", temp);
    }
    CLEANUP(fd)
    int fd = openat(skills_fd, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s' in the skills folder", temp);
    }
    return package_write(p, fd, e);
}

static int move_in(int skills_fd, const char *temp, const char *name, struct err *e)
{
    if (renameat2(skills_fd, temp, skills_fd, name, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    return errno == EEXIST ? ERR(e, ERR_EXISTS, "another skill '%s' is installed already", name)
                           : ERR_SYS_AS(e, ERR_OUTPUT, "install skill '%s'", name);
}

int skill_install_package(const struct package *p, const char *name, int skills_fd, bool replace,
                          struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    if (is_installed(a, p, skills_fd, name)) {
        return 0;
    }
    char id[ID_LEN];
    char temp[TEMP_LEN];
    (void)snprintf(temp, sizeof temp, ".%s.%s", name, id_new(id));
    int r = write_beside(p, skills_fd, temp, e);
    if (r == 0 && replace) {
        r = file_remove_tree(skills_fd, name, e);
    }
    if (r == 0) {
        r = move_in(skills_fd, temp, name, e);
    }
    if (r < 0) {
        int left = file_remove_tree(skills_fd, temp, NULL); /* the first error is the one to tell */
        (void)left;
        if (e != NULL && e->code != ERR_EXISTS) {
            (void)err_wrap(e, "skill '%s'", name);
        }
    }
    return r;
}

int skill_install(const struct skill *s, int skills_fd, const struct skill_install_opts *o,
                  struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct package *p = NULL;
    int r = patched(a, s, &o->patch, &p, e);
    return r < 0 ? r : skill_install_package(p, s->name, skills_fd, o->replace, e);
}
