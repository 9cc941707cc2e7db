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

# Members in groups: the same files, whatever the size of the groups and wherever it was stopped.
for n in 1 2; do
    run train $flags --threads 2 --out g$n --at-once $n
    check "$n at a time give the same models" same_files whole g$n $files
    for stop in 13 40; do
        run train $flags --out g$n-$stop --at-once $n --stop-after $stop
        check "$n at a time, stopped after step $stop of a group" test "$rc" -eq 4 -a ! -e g$n-$stop/metrics.json
        run train --out g$n-$stop --resume --quiet --at-once 3
        check "resumed, the same models" same_files whole g$n-$stop $files
    done
done
check "each group has a run of its own" test -s g2/groups/000/log.jsonl -a -s g2/groups/001/metrics.json -a ! -e g2/groups/002
run eval g2 whole --data spiral:n=150 --bootstrap 0
check "the whole is an ensemble like any other" sh -c 'test "$(grep -E "^(g2|whole) " out | sed "s/^[a-z0-9]* *//" | uniq | wc -l)" -eq 1'
run train $flags --out g2 --at-once 2
expect 2 "holds a finished run" "it is not replaced without --force"
run train $flags --out g2 --at-once 2 --force --seed 2
check "and then it is" sh -c '! cmp -s whole/member-000.safetensors g2/member-000.safetensors'

# Early stopping: every member on its own.
patient="--data spiral:n=60,noise=1 --arch mlp:16 --members 3 --epochs 200 --patience 3 --keep loss --checkpoint-every 0"
run train $patient --out early
expect 0 "no better for 3 epochs: ended after epoch" "patience ends a run"
check "before its time" sh -c '[ "$(grep -c "\"event\":\"epoch\"" early/log.jsonl)" -lt 200 ]'
last=$(grep '"event":"epoch"' early/log.jsonl | tail -n 1 | sed 's/.*"epoch":\([0-9]*\),"lr.*/\1/')
kept=$(for m in 0 1 2; do "$RETORT" info early/member-00$m.safetensors --json | sed 's/.*"kept_epoch":\([0-9]*\).*/\1/'; done | sort -n | tail -n 1)
check "three epochs behind the best of the last member" test "$((kept + 3))" -eq "$last"
run train $patient --out parts --at-once 1 --quiet
check "members do not wait for each other" same_files early parts member-000.safetensors member-001.safetensors member-002.safetensors
run train $patient --out late --stop-after 20 --quiet
run train --out late --resume --quiet
check "resumed, the same" same_files early late member-000.safetensors member-001.safetensors member-002.safetensors
run train $patient --out no --keep last
expect 2 "--patience waits for better weights" "the last weights are never better"
run train $patient --out no --valid 0
expect 2 "rows to judge by" "nothing to judge by"

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
# A signal at any moment of a step, within products by oneDNN too.
bad=0
for i in $(seq 12); do
    rm -rf busy
    env --default-signal=INT "$RETORT" train --data spiral:n=2000 --arch mlp:64,64 --threads 2 --epochs 100000 --keep last --progress none --out busy >/dev/null 2>&1 &
    pid=$!
    for _ in $(seq 200); do [ -s busy/log.jsonl ] && break; sleep 0.05; done
    sleep 0.0$i
    kill -INT $pid
    wait $pid || [ $? -eq 4 ] || bad=$((bad + 1))
done
check "twelve interruptions within steps: code 4" test "$bad" -eq 0
run info busy
check "info tells that it is unfinished" grep -q 'unfinished' out
finish
