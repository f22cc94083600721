/* SPDX-License-Identifier: MIT
 *
 * One look at each part of a path.
 */
#include "workspace/gitname.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* --- NTFS --- */

/* Spaces, dots, and what comes after a colon (a stream of the file) do not belong to the name. The
 * end of a part is also a backslash, unless `whole`. */
static bool is_end(const char *s, bool whole)
{
    for (; *s == ' ' || *s == '.'; s++) {
    }
    return *s == '\0' || *s == ':' || (!whole && (*s == '/' || *s == '\\'));
}

static bool is_ntfs_dotgit(const char *s)
{
    size_t len = strncasecmp(s, ".git", 4) == 0 ? 4 : strncasecmp(s, "git~1", 5) == 0 ? 5 : 0;
    return len > 0 && is_end(s + len, false);
}

/* "gi7eba~1" to "~9999999": how NTFS shortens .gitmodules when GITMOD~1 to GITMOD~4 are taken. */
static bool is_hashed(const char *s)
{
    static const char prefix[] = "gi7eba";
    size_t same = 0;
    while (same < 6 && strncasecmp(s + same, prefix + same, 1) == 0) {
        same++;
    }
    if (s[same] != '~' || s[same + 1] < '1' || s[same + 1] > '9') {
        return false;
    }
    for (size_t i = same + 2; i < 8; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
    }
    return is_end(s + 8, true);
}

static bool is_ntfs_gitmodules(const char *s)
{
    static const char name[] = ".gitmodules";
    if (strncasecmp(s, name, sizeof name - 1) == 0) {
        return is_end(s + sizeof name - 1, true);
    }
    if (strncasecmp(s, "gitmod~", 7) == 0 && s[7] >= '1' && s[7] <= '4') {
        return is_end(s + 8, true);
    }
    return is_hashed(s);
}

/* --- HFS+ --- */

/* The length of a character that HFS+ ignores, in UTF-8; 0: it is none. */
static size_t ignored(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] == 0xef && u[1] == 0xbb && u[2] == 0xbf) { /* U+FEFF */
        return 3;
    }
    if (u[0] != 0xe2) {
        return 0;
    }
    bool marks = u[1] == 0x80 && ((u[2] >= 0x8c && u[2] <= 0x8f) || /* U+200C to U+200F */
                                  (u[2] >= 0xaa && u[2] <= 0xae));  /* U+202A to U+202E */
    bool digits = u[1] == 0x81 && u[2] >= 0xaa && u[2] <= 0xaf;     /* U+206A to U+206F */
    return marks || digits ? 3 : 0;
}

static bool is_hfs_name(const char *s, const char *name)
{
    for (;;) {
        size_t skip = ignored(s);
        if (skip > 0) {
            s += skip;
        } else if (*name == '\0') {
            return *s == '\0' || *s == '/';
        } else if (strncasecmp(s, name, 1) != 0) {
            return false;
        } else {
            s++;
            name++;
        }
    }
}

bool gitname_is_refused(const char *path, bool link)
{
    for (const char *s = path;; s++) {
        bool part = s == path || s[-1] == '/';
        if (part && (is_hfs_name(s, ".git") || (link && is_hfs_name(s, ".gitmodules")))) {
            return true;
        }
        if ((part || s[-1] == '\\') && (is_ntfs_dotgit(s) || (link && is_ntfs_gitmodules(s)))) {
            return true;
        }
        if (*s == '\0') {
            return false;
        }
    }
}
