#!/bin/sh
# Several ranks: the same bytes as one, stopped and resumed on other numbers of them; bad set-ups end in one line. With
# LONG=1 (tools/check_ranks) everything is tried on 1 to 4 ranks of every MPI; without it on a few.
. "$(dirname "$0")/tap.inc"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # MPI keeps memory until the process ends
unset RETORT_MPI
plugins=$(dirname "$RETORT")
long=${LONG:-}
libraries=""
for l in openmpi mpich; do
    if ! [ -e "$plugins/libretort-mpi-$l.so" ]; then
        echo "skipped: built without $l"
    elif have "mpirun.$l"; then
        libraries="$libraries $l"
    fi
done
[ -n "$libraries" ] || finish
set -- $libraries
first=$1
other=${2:-$1}

# ranks LIBRARY N ARGS...: as run, on N ranks
ranks() {
    library=$1
    n=$2
    shift 2
    timeout -k 10 300 "mpirun.$library" -n "$n" "$RETORT" "$@" >out 2>err </dev/null
    rc=$?
}

# ---- exchanges ----
cp "$plugins/tests/test_dist" .
for l in $libraries; do
    ln -sf "$plugins/libretort-mpi-$l.so" .
    for n in 2 3 ${long:+4 5 7}; do
        timeout -k 10 100 "mpirun.$l" -n "$n" ./test_dist >out 2>err
        rc=$?
        ok $rc "exchanges among $n ranks of $l"
    done
done

# ---- one hash ----
spiral="--data spiral:n=150 --epochs 3 --batch 30 --seed 7 -q"
ring="--data ring:n=120 --epochs 2 --batch 24 --seed 3 -q"
# name|verb and flags|most ranks. --slice makes small networks have something to share.
train_mlp="train $spiral --arch mlp:16,16 --members 3 --dropout 0.1"
train_one="train $spiral --arch mlp:16,16 --slice 5 --valid 0.2 --patience 2"
reg="train $ring --arch mlp:8 --members 2 --augment none"
hydra="distill $spiral --teacher mlp.one --arch mlp:16,16 --method hydra --slice 6"
end2="distill $spiral --teacher mlp.one --arch mlp:16,16 --method end2 --slice 5 --aux spiral:n=60"
kd="distill $spiral --teacher mlp.one --arch mlp:12 --method kd --slice 10 --clip-norm 1"
if [ -n "$long" ]; then picture="--limit 200 --epochs 2 --batch 40"; else picture="--limit 60 --epochs 1 --batch 20"; fi
wrn="train --data fashion-mnist $picture --valid 20 --seed 7 -q --arch wrn:10,1 --members 2 --augment flip,crop:2"
lbe="distill --data fashion-mnist $picture --valid 20 --seed 7 -q --teacher wrn.one --arch wrn:10,1 --method latent-be --perturb tdiv-sdiv"

