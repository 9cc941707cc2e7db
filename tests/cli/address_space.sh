#!/bin/sh
# Every verb ends, with a result or a reason, however little address space there is (ulimit -v).
. "$(dirname "$0")/tap.inc"
case $(nm -D "$RETORT" 2>/dev/null | grep -c '__asan_init\|__tsan_init') in
0) ;;
*)
    ok 0 "nothing to limit: sanitizers reserve more address space than any limit allows"
    finish
    exit
    ;;
esac
small="--data spiral:n=150 --epochs 1 --batch 32 --quiet"
run train $small --arch mlp:64,64 --members 2 --out teacher
expect 0 "" "a teacher to work with"

# ends DESCRIPTION ARGS...: not by the clock, not by a signal.
ends() {
    what=$1
    shift
    bad=
    for mb in 10 30 50 60 70 80 90 100 110 120 130 140 150 160 180 200 300; do
        (
            ulimit -v $((mb * 1024))
            exec timeout 60 "$RETORT" "$@" >out 2>err </dev/null
        )
        rc=$?
        [ $rc -lt 124 ] || [ $rc -eq 127 ] || bad="$bad $mb MB: $rc" # 127: not even the libraries fit
    done
    [ -z "$bad" ] || echo "$bad" >err
    ok "$([ -z "$bad" ]; echo $?)" "$what ends at every limit"
}
ends "--version" --version
ends "info" info --arch mlp:64,64 --input 2
ends "data" data spiral:n=150
ends "train" train $small --arch mlp:64,64 --force --out again
ends "distill" distill --teacher teacher $small --arch mlp:64,64 --method hydra --force --out student
ends "eval" eval teacher --data spiral:n=150 --bootstrap 10
ends "predict" predict teacher --data spiral:n=150 --out predictions.csv
ends "average" average teacher --data spiral:n=150 --perm-epochs 1 --perm-inverse inverse --quiet --force --out average
ends "report" report teacher --out report.html
ends "recipe" recipe list
finish
