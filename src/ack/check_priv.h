/* SPDX-License-Identifier: MIT
 *
 * Inside of the checks: what check.c, check_rule.c, check_record.c and check_wire.c share.
 */
#pragma once

#include "ack/check.h"
#include "ack/matcher.h"

typedef void check_fn(const struct check_scene *s, const struct json *want);

/* Is every {POINTER: MATCHER} true of the value? On false *ret_why says which is not. */
bool where_holds(struct arena *a, const struct json *where, const struct json *v,
                 const char **ret_why);
/* Holds the number against `count` of the check: at least one where it says nothing. */
void check_count(const struct check_scene *s, const struct json *want, const char *of, size_t n);

check_fn check_event, check_entry, check_order, check_transcript, check_session, check_same,
    check_link;
check_fn check_request, check_usage, check_patch;

/* Is it something that two runs can have in common? */
bool check_same_knows(struct str what);

/* What a check must say, beyond the form of each key, so that all of it counts and it can fail. */
typedef int check_rule(const struct json *want, const char *file, struct err *e);
check_rule rule_counted, rule_request, rule_patch, rule_link, rule_same;

/* ERR_CONFIG, with the place. */
int check_refuse(const struct json *v, const char *file, const char *why, struct err *e) MUST_USE;
/* The same when the matcher holds for every number from 0 on; else 0. */
int check_refuse_idle(const struct json *m, const char *file, struct err *e) MUST_USE;
