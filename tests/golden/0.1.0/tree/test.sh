#!/bin/sh
# The test of leap.sh: exit status 0 when all is well.
failed=0
check() {
    got=$(sh ./leap.sh "$1")
    [ "$got" = "$2" ] && return
    echo "not ok: $1 is a $2 year, leap.sh says: $got"
    failed=1
}
check 2023 common
check 2024 leap
check 1900 common
check 2000 leap
[ "$failed" -eq 0 ] && echo "ok: 4 years"
exit "$failed"
