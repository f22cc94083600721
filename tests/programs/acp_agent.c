/* SPDX-License-Identifier: MIT
 *
 * The smallest agent of the Agent Client Protocol: it answers every prompt with one word, at once,
 * and goes at the end of its input. For what a client costs, beside an agent that costs nothing
 * (bench/adapters).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Clients count from 0 or 1, or take words; the value is given back as it stands. */
static int id_of(const char *line, const char **ret)
{
    const char *at = strstr(line, "\"id\":");
    if (at == NULL) {
        return 0;
    }
    at += strlen("\"id\":");
    at += strspn(at, " ");
    *ret = at;
    return *at == '"' ? (int)strcspn(at + 1, "\"") + 2 : (int)strcspn(at, ",}");
}

static void answer(int len, const char *id, const char *result)
{
    (void)printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", len, id, result);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        const char *id = "";
        int len = id_of(line, &id);
        if (strstr(line, "\"initialize\"") != NULL) {
            answer(len, id, "{\"protocolVersion\":1,\"agentCapabilities\":{}}");
        } else if (strstr(line, "\"session/new\"") != NULL) {
            answer(len, id, "{\"sessionId\":\"s\"}");
        } else if (strstr(line, "\"session/prompt\"") != NULL) {
            (void)printf(
                "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":"
                "\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{"
                "\"type\":\"text\",\"text\":\"done\"}}}}\n");
            answer(len, id, "{\"stopReason\":\"end_turn\"}");
        } else if (len > 0) {
            (void)printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":"
                         "\"no such method\"}}\n",
                         len, id);
        }
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
