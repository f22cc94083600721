/* SPDX-License-Identifier: MIT
 *
 * The file contract in the kit; see contract.h.
 */
#include "ack/contract_scenarios.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/driver.h"
#include "base/file.h"

/* Whoever asks gets an answer, as often as he likes. */
static const char model_script[] = "otherwise: {say: Done.}\n";

enum { ARGS_MAX = 96, VERSION_LONGEST = 60 };

bool contract_applies(const struct profile *p)
{
    return driver_is_kind(p, DRIVER_CONTRACT);
}

/* --- scenarios --- */

void contract_scenarios(struct arena *a, struct scenario_list *list)
{
    static const struct scenario all[] = {
#define X(id, what, meaning) \
    { .name = "contract_" what, .summary = meaning, .tier = TIER_SPECIFIC, .contract = what },
        CONTRACT_CHECKS(X)
#undef X
    };
    const struct scenario **items = arena_array(a, list->len + ARRAY_LEN(all), sizeof *items);
    if (list->len > 0) {
        memcpy(items, list->items, list->len * sizeof *items);
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        items[list->len++] = &all[i];
    }
    list->items = items;
}

/* --- runs --- */

int contract_prepare(struct arena *a, const struct kit_opts *o, const struct kit_adapter *adapter,
                     const char *dir, struct contract_opts *ret, struct err *e)
{
    const char *home = arena_printf(a, "%s/home", dir);
    const char *script = arena_printf(a, "%s/model.yaml", dir);
    const char **args = arena_array(a, ARGS_MAX + 3, sizeof *args);
    const struct scenario_run_opts opts = { .adapter = adapter->profile,
                                            .live = o->live,
                                            .environ = o->environ };
    size_t n = 0;
    for (size_t i = 0; o->adapter_dirs != NULL && o->adapter_dirs[i] != NULL && n < ARGS_MAX; i++) {
        args[n++] = "--adapter-dir";
        args[n++] = o->adapter_dirs[i];
    }
    for (size_t i = 0; o->reads != NULL && o->reads[i] != NULL && n < ARGS_MAX; i++) {
        args[n++] = "--read";
        args[n++] = o->reads[i];
    }
    if (!o->live) {
        args[n++] = "--script";
        args[n++] = script;
    }
    *ret = (struct contract_opts) {
        .adapter = adapter->name,
        .dir = arena_printf(a, "%s/runs", dir),
        .environ = scenario_run_environment(a, &opts, home),
        .args = args,
        .secrets = o->secrets,
        .timeout = o->timeout,
    };
    int r = file_mkdirs(AT_FDCWD, home, 0700, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, ret->dir, 0700, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, script, STR(model_script), 0600, e);
}

/* --- what it declares --- */

/* The profile is that of the program itself, not a copy of the one for all such programs. */
static bool declares_by_profile(const struct profile *p)
{
    return str_eqc(json_str(json_get(p->doc, "name"), STR_EMPTY), p->name);
}

static int take_manifest(struct arena *a, struct kit_adapter *adapter, const struct json *manifest,
                         struct err *e)
{
    const struct json *metadata = json_get(manifest, "metadata");
    const struct json *declared = json_get(metadata, "capabilities");
    struct json *lacks = json_object(a);
    struct profile *p = ARENA_NEW(a, struct profile);
    *p = *adapter->profile;
    json_setc(a, lacks, "otherwise",
              json_cstr(a, declared != NULL
                               ? "the adapter does not declare it"
                               : "the adapter declares nothing: its manifest of --probe has no "
                                 "metadata.capabilities"));
    const char *version = json_cstring(json_get(metadata, "version"), "");
    adapter->version = arena_dup(a, str_slice(str_of(version), 0, VERSION_LONGEST));
    adapter->profile = p;
    const struct json *list = declared != NULL ? declared : json_array(a);
    int r =
        capability_read(list, lacks, "metadata.capabilities of its manifest", &p->capabilities, e);
    return r < 0 ? err_wrap(e, "adapter '%s'", adapter->name) : 0;
}

static int ask(struct arena *a, struct kit_adapter *adapter, const struct kit_opts *o,
               const char *dir, struct contract_watch watch, struct err *e)
{
    struct contract_opts opts;
    const struct json *manifest = NULL;
    int r = contract_prepare(a, o, adapter, dir, &opts, e);
    opts.watch = watch;
    r = r < 0 ? r : contract_probe(a, &opts, &manifest, e);
    return r < 0 || declares_by_profile(adapter->profile) ? r
                                                          : take_manifest(a, adapter, manifest, e);
}

int contract_declare(struct arena *a, struct kit_adapter *adapter, const struct kit_opts *o,
                     struct contract_watch watch, struct err *e)
{
    const char *base = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/cinch-ack-probe-XXXXXX",
                             base != NULL && base[0] == '/' ? base : "/tmp");
    if (!contract_applies(adapter->profile)) {
        return 0;
    }
    if (!adapter->available) {
        bool named = !declares_by_profile(adapter->profile);
        return named ? ERR(e, ERR_UNAVAILABLE, "adapter '%s': %s", adapter->name, adapter->why_not)
                     : 0;
    }
    if (mkdtemp(dir) == NULL) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "make '%s'", dir);
    }
    int r = ask(a, adapter, o, dir, watch, e);
    int gone = file_remove_tree(AT_FDCWD, dir, r < 0 ? NULL : e);
    return r < 0 ? r : gone;
}
