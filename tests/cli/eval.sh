#!/bin/sh
# eval: the JSON object, metrics.json, foreign and corrupted data, requirements, several runs, agreement, formats, errors.
. "$(dirname "$0")/tap.inc"
data="--data spiral:n=60,noise=0.2"
how="--epochs 3 --batch 32 --optimiser adam --lr 0.01 --quiet"
few="--bootstrap 20"

# has FILE PATH...: the JSON value at each path exists; without Python the last key is looked for.
has() {
    file=$1
    shift
    if have python3; then
        python3 - "$file" "$@" <<'END'
import json, sys
tree = json.load(open(sys.argv[1]), parse_constant=lambda c: 1 / 0)
for path in sys.argv[2:]:
    at = tree
    for key in path.split("/"):
        at = at[int(key)] if isinstance(at, list) else at[key]
END
    else
        for path in "$@"; do grep -q "\"${path##*/}\":" "$file" || return 1; done
    fi
}

run train $data --arch mlp:12 --members 2 $how --out ens
run train $data --arch mlp:12 --valid 0 $how --out one
cp ens/metrics.json before.json

run eval ens one ens/member-000.safetensors $data $few --ood far=spiral:n=20,noise=4 --against ens --json
expect 0 "" "eval of three runs"
check "one JSON object" json out
check "its keys" has out retort seconds data runs/0/run runs/0/arch runs/0/student runs/0/method runs/0/task runs/0/members runs/0/parameters \
    runs/0/flops runs/0/training_seconds runs/0/infer_seconds runs/0/data runs/0/data_hash runs/0/classes/2 runs/0/command
test="runs/0/sets/test"
check "metrics of the test rows" has out $test/rows $test/accuracy $test/nll $test/brier $test/ece $test/temperature $test/nll_calibrated \
    $test/ece_calibrated $test/entropy $test/expected_entropy $test/mutual_information $test/epkl $test/diversity $test/disagreement $test/prr \
    $test/interval/nll/1 $test/misclassification/auroc/entropy $test/misclassification/aupr/confidence $test/misclassification/prr/epkl \
    $test/single/nll $test/single_min/nll $test/single_max/nll
check "class by class" has out $test/balanced_accuracy $test/per_class/rows/2 $test/per_class/recall/2 $test/per_class/precision/2 $test/per_class/confidence/2 \
    $test/per_class/ece/2 $test/confusion/2/2
check "foreign rows" has out runs/0/sets/ood:far/rows runs/0/sets/ood:far/spec runs/0/sets/ood:far/entropy runs/0/sets/ood:far/confidence \
    runs/0/sets/ood:far/auroc/mutual_information runs/0/sets/ood:far/aupr/entropy runs/0/sets/ood:far/interval/auroc_entropy/1
check "agreement" has out runs/1/sets/against/teacher runs/1/sets/against/kl runs/1/sets/against/mutual_information_difference_reason \
    runs/1/sets/against/entropy_difference runs/1/sets/against/agreement
check "no curves in what is printed" sh -c '! grep -q "\"curves\"" out'
check "why there is no temperature: nothing held out" grep -q '"temperature":null,"temperature_reason":"the run held out no' out
check "why there is no temperature: a file" grep -q '"temperature":null,"temperature_reason":"a model file' out
check "metrics.json keeps what training wrote" sh -c 'grep -v "^}" before.json | sed "\$s/\$/,/" >head && head -n "$(wc -l <head)" ens/metrics.json | cmp - head'
evaluation="evaluation/curves"
check "and has the evaluation" has ens/metrics.json evaluation/sets/test/nll $evaluation/reliability/count/14 $evaluation/rejection/oracle/100 \
    $evaluation/rejection/fraction/100 $evaluation/roc/misclassification/entropy/fpr/1 $evaluation/roc/ood:far/entropy/tpr/1 \
    $evaluation/histogram/entropy/edges/50 $evaluation/histogram/entropy/test_wrong/49 $evaluation/histogram/entropy/ood:far/49 \
    evaluation/pictures/map/total evaluation/pictures/map/extent/3
