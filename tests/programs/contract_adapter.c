/* SPDX-License-Identifier: MIT
 *
 * contract_adapter MODE [--probe]: an adapter that keeps the file contract (docs/images.md), or
 * breaks it in one respect. Static, so that it is all that an image needs. It wants the variable
 * ADAPTER_KEY, whose value is a secret.
 *
 *   honest            keeps it
 *   no-manifest, bad-manifest, no-summary, empty-patch, lists-ghost, wrong-exit, changes-input,
 *   keeps-state, waits, leaks-file, leaks-output, needs-nothing, no-probe
 *                     break what their name says
 *   needs-human       asks for a review
 *   network           tells what it reaches
 *   model             fails unless the model answers
 *   stays             ignores SIGTERM, with a child that has left its session
 *   shows             prints its environment, then what is wrong with its place
 *   dies              by a signal
 *   large             prints 4 MiB
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *mode;

static bool is(const char *word)
{
    return strcmp(mode, word) == 0;
}

static const char *place(const char *variable, const char *otherwise)
{
    const char *v = getenv(variable);
    return v != NULL ? v : otherwise;
}

static const char *below(const char *dir, const char *name)
{
    static char path[4][4096];
    static unsigned n;
    char *p = path[n++ % 4];
    (void)snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static const char *output(const char *name)
{
    return below(place("HOLON_OUTPUT_DIR", "/holon/output"), name);
}

static bool put(const char *path, const char *how, const char *text)
{
    FILE *f = fopen(path, how);
    if (f == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    (void)fputs(text, f);
    return fclose(f) == 0;
}

static void get(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f == NULL ? 0 : fread(text, 1, size - 1, f);
    text[n] = '\0';
    if (f != NULL) {
        (void)fclose(f);
    }
}

static int end(const char *status, const char *outcome, const char *error, int code)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"status\": \"%s\", \"outcome\": \"%s\", \"duration\": \"0.1s\", "
                   "\"artifacts\": [%s], \"metadata\": {\"agent\": \"test\"}%s%s%s}\n",
                   status, outcome, is("lists-ghost") ? "\"ghost.txt\"" : "",
                   error == NULL ? "" : ", \"error\": \"", error == NULL ? "" : error,
                   error == NULL ? "" : "\"");
    if (!is("no-manifest")) {
        (void)put(output("manifest.json"), "w", is("bad-manifest") ? "[]\n" : text);
    }
    return is("wrong-exit") ? 3 : code;
}

/* Anything in the directory is somebody else's. */
static bool output_is_empty(void)
{
    DIR *d = opendir(place("HOLON_OUTPUT_DIR", "/holon/output"));
    size_t n = 0;
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return n == 2;
}

