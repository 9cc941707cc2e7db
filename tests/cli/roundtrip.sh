#!/bin/sh
# Train, evaluate, predict: classification, ensemble, regression; tables, JSON, CSV, JSON lines, arrays.
. "$(dirname "$0")/tap.inc"
data=spiral:n=100,noise=0.1

run train --data $data --arch mlp:16 --members 3 --epochs 3 --out ens --json
expect 0 "epoch 3/3" "train an ensemble"
check "train --json is one object" json out
check "its version and seconds" grep -q '"retort":".*"seconds":' out
for file in config.yaml log.jsonl metrics.json member-000.safetensors member-001.safetensors member-002.safetensors; do
    check "the run has $file" test -s ens/$file
done
check "a finished run has no checkpoint" test ! -e ens/checkpoint.safetensors
check "metrics.json is an object" json ens/metrics.json
run train --data $data --arch mlp:16 --epochs 3 --out one --quiet
check "--quiet says nothing" test ! -s err -a ! -s out
run train --config ens/config.yaml --out again --quiet
check "config.yaml makes the same run" same_files ens again member-000.safetensors member-002.safetensors

run eval ens one --data $data
expect 0 "" "eval"
check "a line per run" test "$(grep -cE '^(ens|one) ' out)" -eq 2
run eval ens one ens/member-001.safetensors --data $data --json
check "eval --json is one object" json out
for key in retort seconds runs parameters flops members sets test accuracy nll brier ece single; do
    check "eval --json has $key" grep -q "\"$key\":" out
done
if have python3; then
    check "parameters of the ensemble are three times those of one" python3 -c '
import json; r = json.load(open("out"))["runs"]
assert r[0]["parameters"] == 3 * r[1]["parameters"] and r[0]["flops"] == 3 * r[1]["flops"]
assert [x["members"] for x in r] == [3, 1, 1]
s = r[0]["sets"]["test"]
assert s["single_min"]["nll"] <= s["single"]["nll"] <= s["single_max"]["nll"]
assert s["nll"] <= s["single"]["nll"] + 1e-9 # Jensen
assert abs(r[2]["sets"]["test"]["accuracy"] - s["single"]["accuracy"]) < 0.5'
fi

run predict ens --data $data
check "CSV: a heading and 300 rows" test "$(wc -l <out)" -eq 301
check "CSV: names" grep -q '^row,label,class,confidence,entropy,expected_entropy,mutual_information,probs_0,probs_1,probs_2,true_label,true_class$' out
check "CSV: probabilities sum to 1, entropy splits" awk -F, 'NR > 1 {
    s = $8 + $9 + $10 - 1; d = $5 - $6 - $7; if (s * s > 1e-10 || d * d > 1e-10 || $7 < 0) exit 1 }' out
cp out stdout.csv
run predict ens --data $data --out p.csv --logits l.npy --probs q.npy --json
expect 0 "" "predict to files"
check "predict --json is one object" json out
check "the file is what standard output was" cmp p.csv stdout.csv
run predict ens --data $data --out p.jsonl --limit 7 --batch 3 --threads 3
check "JSON lines" test "$(grep -c '^{"row":.*"probs":\[.*\],"true_label":[012],"true_class":"[012]"}$' p.jsonl)" -eq 7
run predict ens --data $data --out p.npy
run info l.npy
check "logits are N x M x K" grep -q 'shape 300x3x3' out
run info p.npy
check "mean probabilities are N x K" grep -q 'shape 300x3' out
run predict one --data $data --logits l1.npy
run info l1.npy --json
check "logits of one network are N x K" grep -q '"shape":\[300,3\]' out
run predict ens --data $data --out p.xlsx
expect 2 ".csv" "unknown format"

awk 'BEGIN { print "x,y,target"; for (i = 0; i < 200; i++) { a = (i * 37 % 200) / 100 - 1; b = (i * 91 % 200) / 100 - 1
    print a "," b "," 3 * a - b + 10 } }' >reg.csv
run train --data csv:reg.csv,target=target,task=regression --arch mlp:16 --members 2 --epochs 5 --lr 0.01 --out reg --quiet
expect 0 "" "train a regression"
run eval reg --data csv:reg.csv,target=target,task=regression --json
check "regression has rmse and nll" grep -q '"nll":.*"rmse":' out
run predict reg --data csv:reg.csv,target=target,task=regression
check "regression: names" grep -q '^row,mean,total_variance,data_variance,knowledge_variance,true_value$' out
check "regression: variances add up" awk -F, 'NR > 1 { d = $3 - $4 - $5; if (d * d > 1e-6 * $3 * $3 || $4 < 0 || $5 < 0) exit 1 }' out
run predict reg --data csv:reg.csv,target=target,task=regression --probs q.npy
expect 2 "regression" "a regression has no probabilities"

run data $data
check "data: rows and classes" grep -q 'classification, 3 classes' out
run data $data --json
check "data --json is one object" json out
run data $data --out s.csv
run data csv:s.csv --json
check "what data writes it reads" test "$rc" -eq 0
run info ens
check "info of a run" grep -q '^members  *3' out
run info ens/member-000.safetensors --json
check "info --json of a model is one object" json out
run info --arch wrn:28,1 --input 3x32x32 --json
check "info of an architecture: parameters" grep -q '"parameters":369498' out
run info --arch mlp:8 --input 4 --plan
check "info --plan shows kernels" grep -q '^lap 0' out
run bench --arch mlp:16 --input 8 --classes 3 --batch 16 --members 2 --budget 0.05 --json
check "bench --json is one object" json out
for key in train_samples_per_s infer_samples_per_s peak_rss_bytes threads attainable_fraction; do
    check "bench --json has $key" grep -q "\"$key\":[0-9]" out
done
# One notation: what the last epoch says is what the summary says.
run train --data spiral:n=60 --arch mlp:8 --epochs 2 --keep last --out note
check "epochs and summary speak alike" awk '/^epoch 2\/2/ { for (i = 1; i < NF; i++) if ($i == "valid") line[$(i + 1)] = $(i + 2) } /^  valid/ { if (line[$2] != $3) exit 1; n++ } END { exit n != 2 }' err
finish
