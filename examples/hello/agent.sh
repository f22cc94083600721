#!/bin/sh
# A very small agent: reads its prompt, "thinks", edits the workspace, and is careless with its token.
echo "agent: model $MODEL, task: $(head -n 1 "$1")"
echo "agent: calling the provider with token $API_TOKEN"
echo "Hello from a program that runs under a contract." > greeting.txt
echo "agent: wrote $(wc -c < greeting.txt) bytes to greeting.txt"
