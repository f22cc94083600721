/* SPDX-License-Identifier: MIT
 *
 * Reading and comparing the versions of harness programs; see version.h.
 */
#include "adapters/version.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "adapters/profile.h"
#include "base/file.h"

/* A version is shown in tables and file names. */
enum { VERSION_LONGEST = 60 };
/* package.json of a program is small; a larger one is not read. */
#define PACKAGE_MAX ((size_t)1 << 20)
/* bin/ or dist/ of a package, and what bundlers put between. */
enum { LEVELS_MAX = 5 };
/* Entries of site-packages. */
enum { ENTRIES_MAX = 20000 };

/* --- comparing --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct str strip_zeros(struct str digits)
{
    while (digits.len > 1 && digits.ptr[0] == '0') {
        digits = str_slice(digits, 1, digits.len);
    }
    return digits;
}

/* Of any length, so by length first. */
static int compare_numbers(struct str a, struct str b)
{
    a = strip_zeros(a);
    b = strip_zeros(b);
    return a.len != b.len ? (a.len < b.len ? -1 : 1) : str_cmp(a, b);
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) {
            return false;
        }
    }
    return s.len > 0;
}

static int compare_words(struct str a, struct str b)
{
    bool number_a = is_number(a);
    bool number_b = is_number(b);
    if (number_a && number_b) {
        return compare_numbers(a, b);
    }
    return number_a != number_b ? (number_a ? -1 : 1) : str_cmp(a, b);
}

/* Dotted words. `filler` stands for those that are missing. */
static int compare_dotted(struct str a, struct str b, struct str filler)
{
    int d = 0;
    while (d == 0 && (a.len > 0 || b.len > 0)) {
        struct str x = a.len > 0 ? str_split(&a, '.') : filler;
        struct str y = b.len > 0 ? str_split(&b, '.') : filler;
        d = compare_words(x, y);
    }
    return d;
}

struct version {
    struct str release, pre;
};

static struct version parse(struct str text)
{
    struct str rest = str_trim(text);
    rest = rest.len > 1 && rest.ptr[0] == 'v' ? str_slice(rest, 1, rest.len) : rest;
    rest = str_split(&rest, '+');
    struct version v = { .release = str_split(&rest, '-') };
    v.pre = rest.ptr == NULL ? STR_EMPTY : rest;
    return v;
}

int version_compare(struct str a, struct str b)
{
    struct version x = parse(a);
    struct version y = parse(b);
    int d = compare_dotted(x.release, y.release, STR("0"));
    if (d != 0 || (x.pre.len == 0 && y.pre.len == 0)) {
        return d;
    }
    if (x.pre.len == 0 || y.pre.len == 0) {
        return x.pre.len == 0 ? 1 : -1;
    }
    return compare_dotted(x.pre, y.pre, STR_EMPTY);
}

/* "0.24.4" belongs to "0.24". */
static bool belongs_to(struct str version, struct str bound)
{
    return str_starts(version, bound) && version.len > bound.len && version.ptr[bound.len] == '.';
}

bool version_within(struct str version, const char *since, const char *until)
{
    bool late = since == NULL || version_compare(version, str_of(since)) >= 0;
    return late && (until == NULL || version_compare(version, str_of(until)) <= 0 ||
                    belongs_to(version, str_of(until)));
}

/* --- what is installed --- */

static const char *clean(struct arena *a, struct str version)
{
    char *text = arena_dup(a, str_slice(version, 0, VERSION_LONGEST));
    size_t len = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p > ' ' && *p <= '~') {
            text[len++] = *p;
        }
    }
    text[len] = '\0';
    return text;
}

const char *version_of_output(struct arena *a, struct str output)
{
    struct str rest = str_trim(output);
    struct str line = str_trim(str_split(&rest, '\n'));
    for (struct str words = line; words.len > 0;) {
        struct str word = str_split(&words, ' ');
        size_t v = word.len > 1 && word.ptr[0] == 'v' ? 1 : 0;
        if (word.len > v && is_digit(word.ptr[v])) {
            line = str_slice(word, v, word.len);
            break;
        }
    }
    return clean(a, line);
}

