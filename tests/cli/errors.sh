#!/bin/sh
# Every kind of failure has its exit code, and says what is wrong.
. "$(dirname "$0")/tap.inc"
small="--data spiral:n=60 --arch mlp:8 --epochs 2"

# usage: 2
run train --data spiral --arch mlp:4
expect 2 "train needs --out" "train without --out"
run train --data spiral --out r
expect 2 "train needs --arch" "train without --arch"
run train --arch mlp:4 --out r
expect 2 "train needs --data" "train without --data"
run train $small --out r extra
expect 2 "takes flags only" "a word too many"
run eval --data spiral
expect 2 "eval needs RUN" "eval without a run"
run train $small --out r --epochs x
expect 2 "is not a whole number" "not a number"
run train $small --out r --epochs -1
expect 2 "is not a whole number from 0" "out of range"
run train $small --out --json
expect 2 "--out needs a value" "flag where a value should be"
run train $small --out r --arch nope:1
expect 2 "nope" "unknown architecture"
run train $small --out r --schedule sideways
expect 2 "sideways" "unknown schedule"
run train $small --out r --student batch-ensemble:2 --fast-init one
expect 2 "did you mean 'ones'?" "a start of the factors, mistyped"
run recipe lst
expect 2 "did you mean 'list'?" "what to do with a recipe, mistyped"
run info --arch wrn:28,1 --input 3x32
expect 2 "two numbers" "shape with two numbers"
run train -zz
expect 2 "" "unknown letter"
RETORT_ISA=axv2 run info --arch mlp:8 --input 2
expect 2 "RETORT_ISA: 'axv2', wanted none, plain" "unknown instruction set"
run predict r --data spiral --json
expect 2 "need a file" "predictions and JSON cannot share standard output"
run train $small --quiet --out good
run train $small --out good
expect 2 "good" "an existing run is not overwritten"
run train --data spiral:n=60 --arch mlp:8 --augment flip --out r
expect 2 "--augment is for images, these rows are a table" "augmentation of a table"
run distill --teacher good --data spiral:n=60 --method end2 --epochs 1 --out r
expect 2 "end2 learns how far teachers are apart; this teacher is a single network" "one teacher has no disagreement"
check "nothing was made by any of these" test ! -e r
run train --data ring:n=60 --arch mlp:4 --epochs 1 --out alone
expect 0 "every training row is of class 0" "one class: a warning"

# A file without its kind, a table that is no model, a place that cannot be written: said before any work.
for words in "rows.csv csv:rows.csv" "rows.csv,target=target csv:rows.csv,target=target" "X.npy npy:X.npy"; do
    run train --data ${words% *} --arch mlp:4 --out r
    expect 2 "the kind is missing; did you mean '${words#* }'?" "data without their kind: ${words% *}"
done
mkdir folder
run data folder
expect 2 "Say images:folder" "a directory without its kind"
echo text >some.txt
run predict good some.txt
expect 2 "its name does not say what it holds" "a file of no known kind"
run train --data spiral:n=60 --arch mpl:4 --out r
expect 2 "architecture mpl:4: unknown 'mpl'; did you mean 'mlp'?" "an architecture mistyped, with its numbers"
run eval good/config.yaml --data spiral:n=60
expect 3 "good/config.yaml: cut short, or not a safetensors file" "a text is no model"
run eval some.txt --data spiral:n=60
expect 3 "some.txt: not a safetensors file: 5 bytes" "nor is a short one"
run eval good --data spiral:n=60 --out nodir/table.csv
expect 1 "nodir/table.csv: cannot open its directory" "eval: where the table cannot go"
check "eval: known before it is measured" sh -c '! grep -q evaluation good/metrics.json'
run eval good --data spiral:n=60 --metrics acc,entropi --bootstrap 0
expect 2 "no metric is called 'entropi'; did you mean 'entropy'?" "eval: a metric mistyped"
check "eval: known before it is measured, too" sh -c '! grep -q evaluation good/metrics.json'
run eval good --data spiral:n=60 --metrics acc,nll --require 'acc<=1' --bootstrap 0 --no-save
expect 0 "" "eval: headings of the table stand for their metrics"
run predict good --data spiral:n=60 --probs p.txt
expect 2 "--probs: 'p.txt' does not end in .npy" "predict: an array by another name"
run predict good --data spiral:n=60 --logits nodir/l.npy --out p.csv
expect 1 "nodir/l.npy" "predict: one of two files cannot be written"
run export good --out good/model.safetensors
expect 2 "'good/model.safetensors' does not end in .onnx" "export: a model is not replaced by an export"
run train $small --members 2 --quiet --out pair
run average pair --data spiral:n=60 --out some.txt
expect 1 "some.txt: cannot make directory: some.txt is a file" "average: where the run cannot go"
check "average: known before the work" sh -c '! grep -q matching err'
check "nothing was made by any of these, either" test ! -e r -a ! -e p.txt -a ! -e p.csv

