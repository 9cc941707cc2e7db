#!/bin/sh
# retort calibrate: fitted on rows the run has not seen, stored in the model, used everywhere, refused with reasons.
. "$(dirname "$0")/tap.inc"
run train --data spiral:n=1500 --arch mlp:24 --members 3 --epochs 8 --out teacher --quiet
run predict teacher --data spiral:n=1500 --out before.csv
before=$(sha256sum <teacher/member-001.safetensors)
run calibrate teacher --reject coverage=0.9 --measure mutual_information --conformal alpha=0.1 --json
expect 0 "held-out rows" "fits on the rows the run held out"
check "JSON has temperature, reject and conformal" grep -q '"temperature":.*"reject":{"measure":"mutual_information","threshold":.*"conformal":{"kind":"lac","alpha":0.1,"quantile":' out
check "an ensemble has it in its first file" grep -q '"decision"' teacher/member-000.safetensors
check "and the others are as they were" test "$before" = "$(sha256sum <teacher/member-001.safetensors)"
run predict teacher --data spiral:n=1500 --out after.csv
expect 0 "mutual_information above" "predict uses the reject rule"
check "and names sets" grep -q '^row,.*,rejected,set' after.csv
check "--raw gives the numbers without" sh -c '"$0" predict teacher --data spiral:n=1500 --raw --out raw.csv -q && cmp raw.csv before.csv' "$RETORT"
# columns: true_label is the one before the last; set is before it
awk -F, 'NR > 1 { n++; split($(NF - 2), s, "|"); for (i in s) if (s[i] == $NF) { hit++; break } }
         END { exit !(hit / n > 0.85) }' after.csv
ok $? "sets hold the truth in about nine rows of ten"
awk -F, 'NR > 1 { n++; kept += $(NF - 3) == 0 } END { exit !(kept / n > 0.84 && kept / n < 0.96) }' after.csv
ok $? "nine of ten rows are answered"
run eval teacher --data spiral:n=1500 --bootstrap 0 --json
cp out cooked.json
run eval teacher --data spiral:n=1500 --bootstrap 0 --json --raw --no-save
check "eval uses the temperature" sh -c '! cmp -s out cooked.json'
run eval teacher --data spiral:n=1500 --bootstrap 0 --ood ring=ring --json
check "eval tells what the rules do on test rows, with intervals" grep -qE '"decision":\{"reject":\{"coverage":0\.[0-9]+,"coverage_interval":\[0\.[0-9]+,0\.[0-9]+\],"risk":0\.[0-9]+,"risk_interval":\[.*"conformal":\{"coverage":0\.[0-9]+,"coverage_interval":.*"set_size":.*"stored":\{' out
check "and how many foreign rows are rejected" grep -qE '"rejected":[0-9.]+,"rejected_interval":\[' out
run report teacher --out page.html
check "the report has them, with the warning" sh -c 'grep -q "<section id=\"decisions\"" page.html && grep -q "Shift breaks these promises" page.html'
run eval teacher --data spiral:n=1500 --bootstrap 0 --raw --no-save --json
check "not with --raw" sh -c '! grep -q "\"decision\"" out'
run info teacher
check "info tells of it" grep -q 'decision' out
run train --data spiral:n=300 --arch mlp:8 --epochs 2 --valid 0 --out all --quiet
run calibrate all
expect 3 "the run held out no validation rows; give rows that it has not seen by --data" "no rows, no fit"
check "nothing was stored" sh -c '! grep -q decision all/model.safetensors'
run calibrate all --data spiral:n=500,seed=5
expect 0 "rows of --data" "rows can be given"
run calibrate teacher --reject half
expect 2 "wanted a name, '=' and a number" "a rule that cannot be read"
run calibrate teacher --reject speed=0.5
expect 2 "wanted coverage=X, risk=X or ood=X" "a rule that is not known"
run calibrate teacher --conformal alpha=2
expect 2 "between 0 and 1" "an alpha that is none"
run calibrate all --reject coverage=0.9 --measure mutual_information --data spiral:n=500,seed=5
expect 2 "needs at least two members" "a measure that the model has not"
run calibrate teacher --reject risk=0.0001
expect 3 "no threshold keeps the risk that low" "a risk that cannot be promised"
run calibrate teacher --reject ood=0.1 --ood ring=ring
expect 0 "of the foreign rows are rejected" "the share of foreign rows that is found"
run calibrate teacher --dry-run --scale-by members
expect 0 "temperature of the members" "a dry run prints"
run predict teacher --data spiral:n=1500 --limit 3
check "and stores nothing" grep -q rejected out
printf 'x,y\n' >t.csv
awk 'BEGIN { for (i = 0; i < 400; i++) printf "%g,%g\n", i / 40, 50 + 3 * i + (i * 7919) % 101 }' >>t.csv
run train --data csv:t.csv,target=y,task=regression --arch mlp:8 --members 2 --epochs 15 --out line --quiet
run calibrate line --conformal alpha=0.2
expect 0 "intervals hold the truth in 80 % of rows" "intervals of a regression"
run predict line --data csv:t.csv,target=y,task=regression
check "predict gives lower and upper" grep -q '^row,.*,lower,upper' out
run calibrate line --scale-by mean
expect 2 "a regression has no temperature" "a regression has no temperature"
run export line --out line.onnx
if have_onnx; then
    expect 0 "lower,upper" "export carries the decision"
fi
# A temperature fitted to few rows may make others less likely: that is said, and nothing else.
wrong=0 warned=0
for seed in 1 2 3 4 5 6 7 8; do
    run train --data spiral:n=60 --arch mlp:4 --epochs 2 --seed $seed --valid 12 -q --out few --force
    run calibrate few --conformal alpha=0.2
    worse=$(awk '/^temperature of the mean/ { for (i = 1; i <= NF; i++) if ($i == "->") print ($(i + 1) > $(i - 1)) }' err)
    said=$(grep -c "less likely; --scale-by none leaves it out" err)
    [ "$worse" = "$said" ] || wrong=1
    warned=$((warned + said))
done
check "a temperature that makes other rows less likely is warned of ($warned of 8)" test "$wrong" -eq 0 -a "$warned" -gt 0
finish
