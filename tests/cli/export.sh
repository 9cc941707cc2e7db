#!/bin/sh
# retort export: files that check themselves, names that are refused, nothing half written.
. "$(dirname "$0")/tap.inc"
if ! "$RETORT" export --help | grep -q onnx; then
    ok 1 "export has a help"
fi
run train --data spiral:n=300 --arch mlp:16 --members 3 --epochs 4 --out teacher --quiet
run export teacher --out teacher.onnx --json
if grep -q 'built without ONNX' err; then
    ok 0 "a program without ONNX says so"
    echo "skipped: built without ONNX"
    finish
    exit
fi
expect 0 "checked on 64 rows (held-out rows)" "an ensemble becomes one file, checked on rows it held out"
check "JSON names the outputs" grep -q '"outputs":\["probs","label","confidence","entropy","expected_entropy","mutual_information","epkl","member_probs"\]' out
grep -oE '"max_abs_difference":[0-9.e-]+' out | cut -d: -f2 >difference
check "the difference is small" awk '{ exit !($1 < 1e-5) }' difference
check "the file says how its check went" grep -q '"max_abs_difference":[0-9.e-]*,"rounding":[0-9.e-]*,"rows":64,"rows_from":"held-out rows"' teacher.onnx
check "weights have their names" grep -q 'members.2.layers.1.weight' teacher.onnx
for method in kd end2 proxy-end2 be-head be-knowledge latent-be hydra; do
    run distill --teacher teacher --data spiral:n=300 --arch mlp:16 --method $method --epochs 4 --out student --quiet --force
    run export student --out student.onnx
    expect 0 "checked on 64 rows" "$method is exported"
done
run export teacher --out a.onnx --opset 13 --outputs label,mutual_information
expect 0 "outputs label,mutual_information" "chosen outputs, an older opset"
cp a.onnx before.onnx
run export teacher --out a.onnx --outputs label,colour
expect 2 "\"colour\" is not known; this model has probs, label" "an unknown output is refused, with the known ones"
run export teacher --out a.onnx --outputs mean
expect 2 "there is no mean: the model is a classifier" "what the model cannot say is refused"
run export teacher --out a.onnx --opset 12
expect 2 "13 to 17" "an opset that is too old is refused"
run export teacher --out a.onnx --format csv
expect 2 "wanted one of onnx" "an unknown format is refused"
check "the file that was there is as it was" cmp a.onnx before.onnx
run export teacher
expect 2 "--out" "where to is asked for"
run export nothere --out b.onnx
expect 3 "nothere" "a run that is not there"
run export teacher --out missing/b.onnx
check "a directory that is not there is an error" test "$rc" -ne 0
(ulimit -f 1; "$RETORT" export teacher --out small.onnx >out 2>err)
rc=$?
check "a full disk is an error" test "$rc" -eq 1
check "and leaves nothing" test -z "$(ls | grep small)"
if [ -w /dev/full ]; then
    mkdir full && ln -s /dev/full full/x.onnx
    run export teacher --out full/x.onnx
    check "a device without room is an error, or the link is replaced by a whole file" sh -c '[ "$1" -ne 0 ] || [ -s full/x.onnx ]' sh "$rc"
fi
# /sys takes no new files, from root either
run export teacher --out /sys/b.onnx
check "a directory that may not be written is an error" test "$rc" -eq 1
check "that names the file" grep -q '/sys/b.onnx' err
run export teacher --out before.onnx/b.onnx
check "a file in the place of the directory is an error" test "$rc" -ne 0
# killed at any moment: the file that was there, or the new one, whole
killed=0
for pause in 0 0.005 0.01 0.02 0.03 0.05; do
    cp before.onnx k.onnx
    "$RETORT" export teacher --out k.onnx -q &
    pid=$!
    sleep "$pause"
    kill -9 "$pid" 2>/dev/null && killed=$((killed + 1))
    wait "$pid" 2>/dev/null
    cmp -s k.onnx before.onnx || cmp -s k.onnx teacher.onnx || { ok 1 "killed after $pause s, the file is neither the old nor the new one"; break; }
done
ok 0 "killed $killed times, the file is the old or the new one"
# Dirichlets beyond what a float can exponentiate
if /usr/bin/python3 -c "import numpy" 2>/dev/null; then
    run distill --teacher teacher --data spiral:n=300 --arch mlp:16 --method end2 --epochs 20 --out d --quiet
    for factor in 100 -100; do
        /usr/bin/python3 "$RT_SOURCE_DIR/tests/golden/scale_outputs.py" d scaled "$factor"
        run export scaled --out scaled.onnx
        expect 0 "checked on 64 rows" "a Dirichlet with outputs times $factor is exported"
    done
fi
run distill --teacher teacher --data spiral:n=300 --arch mlp:16 --method kd --epochs 2 --out kd --quiet
run export kd --out kd.onnx --outputs probs,mutual_information
expect 2 "a single network has no knowledge uncertainty" "knowledge of a single network is refused"
printf 'x,y\n' >t.csv
awk 'BEGIN { for (i = 0; i < 120; i++) printf "%g,%g\n", i / 10, 50 + 3 * i + (i * 7919) % 13 }' >>t.csv
run train --data csv:t.csv,target=y,task=regression --arch mlp:8 --members 2 --epochs 5 --out line --quiet
run export line --out line.onnx
expect 0 "mean,variance,data_variance,knowledge_variance" "a regression is exported"
run export line --out line2.onnx --outputs probs
expect 2 "there is no probs: the model is a regression" "asked for classes it says what it is"
run export line/member-001.safetensors --out one.onnx
expect 0 "a model file does not say which rows were held out" "a model file is checked on drawn rows"
finish