check "and pictures" test -s ens/pictures/map-knowledge.png
cp ens/metrics.json first.json
run eval ens $data --bootstrap 0 --no-save --json
check "--no-save leaves it alone" cmp ens/metrics.json first.json
check "--bootstrap 0: no intervals" sh -c '! grep -q interval out'
run eval ens $data $few --threads 1 --json
sed 's/seconds":[^,}]*//g; s/"command[^,]*//; s/ --threads 1//' out >a
run eval ens $data $few --threads 3 --json
sed 's/seconds":[^,}]*//g; s/"command[^,]*//; s/ --threads 3//' out >b
check "the same whatever the threads" cmp a b
check "evaluated again: one evaluation" test "$(grep -c '"evaluation"' ens/metrics.json)" -eq 1
run train --out ens --resume --quiet
expect 0 "" "training knows the run as finished"

# Tables
run eval ens one $data $few --ood far=spiral:n=20,noise=4
check "a best value is marked" grep -q '[0-9]\*' out
check "at most 100 columns" sh -c '! grep -q ".\{101\}" out'
run eval ens one $data $few --format markdown
check "Markdown" grep -q '^| ens | 2 | ' out
run eval ens one $data $few --format latex
check "LaTeX" grep -q 'begin{tabular}' out
run eval ens one $data $few --out table.csv --metrics accuracy,nll
check "CSV by the name of the file" grep -q '^run,task,arch,student,method,members,accuracy,accuracy.lo,accuracy.hi,nll' table.csv
check "--metrics: no other columns" sh -c '! grep -q brier out'
run eval ens $data $few --out table.json --quiet
check "JSON by the name of the file" has table.json runs/0/sets/test/nll
run eval ens $data --out table.doc
expect 2 ".csv, .md" "a name that says no format"
run eval ens $data --metrics accurcy
expect 2 "did you mean 'accuracy'" "an unknown column"

# Requirements
run eval ens one $data $few --require 'accuracy>0' --require 'ece <= 1'
expect 0 "" "requirements that are met"
run eval ens one $data $few --require 'accuracy>0' --require 'nll<0' --require 'test.temperature<1e9'
expect 5 "ens: nll is" "a requirement that is not met: exit code 5"
check "the table is printed all the same" grep -q '^one' out
check "the other run is named, too" grep -q 'one: nll is .*one: test.temperature is the run held out no' err
run eval ens $data $few --require 'sets.test.nll>0' --require 'test/nll > 0' --require '/evaluation/sets/test/nll>0' --metrics nll,sets/test/nll
expect 0 "" "a number by other spellings of its path"
check "and as a column" grep -q 'nll .*nll' out
run eval ens $data --require 'nll'
expect 2 "no comparison" "not a requirement"
run eval ens $data $few --require 'nlll<1'
expect 2 "no metric is called 'nlll'; did you mean 'nll'?" "an unknown metric in a requirement"
run eval ens $data $few --require 'test.sharpness<1'
expect 2 "no number 'test.sharpness'" "a number that is not there"
cat >eval.yaml <<'END'
data: spiral:n=60,noise=0.2
bootstrap: 0
ood: [far=spiral:n=20, near=spiral:n=10]
END
run eval ens --config eval.yaml --json --no-save
check "a list in YAML" has out runs/0/sets/ood:far/rows runs/0/sets/ood:near/rows

# Images: corruptions, shifts, foreign sets of another shape
if /usr/bin/env python3 -c 'import struct' 2>/dev/null; then
    python3 - <<'END'
