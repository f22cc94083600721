/* SPDX-License-Identifier: MIT
 *
 * cinch images: the cache of unpacked images.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/text.h"
#include "image/cache.h"

static const char *const actions[] = { "list", "prune", NULL };

static const struct option options[] = {
    { "older-than", 0, OPTION_DURATION, .value = "TIME",
      .help = "prune only images that were last used more than TIME ago (24h, 720h)" },
    { "dry-run", 0, OPTION_FLAG, .help = "show what would be removed, and remove nothing" },
    { 0 },
};

static const struct positional positionals[] = {
    { "ACTION", "list (default), or prune: remove images from the cache", .optional = true,
      .complete = COMPLETE_WORDS, .words = actions },
    { 0 },
};

struct listing {
    struct cli *cli;
    struct table table;
    struct json *list;
    const char *cache;
    bool prune;
    bool dry_run;
    nsec before; /* only what was used earlier; wall clock */
    int64_t freed;
};

static void add_row(struct listing *l, const struct image_item *item, bool removed)
{
    struct arena *a = l->cli->arena;
    char size[TEXT_SHORT];
    const char *name = json_cstring(json_get(item->image.about, "reference"), "");
    const char *id = arena_dup(a, str_n(item->image.id, 12));
    const char *state = item->busy              ? "in use"
                        : !removed && l->prune  ? "kept"
                        : removed && l->dry_run ? "would be removed"
                        : removed               ? "removed"
                                                : "";
    table_cell(&l->table, STYLE_NAME, id);
    table_cell(&l->table, STYLE_PLAIN, name);
    table_cell(&l->table, STYLE_PLAIN, text_bytes((uint64_t)item->bytes, size));
    table_cell(&l->table, STYLE_PLAIN, state);
    struct json *o = json_object(a);
    json_setc(a, o, "id", json_cstr(a, item->image.id));
    json_setc(a, o, "reference", json_cstr(a, name));
    const struct json *build = json_get(item->image.about, "build");
    json_setc(a, o, "build", build == NULL ? json_null(a) : json_copy(a, build));
    json_setc(a, o, "bytes", json_integer(a, item->bytes));
    json_setc(a, o, "used", json_integer(a, item->used / NSEC_PER_SEC));
    json_setc(a, o, "in_use", json_boolean(a, item->busy));
    json_setc(a, o, "removed", json_boolean(a, removed && !l->dry_run));
    json_push(a, l->list, o);
}

static int take(struct listing *l, const struct image_item *item, struct err *e)
{
    bool remove = l->prune && !item->busy && item->used < l->before;
    int r = remove && !l->dry_run ? image_remove(l->cli->arena, l->cache, item, e) : 0;
    if (r < 0) {
        return r;
    }
    remove = remove && r == 0; /* a run may have come to use it */
    l->freed += remove ? item->bytes : 0;
    add_row(l, item, remove);
    return 0;
}

static void print(struct listing *l)
{
    struct cli *cli = l->cli;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    char size[TEXT_SHORT];
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "directory", json_cstr(cli->arena, l->cache));
        json_setc(cli->arena, o, "freed_bytes", json_integer(cli->arena, l->freed));
        json_setc(cli->arena, o, "images", l->list);
        cli_print_json(cli, o);
        return;
    }
    for (size_t i = 0; cli->format == CLI_QUIET && i < json_len(l->list); i++) {
        buf_addf(&out, "%s\n", json_cstring(json_get(json_item(l->list, i), "id"), ""));
    }
    if (cli->format == CLI_TEXT && json_len(l->list) > 0) {
        table_write(&l->table, terminal_text_width(&cli->out), cli->out.color, &out);
    }
    if (cli->format == CLI_TEXT && l->prune) {
        buf_addf(&out, "%s %s\n", text_bytes((uint64_t)l->freed, size),
                 l->dry_run ? "could be freed" : "freed");
    }
    cli_print(cli, &out);
}

static int run_images(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *action = options_arg_count(opt) > 0 ? options_arg(opt, 0) : "list";
    nsec age = options_duration(opt, "older-than", 0);
    struct image_item *items = NULL;
    size_t n = 0;
    struct listing l = {
        .cli = cli,
        .cache = image_cache_dir(cli->arena),
        .prune = strcmp(action, "prune") == 0,
        .dry_run = options_flag(opt, "dry-run", false),
        .before = age > 0 ? clock_wall() - age : INT64_MAX,
        .list = json_array(cli->arena),
        .table = { .arena = cli->arena,
                   .head = true,
                   .columns = { { "image" }, { "reference" }, { "size", .right = true }, { "" } } },
    };
    if (!l.prune && strcmp(action, "list") != 0) {
        return ERR(e, ERR_USAGE, "unknown action '%s': list or prune", action);
    }
    if (l.cache == NULL) {
        return ERR(e, ERR_CONFIG, "there is no cache: set HOME or XDG_CACHE_HOME");
    }
    int r = image_list(cli->arena, l.cache, &items, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = take(&l, &items[i], e);
    }
    if (r == 0 && l.prune && !l.dry_run) {
        r = image_prune_runtime(cli->arena, l.cache, l.before, e);
        r = r < 0 ? r : image_prune_builds(cli->arena, l.cache, l.before, e);
    }
    if (r == 0) {
        print(&l);
    }
    return r;
}

static const char *const usage[] = { "[list]", "prune [--older-than TIME] [--dry-run]", NULL };

static const char *const description[] = {
    "Images that runs use with --image are unpacked once into a cache; so are images that were "
    "built for a run (--image-build), listed as BASE + ADAPTER. This command lists them, "
    "or removes them together with the copies of programs that were made for them. Images that a "
    "run is using are kept; an image that is needed again is unpacked again.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch images", "list the images in the cache" },
    { "cinch images prune --older-than 720h", "remove those that were not used for a month" },
    { 0 },
};

const struct command cmd_images = {
    .name = "images",
    .minor = true,
    .summary = "list and prune unpacked images",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_images,
};
