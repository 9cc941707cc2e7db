#!/bin/sh
# Asked to stop, every long part of the program does so within two seconds, in good order; asked twice, at once.
. "$(dirname "$0")/tap.inc"
now() { date +%s%N; }

# stopped WHEN CODE DESCRIPTION ARGS...: SIGTERM after WHEN seconds, or, seen:NAME, when a file of such a name is there; the
# code, and the time it took.
stopped() {
    when=$1
    code=$2
    what=$3
    shift 3
    "$RETORT" "$@" >out 2>err </dev/null &
    pid=$!
    case $when in
    seen:*) while [ -z "$(find . -name "${when#seen:}" -print -quit)" ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done ;;
    *) sleep "$when" ;;
    esac
    alive=1
    kill -TERM $pid 2>/dev/null || alive=0
    from=$(now)
    wait $pid
    rc=$?
    took=$((($(now) - from) / 1000000))
    check "$what: still at work when asked" test $alive -eq 1
    expect "$code" "" "$what: code $code"
    check "$what: within two seconds (it took $took ms)" test $took -lt 2500
    check "$what: without the alarm's help" sh -c '! grep -q "ended where it could not stop" err'
}

# An .xz that takes long to unpack: noise compresses badly. As large as CIFAR-10 is.
if have xz python3; then
    mkdir cifar plain
    python3 - <<'P'
import random
r = random.Random(1)
fewer = bytes(i & 0xfc for i in range(256))
rows = [bytes([i % 10]) + r.randbytes(3072).translate(fewer) for i in range(8000)]
open("cifar/one.bin", "wb").write(b"".join(rows))
for name in ["data_batch_%d.bin" % i for i in range(1, 6)] + ["test_batch.bin"]:
    open("plain/" + name, "wb").write(b"".join(rows[:300]))
P
    xz -0 -T1 --memlimit=64MiB cifar/one.bin
    for name in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do cp cifar/one.bin.xz cifar/$name.bin.xz; done
    stopped 0.3 4 "train, unpacking .xz" train --data cifar10:cifar --arch mlp:8 --epochs 1 --out x --quiet
    check "train, unpacking .xz: nothing is called saved" sh -c '! grep -q "state saved" err'

    # One step that lasts many seconds. What is saved is the place before it.
    big="--data cifar10:plain --arch wrn:28,4 --batch 512 --epochs 1 --threads 1 --quiet"
    stopped 5 4 "train, within a step" train $big --out big
    check "train, within a step: it was the first one" grep -q "after step 0; state saved" err
    check "train, within a step: a checkpoint" test -s big/checkpoint.safetensors

    # Stopped anywhere, again and again: the same bits as in one go, batch statistics included.
    for members in 1 3; do
        cut="--data cifar10:plain --arch wrn:10,1 --members $members --batch 128 --epochs 2 --limit 600 --threads 2 --quiet"
        from=$(now)
        run train $cut --out whole$members
        whole=$((($(now) - from) / 1000000))
        times=0
        rc=1
        for part in 15 20 25 30 35 40 50 60 80 120 300 20000; do
            [ $rc -eq 0 ] && break
            delay=$(awk "BEGIN { print $whole * $part / 100000 }")
            resume=$([ -e cut$members/config.yaml ] && echo --resume)
            "$RETORT" train $cut --out cut$members $resume >out 2>err </dev/null &
            pid=$!
            sleep "$delay" &
            wait=$!
            while kill -0 $pid 2>/dev/null && kill -0 $wait 2>/dev/null; do sleep 0.02; done
            kill -TERM $pid 2>/dev/null && times=$((times + 1))
            wait $pid
            rc=$?
            kill $wait 2>/dev/null
        done
        check "$members members, stopped $times times: finished" test $rc -eq 0 -a $times -gt 0
        check "$members members, stopped $times times: the bits of one go" sh -c "cd cut$members && for f in *.safetensors; do cmp \$f ../whole$members/\$f || exit 1; done"
    done
fi

