#!/bin/sh
# leap.sh YEAR: what kind of year it is.
if [ $(($1 % 4)) -eq 0 ]; then
    echo "leap"
else
    echo "common"
fi