# told A B: both logs say the same, but for clocks
told() {
    for f in "$1" "$2"; do
        sed 's/"time":"[^"]*",//; s/"samples_per_s":[^,}]*,//; s/"seconds":[^,}]*,//' "$f/log.jsonl" | grep -v '"stopped"\|"resumed"'
    done | sort | uniq -c | grep -v '^ *2 '
    test $? -eq 1
}
same_models() {
    for f in "$1"/*.safetensors; do
        cmp "$f" "$2/$(basename "$f")" || return 1
    done
}

have_fashion=""
run data fashion-mnist --limit 10 -q
[ "$rc" -eq 0 ] && have_fashion=1
[ -n "$have_fashion" ] || echo "skipped: wrn:10,1 and latent-be on ranks: no fashion-mnist"

# what NAME RANKS FLAGS...
what() {
    name=$1
    most=$2
    shift 2
    run "$@" -j 1 --out "$name.one"
    expect 0 "" "$name on one rank"
    run "$@" -j 2 --out "$name.j2"
    check "$name: two threads, the same models" same_models "$name.one" "$name.j2"
    if [ -n "$long" ]; then list="1 2 3 4"; threads="1 2"; libs=$libraries; else list="2 3"; threads=1; libs=$first; fi
    for l in $libs; do
        for n in $list; do
            [ "$n" -le "$most" ] || continue
            for j in $threads; do
                ranks "$l" "$n" "$@" -j "$j" --out "$name.$l$n$j"
                expect 0 "" "$name: $n ranks of $l, $j threads"
                check "$name: the same models on $n ranks of $l, $j threads" same_models "$name.one" "$name.$l$n$j"
                check "$name: the same log" told "$name.one" "$name.$l$n$j"
            done
        done
    done
    # stopped at random steps, and resumed each time on another number of ranks, of either MPI
    steps=$(sed -n 's/.*"steps": *\([0-9]*\).*/\1/p' "$name.one/metrics.json" | head -1)
    for i in 1 ${long:+2 3}; do
        seed=$((seed + 1))
        at=$(draw_stops "$seed" "$steps" "$most")
        echo "# $name: RT_SEED=$seed: STEP:RANKS of $steps, 1 to $most: $at"
        l=$first
        go="$*"
        left=""
        for stop in $at; do
            # shellcheck disable=SC2086
            ranks "$l" "${stop#*:}" $go -q -j 1 --out "$name.s$i" --stop-after "${stop%:*}"
            [ "$rc" -ne 0 ] && [ -s "$name.s$i/checkpoint.safetensors" ] || left="$left $stop"
            go="$1 --resume"
            if [ "$l" = "$first" ]; then l=$other; else l=$first; fi
        done
        check "$name: stopped at each of $at with a checkpoint${left:+, but not at$left}" test -z "$left"
        n=$((${stop#*:} % most + 1))
        ranks "$l" "$n" "$1" --out "$name.s$i" --resume -q -j 2
        expect 0 "" "$name: resumed on $n ranks"
        check "$name: the same models after that" same_models "$name.one" "$name.s$i"
    done
}
# draw_stops SEED STEPS MOST: three steps below STEPS (all of them where there are fewer), rising, each with a number of
# ranks that is not that of the one before
draw_stops() {
    awk -v seed="$1" -v steps="$2" -v most="$3" 'BEGIN {
        srand(seed)
        want = steps > 3 ? 3 : steps - 1
        for (have = 0; have < want;) {
            s = 1 + int(rand() * (steps - 1))
            if (s < steps && !(s in is)) { is[s] = 1; have++ }
        }
        r = 1 + int(rand() * most) % most
        for (s = 1; s < steps; s++)
            if (s in is) {
                printf "%d:%d ", s, r
                r = (r + int(rand() * (most - 1))) % most + 1
            }
    }'
}
# the same draws each time, unless they are to be many
seed=${RT_SEED:-$([ -n "$long" ] && date +%s || echo 1)}
seed=$((seed - 1))
# shellcheck disable=SC2086
what mlp 3 $train_mlp
# shellcheck disable=SC2086
what one 4 $train_one
# shellcheck disable=SC2086
what reg 2 $reg
# shellcheck disable=SC2086
what hydra 4 $hydra
# shellcheck disable=SC2086
what end2 4 $end2
# shellcheck disable=SC2086
what kd 3 $kd
if [ -n "$have_fashion" ]; then
    # shellcheck disable=SC2086
    what wrn 4 $wrn
    # shellcheck disable=SC2086
    what lbe 2 $lbe
fi
# shellcheck disable=SC2086
ranks "$other" 2 $train_mlp --at-once 2 --out groups
check "in groups on two ranks, the same models" same_models mlp.one groups

# ---- verbs that share predictions, and runs made of runs ----
# shellcheck disable=SC2086
hyper="train $spiral --arch mlp:8 --members 2 --hyper --hyper-runs 3 --valid 0.2"
# shellcheck disable=SC2086
run $hyper --out hyper.one -j 1
expect 0 "" "a search on one rank"
for n in 2 4 ${long:+3 7}; do
    # shellcheck disable=SC2086
    ranks "$first" $n $hyper --out "hyper.$n" -j 1
    expect 0 "" "a search on $n ranks"
    check "the same models" same_models hyper.one "hyper.$n"
    check "by the same choice" cmp hyper.one/hyper.json "hyper.$n/hyper.json"
done
# shellcheck disable=SC2086
ranks "$first" 2 $hyper --out hyper.s -j 1 --stop-after 20
check "stopped, with two candidates under way" sh -c 'test "$(ls hyper.s/search/*/checkpoint.safetensors | wc -l)" -eq 2'
ranks "$other" 3 train --out hyper.s --resume -q --stop-after 30
check "and with all of them on three ranks" sh -c 'test "$(ls hyper.s/search/*/checkpoint.safetensors | wc -l)" -eq 3'
run train --out hyper.s --resume -q
expect 0 "" "a search goes on, on one rank"
check "to the same models" same_models hyper.one hyper.s
mkdir -p hyper.bad/search
touch hyper.bad/search/001
# shellcheck disable=SC2086
ranks "$other" 3 $hyper --epochs 1000 --out hyper.bad
check "a rank that fails in its candidate ends them all" test "$rc" -eq 1
check "and is named, once" test "$(grep -c '^retort: rank 1 on .*hyper.bad/search/001' err)" -eq 1
few="--data spiral:n=150 --bootstrap 20 -q"
# shellcheck disable=SC2086
run eval mlp.one $few --no-save
cp out one.txt
# shellcheck disable=SC2086
ranks "$other" 3 eval mlp.one $few --no-save
expect 0 "" "eval on three ranks"
check "says the same, once" cmp out one.txt
run average mlp.one --data spiral:n=150 --method perm --perm-epochs 2 -q --out perm.one -j 1
if [ "$rc" -eq 0 ]; then
    ranks "$first" 2 average mlp.one --data spiral:n=150 --method perm --perm-epochs 2 -q --out perm.two -j 1
    expect 0 "" "average --method perm on two ranks"
    check "the same network" same_models perm.one perm.two
else
    ok 1 "average --method perm on one rank"
fi
# ---- recipes: commands that do not need each other at the same time ----
cat >pair.yaml <<'END'
title: "Pair"
source: "-"
about: "x"
scales:
  quick: {about: "tiny.", minutes: 1, memory: "50 MB", disk: "1 MB"}
stages:
  - {name: teacher, verb: train, each: {seed: "1..3"}, with: {data: "spiral:n=300", arch: "mlp:32,32", members: 2, batch: 20, epochs: 40, checkpoint-every: 0, seed: "${seed}"}}
  - {name: kd, verb: distill, each: {seed: "1..3"}, with: {teacher: "@teacher", data: "spiral:n=300", arch: "mlp:10", epochs: 4, seed: "${seed}"}}
  - {name: measure, verb: eval, runs: ["@teacher", "@kd"], with: {data: "spiral:n=300"}}
  - {name: again, verb: eval, runs: ["@kd"], with: {data: "spiral:n=300", seed: 5}}
tables:
  - id: t
    title: T
    columns: [{id: acc, label: "accuracy %", value: /valid_accuracy, scale: 100, digits: 3}, {id: nll, label: "NLL", value: sets.test.nll, digits: 5}]
    rows: [{id: teacher, label: ensemble, runs: teacher}, {id: kd, label: kd, runs: kd}]
END
# same_recipe DIR: tables and models as those of one rank
same_recipe() {
    cmp one/pair/quick/tables.md "$1/pair/quick/tables.md" || return 1
    for m in one/pair/quick/runs/*; do
        same_models "$m" "$1/${m#one/}" || return 1
    done
}
run recipe run pair.yaml --out one -q -j 1
expect 0 "" "a recipe on one rank"
for n in 2 4 ${long:+3 7}; do
    ranks "$other" "$n" recipe run pair.yaml --out "recipe.$n" -q -j 1
    expect 0 "" "a recipe on $n ranks"
    check "the same tables and models" same_recipe "recipe.$n"
done
for s in USR1 KILL; do
    timeout -k 10 100 "mpirun.$first" -n 3 "$RETORT" recipe run pair.yaml --out "recipe.$s" -q -j 1 >out 2>err </dev/null &
    job=$!
    both=1
    for _ in $(seq 200); do
        ls "recipe.$s"/pair/quick/runs/teacher-[12]/log.jsonl >ls.out 2>&1 && [ ! -e "recipe.$s/pair/quick/done/teacher-1" ] && both=0 && break
        sleep 0.02
    done
    ok "$both" "two commands at the same time"
    v=$(pgrep -f "^$RETORT recipe run pair.yaml --out recipe.$s" | sed -n 2p)
    [ -z "$v" ] || kill -"$s" "$v"
    wait $job
    rc=$?
    [ "$s" = KILL ] || check "SIGUSR1 to one rank: all teams save and leave with code 4" test "$rc" -eq 4
    ranks "$other" 2 recipe run pair.yaml --out "recipe.$s" -q -j 1
    expect 0 "" "the recipe goes on, on two ranks"
    check "to the same tables and models" same_recipe "recipe.$s"
done
mkdir -p recipe.bad/pair/quick/runs
touch recipe.bad/pair/quick/runs/teacher-2
ranks "$first" 3 recipe run pair.yaml --out recipe.bad -q -j 1
check "a command that fails on its rank ends the recipe" test "$rc" -ne 0
check "and both are named" grep -q '^retort: rank 1 on .*teacher-2' err
rm recipe.bad/pair/quick/runs/teacher-2
ranks "$first" 3 recipe run pair.yaml --out recipe.bad -q -j 1
check "which goes on when that is mended" same_recipe recipe.bad

ranks "$first" 2 bench --arch mlp:8 --input 4 --batch 16 --members 2 --budget 0.05 --json -j 1
check "bench on two ranks" grep -q '"ranks":2' out

# ---- faults: the job ends by itself, and what is there goes on to the same bytes ----
slow="train --data spiral:n=600 --arch mlp:64,64 --members 3 --batch 20 --seed 3 -q -j 1 --rank-timeout 2 --checkpoint-every 0 --epochs"
if [ -n "$long" ]; then epochs=20000; else epochs=3000; fi # longer than all faults of one MPI take
# victim RUN N: process of the n-th rank (any order)
victim() {
    pgrep -f "^$RETORT .*--out $1 *" | sed -n "$2p"
}
# shellcheck disable=SC2086
run $slow "$epochs" --out slow.one
# fault LIBRARY RUN SIGNAL [FLAG]: starts, waits for the first checkpoint, sends the signal to a rank, waits for the end;
# FLAG is the launcher's
fault() {
    # shellcheck disable=SC2086
    if [ -d "$2" ]; then
        timeout -k 10 120 "mpirun.$1" ${4:-} -n 3 "$RETORT" train -q -j 1 --rank-timeout 2 --resume --out "$2" >out 2>err </dev/null &
    else
        timeout -k 10 120 "mpirun.$1" ${4:-} -n 3 "$RETORT" $slow "$epochs" --out "$2" >out 2>err </dev/null &
    fi
    job=$!
    for _ in $(seq 100); do
        [ -s "$2/checkpoint.safetensors" ] && [ -n "$(victim "$2" 2)" ] && break
        sleep 0.1
    done
    sleep "0.$(($(date +%N | sed 's/^0*//;s/....$//') % 10))"
    v=$(victim "$2" 2)
    start=$(date +%s)
    [ -z "$v" ] || kill -"$3" "$v"
    while kill -0 $job 2>/dev/null && [ -n "$(victim "$2" 1)" ]; do sleep 0.1; done
    took=$(($(date +%s) - start))
    # Once all ranks are gone, Open MPI's launcher may wait for itself for ever (in PMIx_server_finalize, seen once).
    for _ in $(seq 200); do
        kill -0 $job 2>/dev/null || break
        sleep 0.1
    done
    pkill -KILL -P $job 2>/dev/null
    wait $job
    rc=$?
}
for l in $libraries; do
    fault "$l" "usr1-$l" USR1
    check "SIGUSR1 to one rank: all save and leave with code 4 ($l)" test "$rc" -eq 4
    fault "$l" "usr1-$l" STOP # anywhere: while the ranks join, they have half a minute
    check "a frozen rank ends the job in time ($l: $took s)" test "$took" -le 45
    check "and is named ($l)" grep -q "no sign of life" err
    for i in 1 ${long:+$(seq 2 25)}; do
        fault "$l" "usr1-$l" KILL
        check "killing a rank ends the job ($l, $i: $took s)" test "$took" -le 12 -a "$rc" -ne 0
    done
    # At work, in a run that does not end by itself. The launcher mostly kills the others before they can speak; Open MPI's
    # lets them with this flag.
    ends=$epochs
    epochs=100000
    if [ "$l" = openmpi ]; then
        fault "$l" "died-$l" KILL --enable-recovery
        check "a rank that dies is named" grep -q "^retort: rank [0-9] on .* (process $v) has died" err
    else
        fault "$l" "died-$l" KILL
    fi
    epochs=$ends
    grep "has died" err | grep -v "(process $v)" >others
    check "no other rank is named than the one that died ($l)" test ! -s others
    ranks "$l" 2 train --out "usr1-$l" --resume -q
    expect 0 "" "what is left goes on ($l)"
    check "to the same models ($l)" same_models slow.one "usr1-$l"
done

# a rank that never comes
start=$(date +%s)
# shellcheck disable=SC2086
timeout -k 10 120 "mpirun.$other" -n 1 "$RETORT" $slow "$epochs" --out never : -n 1 sh -c 'kill -STOP $$' >out 2>err </dev/null
took=$(($(date +%s) - start))
check "a rank that never joins ends the job in time ($took s)" test "$took" -le 45
check "that is said" grep -q "waits for the others to join" err

# ---- bad set-ups: one line, code 2 or 3, nobody waits ----
# bad CODE TEXT DESCRIPTION: of the last run
bad() {
    [ "$(grep -c '^retort: ' err)" -eq 1 ] && [ "$rc" -eq "$1" ] && grep -qF -e "$2" err
    ok $? "$3"
}
# shellcheck disable=SC2086
for l in $libraries; do
    ranks "$l" 4 $train_mlp --out many
    bad 2 "too many ranks for the work" "more ranks than small members ($l)"
    ranks "$l" 2 train --data nowhere --arch mlp:4 --out bad
    bad 2 "nowhere" "an error that all ranks make is said once ($l)"
    ranks "$l" 2 predict mlp.one
    bad 2 "works on one rank" "a verb that is not shared ($l)"
    ranks "$l" 3 $train_mlp --out mlp.one
    bad 2 "finished run" "a finished run is not touched ($l)"
    sed "s/$("$RETORT" --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p' | sed 's/\./\\./g')/9.9.9/g" "$RETORT" >other-version
    chmod +x other-version
    timeout -k 10 60 "mpirun.$l" -n 1 "$RETORT" $train_mlp --out v : -n 1 "$work/other-version" $train_mlp --out v >out 2>err
    rc=$?
    bad 2 "same version" "two versions ($l)"
    timeout -k 10 60 "mpirun.$l" -n 1 "$RETORT" $train_mlp --out v : -n 1 "$RETORT" $train_mlp --out v --lr 0.7 >out 2>err
    rc=$?
    bad 2 "the configuration" "two configurations ($l)"
    timeout -k 10 60 "mpirun.$l" -n 1 env RETORT_ISA=plain "$RETORT" $train_mlp --out v : -n 1 "$RETORT" $train_mlp --out v >out 2>err
    rc=$?
    if [ "$rc" -ne 0 ] || grep -q avx /proc/cpuinfo; then bad 2 "instruction set" "two instruction sets ($l)"; fi
    mkdir -p a b
    printf 'x,y\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n' >a/t.csv
    printf 'x,y\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,a\n' >b/t.csv
    csv="train --data csv:t.csv --arch mlp:4 --members 2 --epochs 1 -q"
    timeout -k 10 60 "mpirun.$l" -n 1 sh -c "cd a; exec '$RETORT' $csv --out '$work/d'" : -n 1 sh -c "cd b; exec '$RETORT' $csv --out '$work/d'" >out 2>err
    rc=$?
    bad 3 "same data" "two data sets ($l)"
    cp a/t.csv b/t.csv
    timeout -k 10 60 "mpirun.$l" -n 1 sh -c "cd a; exec '$RETORT' $csv --out run" : -n 1 sh -c "cd b; exec '$RETORT' $csv --out run" >out 2>err
    rc=$?
    bad 2 "file system" "no shared file system ($l)"
    check "the second rank wrote nothing" test ! -e b/run
    rm -rf a b
done
mkdir lone
cp "$RETORT" lone/retort
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 lone/retort train >out 2>err
rc=$?
if ! ls /usr/local/lib*/retort/libretort-mpi-openmpi.so /usr/lib/*/retort/libretort-mpi-openmpi.so >/dev/null 2>&1; then
    bad 2 "cannot speak to it" "a program without the plug-in says so"
fi
check "RETORT_MPI=none: a rank of its own" env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 RETORT_MPI=none lone/retort train --data spiral:n=20 --arch mlp:4 --epochs 1 -q --out lone/run
finish
