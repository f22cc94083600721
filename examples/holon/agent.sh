#!/bin/sh
# Stands for an agent: it knows one bug, and where this run wants its files.
set -e
cat > divide.sh <<'END'
#!/bin/sh
# divide.sh A B
[ "$2" -eq 0 ] && echo undefined || echo $(($1 / $2))
END
echo '{"files": ["divide.sh"]}' > "$CINCH_ARTIFACTS_DIR/changes.json"
echo "Division by zero prints 'undefined' now (by $AUTHOR)."
