#!/bin/sh
# Stands in for a harness, so that the example runs offline: does by hand what SKILL.md asks a model to do.
#
#   agent.sh PROMPT_FILE
set -eu

value() {
    sed -n "s/^$1: //p" "$prompt" | head -n 1
}

prompt=$1
names=$(value names)
greeting=$(value greeting)
out=$(value artifacts)
mkdir -p "$out"
sed -n "s/^\\(..*\\)\$/$greeting, \\1!/p" "$names" >"$out/greetings.txt"
if [ "$(value shout)" = true ]; then
    tr '[:lower:]' '[:upper:]' <"$out/greetings.txt" >"$out/greetings.tmp"
    mv "$out/greetings.tmp" "$out/greetings.txt"
fi
count=$(wc -l <"$out/greetings.txt")
printf '{"__SKILL_DONE__": true, "count": %d, "greetings": "artifacts/greetings.txt"}\n' "$count"
