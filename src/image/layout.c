/* SPDX-License-Identifier: MIT
 *
 * OCI image layout 1.0 (index.json, blobs/) and docker archives (manifest.json).
 */
#include "image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"

enum { INDEX_DEPTH = 4 /* an index may name an index */ };

const char *layout_architecture(void)
{
    static const char *const known[][2] = {
        { "x86_64", "amd64" },    { "aarch64", "arm64" },   { "armv7l", "arm" },
        { "i686", "386" },        { "ppc64le", "ppc64le" }, { "s390x", "s390x" },
        { "riscv64", "riscv64" },
    };
    struct utsname u;
    if (uname(&u) != 0) {
        return "unknown";
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(u.machine, known[i][0]) == 0) {
            return known[i][1];
        }
    }
    return "unknown";
}

/* --- files --- */

static int read_file(int dir, const char *path, struct buf *out, struct err *e)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    struct stat st;
    CLEANUP(fd) int fd = file_open_how(dir, path, &how);
    if (fd < 0 || fstat(fd, &st) != 0) {
        return ERR_SYS_AS(e, errno == ENOENT ? ERR_INPUT : ERR_PARSE, "'%s' of the image", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_PARSE, "'%s' of the image is not a file", path);
    }
    int r = file_read_fd(fd, path, LAYOUT_JSON_MAX, out, e);
    return r == -ERR_LIMIT ? ERR(e, ERR_PARSE, "'%s' of the image has more than %zu bytes", path,
                                 LAYOUT_JSON_MAX)
                           : r;
}

static int parse(struct arena *a, struct str text, const char *what, struct json **ret,
                 struct err *e)
{
    struct json_limits limits = { .max_bytes = LAYOUT_JSON_MAX,
                                  .max_depth = 64,
                                  .max_values = 100000 };
    int r = json_parse(a, text, &limits, ret, e);
    if (r < 0) {
        (void)err_wrap(e, "%s", what);
        return e == NULL ? -ERR_PARSE : ERR(e, ERR_PARSE, "%.400s", arena_dup(a, str_of(e->msg)));
    }
    return 0;
}

/* "sha256:HEX" → HEX; NULL: it is none. */
static const char *digest_of(const struct json *v)
{
    const char *text = json_cstring(v, "");
    bool good = strncmp(text, "sha256:", 7) == 0 && sha256_is_hex(str_of(text + 7));
    return good ? text + 7 : NULL;
}

/* A blob whose content is what its name says. */
static int read_blob(struct arena *a, int dir, const char *digest, struct buf *out, struct err *e)
{
    char real[SHA256_HEX];
    int r = read_file(dir, arena_printf(a, "blobs/sha256/%s", digest), out, e);
    if (r < 0) {
        return r == -ERR_INPUT ? ERR(e, ERR_PARSE, "the image lacks blob sha256:%s", digest) : r;
    }
    sha256_hex(buf_str(out), real);
    return strcmp(real, digest) == 0 ? 0
                                     : ERR(e, ERR_PARSE,
                                           "blob sha256:%s of the image is damaged: its content "
                                           "has digest sha256:%s",
                                           digest, real);
}

/* --- configuration --- */

static int check_platform(const struct json *config, const struct layout_want *want, struct err *e)
{
    const char *os = json_cstring(json_get(config, "os"), "linux");
    const char *arch = json_cstring(json_get(config, "architecture"), want->architecture);
    if (strcmp(os, "linux") != 0 || strcmp(arch, want->architecture) != 0) {
        return ERR(e, ERR_UNSUPPORTED, "the image is for %s/%s, and this machine is linux/%s", os,
                   arch, want->architecture);
    }
    return 0;
}

