#!/bin/sh
# From a teacher to students, by the program: methods, stored outputs, evaluation without being told what a model is, interruptions.
. "$(dirname "$0")/tap.inc"
data="--data spiral:n=60,noise=0.2"
how="--epochs 3 --batch 32 --optimiser adam --lr 0.01 --quiet"

run train $data --arch mlp:12 --members 3 $how --out teacher
expect 0 "" "a teacher"
for method in kd ae-kd be-head be-knowledge latent-be end2 proxy-end2 hydra; do
    run distill --teacher teacher $data --method $method $how --out $method
    expect 0 "" "method $method runs"
done
run distill --teacher teacher $data --method prior-net --aux spiral:n=20,noise=3 $how --out prior-net
expect 0 "" "method prior-net runs with --aux"
run eval teacher kd be-head latent-be end2 proxy-end2 prior-net hydra $data --json
check "eval of all of them is JSON" json out
for run in end2 proxy-end2 prior-net be-head hydra; do
    run predict $run $data --limit 3 --out $run.csv
    check "predict $run has three lines of uncertainty" test "$(grep -c ',' $run.csv)" -eq 4
done

run distill --teacher teacher $data --method be-head --init-from-teacher match $how --out matched
expect 0 "" "a start at renumbered teachers"
check "is nearer to them than at teachers as they are" sh -c 'head -n 1 matched/log.jsonl |
    sed "s/.*residual\":\([0-9.e-]*\),\"reconstruction_residual_unmatched\":\([0-9.e-]*\),.*/\1 \2/" | awk "{ exit !(\$1 > 0 && \$1 < 0.99 * \$2) }"'
run distill --teacher teacher $data --method be-head --init-from-teacher match --teacher-pull 0.1 $how --out pulled
expect 2 "one or the other" "which cannot be pulled to the teachers as they are"
run distill --teacher teacher $data --method be-head --init-from-teacher $how --out init
check "the log has how far each kernel is from BatchEnsemble form" grep -q '"kernel":"layers.0.weight","residual":[0-9]' init/log.jsonl

# Stored outputs: those of the training part, written by predict.
run predict teacher $data --part train --logits logits.npy
expect 0 "" "predict --part train --logits"
run distill --teacher logits:logits.npy $data --arch mlp:12 --method latent-be $how --out stored
expect 0 "" "a student of stored outputs"
run distill --teacher logits:logits.npy $data --arch mlp:12 --method latent-be $how --out stored2 --threads 3
check "again, with other threads: the same model" same_files stored stored2 model.safetensors members.safetensors
run predict teacher $data --logits test.npy
run distill --teacher logits:logits.npy $data --arch mlp:12 --method kd --augment flip $how --out moved
expect 2 "stored outputs are those of the rows as they are" "stored outputs of rows that are augmented"
run distill --teacher logits:test.npy $data --arch mlp:12 --limit 50 $how --out wrong
expect 3 "rows" "outputs of other rows are refused"

# Interruptions
run distill --teacher teacher $data --method hydra $how --out stop --stop-after 9
expect 4 "retort distill --out stop --resume" "stopped: how to go on is said"
run distill --out stop --resume --quiet
check "resumed: the same model" same_files hydra stop model.safetensors

# What does not fit
run distill $data --out none
expect 2 "teacher" "no teacher"
run distill --teacher teacher $data --method latent-be --student latent-be:5 --out none
expect 2 "pairs each student member" "members that do not pair"
run distill --teacher teacher $data --method end2 --lr 0.002 --epochs 1 --out rated
check "a rate leaves EnD2 its Adam" grep -q '^optimiser: adam' rated/config.yaml
run distill --teacher teacher $data --method end2 --perturb tdiv-sdiv --out none
expect 2 "perturbation" "a perturbation that does not fit"
run distill --teacher teacher --data spiral:n=60,arms=2 --out none
expect 3 "classes" "a teacher of other classes"
check "and nothing is left behind" test ! -e none

run train $data --arch mlp:12 --hyper --hyper-runs 3 --members 2 $how --out hyper
expect 0 "" "a hyper ensemble"
check "it tells its settings" json hyper/hyper.json
check "candidates are judged on rows held out" sh -c 'grep -q valid_loss hyper/search/*/log.jsonl'
check "what was chosen is trained on all rows" sh -c '! grep -q valid_loss hyper/retrain/*/log.jsonl'
run eval hyper $data --bootstrap 0
expect 0 "" "is measured"
check "without a temperature: its rows were all trained on" grep -q 'no held-out rows' hyper/metrics.json
run distill --teacher hyper $data --method kd $how --out from-hyper
expect 0 "" "which teaches"
finish
