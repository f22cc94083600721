/* SPDX-License-Identifier: MIT
 *
 * The table of capabilities, and how a profile declares them.
 */
#include "adapters/capability.h"

static const struct capability_info table[CAPABILITY_COUNT] = {
    [CAPABILITY_TEXT_RESPONSE] = { "text_response", TIER_BASIC,
                                   "A prompt is answered with a text, which is the result." },
    [CAPABILITY_TOOL_INVOCATION] = { "tool_invocation", TIER_BASIC,
                                     "The model can call the tools of the task." },
    [CAPABILITY_STRUCTURED_OUTPUT] = { "structured_output", TIER_BASIC,
                                       "The answer is a value that fits the task's schema." },
    [CAPABILITY_EVENT_EMISSION] = { "event_emission", TIER_OBSERVED,
                                    "PromptRendered, ToolInvoked and PromptExecuted are told." },
    [CAPABILITY_TRANSCRIPT] = { "transcript", TIER_OBSERVED,
                                "What was said and done is in the transcript, in its order." },
    [CAPABILITY_RENDERED_TOOLS_EVENT] = { "rendered_tools_event", TIER_OBSERVED,
                                          "RenderedTools tells which tools the model sees." },
    [CAPABILITY_PROGRESSIVE_DISCLOSURE] = { "progressive_disclosure", TIER_LIMITED,
                                            "The model opens sections of the prompt, and gets the "
                                            "tools that they bring." },
    [CAPABILITY_TRANSACTIONAL_TOOLS] = { "transactional_tools", TIER_LIMITED,
                                         "A tool that fails leaves neither files nor state." },
    [CAPABILITY_DEADLINE_ENFORCEMENT] = { "deadline_enforcement", TIER_LIMITED,
                                          "The run ends at its deadline, with what was done." },
    [CAPABILITY_BUDGET_ENFORCEMENT] = { "budget_enforcement", TIER_LIMITED,
                                        "The run ends when its budget is used up." },
    [CAPABILITY_TOOL_POLICIES] = { "tool_policies", TIER_GUARDED,
                                   "Policies deny calls, and the model is told why." },
    [CAPABILITY_FEEDBACK_PROVIDERS] = { "feedback_providers", TIER_GUARDED,
                                        "Feedback reaches the model while it works." },
    [CAPABILITY_TASK_COMPLETION] = { "task_completion", TIER_GUARDED,
                                     "Who stops before the task is complete is asked to go on." },
    [CAPABILITY_NATIVE_TOOLS] = { "native_tools", TIER_SPECIFIC,
                                  "ToolInvoked tells of the harness' own tools, too." },
    [CAPABILITY_WORKSPACE_ISOLATION] = { "workspace_isolation", TIER_SPECIFIC,
                                         "It sees the workspace and cannot change the original." },
    [CAPABILITY_CUSTOM_ENV_FORWARDING] = { "custom_env_forwarding", TIER_SPECIFIC,
                                           "Variables of the task reach what it starts." },
    [CAPABILITY_NETWORK_POLICY] = { "network_policy", TIER_SPECIFIC,
                                    "It reaches the gateway and the hosts that are allowed." },
    [CAPABILITY_SANDBOX_POLICY] = { "sandbox_policy", TIER_SPECIFIC,
                                    "It reads and writes only what the policy names." },
    [CAPABILITY_SKILL_INSTALLATION] = { "skill_installation", TIER_SPECIFIC,
                                        "Skills of the task are put where it finds them." },
    [CAPABILITY_CANCELLATION] = { "cancellation", TIER_SPECIFIC,
                                  "It ends when cinch is told to, with what was done." },
    [CAPABILITY_CRASH_DETECTION] = { "crash_detection", TIER_SPECIFIC,
                                     "Its death in the midst of a turn is a failure that keeps "
                                     "what was done." },
    [CAPABILITY_HANG_AFTER_RESULT] = { "hang_after_result", TIER_SPECIFIC,
                                       "Who has answered and does not go is ended, and the answer "
                                       "stands." },
    [CAPABILITY_PROVIDER_FAULTS] = { "provider_faults", TIER_SPECIFIC,
                                     "Refusals and errors of the provider that pass are "
                                     "survived." },
    [CAPABILITY_PROVIDER_LOSS] = { "provider_loss", TIER_SPECIFIC,
                                   "A provider that stays away is a failure, in bounded time." },
    [CAPABILITY_WHOLE_ANSWERS] = { "whole_answers", TIER_SPECIFIC,
                                   "An answer that broke off is asked for again, or a failure; "
                                   "half of it is no success." },
    [CAPABILITY_OPEN_STDIN] = { "open_stdin", TIER_SPECIFIC,
                                "It does not wait for input that nobody gives." },
    [CAPABILITY_PLAIN_DIRECTORY] = { "plain_directory", TIER_SPECIFIC,
                                     "It works in a directory that is no repository." },
    [CAPABILITY_OUTPUT_FLOOD] = { "output_flood", TIER_SPECIFIC,
                                  "Output without end disturbs neither it nor the record." },
    [CAPABILITY_CHILD_REAPING] = { "child_reaping", TIER_SPECIFIC,
                                   "What it starts and forgets does not outlive it." },
    [CAPABILITY_USAGE_TRUTH] = { "usage_truth", TIER_SPECIFIC,
                                 "What it says it used is what went over the wire." },
    [CAPABILITY_SUBAGENT_USAGE] = { "subagent_usage", TIER_SPECIFIC,
                                    "Tokens of its sub-agents are counted, too." },
    [CAPABILITY_REPLAY] = { "replay", TIER_SPECIFIC,
                            "A recorded run can be replayed without a model." },
    [CAPABILITY_RESUME] = { "resume", TIER_SPECIFIC, "A later run goes on with the conversation." },
    [CAPABILITY_PARALLEL_RUNS] = { "parallel_runs", TIER_SPECIFIC,
                                   "Several of it at a time do not disturb each other." },
    [CAPABILITY_LONG_PROMPT] = { "long_prompt", TIER_SPECIFIC,
                                 "A prompt of a megabyte reaches the model whole." },
    [CAPABILITY_UNICODE_TEXT] = { "unicode_text", TIER_SPECIFIC,
                                  "All characters arrive, both ways." },
    [CAPABILITY_SLOW_TOOLS] = { "slow_tools", TIER_SPECIFIC, "A tool may take half a minute." },
    [CAPABILITY_MANY_TOOLS] = { "many_tools", TIER_SPECIFIC,
                                "Fifty tools are offered, and the last can be called." },
    [CAPABILITY_TEXT_EDITS] = { "text_edits", TIER_SPECIFIC,
                                "It changes files as the words of the model say, without tools." },
    [CAPABILITY_PROJECT_CONFIG] = { "project_config", TIER_SPECIFIC,
                                    "It obeys nothing of the workspace but instructions, unless "
                                    "the user trusts it." },
};

