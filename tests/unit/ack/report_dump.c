/* SPDX-License-Identifier: MIT
 *
 * Writes a report whose findings are what stands in standard input, for a foreign reader:
 *
 *   report_dump json|junit|html|markdown < BYTES
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sample_report.h"

int main(int argc, char **argv)
{
    CLEANUP(buf) struct buf why = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf other = BUF_INIT(BUF_TEXT);
    struct sample s;
    struct err e = { 0 };
    const char *form = argc == 2 ? argv[1] : "";
    int r = file_read_fd(STDIN_FILENO, "standard input", BUF_TEXT, &why, &e);
    sample_fill(&s, why.ptr == NULL ? "" : why.ptr);
    if (r == 0 && strcmp(form, "json") == 0) {
        r = report_json(&s.report, &out, &e);
    } else if (r == 0 && strcmp(form, "junit") == 0) {
        r = report_junit(&s.report, &out, &e);
    } else if (r == 0 && strcmp(form, "html") == 0) {
        r = report_html(&s.report, &out, &e);
    } else if (r == 0) {
        r = report_compatibility(&s.report, NULL, &out, &other, &e);
    }
    r = r < 0 ? r : file_write_all(STDOUT_FILENO, buf_str(&out), &e);
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
    }
    return r < 0;
}
