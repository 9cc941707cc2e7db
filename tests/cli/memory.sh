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
cp -r one first
run train --data spiral:n=200 --arch mlp:6 --members 2 --epochs 1 --quiet --out wide
run train $data --arch mlp:4 --epochs 1 --quiet --out other
run train $data --arch mlp:6 --members 2 --epochs 2 --batch 30 --quiet --stop-after 2 --out half
printf 'a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n' >t.csv
printf 'epochs: 1\narch: "mlp:6"\n' >c.yaml
cat >r.yaml <<'Y'
title: One of two
source: nobody
about: A small one.
scales:
  quick: {about: "q", minutes: 1, memory: 1 MB, disk: 1 MB, vars: {seeds: "1..2"}}
stages:
  - {name: net, verb: train, each: {seed: "${seeds}"}, with: {data: "spiral:n=40", arch: "mlp:6", epochs: "1", seed: "${seed}"}}
  - {name: measure, verb: eval, runs: ["@net"], with: {data: "spiral:n=40", bootstrap: "2"}}
tables:
  - id: t
    title: T
    columns: [{id: acc, label: "accuracy %", value: /valid_accuracy, scale: 100, digits: 1}, {id: nll, label: NLL, value: sets.test.nll}]
    rows: [{id: net, label: net, runs: net, paper: {acc: "80.0"}}, {id: two, label: second, runs: net, where: {seed: 2}}]
    claims: [{text: "better than chance", holds: "net.acc > 20"}]
Y
run recipe run r.yaml --progress none
expect 0 "" "a recipe to walk"
mv results results.done
if have python3; then
    python3 - <<'P'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for c in "ab":
    os.makedirs("png/" + c)
    for i in range(2):
        body = zlib.compress(b"".join(bytes([0]) + bytes([40 * i + ord(c)] * 24) for _ in range(8)))
        with open("png/%s/%d.png" % (c, i), "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", body) + chunk(b"IEND", b""))
P
fi

# What differs between any two runs: the time it took.
timeless() { sed -E 's/"([a-z_]*seconds|rows_per_second)":[0-9.e+-]+//g' "$@"; }

# walk FILE ARGS...: FILE (- for none) is what the command writes, besides standard output. before: done ahead of each.
before=:
walk() {
    file=$1
    shift
    words=$*
    rm -f "$file"
    eval "$before"
    RT_FAIL_COUNT=count LD_PRELOAD=$shim "$RETORT" "$@" >out 2>err </dev/null
    rc=$?
    expect 0 "" "$words: works"
    timeless out >want
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
            eval "$before"
            RT_FAIL_AT=$at RT_FAIL_ALL=$all LD_PRELOAD=$shim timeout 60 "$RETORT" "$@" >out 2>err </dev/null
            rc=$?
            runs=$((runs + 1))
            why=
            if [ $rc -gt 5 ]; then
                why="code $rc"
            elif [ $rc -eq 0 ]; then
                timeless out | cmp -s want - || why="another output with code 0"
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
walk - recipe list --json
walk - recipe show r.yaml
walk - recipe show r.yaml --json
walk - recipe show end2-spiral
walk - recipe tables end2-spiral
before='rm -rf results; cp -r results.done results'
walk results/r/quick/tables.md recipe tables r.yaml
walk results/r/quick/tables.md recipe run r.yaml --progress none --threads 1
before='rm -rf results'
walk results/r/quick/tables.md recipe run r.yaml --progress none --threads 1

# Commands that make or change a run: what it holds at the end is whole, or the code says no.
before='rm -rf wide.d; cp -r wide wide.d'
walk wide.d/member-000.safetensors calibrate wide.d --reject coverage=0.5 --conformal alpha=0.3 --threads 1
walk - calibrate wide.d --dry-run --json --threads 1
before='rm -rf made'
walk made/member-001.safetensors train $data --config c.yaml --members 2 --threads 1 --out made
walk made/model.safetensors distill --teacher one $data --arch mlp:6 --method kd --epochs 1 --threads 1 --out made
walk made/model.safetensors distill --teacher one/member-000.safetensors --teacher one/member-001.safetensors --teacher other $data --arch mlp:6 --method kd --epochs 1 --threads 1 --out made
walk made/hyper.json train $data --arch mlp:6 --hyper --hyper-runs 2 --valid 10 --epochs 1 --threads 1 --out made
walk made/model.safetensors average one $data --method match --threads 1 --out made
before='rm -rf made; cp -r half made'
walk made/member-001.safetensors train --out made --resume --threads 1
before='rm -rf one; cp -r first one'
walk - eval one $data --bootstrap 5 --threads 1 --json
before=:
walk - info one --json --threads 1
walk - data spiral:n=20 --json --threads 1
walk p.csv predict one $data --out p.csv --json --threads 1
walk gathered/metrics.json gather one --out gathered --force --json --threads 1
if "$RETORT" export one --out o.onnx -q 2>/dev/null; then
    walk o.onnx export one --out o.onnx --threads 1
    walk o.onnx export one --out o.onnx --json --threads 1
fi
if [ -d png ]; then
    walk - data images:png --threads 1
    before='rm -rf few'
    walk few/b/000003.png data images:png --out images:few --threads 1 -q
fi
finish
