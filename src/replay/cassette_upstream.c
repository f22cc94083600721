/* SPDX-License-Identifier: MIT
 *
 * Recorded exchanges on the loop; see cassette_upstream.h.
 */
#include "replay/cassette_upstream.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "io/loop.h"

struct cassette_upstream {
    struct upstream base; /* first */
    struct loop *loop;
    struct cassette_replay *replay;
    double speed;
    bool preparing; /* posted */
    char *name;
};

static struct cassette_upstream *self(struct upstream *up)
{
    return (struct cassette_upstream *)up;
}

static nsec scale(nsec t, double speed)
{
    return speed <= 0 ? 0 : (nsec)((double)t / speed);
}

void cassette_playback(const struct cassette_exchange *x, double speed, struct playback *ret)
{
    nsec at = x->answered;
    struct playback_frame *frames = arena_array(ret->arena, x->n_frames + 1, sizeof *frames);
    ret->status = x->status;
    ret->delay = scale(at, speed);
    const struct json *fields = x->answer_fields;
    for (size_t i = 0; json_is(fields, JSON_OBJECT) && i < json_len(fields); i++) {
        const struct json_member *m = &fields->object.members[i];
        playback_field(ret, m->key, json_str(m->value, STR_EMPTY));
    }
    for (size_t i = 0; i < x->n_frames; i++) {
        nsec moment = x->frames[i].wait > at ? x->frames[i].wait : at;
        frames[i] = (struct playback_frame) { scale(moment - at, speed), x->frames[i].bytes };
        at = moment;
    }
    ret->frames = frames;
    ret->n_frames = x->n_frames;
    ret->last_wait = x->took > at ? scale(x->took - at, speed) : 0;
    if (x->end == CASSETTE_CANCELLED) {
        ret->end = PLAYBACK_HANGS; /* the client left then, and will again */
        ret->headless = x->status == 0;
    } else if (x->status == 0) {
        playback_fail(ret, UPSTREAM_CUT, "no answer came when this was recorded");
    } else if (x->end == CASSETTE_CUT) {
        ret->end = PLAYBACK_FAILS;
        ret->error = (struct upstream_error) { .kind = UPSTREAM_CUT,
                                               .retry_after = -1,
                                               .message = "cut when this was recorded" };
    }
}

static void prepare(void *arg)
{
    struct cassette_upstream *u = arg;
    u->preparing = false;
    cassette_replay_prepare(u->replay);
}

static int start(struct upstream *up, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct cassette_upstream *u = self(up);
    struct playback *p = playback_new();
    struct cassette_request request = {
        .number = r->exchange, .method = r->method, .target = r->target, .body = r->body
    };
    struct cassette_exchange x;
    struct arena *arena = NULL;
    struct err why = { 0 };
    if (cassette_replay_find(u->replay, &request, &arena, &x, &why) < 0) {
        playback_fail(p, UPSTREAM_REFUSED, why.msg);
    } else {
        arena_free(p->arena);
        p->arena = arena;
        cassette_playback(&x, u->speed, p);
    }
    int result = playback_start(p, u->loop, port, ret, e);
    if (!u->preparing) {
        u->preparing = true;
        loop_post(u->loop, prepare, u); /* after the first bytes of this answer */
    }
    return result;
}

static void destroy(void *arg)
{
    struct cassette_upstream *u = arg;
    cassette_replay_free(u->replay);
    free(u->name);
    free(u);
}

static void retire(struct upstream *up)
{
    loop_retire(self(up)->loop, destroy, up);
}

static const struct upstream_ops ops = {
    .start = start,
    .cancel = playback_cancel,
    .pause = playback_pause,
    .free = retire,
};

int cassette_upstream_new(struct loop *l, const char *path, const struct cassette_upstream_opts *o,
                          struct upstream **ret, struct err *e)
{
    struct cassette *c = NULL;
    int r = cassette_open(path, &c, e);
    if (r < 0) {
        return r;
    }
    struct cassette_upstream *u = xcalloc(1, sizeof *u);
    r = cassette_replay_new(c, o->volatile_rules, o->redactor, &u->replay, e);
    if (r < 0) {
        free(u);
        return err_wrap(e, "cassette '%s'", path);
    }
    cassette_replay_places(u->replay, o->places);
    u->loop = l;
    u->speed = o->speed;
    u->name = xstrdup(path);
    u->base = (struct upstream) {
        .ops = &ops, .name = u->name, .any_format = true, .local = true, .recorded = true
    };
    *ret = &u->base;
    return 0;
}

struct str cassette_upstream_report(const struct upstream *up)
{
    return cassette_replay_report(((const struct cassette_upstream *)up)->replay);
}

size_t cassette_upstream_left(const struct upstream *up)
{
    return cassette_replay_left(((const struct cassette_upstream *)up)->replay);
}
