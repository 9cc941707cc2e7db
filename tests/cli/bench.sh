#!/bin/sh
# retort bench, and that the programs of bench/ are well-formed. Speed itself is not tested.
. "$(dirname "$0")/tap.inc"

rows_add_up() { # shares of both tables are of one step; every figure is a positive number
    python3 -c '
import json
d = json.load(open("out"))
assert d["threads"] == 1 and d["step_seconds"] > 0 and d["peak_gflops"] > 0 and d["bandwidth_gb_per_s"] > 0
for rows in d["kinds"], d["layers"]:
    assert abs(sum(r["share"] for r in rows) - 1) < 1e-3
    assert abs(sum(r["seconds"] for r in rows) - d["step_seconds"]) < 1e-3 * d["step_seconds"]
    for r in rows:
        assert r["seconds"] >= 0 and r["flops"] >= 0 and r["bytes"] > 0 and r["count"] > 0, r
        least = max(r["flops"] / d["peak_gflops"], r["bytes"] / d["bandwidth_gb_per_s"]) * 1e-9
        assert r["limit_fraction"] * r["seconds"] >= least * 0.999, r
assert len(d["kinds"]) < len(d["layers"])
assert sum(r["flops"] for r in d["kinds"]) == sum(r["flops"] for r in d["layers"])
have = {r["kind"] for r in d["kinds"]}
want = set("'"$1"'".split(";"))
assert want <= have, want - have'
}

run bench --arch mlp:16,16 --input 8 --classes 3 --batch 64 --budget 0.05 --layers --json
expect 0 "" "bench --layers of an mlp"
check "bench --layers --json is one object" json out
have python3 && check "shares add up (mlp)" rows_add_up "dense;dense, data gradient;dense, weight gradient;update"
run bench --arch wrn:10,1 --input 3x8x8 --classes 3 --batch 16 --members 2 --budget 0.05 --layers --json
expect 0 "" "bench --layers of two convolutional networks"
have python3 && check "shares add up (wrn)" rows_add_up "convolution;convolution, data gradient;convolution, weight gradient;update"
run bench --arch mlp:16 --input 8 --classes 3 --batch 64 --student hydra:2 --objective one-to-one --budget 0.05 --layers
expect 0 "" "bench --layers of a distillation"
check "bench --layers as text ends with the whole step" grep -q '^the step .* 100\.0 %' out
run bench --arch mlp:16 --input 8 --threads 2 --layers
expect 2 "--layers times one thread" "bench --layers wants one thread"
run bench --arch mlp:16 --input 8 --members 2 --perm --layers
expect 2 "--perm" "bench --layers is not for --perm"

if have python3; then
    for file in "$RT_SOURCE_DIR"/bench/run "$RT_SOURCE_DIR"/bench/*.py; do
        check "bench/$(basename "$file") is Python" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file"
    done
    check "bench/jobs.json: names are distinct, floors are numbers" python3 -c '
import json, sys
jobs = json.load(open(sys.argv[1]))["jobs"]
assert len({j["name"] for j in jobs}) == len(jobs)
for j in jobs:
    assert j["measure"] in ("train", "infer", "memory", "perm"), j
    assert all(j[k] > 0 for k in ("floor", "floor_ort", "ceiling") if k in j), j' "$RT_SOURCE_DIR/bench/jobs.json"
fi
if have node; then
    for file in "$RT_SOURCE_DIR"/bench/*.js; do
        check "bench/$(basename "$file") is JavaScript" node --check "$file"
    done
fi
finish