/* NULL: it is no package, or another one than `name`. */
static const char *read_package(struct arena *a, const char *dir, const char *name)
{
    static const struct json_limits limits = { .max_bytes = PACKAGE_MAX, .max_depth = 32 };
    CLEANUP(buf) struct buf text = BUF_INIT(PACKAGE_MAX);
    char path[PATH_MAX];
    struct json *doc;
    if (path_join(dir, "package.json", path, sizeof path, NULL) < 0 ||
        file_read(AT_FDCWD, path, PACKAGE_MAX, &text, NULL) < 0 ||
        json_parse(a, buf_str(&text), &limits, &doc, NULL) < 0) {
        return NULL;
    }
    struct str version = json_str(json_get(doc, "version"), STR_EMPTY);
    struct str found = json_str(json_get(doc, "name"), STR_EMPTY);
    /* A folder of a package may have a package.json of its own, and a project that has no program
     * may be around it. */
    bool wanted =
        found.len > 0 && json_get(doc, "bin") != NULL && (name == NULL || str_eqc(found, name));
    return wanted && version.len > 0 ? clean(a, version) : NULL;
}

static const char *find_package(struct arena *a, const char *program, const char *name)
{
    char dir[PATH_MAX];
    if (realpath(program, dir) == NULL) {
        return NULL;
    }
    const char *found = NULL;
    for (int i = 0; found == NULL && i < LEVELS_MAX; i++) {
        char *slash = strrchr(dir, '/');
        if (slash == NULL || slash == dir) {
            return NULL;
        }
        *slash = '\0';
        found = read_package(a, dir, name);
        if (str_ends(str_of(dir), STR("/node_modules"))) {
            break; /* above it are packages of others */
        }
    }
    return found;
}

/* As in the names of *.dist-info: "fast-agent" is "fast_agent" there. */
static bool is_same_package(struct str a, struct str b)
{
    for (size_t i = 0; i < a.len && a.len == b.len; i++) {
        char x = strchr("-_.", a.ptr[i]) != NULL ? '_' : (char)(a.ptr[i] | 0x20);
        char y = strchr("-_.", b.ptr[i]) != NULL ? '_' : (char)(b.ptr[i] | 0x20);
        if (x != y) {
            return false;
        }
    }
    return a.len == b.len;
}

static const char *search_site(struct arena *a, const char *dir, const char *package)
{
    DIR *d = opendir(dir);
    const char *found = NULL;
    struct dirent *entry;
    for (int n = 0; d != NULL && found == NULL && n < ENTRIES_MAX; n++) {
        entry = readdir(d);
        if (entry == NULL) {
            break;
        }
        struct str name = str_of(entry->d_name);
        if (str_ends(name, STR(".dist-info"))) {
            struct str rest = str_slice(name, 0, name.len - strlen(".dist-info"));
            struct str of = str_split(&rest, '-');
            found = is_same_package(of, str_of(package)) && rest.len > 0 ? clean(a, rest) : NULL;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return found;
}

/* ENV/bin/PROGRAM and ENV/lib/python3.N/site-packages. */
static const char *find_distribution(struct arena *a, const char *program, const char *package)
{
    struct str dir =
        str_slice(str_of(program), 0, strlen(program) - path_base(str_of(program)).len);
    const char *lib = arena_printf(a, "%.*s../lib", STR_ARG(dir));
    DIR *d = opendir(lib);
    const char *found = NULL;
    for (struct dirent *entry = d == NULL ? NULL : readdir(d); entry != NULL && found == NULL;
         entry = readdir(d)) {
        if (str_starts(str_of(entry->d_name), STR("python3"))) {
            const char *site = arena_printf(a, "%s/%s/site-packages", lib, entry->d_name);
            found = search_site(a, site, package);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return found;
}

const char *version_installed(struct arena *a, const char *program, const char *package)
{
    const char *found = find_package(a, program, package);
    if (found != NULL || package == NULL) {
        return found;
    }
    char real[PATH_MAX];
    found = find_distribution(a, program, package);
    return found != NULL || realpath(program, real) == NULL
               ? found
               : find_distribution(a, arena_dup(a, str_of(real)), package);
}

const char *version_of_program(struct arena *a, const struct profile *p, const char *program)
{
    return p->version_command != NULL ? NULL : version_installed(a, program, p->version_package);
}

/* --- what is tested --- */

bool version_is_tested(const struct profile *p, const char *version)
{
    return p->tested_until != NULL &&
           version_within(str_of(version), p->tested_since, p->tested_until);
}

const char *version_tested(struct arena *a, const struct profile *p)
{
    if (p->tested_until == NULL || strcmp(p->tested_since, p->tested_until) == 0) {
        return p->tested_until;
    }
    return arena_printf(a, "%s to %s", p->tested_since, p->tested_until);
}

const char *version_warning(struct arena *a, const struct profile *p, const char *version)
{
    bool known = version != NULL && version[0] != '\0' && p->tested_until != NULL;
    return !known || version_is_tested(p, version)
               ? NULL
               : arena_printf(a,
                              "%s %s has not been tested with this adapter (tested: %s); to test "
                              "it: cinch ack -a %s --tier 1 --tier 2",
                              p->name, version, version_tested(a, p), p->name);
}
