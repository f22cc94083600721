/* SPDX-License-Identifier: MIT
 *
 * A report with every kind of verdict, for tests of reports. `why` is what a failure says.
 */
#pragma once

#include "ack/report.h"
#include "base/json.h"

enum { SAMPLE_SCENARIOS = 6, SAMPLE_ADAPTERS = 2 };

struct sample {
    struct scenario scenarios[SAMPLE_SCENARIOS];
    struct kit_adapter adapters[SAMPLE_ADAPTERS];
    struct verdict verdicts[SAMPLE_SCENARIOS * SAMPLE_ADAPTERS];
    struct kit_report report;
};

static const char *sample_text[] = { "text_response", NULL };
static const char *sample_tools[] = { "tool_invocation", NULL };
static const char *sample_both[] = { "transcript", "tool_invocation", NULL };
static const char *sample_skills[] = { "skill_installation", NULL };

/* On the first adapter, `one`, every status in its order; the second, `two`, is not here. */
static void sample_fill(struct sample *s, const char *why)
{
    static const char **const capabilities[SAMPLE_SCENARIOS] = {
        sample_text, sample_tools, sample_skills, sample_both, sample_text, sample_skills,
    };
    static const char *const names[SAMPLE_SCENARIOS] = { "test_a", "test_b", "test_c",
                                                         "test_d", "test_e", "test_f" };
    *s = (struct sample) { 0 };
    s->adapters[0] = (struct kit_adapter) { .name = "one", .available = true, .version = "1.2.3" };
    s->adapters[1] =
        (struct kit_adapter) { .name = "two", .why_not = "not in PATH: two", .version = "" };
    for (size_t i = 0; i < SAMPLE_SCENARIOS; i++) {
        s->scenarios[i] = (struct scenario) { .name = names[i],
                                              .summary = "One < sentence & more.",
                                              .tier = 1 + (i > 2),
                                              .capabilities = capabilities[i] };
        s->verdicts[i] = (struct verdict) { .adapter = s->adapters[0].name,
                                            .version = "1.2.3",
                                            .scenario = &s->scenarios[i],
                                            .status = (enum verdict_status)i,
                                            .why = i == VERDICT_PASSED ? "" : why,
                                            .took = 1500 * NSEC_PER_MS };
        s->verdicts[SAMPLE_SCENARIOS + i] = (struct verdict) { .adapter = s->adapters[1].name,
                                                               .version = "",
                                                               .scenario = &s->scenarios[i],
                                                               .status = VERDICT_SKIPPED,
                                                               .why = "not in PATH: two" };
    }
    s->verdicts[VERDICT_FAILED].dir = "/tmp/kept <here>";
    s->report = (struct kit_report) { .adapters = s->adapters,
                                      .adapters_len = SAMPLE_ADAPTERS,
                                      .verdicts = s->verdicts,
                                      .len = SAMPLE_SCENARIOS * SAMPLE_ADAPTERS,
                                      .took = 12 * NSEC_PER_SEC,
                                      .started_at = "2026-11-16T06:00:00.000Z" };
    for (size_t i = 0; i < s->report.len; i++) {
        s->report.count[s->verdicts[i].status]++;
    }
}
