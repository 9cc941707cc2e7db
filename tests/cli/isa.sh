#!/bin/sh
# --isa v3: the same bits on every x86-64-v3 processor. A lesser CPU is emulated by RETORT_ISA, which lowers what ours offers.
. "$(dirname "$0")/tap.inc"
unset RETORT_ISA # whatever the other tests run at
case $("$RETORT" --version) in
*AVX-512*) levels="avx2 avx512" ;;
*AVX2*) levels="avx2" ;;
*)
    echo "skipped: this CPU has no AVX2"
    exit 0
    ;;
esac
sum() {
    cat "$@" | sha256sum
}
spiral="--data spiral:n=300 --arch mlp:64,64 --members 2 --epochs 2 --batch 64 --clip-norm 0.5 --quiet"
mkdir pictures
python3 - <<'P' 2>/dev/null || : >no-pictures
import random, zlib, struct, os
random.seed(1)
for part, n in (("train", 24), ("test", 8)):
    for k in range(2):
        os.makedirs(f"pictures/{part}/{k}", exist_ok=True)
        for i in range(n):
            rows = b"".join(b"\0" + bytes((random.randrange(256) // (1 + k * (x % 2))) for x in range(16)) for _ in range(16))
            def piece(t, d):
                return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
            open(f"pictures/{part}/{k}/{i}.png", "wb").write(b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) + piece(b"IDAT", zlib.compress(rows)) + piece(b"IEND", b""))
P
for level in $levels; do
    export RETORT_ISA=$level
    run train $spiral --isa v3 --out mlp-$level
    expect 0 "" "$level: a perceptron"
    run distill --teacher mlp-avx2 --data spiral:n=300 --arch mlp:64,64 --method hydra --epochs 2 --batch 64 --isa v3 --quiet --out hydra-$level
    expect 0 "" "$level: distilled"
    run predict mlp-avx2 --data spiral:n=300 --out p-$level.csv
    expect 0 "" "$level: predictions of a stored model"
    run train $spiral --isa v3 --out cut-$level --stop-after 5
    [ -e no-pictures ] || {
        run train --data images:pictures --arch wrn:10,1 --members 2 --epochs 2 --batch 12 --isa v3 --quiet --out wrn-$level
        expect 0 "" "$level: a residual network"
        run distill --teacher wrn-avx2 --data images:pictures --arch wrn:10,1 --method latent-be --perturb tdiv-sdiv --epochs 2 --batch 12 --isa v3 --quiet --out be-$level
        expect 0 "" "$level: distilled, with perturbations"
    }
done
for level in $levels; do # continued on the other kind of CPU
    export RETORT_ISA=$([ $level = avx2 ] && echo "${levels#avx2 }" || echo avx2)
    run train --out cut-$level --resume --quiet
    check "stopped at $level, continued at $RETORT_ISA: the same models" same_files mlp-avx2 cut-$level member-000.safetensors member-001.safetensors
    for kind in mlp hydra wrn be; do
        [ -d $kind-avx2 ] || continue
        check "$kind: $level has the bits of avx2" test "$(sum $kind-avx2/*.safetensors)" = "$(sum $kind-$level/*.safetensors)"
    done
    check "predictions: $level has the bits of avx2" cmp -s p-avx2.csv p-$level.csv
done
check "the configuration has it" grep -q '^isa: v3' mlp-avx2/config.yaml
check "the model has it" grep -aq 'isa.*v3' mlp-avx2/member-000.safetensors
if [ "$levels" != avx2 ]; then # or this test could not fail
    for level in $levels; do
        RETORT_ISA=$level run train $spiral --out native-$level
    done
    check "native kernels round differently here" test "$(sum native-avx2/m*.safetensors)" != "$(sum native-avx512/m*.safetensors)"
fi
export RETORT_ISA=plain
run train $spiral --isa v3 --out lesser
expect 2 "needs AVX2 and FMA" "a lesser CPU refuses"
run predict mlp-avx2 --data spiral:n=300 --out lesser.csv
expect 2 "needs AVX2 and FMA" "to predict, too"
run predict mlp-avx2 --data spiral:n=300 --isa native --out lesser.csv
expect 0 "" "--isa native predicts anyway"
finish