import struct
def npy(name, shape, kind, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
n, c, h = 60, 1, 12
x = bytes((i // (h * h)) % 3 * 60 + (i * 7919) % 90 for i in range(n * c * h * h))
npy("x.npy", (n, c, h, h), "|u1", x)
npy("y.npy", (n,), "<i4", struct.pack("<%di" % n, *(i % 3 for i in range(n))))
z = bytes((i * 31) % 256 for i in range(20 * 3 * 16 * 16))
npy("z.npy", (20, 3, 16, 16), "|u1", z)
npy("zy.npy", (20,), "<i4", struct.pack("<20i", *range(20)))
END
    images="--data npy:x.npy,y.npy"
    run train $images --arch mlp:8 --members 2 $how --out pics
    run eval pics $images $few --corrupt gaussian_noise,fog --shift rotate,roll --ood other=npy:z.npy,zy.npy --json
    expect 0 "" "corrupted and shifted images"
    check "JSON of corruptions" has out runs/0/sets/corrupt/accuracy_corrupted runs/0/sets/corrupt/nll_corrupted runs/0/sets/corrupt/brier_corrupted \
        runs/0/sets/corrupt/ece_corrupted runs/0/sets/corrupt/nll_calibrated_corrupted runs/0/sets/corrupt/ece_calibrated_corrupted \
        runs/0/sets/corrupt/severity/accuracy/4 runs/0/sets/corrupt/types/fog/severity/4 runs/0/sets/corrupt/types/gaussian_noise/ece/4
    check "JSON of shifts" has out runs/0/sets/shift:rotate/unit runs/0/sets/shift:rotate/severity/11 runs/0/sets/shift:rotate/mutual_information/11 runs/0/sets/shift:roll/nll/1
    check "a sheet of the least certain" has pics/metrics.json evaluation/pictures/least_certain/file evaluation/pictures/least_certain/items/0/confidence
    check "as a picture" test -s pics/pictures/least-certain.png
    run eval pics $images --corrupt fogg
    expect 2 "fog" "an unknown corruption"
    run eval pics $images --shift turn
    expect 2 "turn" "an unknown shift"
fi

# Two runs side by side
run info --compare ens one
expect 0 "" "info --compare"
check "the configuration that differs" grep -q '^members  *2  *1$' out
check "and not what is the same" sh -c '! grep -q "^batch" out'
check "metrics side by side" grep -q '^one  *1  *[01]\.' out
run info --compare ens one --json
check "as JSON" has out configuration/members/1 network/parameters/1 training/epochs/1 metrics/nll/1
run info --compare ens
expect 2 "two runs" "one run is not two"

# Errors
run eval ens $data --corrupt benchmark
expect 2 "spiral" "corruptions of what is no image"
run eval ens $data --ood far
expect 2 "NAME=SPEC" "a foreign set without a name"
run eval ens $data --ood a=spiral:n=5 --ood a=spiral:n=6
expect 2 "named 'a'" "two foreign sets of one name"
cp ens/metrics.json before.json
run eval ens nowhere $data
expect 3 "nowhere" "one bad run of two"
check "nothing is stored" cmp ens/metrics.json before.json
printf '{"broken": ' >one/metrics.json
run eval one $data $few
expect 1 "not stored" "metrics.json that is no JSON: not stored, and that is a failure"
check "the result is printed all the same" grep -q "^one " out
check "and it is left alone" grep -q broken one/metrics.json
run eval one $data --no-save
check "an empty cell has its reason below the table" grep -q "mut.inf: needs" out
run eval ens one $data $few --per-class --no-save
expect 0 "" "eval --per-class"
check "a column of balanced accuracy" grep -q 'acc *bal.acc' out
check "tables by class" sh -c 'grep -q "^recall by class" out && grep -q "^precision by class" out && grep -q "^calibration error" out'
check "a confusion matrix for each run whose rows are the test rows" awk '/rows of a class/ { n++; getline; getline; for (i = 0; i < 3; i++) { getline; for (k = 2; k <= 4; k++) sum[n] += $k } } END { exit !(n == 2 && sum[1] == 180 && sum[2] == 180) }' out
run eval ens $data $few --per-class --no-save --format markdown
check "and in markdown" grep -q '^| class |  *0 |' out

# What one network cannot know is not 0 in its predictions, either.
run predict one $data --out one.csv --uncertainty u.npy
check "predict, one network: mutual_information is empty" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "mutual_information") at = i; next } at && $at != "" { exit 1 } END { exit !at }' one.csv
run predict one $data --out one.jsonl
check "null in .jsonl" sh -c 'grep -q "\"mutual_information\":null" one.jsonl && ! grep -q "\"mutual_information\":0" one.jsonl'
if python3 -c 'import numpy' 2>/dev/null; then
    check "NaN in .npy" python3 -c 'import numpy; u = numpy.load("u.npy"); assert numpy.isnan(u[:, 2]).all() and (u[:, :2] > 0).all()'
fi
run predict ens $data --out ens.csv
check "predict, two networks: a number" awk -F, 'NR > 1 && $7 == "" { exit 1 }' ens.csv

# Names of classes: lines, bars, commas, escapes, and two that begin alike.
awk 'BEGIN { print "a,b,c"; n[0] = "\"two\nlines|pipe\""; n[1] = "customer_kept"; n[2] = "customer_lost"; n[3] = "\"pro, gold\""; n[4] = "\303\244\303\266"
    for (i = 0; i < 200; i++) print i % 5 * 3 + i % 2 "," i % 7 "," n[i % 5] }' >names.csv