run train --data spiral:n=2000 --arch mlp:8 --epochs 1 --out run --quiet
stopped 2 4 "eval --bootstrap" eval run --data spiral:n=2000 --bootstrap 1000000 --quiet
check "eval --bootstrap: nothing is stored" sh -c '! grep -q evaluation run/metrics.json'

# Columns of a long table, and units of wide networks.
run data spiral:n=300000 --out csv:long.csv --quiet
for delay in 0.5 1.2; do
    stopped $delay 4 "train, a table of 900,000 rows, after $delay s" train --data csv:long.csv --arch mlp:4 --epochs 20 --out table --quiet --force
done
rm -f long.csv
run train --data spiral:n=20 --arch mlp:1500,1500 --members 2 --epochs 0 --out wide --quiet
stopped 2.5 4 "average, matching" average wide --data spiral:n=20 --method match --out matched --quiet
check "average, matching: no run" test ! -e matched/model.safetensors

# Many members to save: what is saved is the place before it.
many="--data spiral:n=20 --arch mlp:4 --members 3000 --epochs 1"
run train $many --out all --quiet
"$RETORT" train $many --out few >out 2>err </dev/null &
pid=$!
while [ ! -e few/member-100.safetensors ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -TERM $pid
from=$(now)
wait $pid
rc=$?
took=$((($(now) - from) / 1000000))
expect 4 "state saved; continue with: retort train --out few --resume" "train, saving members: code 4"
check "train, saving members: within two seconds (it took $took ms)" test $took -lt 2500
run train --out few --resume --quiet
expect 0 "" "train, saving members: resumed"
check "train, saving members: the files of one go" sh -c 'cd few && for f in *.safetensors; do cmp $f ../all/$f || exit 1; done && test $(ls | wc -l) -eq $(ls ../all | wc -l)'

# What writes, and has no state to save: another try is not refused, and finds nothing that was left.
stopped seen:gathered 4 "gather" gather all --out gathered --quiet
check "gather: no run" test ! -e gathered/config.yaml -a ! -e gathered/member-000.safetensors
stopped seen:.unfinished 4 "data, pictures" data fashion-mnist --part train --out images:pictures --quiet
run data images:pictures
expect 3 "cut off" "data, pictures: what is there is not read"
run data fashion-mnist --part train --limit 40 --out images:pictures --quiet
expect 0 "" "data, pictures: another try"
check "data, pictures: nothing else is left" test "$(find pictures -type f | wc -l)" -eq 40
stopped "seen:*big.csv*" 4 "data, a table" data fashion-mnist --part train --out csv:big.csv --quiet
check "data, a table: nothing is left" sh -c 'test -z "$(ls -A | grep big.csv)"'
# within ARGS...: a third of the seconds that the command takes when it is left alone, the quicker time of two
within() {
    for try in 1 2; do
        begun=$(now)
        "$RETORT" "$@" >within.out 2>&1 </dev/null
        echo $(($(now) - begun))
    done | sort -n | awk 'NR == 1 { printf "%.2f", $1 / 3e9 }'
}
if have_onnx; then
    run train --data fashion-mnist --limit 200 --arch wrn:28,4 --epochs 0 --out wrn --quiet
    stopped "$(within export wrn --out left.onnx --quiet)" 4 "export" export wrn --out wrn.onnx --quiet
    check "export: no file" test ! -e wrn.onnx
fi

# The second signal ends it at once, whatever it does; what was saved before stays good.
small="--data spiral:n=200 --arch mlp:16 --epochs 100000 --quiet --checkpoint-every 0"
"$RETORT" train $small --out twice >out 2>err </dev/null &
pid=$!
while [ ! -s twice/checkpoint.safetensors ]; do sleep 0.1; done
kill -INT $pid 2>/dev/null # ignored by a background job of this shell
kill -TERM $pid
kill -TERM $pid 2>/dev/null
wait $pid
rc=$?
check "two signals: stopped or killed, nothing else" test $rc -eq 4 -o $rc -eq 143
run train --out twice --resume --quiet --stop-after 1
check "two signals: the checkpoint is good" test $rc -eq 4
finish
