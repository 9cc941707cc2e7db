#!/bin/sh
# Help, version, and suggestions for what was mistyped.
. "$(dirname "$0")/tap.inc"

verbs=$("$RETORT" --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p')
check "there are commands" test -n "$verbs"
for verb in $verbs; do
    run "$verb" --help
    check "$verb --help: code 0, nothing on standard error" test "$rc" -eq 0 -a ! -s err
    check "$verb --help: usage" grep -q "^usage: retort $verb" out
    check "$verb --help: examples" grep -q "^  retort $verb" out
    check "$verb --help: common flags" grep -q -e '--json' out
    cp out direct
    run help "$verb"
    check "help $verb is the same" cmp out direct
    check "$verb --help: at most 120 columns" awk 'length($0) > 120 { exit 1 }' direct
done
run train --help
check "help shows defaults and ranges" grep -qF '[else 10; 0 to 1000000]' out

run predict --help
check "choices are whole" grep -q 'knowledge_variance \[else entropy\]' out
run average --help
check "help of average: its own methods, with their default" grep -q '^  greedy-soup' out
check "a default with exceptions is called one" grep -q '\[else kd\]' out
run distill --help
check "help of distill: methods with their papers" grep -q '^  hydra .*(Tran et al. 2020)' out
for name in dirichlet gaussian-kd conf-ods; do
    check "help of distill names $name" grep -q "^  $name " out
done

run --version
check "--version: version, instruction set, kernels" grep -q "^instruction set" out
run
expect 2 "usage: retort COMMAND" "no command: usage, code 2"

run trian --data spiral
expect 2 "did you mean 'train'" "mistyped command"
run train --epocs 3
expect 2 "did you mean 'epochs'" "mistyped flag"
run train --optimiser sdg
expect 2 "did you mean 'sgd'" "mistyped choice"
printf 'data: spiral\nepochs: 3\n  \nmomentun: 0.5\n' >run.yaml
run train --config run.yaml --arch mlp:4 --out r
expect 2 "run.yaml:4:1: unknown parameter 'momentun'; did you mean 'momentum'" "mistyped key, with line and column"
run eval r --data spiral --epochs 3
expect 2 "does not apply to eval" "flag of another command"
run --json train
expect 2 "comes before the command" "flag before the command"
finish