odd="n$(printf '\033')[1m"
run train --data csv:names.csv,target=c,test=0.2 --arch mlp:4 --epochs 1 --out "$odd"
expect 0 'train   144 rows: customer_kept 28, customer_lost 29, "pro, gold" 29, "two?lines|pipe" 29, äö 29' "names in the line of a part"
run eval "$odd" --data csv:names.csv,target=c,test=0.2 --per-class $few
check "class by class: a line for each class and run" sh -c 'grep -q "two?lines|pipe" out && ! grep -q "^lines" out'
check "no escape of a run's name" sh -c '! grep -q "$(printf "\033")" out && grep -qF "n?[1m: rows of a class" out'
check "a heading for each class, by number where names are long" grep -q '^class  *0  *1  *2  *3  *4$' out
check "and rows with both" sh -c 'grep -q "^0 customer_kept  *[0-9]" out && grep -q "^1 customer_lost  *[0-9]" out'
check "columns of characters, not bytes" sh -c 'LC_ALL=C sed -n "/^class  *0/,\$p" out | sed "s/äö/xy/" | awk "{ print length }" | sort -u | wc -l | grep -qx 1'
run eval "$odd" --data csv:names.csv,target=c,test=0.2 --per-class $few --format markdown --no-save
check "markdown: as many cells in each line" sh -c 'sed -n "/^| class/,\$p" out | sed "s/\\\\|//g" | awk -F"|" "NF != 8 { exit 1 }"'
run eval "$odd" --data csv:names.csv,target=c,test=0.2 --per-class $few --format latex --no-save
check "latex: one line" sh -c '! grep -q "^lines" out'
run info --compare "$odd" "$odd"
check "info --compare: no escape either" sh -c '! grep -q "$(printf "\033")" out'

# Rows that a run was trained on are no test rows.
awk 'BEGIN { print "a,b,c"; for (i = 0; i < 90; i++) print i % 7 "," i % 5 "," (i % 3 ? "yes" : "no") }' >all.csv
sed 's/^3,/3.5,/' all.csv >unseen.csv
run train --data csv:all.csv,target=c,test=0 --arch mlp:4 $how --out seen
run report seen --out seen.html
expect 0 "next: retort eval seen --data SPEC" "the command that is advised is not one that is refused"
run eval seen --data csv:all.csv,target=c,test=0 $few
expect 3 "no test rows" "training rows are not called test rows"
run eval seen/model.safetensors --data csv:all.csv,target=c,test=0 --limit 40 $few
expect 3 "no test rows" "nor are some of them, or for a file"
run eval seen --data csv:unseen.csv,target=c,test=0 $few
expect 0 "" "others in a single part are"
run eval seen --data csv:all.csv,target=c $few
expect 3 "csv:all.csv,target=c has other test rows than csv:all.csv,target=c,test=0" "nor are they drawn from the rows of a run without any"
run train --data csv:all.csv,target=c --arch mlp:4 $how --out drawn
for other in csv:all.csv,target=c,seed=3 csv:all.csv,target=c,test=0.5 csv:./all.csv,target=c,test=1 "csv:$work/all.csv,target=c,test=0"; do
    run eval drawn --data "$other" $few
    expect 3 "" "nor by another division of its file: $other"
done
run eval drawn --data "csv:$work/all.csv,target=c,test=0.10,seed=0" $few
expect 0 "" "the same division in other words is"
run eval drawn --data csv:unseen.csv,target=c,test=1,seed=3 $few
expect 0 "" "another file is divided as one likes"

# Regressions have no entropies.
awk 'BEGIN { print "a,y"; for (i = 0; i < 120; i++) print i "," i * 0.37 }' >line.csv
for members in 2 3; do
    run train --data csv:line.csv --arch mlp:4 --members $members --epochs 2 --quiet --out line$members
done
run eval line2 line3 --data csv:line.csv --against line3 --bootstrap 0
check "agreement of regressions is of variances" sh -c 'grep -q "kl *total var diff *know.var diff" out && ! grep -q "entropy\|mut.inf" out'
run report line2 line3 --out line.html
check "on the page, too" sh -c 'grep -q "knowledge variance gap" line.html && ! grep -q "entropy gap" line.html'
finish
