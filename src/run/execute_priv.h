/* SPDX-License-Identifier: MIT
 *
 * struct execute: what phase execute keeps to itself. For phase_execute.c (effects of the machine),
 * execute_watch.c, phase_dialogue.c, phase_talk.c, continuations.c and launch.c only; what others
 * may read of it is struct execution in run_priv.h.
 */
#pragma once

#include "run/execute_machine.h"
#include "run/run_priv.h"

struct dialogue;
struct proc;
struct talk;
struct timer;

struct execute {
    struct execute_machine machine;
    struct timer *deadline;    /* of the machine */
    struct proc *proc;         /* NULL: nothing was started */
    struct talk *talk;         /* of a driver that talks to a model itself; else NULL */
    struct dialogue *dialogue; /* of a driver that converses with its program; else NULL */
    struct launch_spec spec;
    struct str goal;  /* the prompt of the first turn; ptr NULL: that is going on */
    bool files_taken; /* that the program left */
    bool restart;     /* the agent must begin again to see what it opened */
    int64_t restarts; /* that there were */

    /* execute_watch.c */
    struct timer *first_output, *idle, *heartbeat;
    nsec last_life;  /* last output, or last time that the tree had used the processor */
    nsec last_cpu;   /* at the last idle deadline */
    nsec seen_cpu;   /* at the last look */
    nsec last_look;  /* for signs of life */
    nsec last_beat;  /* of state.json */
    bool asked_life; /* the answer about CPU time tells whether it works */
    bool asked_cpu;  /* the idle deadline waits for an answer about CPU time */
};

/* --- launch.c --- */

/* Arguments, environment and what the driver is told. */
int launch_plan(struct run *run, struct launch_spec *spec, struct err *e);

/* --- phase_execute.c, execute_watch.c --- */

struct agent_output execute_agent_output(struct run *run);
/* Notes that a deadline has passed; stopping is the machine's. */
void execute_note_timeout(struct run *run, enum timeout_kind kind, nsec limit);
int execute_watch_open(struct run *run, struct err *e) MUST_USE;
void execute_watch(struct run *run, enum execute_watch what);
void execute_watch_output(struct run *run);  /* the agent has printed something */
void execute_watch_cpu(void *run, nsec cpu); /* proc_port.on_cpu */
void execute_watch_close(struct run *run);   /* idempotent */

/* --- phase_dialogue.c: drivers that converse with their program --- */

#define DIALOGUE_UNREAD_MAX ((size_t)64 << 20) /* of what it was told */

void dialogue_begin(struct run *run);
void dialogue_fed(struct run *run);                           /* bytes of the agent have come */
void dialogue_say(struct run *run, struct str text);          /* the next turn */
void dialogue_note_words(struct run *run, struct str answer); /* for dialogue_is_saved() */
bool dialogue_is_saved(struct run *run); /* the conversation, or nothing waits for that */
void dialogue_over(struct run *run);     /* the program is gone */

/* --- continuations.c: further turns --- */

/* Is there another turn? execute_verdict() follows. */
void continuation_review(struct run *run, const struct agent_report *report);
/* The program is gone: what next? */
enum execute_after continuation_after_exit(struct run *run);
/* The prompt of the next process; ptr NULL: it begins again to see what it opened. Negative: the
 * cause is noted. */
int continuation_prompt(struct run *run, struct str text, struct str *ret) MUST_USE;

/* --- phase_talk.c: drivers that talk to a model themselves --- */

int talk_start(struct run *run, struct err *e);
void talk_begin(struct run *run);
void talk_say(struct run *run, struct str text);
void talk_stop(struct run *run); /* at once; EXECUTE_GONE follows */
