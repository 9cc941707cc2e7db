#!/bin/sh
# One block of memory is refused, at every place in turn: the output is complete and the code 0, or there is a message
# and the code is not 0. RT_WALK_ALL=1 takes every allocation, or two thousand if there are more (make check-long), else
# some thirty of each command; and a few times all from one on.
. "$(dirname "$0")/tap.inc"
shim=$(dirname "$RETORT")/tests/fail_alloc.so
if [ ! -e "$shim" ] || ldd "$RETORT" 2>/dev/null | grep -q "libasan\|libtsan"; then
    echo "skipped: needs $shim and a build without sanitizers"
    finish
fi
data="--data spiral:n=40"
run train $data --arch mlp:6 --members 2 --epochs 1 --quiet --out one
run eval one $data --bootstrap 5 --quiet
cp -r one two
printf 'a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n' >t.csv

# walk FILE ARGS...: FILE (- for none) is what the command writes, besides standard output.
walk() {
    file=$1
    shift
    words=$*
    rm -f "$file"
    RT_FAIL_COUNT=count LD_PRELOAD=$shim "$RETORT" "$@" >want 2>/dev/null </dev/null || echo "# $words failed"
    [ "$file" = - ] || cp "$file" want.file
    n=$(cat count)
    step=$((n / 30 + 1))
    [ -z "${RT_WALK_ALL:-}" ] || step=$((n / 2000 + 1))
    bad=0
    runs=0
    for all in "" 1; do
        at=1
        while [ "$at" -le "$n" ]; do
            rm -f "$file"
            RT_FAIL_AT=$at RT_FAIL_ALL=$all LD_PRELOAD=$shim timeout 60 "$RETORT" "$@" >out 2>err </dev/null
            rc=$?
            runs=$((runs + 1))
            why=
            if [ $rc -gt 5 ]; then
                why="code $rc"
            elif [ $rc -eq 0 ]; then
                cmp -s want out || why="another output with code 0"
                [ "$file" = - ] || cmp -s want.file "$file" || why="another $file with code 0"
            elif [ ! -s err ]; then
                why="code $rc without a message"
            fi
            if [ -n "$why" ]; then
                bad=$((bad + 1))
                [ $bad -gt 3 ] || echo "# $words: allocation $at${all:+ and all later}: $why"
            fi
            if [ -n "$all" ]; then at=$((at + step * 6)); else at=$((at + step)); fi
        done
    done
    check "$words: $runs of $n allocations refused" test $bad -eq 0 -a "$n" -gt 3
}
walk - --version
walk - --help
walk - help train
walk - help --markdown
walk - info --arch mlp:8 --input 2 --threads 1
walk - info --arch mlp:8 --input 2 --plan --threads 1
walk - info one --threads 1
walk - info one two --compare --threads 1
walk - info one/member-000.safetensors --threads 1
walk - help train --man
walk - help --ops
walk - data csv:t.csv --threads 1
walk d.csv data spiral:n=20 --out csv:d.csv --threads 1 --quiet
walk - predict one $data --threads 1 --quiet
walk p.jsonl predict one $data --out p.jsonl --threads 1 --quiet
walk - eval one two $data --bootstrap 5 --threads 1 --quiet --no-save
walk - eval one $data --bootstrap 5 --threads 1 --quiet --no-save --format csv
walk r.html report one two --out r.html --quiet
walk - recipe list
finish
