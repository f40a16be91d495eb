#!/bin/sh
# Stands in for python3 and npm: notes its arguments, then does what the test put into the models
# folder. A file of the repository rather than one the test writes, since a program that was just
# written cannot always be started ("text file busy").
models="$TMPDIR/../.."
printf '%s\n' "$@" > "$models/arguments"
. "$models/plan.sh"
