#!/bin/sh
# Members trained apart, gathered into one run: the same ensemble as one trained together.
. "$(dirname "$0")/tap.inc"
flags="--data spiral:n=150 --arch mlp:16,16 --epochs 2 --batch 32 --quiet"
# shellcheck disable=SC2086
{
    run train $flags --members 4 --out whole
    run train $flags --members 2 --out p0
    run train $flags --first-member 2 --out p2
    run train $flags --first-member 3 --out p3
}
run gather p0 p2 p3 --out all --json
expect 0 "4 networks of 3 runs" "three runs of four members"
check "the result as JSON" json out
check "files of members as they were" cmp p0/member-001.safetensors all/member-001.safetensors
check "and of single models" cmp p3/model.safetensors all/member-003.safetensors
run eval all whole --data spiral:n=150 --bootstrap 0 --no-save
check "an ensemble like that trained together" sh -c 'test "$(grep -E "^(all|whole) " out | sed "s/^[a-z]* *//" | uniq | wc -l)" -eq 1'
for t in all whole; do
    # shellcheck disable=SC2086
    run distill $flags --teacher $t --arch mlp:8 --out "student-$t"
    expect 0 "" "a student of '$t'"
done
check "which learned the same" sh -c 'test "$(tail -c 400 student-all/model.safetensors | cksum)" = "$(tail -c 400 student-whole/model.safetensors | cksum)"'
run gather p0 p2 --out all
expect 2 "finished run" "a run is not replaced"
run gather p0 p2 --out all --force
expect 0 "3 networks" "unless told"
run gather p0 all --out all --force
expect 2 "one of the runs" "nor gathered into itself"
run train --data spiral:n=150 --arch mlp:8 --epochs 1 -q --out other
run gather p0 other --out mixed
expect 3 "of one kind" "members are of one architecture"
check "and nothing is left behind" test ! -e mixed
run gather nowhere --out mixed
expect 2 "not a finished run" "no run"
finish
