#!/bin/sh
# On a terminal: a bar, colours unless forbidden. script(1) provides the terminal.
. "$(dirname "$0")/tap.inc"
have script || exit 0
train="'$RETORT' train --data spiral:n=400 --arch mlp:16 --epochs 20 --force --out r"
escape=$(printf '\033')
on_terminal() { # on_terminal ENVIRONMENT COMMAND
    env -u NO_COLOR $1 script -qec "$2" /dev/null >screen 2>&1 </dev/null
}
on_terminal "TERM=xterm COLUMNS=80 LANG=C" "$train"
check "the line is drawn again" grep -q "$escape\\[K" screen
check "green bar" grep -q "$escape\\[32m=" screen
on_terminal "TERM=xterm LANG=C.UTF-8" "$train"
check "a bar of lines in UTF-8" grep -q '━' screen
on_terminal "TERM=xterm NO_COLOR=1 LANG=C" "$train"
check "NO_COLOR: a bar without colours" sh -c "grep -q '20/20 =' screen && ! grep -q '$escape\\[32m' screen"
on_terminal "TERM=dumb" "$train"
check "a dumb terminal gets plain lines" sh -c "grep -q 'epoch 20/20  loss' screen && ! grep -q '$escape' screen"
on_terminal "TERM=xterm" "$train --progress none"
check "--progress none" sh -c "! grep -q 'epoch 1/' screen"
finish