int layout_take_config(struct arena *a, struct str text, const struct layout_want *want,
                       struct layout_image *ret, struct err *e)
{
    char id[SHA256_HEX];
    struct json *config = NULL;
    int r = parse(a, text, "configuration of the image", &config, e);
    if (r < 0) {
        return r;
    }
    const struct json *ids = json_get(json_get(config, "rootfs"), "diff_ids");
    if (!json_is(config, JSON_OBJECT) || json_len(ids) != ret->n_layers) {
        return ERR(e, ERR_PARSE,
                   "the configuration of the image names %zu layers, its manifest %zu",
                   json_len(ids), ret->n_layers);
    }
    for (size_t i = 0; i < ret->n_layers; i++) {
        ret->layers[i].diff_id = digest_of(json_item(ids, i));
        if (ret->layers[i].diff_id == NULL) {
            return ERR(e, ERR_PARSE, "layer %zu of the image has no SHA-256 digest", i);
        }
    }
    sha256_hex(text, id);
    ret->id = arena_dup(a, str_of(id));
    ret->config = config;
    if (want->digest != NULL && strcmp(want->digest, id) != 0 &&
        (ret->manifest == NULL || strcmp(want->digest, ret->manifest) != 0)) {
        return ERR(e, ERR_PARSE, "the image has id sha256:%s%s%s, not sha256:%s", id,
                   ret->manifest == NULL ? "" : " and manifest sha256:",
                   ret->manifest == NULL ? "" : ret->manifest, want->digest);
    }
    return check_platform(config, want, e);
}

/* --- OCI --- */

int layout_take_manifest(struct arena *a, struct str text, struct layout_image *ret,
                         const char **ret_config, struct err *e)
{
    struct json *manifest = NULL;
    int r = parse(a, text, "manifest of the image", &manifest, e);
    if (r < 0) {
        return r;
    }
    const struct json *layers = json_get(manifest, "layers");
    *ret_config = digest_of(json_get(json_get(manifest, "config"), "digest"));
    ret->n_layers = json_len(layers);
    if (*ret_config == NULL || !json_is(layers, JSON_ARRAY) || ret->n_layers > LAYOUT_LAYERS_MAX) {
        return ERR(e, ERR_PARSE, "the manifest of the image has no configuration, or %zu layers",
                   ret->n_layers);
    }
    ret->layers = arena_array(a, ret->n_layers + 1, sizeof *ret->layers);
    for (size_t i = 0; i < ret->n_layers; i++) {
        const char *digest = digest_of(json_get(json_item(layers, i), "digest"));
        if (digest == NULL) {
            return ERR(e, ERR_PARSE, "layer %zu of the image has no SHA-256 digest", i);
        }
        ret->layers[i] = (struct layout_layer) { .path = arena_printf(a, "blobs/sha256/%s", digest),
                                                 .digest = digest };
    }
    return 0;
}

static int rate(const struct json *entry, const struct layout_want *want)
{
    const char *name = json_cstring(
        json_get(json_get(entry, "annotations"), "org.opencontainers.image.ref.name"), NULL);
    const char *arch = json_cstring(json_get(json_get(entry, "platform"), "architecture"), NULL);
    const char *digest = digest_of(json_get(entry, "digest"));
    bool attestation = arch != NULL && strcmp(arch, "unknown") == 0;
    if (digest == NULL || attestation ||
        (want->name != NULL && (name == NULL || strcmp(name, want->name) != 0))) {
        return 0;
    }
    bool wanted = want->digest != NULL && strcmp(want->digest, digest) == 0;
    return wanted ? 3 : arch != NULL && strcmp(arch, want->architecture) == 0 ? 2 : 1;
}

/* The best of an index; an error where several are as good. */
static int choose(const struct json *index, const struct layout_want *want, const struct json **ret,
                  struct err *e)
{
    const struct json *list = json_get(index, "manifests");
    int best = 0;
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        int rating = rate(json_item(list, i), want);
        n = rating > best ? 1 : n + (rating > 0 && rating == best ? 1 : 0);
        *ret = rating > best ? json_item(list, i) : *ret;
        best = rating > best ? rating : best;
    }
    if (best == 0) {
        return ERR(e, ERR_INPUT, "no image%s%s in it", want->name == NULL ? "" : " ",
                   want->name == NULL ? "" : want->name);
    }
    return n == 1 ? 0 : ERR(e, ERR_INPUT, "%zu images in it: name one, as in ARCHIVE:NAME", n);
}

