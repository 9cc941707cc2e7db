#!/bin/sh
# Networks averaged by the program: methods, the run it leaves, threads, what is refused.
. "$(dirname "$0")/tap.inc"
data="--data spiral:n=60,noise=0.2"
how="--epochs 3 --batch 32 --optimiser adam --lr 0.01 --quiet"

run train $data --arch mlp:12,8 --members 3 $how --out teacher
expect 0 "" "three networks"
for method in naive match perm soup greedy-soup; do
    run average teacher $data --method $method --quiet --out $method
    expect 0 "" "method $method runs"
    check "$method prints a table" grep -q "average of" out
    check "$method leaves metrics" json $method/metrics.json
done
run average teacher $data --out unsaid --quiet --threads 3
expect 0 "" "no method: perm"
check "with other threads: the same model" same_files perm unsaid model.safetensors
check "what was distilled is called so, and nothing else" sh -c 'if grep -q "\"distilled\": *true" unsaid/metrics.json
    then grep -q "permAVG + distillation" out; else ! grep -q distillation out; fi'
check "config.yaml says so" grep -q 'method: "perm"' unsaid/config.yaml
run average teacher $data --out plain --quiet --perm-distill 0
check "and of a mean" grep -q '^average of 3 ' out
check "a picture of a permutation" test -s match/pictures/P-layers.0-1.png
for key in row_entropy distance_after std_after correlation_after interpolation permuted ensemble; do
    check "metrics.json has $key" grep -q "\"$key\"" match/metrics.json
done
run average teacher/member-000.safetensors teacher/member-001.safetensors $data --match-to running --no-repair --out two --json
expect 0 "" "two files"
check "--json is JSON" json out
run eval match two $data --no-save
expect 0 "" "averages are ordinary runs"
run distill --teacher match $data --method kd $how --out student
expect 0 "" "and can teach"

# Rows are those of the runs, and so is the temperature
run train $data --arch mlp:12,8 --members 2 $how --valid 0.3 --valid-shuffle --seed 4 --out drawn
run average drawn $data --method match --out drawn-mean
expect 0 "" "runs that drew their validation rows"
check "the average holds out the same" grep -q '^valid-shuffle: true' drawn-mean/config.yaml
run eval drawn-mean $data --bootstrap 0
expect 0 "" "is measured"
check "with a temperature from them" grep -Eq '"temperature": ?[0-9]' drawn-mean/metrics.json
run average drawn $data --valid 0.1 --out none
expect 2 "these are not the" "other rows than those of the runs"
run train $data --arch mlp:12,8 --members 2 $how --valid 0 --out all-rows
run average all-rows $data --method match --quiet --out all-rows-mean
expect 0 "" "runs that held out nothing"
run eval all-rows-mean $data --bootstrap 0
check "have no temperature" grep -q 'held out no validation rows' all-rows-mean/metrics.json
run average all-rows $data --method greedy-soup --out none
expect 2 "held out none" "nothing to choose by"
run average teacher $data --method soup --out strangers
expect 0 "warning: the models do not share an initialisation" "a soup of strangers"
check "metrics.json says so, too" grep -q '"warning"' strangers/metrics.json
run average teacher $data --method naive --out naive-strangers
expect 0 "warning: the models do not share an initialisation" "their mean as it is"
run average teacher $data --method greedy-soup --out greedy-strangers
expect 0 "" "a greedy soup of strangers"
check "which warns only of a mean" sh -c 'if grep -q "^average of 1 " out; then ! grep -q "share an init" err; else grep -q "share an init" err; fi'

# Progress with the time left, where it takes long enough, and an end in between
env --default-signal=INT "$RETORT" average teacher $data --perm-epochs 1000000 --progress plain --out stopped >out 2>err </dev/null &
pid=$!
for i in $(seq 60); do # the first such line comes after a while
    grep -q 'learning permutations  .* left' err && break
    sleep 0.5
done
check "progress in a pipe, with the time left" grep -q '[0-9]%  learning permutations  [0-9:]* left' err
kill -INT $pid
wait $pid
rc=$?
expect 4 "interrupted; no run was written" "interrupted"
check "and nothing was written" test ! -e stopped

# Regression
awk 'BEGIN { srand(1); print "a,b,y"; for (i = 0; i < 200; i++) { a = rand(); b = rand(); print a "," b "," 3 * a - b } }' >table.csv
run train --data csv:table.csv,target=y --arch mlp:8 --members 2 $how --out regression
expect 0 "" "a regression"
run average regression --data csv:table.csv,target=y --out regression-mean
expect 0 "" "is averaged"
check "by matching" grep -q 'method: "match"' regression-mean/config.yaml
check "judged by its loss" grep -q "valid loss" out

# What does not fit
run average teacher $data --out match
expect 2 "finished run" "a finished run is not overwritten"
run average teacher $data --out match --force --quiet
expect 0 "" "but with --force"
run average teacher $data --method mtach --out none
expect 2 "did you mean 'match'" "an unknown method"
run average teacher/member-000.safetensors $data --out none
expect 2 "two or more" "one network"
run train $data --arch mlp:12 $how --out other
run average teacher other $data --out none
expect 3 "teacher is mlp:12,8 and other is mlp:12" "another architecture"
run train --data spiral:n=50,noise=0.2 --arch mlp:12,8 $how --out rows
run average teacher rows $data --out none
expect 3 "different rows" "another standardisation"
run average teacher --data spiral:n=60,arms=2 --out none
expect 3 "classes" "data of other classes"
for names in 'cat dog' 'dog eel'; do # the second network calls its classes otherwise
    echo "$names" | awk '{ print "u,v,kind"; for (i = 0; i < 80; i++) print i % 7 "," i % 5 "," (i % 2 ? $1 : $2) }' >"${names% *}.csv"
    run train --data csv:${names% *}.csv,target=kind,task=classification --arch mlp:4 $how --out "${names% *}"
    expect 0 "" "a network for $names"
done
run average cat dog --data csv:cat.csv,target=kind,task=classification --out none
expect 3 "class 0 is 'cat' in cat and 'dog' in dog" "classes of another order"
run train $data --arch mlp:12,8 --student batch-ensemble:2 $how --out be
run average be teacher $data --out none
expect 2 "only plain networks" "a student of another kind"
check "and nothing is left behind" test ! -e none
run average teacher $data --method naive --models 2 --first-model 3 --out few
expect 2 "there are" "more networks than there are"
finish