static bool reaches(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    (void)inet_pton(AF_INET, address, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    printf("%s:%d %s\n", address, port, good ? "reached" : strerror(errno));
    (void)close(fd);
    return good;
}

/* One question to the model behind the gateway. True if it was answered. */
static bool ask_model(void)
{
    static const char body[] =
        "{\"model\":\"m\",\"max_tokens\":99,\"messages\":[{\"role\":\"user\","
        "\"content\":\"hello\"}]}";
    char text[16384];
    int port = 0;
    const char *url = place("ANTHROPIC_BASE_URL", "");
    if (sscanf(url, "http://127.0.0.1:%d", &port) != 1) {
        printf("no gateway\n");
        return false;
    }
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        printf("gateway: %s\n", strerror(errno));
        return false;
    }
    int n = snprintf(text, sizeof text,
                     "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: %s\r\n"
                     "content-type: application/json\r\ncontent-length: %zu\r\n"
                     "connection: close\r\n\r\n%s",
                     place("ANTHROPIC_API_KEY", ""), sizeof body - 1, body);
    (void)!write(fd, text, (size_t)n);
    size_t len = 0;
    ssize_t got;
    while (len < sizeof text - 1 && (got = read(fd, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)got;
    }
    text[len] = '\0';
    printf("%s\n", text);
    (void)close(fd);
    return strncmp(text, "HTTP/1.1 200 ", strlen("HTTP/1.1 200 ")) == 0;
}

static void stay(void)
{
    (void)sigaction(SIGTERM, &(struct sigaction) { .sa_handler = SIG_IGN }, NULL);
    if (fork() == 0) {
        (void)setsid();
    }
    for (;;) {
        (void)pause();
    }
}

static void show(void)
{
    extern char **environ;
    char cwd[4096];
    for (char **v = environ; *v != NULL; v++) {
        printf("%s\n", *v);
    }
    printf("cwd=%s\nuid=%u\ntty=%d\nempty=%d\n", getcwd(cwd, sizeof cwd), (unsigned)getuid(),
           isatty(0) || open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0, output_is_empty());
    printf("input=%s\n", put(below(place("HOLON_INPUT_DIR", "/holon/input"), "spec.yaml"), "a", "#")
                             ? "writable"
                             : "read-only");
    printf("root=%s\n", access("/usr", F_OK) == 0 ? "the host's" : "its own");
}

/* What every mode but the honest one does besides. */
static void misbehave(const char *prompt, const char *key)
{
    if (is("changes-input")) {
        (void)put(below(place("HOLON_INPUT_DIR", "/holon/input"), "spec.yaml"), "a", "# mine\n");
    } else if (is("keeps-state")) {
        char old[4096];
        get(place("ADAPTER_STATE", "/state"), old, sizeof old);
        (void)put(output("notes.txt"), "w", old);
        (void)put(place("ADAPTER_STATE", "/state"), "w", prompt);
    } else if (is("waits")) {
        char line[64];
        while (fgets(line, sizeof line, stdin) == NULL) {
            printf("Continue? [y/n]\n");
            (void)fflush(stdout);
            (void)nanosleep(&(struct timespec) { .tv_sec = 1 }, NULL);
        }
    } else if (is("leaks-file")) {
        (void)mkdir(output("evidence"), 0755);
        (void)put(output("evidence/run.log"), "w", key);
    } else if (is("leaks-output")) {
        printf("key: %s\n", key);
    } else if (is("network")) {
        (void)reaches("1.1.1.1", 80);
        (void)reaches("127.0.0.1", (int)strtol(place("OUTSIDE_PORT", "1"), NULL, 10));
        (void)ask_model();
    } else if (is("shows")) {
        show();
    } else if (is("moves-git")) {
        bool there = chdir(place("GIT_DIR_OF", "/holon/workspace")) == 0;
        printf("move: %s\n", there && rename(".git", ".git.old") == 0 ? "done" : strerror(errno));
        printf("move info: %s\n",
               there && rename(".git/info", ".git/info.old") == 0 ? "done" : strerror(errno));
    } else if (is("stays")) {
        stay();
    } else if (is("dies")) {
        (void)raise(SIGKILL);
    } else if (is("large")) {
        for (int i = 0; i < 65536; i++) {
            printf("%063d\n", i);
        }
    }
}

static int work(void)
{
    char prompt[4096];
    const char *key = getenv("ADAPTER_KEY");
    get(below(place("HOLON_INPUT_DIR", "/holon/input"), "prompts/user.md"), prompt, sizeof prompt);
    if (key == NULL && !is("needs-nothing") && getenv("NO_KEY") == NULL) {
        return end("failed", "failure", "ADAPTER_KEY is missing", 1);
    }
    if (!output_is_empty()) {
        return end("failed", "failure", "the output directory is not empty", 1);
    }
    misbehave(prompt, key == NULL ? "" : key);
    if (is("model") && !ask_model()) {
        return end("failed", "failure", "the model did not answer", 1);
    }
    (void)put(below(place("HOLON_WORKSPACE_DIR", "/holon/workspace"), "contract.txt"), "w",
              "done\n");
    (void)put(output("diff.patch"), "w",
              is("empty-patch") ? "" : "--- /dev/null\n+++ b/contract.txt\n@@ -0,0 +1 @@\n+done\n");
    if (!is("no-summary")) {
        (void)put(output("summary.md"), "w", "# Done\n");
    }
    if (is("needs-human")) {
        return end("completed", "needs_human", "look at it", 2);
    }
    return end("completed", "success", NULL, 0);
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "honest";
    bool probe = argc > 2 && strcmp(argv[2], "--probe") == 0;
    printf("%s\n", probe ? "probing" : "working");
    (void)fflush(stdout);
    return probe && !is("no-probe") ? end("completed", "success", NULL, 0) : work();
}