static int open_oci(struct arena *a, int dir, const struct layout_want *want,
                    struct layout_image *ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(LAYOUT_JSON_MAX);
    struct layout_want inner = *want;
    const char *config = NULL;
    int r = read_file(dir, "index.json", &text, e);
    for (int depth = 0; r == 0; depth++) {
        struct json *index = NULL;
        const struct json *entry = NULL;
        r = parse(a, buf_str(&text), "index of the image", &index, e);
        if (r < 0 || json_get(index, "manifests") == NULL) {
            break; /* it is the manifest */
        }
        r = depth == INDEX_DEPTH ? ERR(e, ERR_PARSE, "more than %d indexes in each other", depth)
                                 : choose(index, &inner, &entry, e);
        if (r == 0) {
            ret->manifest = digest_of(json_get(entry, "digest"));
            inner.name = NULL; /* only the outermost has names */
            buf_reset(&text);
            r = read_blob(a, dir, ret->manifest, &text, e);
        }
    }
    r = r < 0 ? r : layout_take_manifest(a, buf_str(&text), ret, &config, e);
    buf_reset(&text);
    r = r < 0 ? r : read_blob(a, dir, config, &text, e);
    return r < 0 ? r : layout_take_config(a, buf_str(&text), want, ret, e);
}

/* --- docker --- */

static bool has_tag(const struct json *entry, const char *name)
{
    const struct json *tags = json_get(entry, "RepoTags");
    for (size_t i = 0; i < json_len(tags); i++) {
        if (strcmp(json_cstring(json_item(tags, i), ""), name) == 0) {
            return true;
        }
    }
    return false;
}

static int choose_docker(const struct json *list, const struct layout_want *want,
                         const struct json **ret, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        if (want->name == NULL || has_tag(json_item(list, i), want->name)) {
            *ret = json_item(list, i);
            n++;
        }
    }
    return n == 1 ? 0
                  : ERR(e, ERR_INPUT, "%zu images in it%s: name one, as in ARCHIVE:NAME", n,
                        want->name == NULL ? "" : " of that name");
}

/* Opened below the layout only; what is checked here is that it can be opened at all. */
static const char *member(const struct json *v)
{
    struct str s = json_str(v, STR_EMPTY);
    bool good = s.len > 0 && s.len < 4096 && s.ptr[0] != '/' && !str_has_nul(s);
    return good ? s.ptr : NULL;
}

static int open_docker(struct arena *a, int dir, const struct layout_want *want,
                       struct layout_image *ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(LAYOUT_JSON_MAX);
    struct json *list = NULL;
    const struct json *entry = NULL;
    int r = read_file(dir, "manifest.json", &text, e);
    r = r < 0 ? r : parse(a, buf_str(&text), "manifest.json of the image", &list, e);
    r = r < 0 ? r : choose_docker(list, want, &entry, e);
    if (r < 0) {
        return r;
    }
    const struct json *layers = json_get(entry, "Layers");
    const char *config = member(json_get(entry, "Config"));
    ret->n_layers = json_len(layers);
    if (config == NULL || ret->n_layers > LAYOUT_LAYERS_MAX) {
        return ERR(e, ERR_PARSE, "manifest.json of the image has no configuration, or %zu layers",
                   ret->n_layers);
    }
    ret->layers = arena_array(a, ret->n_layers + 1, sizeof *ret->layers);
    for (size_t i = 0; i < ret->n_layers; i++) {
        ret->layers[i] = (struct layout_layer) { .path = member(json_item(layers, i)) };
        if (ret->layers[i].path == NULL) {
            return ERR(e, ERR_PARSE, "layer %zu of the image has no file", i);
        }
    }
    buf_reset(&text);
    r = read_file(dir, config, &text, e);
    return r < 0 ? r : layout_take_config(a, buf_str(&text), want, ret, e);
}

int layout_open(struct arena *a, int dir, const struct layout_want *want, struct layout_image *ret,
                struct err *e)
{
    *ret = (struct layout_image) { 0 };
    if (file_exists(dir, "index.json")) {
        return open_oci(a, dir, want, ret, e);
    }
    if (file_exists(dir, "manifest.json")) {
        return open_docker(a, dir, want, ret, e);
    }
    return ERR(e, ERR_PARSE,
               "neither index.json (OCI) nor manifest.json (docker) in it: not an image");
}