# The epochs of what was kept, and how an unfinished distillation goes on.
run train $small --epochs 4 --members 2 --out kept
check "train: the epochs of the kept weights" grep -Eq "kept  .*best valid (nll|accuracy): [1-4]( to [1-4])?$" err
run distill --teacher kept --data spiral:n=60 --method kd --epochs 3 --batch 30 --stop-after 2 --out begun --quiet
expect 4 "" "a distillation that is stopped"
run info begun
check "info: the command that goes on with it" grep -q "'retort distill --out begun --resume' goes on" out
check "info: no members yet" grep -q "^members *none yet" out

# Rows that are not there are not replaced by others without a word.
i=0
echo a,b,target >rows.csv
while [ $i -lt 40 ]; do
    echo "$i,$((i * i % 7)),$((i % 2))"
    i=$((i + 1))
done >>rows.csv
run train --data csv:rows.csv,task=regresion --arch mlp:4 --out r
expect 2 "unknown task 'regresion'; did you mean 'regression'?" "a task, mistyped"
run train --data csv:rows.csv,task=classification --arch mlp:4 --epochs 1 --quiet --out rows
run train --data csv:rows.csv,task=classification,test=0 --arch mlp:4 --epochs 1 --out all
expect 0 "next: retort eval all --data SPEC, of rows that it was not trained on" "train: no evaluation is advised that is refused"
run predict rows --data csv:rows.csv,test=0 --part test --out p.csv
expect 2 "csv:rows.csv,test=0 has no test rows; --part train takes those it has" "predict: test rows that are not there"
check "predict: nothing is written" test ! -e p.csv
run predict rows --data csv:rows.csv,test=0 --out p.csv
expect 0 "warning: csv:rows.csv,test=0 has no test rows; these are its 40 training rows" "predict: the rows there are, by their name"
run predict rows --data csv:rows.csv,test=0 --part train --out q.csv
check "predict: those of --part train" cmp p.csv q.csv
run data csv:rows.csv,test=0 --part test --out x.csv
expect 2 "has no test rows" "data: test rows that are not there"
run data csv:rows.csv,test=1 --part train --out x.csv
expect 3 "has no training rows" "data: training rows that are not there"
check "data: nothing is written" test ! -e x.csv

# Losses that cannot be compared are not shown side by side.
run train $small --out told
check "loss and validation of labels are of one kind" sh -c 'grep -q "^epoch 2/2  loss .*valid nll" err && grep -q "^  loss " err'
run distill --teacher good --data spiral:n=60 --epochs 1 --out kd
check "that of a distillation is of another" sh -c 'grep -q "^epoch 1/1  accuracy .*valid nll" err && ! grep -q "^  loss " err'
i=0
echo a,y >line.csv
while [ $i -lt 60 ]; do
    echo "$i,$((i * 3))"
    i=$((i + 1))
done >>line.csv
run train --data csv:line.csv,task=regression --arch mlp:4 --epochs 2 --out line
check "that of scaled targets, too" sh -c 'grep -q "^epoch 2/2  valid nll" err && ! grep -q "^  loss " err'
run train --data csv:line.csv,task=regression --arch mlp:4 --epochs 2 --valid 0 --out line0
check "where there is no validation it is shown" sh -c 'grep -q "^epoch 2/2  loss" err && grep -q "^  loss " err'

# bad input: 3
run train --data csv:absent.csv --arch mlp:4 --out r
expect 3 "absent.csv" "absent file"
printf 'a,b,target\n1,2,0\n3,x,1\n' >bad.csv
run train --data csv:bad.csv --arch mlp:4 --out r
expect 3 "bad.csv" "damaged table"
run eval nowhere --data spiral
expect 3 "nowhere" "absent run"
head -c 100 /dev/urandom >junk.safetensors
run info junk.safetensors
expect 3 "junk.safetensors" "not a model"
head -c 20 /dev/zero >junk.npy
run info junk.npy
expect 3 "junk.npy" "not an array"
run eval good --data spiral:n=60,arms=4
expect 3 "classes" "data of another kind"
head -c 300 good/model.safetensors >cut.safetensors
run eval cut.safetensors --data spiral:n=60
expect 3 "cut.safetensors" "model cut short"

# failed: 1
run train $small --out /proc/nowhere/run
expect 1 "/proc/nowhere" "a directory that cannot be made"
echo text >file
run train $small --out file/run
expect 1 "file" "a directory under a file"
if [ -c /dev/full ]; then
    for words in "--help" "eval good --data spiral:n=60" "predict good --data spiral:n=60" "eval good --data spiral:n=60 --json"; do
        "$RETORT" $words >/dev/full 2>err
        rc=$?
        expect 1 "standard output" "full device: $words"
    done
fi
"$RETORT" predict good --data spiral:n=60 2>err >&-
rc=$? # shellcheck disable=SC2034
expect 1 "standard output" "closed standard output"
run train --data spiral:n=60 --arch mlp:8 --lr 1000 --optimiser sgd --epochs 50 --out wild
expect 1 "finite" "diverging training is an error, not a model"

# interrupted: 4
run train $small --out stopped --stop-after 1
expect 4 "state saved; continue with: retort train --out stopped --resume" "stopped: how to continue"
run train --data spiral:n=60 --arch mlp:4 --epochs 1 --lr 0 --out still
expect 0 "; --lr 0 trains nothing" "advice fits the cause"
finish
