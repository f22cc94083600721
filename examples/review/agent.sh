#!/bin/sh
# Stands for an agent: reads the prompt, writes the file that was asked for, and answers with a little prose around
# the JSON, as models like to do.
set -eu
count=$(grep -c '^[0-9]*\. `' "$1")
printf '# Review\n\n%s files were read, nothing was found.\n' "$count" > review.md
cat <<EOF
I have read all $count files.

{"findings": 0, "verdict": "good"}
EOF
