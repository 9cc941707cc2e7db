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
expect 0 "3 networks" "--force replaces it"
run gather p0 all --out all --force
expect 2 "one of the runs" "nor gathered into itself"
run train --data spiral:n=150 --arch mlp:8 --epochs 1 -q --out other
run gather p0 other --out mixed
expect 3 "of one kind" "members are of one architecture"
check "and nothing is left behind" test ! -e mixed
run gather nowhere --out mixed
expect 3 "nowhere: no such directory" "no run"
mkdir empty
run gather p0 empty --out mixed
expect 3 "empty: no run is in it" "an empty directory"
# shellcheck disable=SC2086
run train $flags --out p9 --stop-after 1
run gather p0 p9 --out mixed
expect 3 "p9: its run is not finished" "an unfinished run"
# shellcheck disable=SC2086
run train $flags --out twice
run gather p0 twice --out mixed
expect 3 "twice: network 0 is the same as network 0 of those before it" "a task that forgot its --first-member"
run train --data spiral:n=150,arms=4 --arch mlp:16,16 --epochs 1 -q --out four
run gather p0 four --out mixed
expect 3 "of one kind" "networks of one name that differ"
check "and nothing is left behind by any" test ! -e mixed

# ---- the same by flags: several teachers are one ensemble ----
parts="--teacher p0 -t p2 --teacher=p3"
# tensors FILE: without its head, which names the teacher
tensors() {
    python3 -c 'import struct, sys; b = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(b[8 + struct.unpack("<Q", b[:8])[0]:])' "$1"
}
run gather p0 p2 p3 --out all --force
for m in kd hydra "be-head --init-from-teacher"; do
    # shellcheck disable=SC2086
    run distill $flags --method $m --teacher all --out together --force
    # shellcheck disable=SC2086
    run distill $flags --method $m $parts --out apart --force
    expect 0 "" "three --teacher ($m)"
    check "the same bytes as their gathered run ($m)" cmp together/model.safetensors apart/model.safetensors
done
check "all are in the configuration" grep -qxF 'teacher: ["p0", "p2", "p3"]' apart/config.yaml
check "one stands alone, as it ever did" grep -qxF 'teacher: "all"' together/config.yaml
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method be-head --online-teacher --teacher all --out together --force
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method be-head --online-teacher $parts --out apart --force
expect 0 "" "three that run in each step"
check "the same bytes" cmp together/model.safetensors apart/model.safetensors
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method hydra --teacher p3 --teacher p2 --teacher p0 --out turned
check "their order counts" sh -c '! cmp -s turned/model.safetensors apart/model.safetensors'
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method hydra $parts --out whole-hydra
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method hydra $parts --out stopped --stop-after 7
expect 4 "" "stopped"
run distill --out stopped --resume -q
expect 0 "" "resumed, with the teachers of its configuration"
check "to the same bytes" cmp whole-hydra/model.safetensors stopped/model.safetensors
run distill --config whole-hydra/config.yaml --out again
check "a list in YAML" cmp whole-hydra/model.safetensors again/model.safetensors
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method hydra --teacher p0 --teacher other --teacher p3 --out kinds
expect 0 "" "teachers of two architectures, asked once"
run predict p0 --data spiral:n=150 --part train --logits z.npy --quiet
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method hydra --teacher logits:z.npy --teacher p2 --teacher p3 --out stored
expect 0 "" "stored outputs beside runs"
tensors stored/model.safetensors >a
tensors whole-hydra/model.safetensors >b
check "the same network as of the runs" cmp a b
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --online-teacher --teacher p0 --teacher other --out bad
expect 2 "networks of one kind; other differs from the first in its architecture" "they cannot run in each step"
run distill --data spiral:n=150 --epochs 1 -q --teacher p0 --teacher other --out bad
expect 2 "--arch" "nor say what the student is built like"
# shellcheck disable=SC2086
run distill $flags --arch mlp:8 --method be-head --init-from-teacher --teacher p0 --teacher other --out bad
expect 2 "not of one kind" "nor is it made of their weights"
run train --data spiral:n=150,arms=2 --arch mlp:8 --epochs 1 -q --out two
# shellcheck disable=SC2086
run distill $flags --teacher p0 --teacher two --out bad
expect 3 "two has 2 outputs, p0 has 3" "other classes"
# shellcheck disable=SC2086
run distill $flags --teacher p0 --teacher nowhere --out bad
expect 3 "nowhere" "a run that is not there"
# shellcheck disable=SC2086
run distill $flags --teacher p0 --teacher other --teacher twice --out bad
expect 3 "twice: network 0 is the same as network 0 of those before it" "a network twice"
check "and nothing is left behind by all that" test ! -e bad
finish
