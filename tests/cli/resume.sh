#!/bin/sh
# The same bits for any number of threads, any interruption, and never two trainings in one directory.
. "$(dirname "$0")/tap.inc"
flags="--data spiral:n=150 --arch mlp:16,16 --members 3 --epochs 4 --batch 32 --dropout 0.1 --quiet"
files="member-000.safetensors member-001.safetensors member-002.safetensors"

run train $flags --threads 1 --out whole
expect 0 "" "one go, one thread"
for threads in 2 3 4; do
    run train $flags --threads $threads --out t$threads
    check "$threads threads give the same models" same_files whole t$threads $files
done
for stop in 1 11 12 13 40; do
    run train $flags --threads 2 --out s$stop --stop-after $stop
    check "stopped after step $stop: code 4 and a checkpoint" test "$rc" -eq 4 -a -s s$stop/checkpoint.safetensors
    run train --out s$stop --resume --quiet --threads 3
    check "resumed after step $stop gives the same models" same_files whole s$stop $files
done
run train $flags --out s1 --resume
expect 0 "" "resuming a finished run is fine"
run train $flags --out s40 --resume --epochs 9
expect 2 "epochs" "resuming with other parameters is refused"

# A long run: locked while it works, stopped in good order by signals.
long="--data spiral:n=2000 --arch mlp:64,64 --epochs 100000 --keep last --progress none"
for signal in TERM INT HUP; do
    rm -rf busy
    # sh starts background jobs with SIGINT ignored, which the program respects: env gives it back.
    env --default-signal=INT "$RETORT" train $long --out busy >/dev/null 2>busy.err &
    pid=$!
    for _ in $(seq 100); do [ -s busy/log.jsonl ] && break; sleep 0.1; done
    if [ $signal = TERM ]; then
        run train $long --out busy --force
        expect 1 "$pid" "a second training in the directory is refused, naming the first"
        run train $long --out busy --resume
        expect 1 "$pid" "so is resuming it meanwhile"
    fi
    kill -$signal $pid
    wait $pid
    rc=$?
    cp busy.err err
    expect 4 "continue with: retort train --out busy --resume" "SIG$signal: saved, code 4"
    check "SIG$signal: a checkpoint" test -s busy/checkpoint.safetensors
done
run info busy
check "info tells that it is unfinished" grep -q 'unfinished' out
finish
