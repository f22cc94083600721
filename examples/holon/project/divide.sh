#!/bin/sh
# divide.sh A B
echo $(($1 / $2))
