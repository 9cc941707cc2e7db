#!/bin/sh
# Runs of version 0.1 (tests/fixtures/format-1, made by the script there): they load, predict, evaluate, report, teach and
# are finished by --resume as that version would have: with its bits on the processor they were made on, elsewhere closely.
. "$(dirname "$0")/tap.inc"
from=$RT_SOURCE_DIR/tests/fixtures/format-1
cp -r "$from/runs" "$from/half" "$from/said" "$from/line.csv" .
chmod -R u+w .
export RETORT_ISA=plain # as they were made
bits= weights="nearly the weights"
here=$(grep -m 1 "^model name" /proc/cpuinfo | sed 's/.*: //')
if [ "$here" = "$(cat "$from/processor")" ] && "$RETORT" --version | grep -q oneDNN; then bits=1 weights="the bits"; fi

# close FILE FILE: every column of the first is in the second, its numbers within 2e-6, its words the same.
close() {
    awk -F, 'NR == FNR { if (FNR == 1) for (i = 1; i <= NF; i++) name[i] = $i; n = FNR; for (i = 1; i <= NF; i++) want[FNR, i] = $i; cols = NF; next }
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; for (i = 1; i <= cols; i++) if (!(name[i] in at)) { print "no column " name[i]; bad = 1; exit }; next }
        { for (i = 1; i <= cols; i++) { a = want[FNR, i]; b = $(at[name[i]]); d = a - b; if (d < 0) d = -d; m = a < 0 ? -a : a + 0
          if (a != b && (a + 0 != a || d > 2e-6 * (1 + m))) { print "row " FNR " " name[i] ": " a ", now " b; bad = 1 } } }
        END { exit bad || FNR != n || n < 9 }' "$1" "$2"
}

# tensors FILE: the bytes behind the header
tensors() { tail -c +$(($(od -An -tu8 -N8 "$1" | tr -d ' ') + 9)) "$1"; }

# as_it_was FILE FILE: the same weights
as_it_was() {
    tensors "$1" >a.bin
    tensors "$2" >b.bin
    if [ -n "$bits" ]; then
        cmp a.bin b.bin
    else
        od -An -v -w4 -tf4 a.bin >a.txt
        od -An -v -w4 -tf4 b.bin >b.txt
        paste a.txt b.txt | awk 'NF != 2 { bad = 1 } { d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3) bad = 1 } END { exit bad || NR < 10 }'
    fi
}

for name in $(ls half); do
    data="--data spiral:n=40,seed=3"
    verb=distill
    case $name in
    regression) data="--data csv:line.csv,target=y" verb=train ;;
    ensemble | decayed | cycle) verb=train ;;
    esac
    run info runs/$name
    expect 0 "" "$name: is read"
    check "$name: and is finished" grep -q finished out
    run info half/$name
    check "$name: half of it is unfinished" grep -q unfinished out
    # shellcheck disable=SC2086
    run predict runs/$name $data --limit 40 --threads 1 --out now.csv --quiet
    expect 0 "" "$name: predicts"
    close said/$name.csv now.csv >differences 2>&1
    ok $? "$name: what it said then ($(head -n 1 differences))"
    # shellcheck disable=SC2086
    run eval runs/$name $data --bootstrap 0 --threads 1 --json --no-save
    expect 0 "" "$name: is evaluated"
    run $verb --out half/$name --resume --quiet --threads 1
    expect 0 "" "$name: is resumed"
    for f in runs/$name/*.safetensors; do
        check "$name: $(basename $f) has $weights of version 0.1" as_it_was $f half/$name/"$(basename $f)"
    done
    check "$name: the log goes on" sh -c "grep -q '\"event\":\"resumed\"' half/$name/log.jsonl && tail -n 1 half/$name/log.jsonl | grep -q '\"event\":\"finished\"'"
    check "$name: its metrics are there, no checkpoint is" sh -c "test -s half/$name/metrics.json && test ! -e half/$name/checkpoint.safetensors"
    run $verb --out half/$name --resume --quiet
    expect 0 "" "$name: resumed again, it is finished"
done

# Numbers that were stored are the ones that are measured now.
number() { grep -oE "\"$1\":-?[0-9.e-]+" "$2" | head -n 1 | cut -d: -f2; }
for name in ensemble regression; do
    case $name in
    ensemble) data="--data spiral:n=40,seed=3" metrics="accuracy nll brier ece prr entropy disagreement epkl mutual_information" ;;
    regression) data="--data csv:line.csv,target=y" metrics="nll rmse total_variance data_variance knowledge_variance" ;;
    esac
    # shellcheck disable=SC2086
    run eval runs/$name $data --bootstrap 0 --threads 1 --json --no-save
    for metric in $metrics; do
        check "$name: $metric as it was stored" awk -v a="$(number $metric runs/$name/metrics.json)" -v b="$(number $metric out)" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d < 1e-5 * (1 + (a < 0 ? -a : a))) }'
    done
done

run report runs/* --out report.html --quiet
expect 0 "" "a report of what it left"
check "with its numbers" grep -q 'runs/ensemble' report.html
run predict runs/average --data spiral:n=40,seed=3 --out average.csv --quiet
expect 0 "" "an average predicts"
run average runs/ensemble --data spiral:n=40,seed=3 --method match --out again --quiet --threads 1
expect 0 "" "members are averaged"
check "to the network it was" as_it_was runs/average/model.safetensors again/model.safetensors
run distill --teacher runs/ensemble --data spiral:n=40,seed=3 --arch mlp:6 --method kd --epochs 1 --out kd --quiet
expect 0 "" "its ensemble teaches"
run train --config runs/decayed/config.yaml --out anew --quiet --threads 1
expect 0 "" "its config.yaml is one"
run calibrate runs/ensemble --scale-by mean --quiet
expect 0 "" "its model takes a decision"

# What that version did wrong is not gone on with.
cp -r half/latent-be wrong
cp "$from/half/latent-be/"* wrong 2>/dev/null
rm -f wrong/metrics.json wrong/*model* wrong/members*
sed -i 's/^optimiser: .*/optimiser: adamw/' wrong/config.yaml
run distill --out wrong --resume --quiet
expect 2 "towards 0 instead of 1" "adamw on LatentBE: refused, with the reason"
finish