const struct capability_info *capability_info(enum capability c)
{
    return &table[c];
}

bool capability_of(struct str name, enum capability *ret)
{
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        if (str_eqc(name, table[i].name)) {
            *ret = (enum capability)i;
            return true;
        }
    }
    return false;
}

const char *capability_tier_word(enum capability_tier t)
{
    static const char *const words[] = {
        [TIER_BASIC] = "1",   [TIER_OBSERVED] = "2",        [TIER_LIMITED] = "3",
        [TIER_GUARDED] = "4", [TIER_SPECIFIC] = "specific",
    };
    return words[t];
}

bool capability_default(enum capability c)
{
    return table[c].tier <= TIER_LIMITED;
}

static int find(struct str name, const char *key, const struct json *at, const char *file,
                enum capability *ret, struct err *e)
{
    if (capability_of(name, ret)) {
        return 0;
    }
    char place[JSON_AT_LEN];
    size_t nearest = CAPABILITY_COUNT;
    size_t distance = 4;
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        size_t d = str_distance(name, str_of(table[i].name), distance - 1);
        nearest = d < distance ? i : nearest;
        distance = d < distance ? d : distance;
    }
    if (nearest == CAPABILITY_COUNT) {
        return ERR(e, ERR_CONFIG, "%s: '%s' names '%.*s', which is not a capability",
                   json_at(file, at, place), key, STR_ARG(name));
    }
    return ERR(e, ERR_CONFIG,
               "%s: '%s' names '%.*s', which is not a capability (did you mean '%s'?)",
               json_at(file, at, place), key, STR_ARG(name), table[nearest].name);
}

static int read_declared(const struct json *declared, const char *file, struct capability_set *set,
                         struct err *e)
{
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        set->has[i] = declared == NULL && capability_default((enum capability)i);
    }
    for (size_t i = 0; i < json_len(declared); i++) {
        const struct json *item = json_item(declared, i);
        enum capability c;
        int r = find(json_str(item, STR_EMPTY), "capabilities", item, file, &c, e);
        if (r < 0) {
            return r;
        }
        set->has[c] = true;
    }
    return 0;
}

static int read_lack(const struct json_member *m, const char *file, struct capability_set *set,
                     bool declared, struct err *e)
{
    char place[JSON_AT_LEN];
    const char *why = json_cstring(m->value, NULL);
    enum capability c = CAPABILITY_COUNT;
    bool rest = str_eqc(m->key, "otherwise");
    int r = rest ? 0 : find(m->key, "lacks", m->value, file, &c, e);
    if (r < 0) {
        return r;
    }
    if (why == NULL || why[0] == '\0') {
        return ERR(e, ERR_CONFIG, "%s: 'lacks.%.*s' must be the reason, in words",
                   json_at(file, m->value, place), STR_ARG(m->key));
    }
    if (rest) {
        set->otherwise = why;
        return 0;
    }
    if (set->has[c] && declared) {
        return ERR(e, ERR_CONFIG, "%s: '%s' is under 'capabilities', and under 'lacks'",
                   json_at(file, m->value, place), table[c].name);
    }
    set->has[c] = false; /* else it was only taken for granted */
    set->lacks[c] = why;
    return 0;
}

int capability_read(const struct json *declared, const struct json *lacks, const char *file,
                    struct capability_set *ret, struct err *e)
{
    *ret = (struct capability_set) { 0 };
    int r = read_declared(declared, file, ret, e);
    for (size_t i = 0; r == 0 && i < json_len(lacks); i++) {
        r = read_lack(&lacks->object.members[i], file, ret, declared != NULL, e);
    }
    return r;
}

const char *capability_lack(const struct capability_set *set, enum capability c)
{
    if (set->has[c]) {
        return NULL;
    }
    if (set->lacks[c] != NULL) {
        return set->lacks[c];
    }
    return set->otherwise != NULL ? set->otherwise : "its profile does not declare it";
}
