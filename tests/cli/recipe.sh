#!/bin/sh
# Recipes: what they show, that they continue without repeating, and that a changed stage runs again with all that depends on it.
. "$(dirname "$0")/tap.inc"
cp "$RT_SOURCE_DIR/tests/cli/recipe.yaml" small.yaml
dir=results/small/quick

run recipe list
expect 0 "" "list"
for name in $("$RETORT" recipe list | sed 1d | awk '{ print $1 }'); do
    for scale in quick paper; do
        run recipe show "$name" --scale $scale
        check "recipe $name expands at scale $scale, or has none" sh -c "test $rc -eq 0 || grep -q 'has no scale' err"
        run recipe tables "$name" --scale $scale
        check "and its tables and claims make sense" sh -c "test $rc -eq 0 || grep -q 'has no scale' err"
    done
done
# Table 6 of Malinin et al.: rate, epochs and cycle of each kind.
run recipe show end2-cifar10 --scale paper
check "the paper's ensemble: rate 1e-3, 45 epochs, a cycle of 30" grep -qE -- '^retort train .*--lr=0.001 .*--schedule=one-cycle:30 .*--members=100 .*--epochs=45 ' out
check "its Prior Networks: rate 5e-4, 45 epochs, a cycle of 30" sh -c 'test "$(grep -cE -- "--lr=0.0005 .*--schedule=one-cycle:30 .*--method=prior-net .*--epochs=45 " out)" = "$(grep -c -- --method=prior-net out)" && grep -q -- --method=prior-net out'
check "its students: rate 1e-3, 90 epochs, a cycle of 60" grep -qE -- '--lr=0.001 .*--schedule=one-cycle:60 .*--method=end2 .*--epochs=90 ' out
run recipe show small.yaml
check "show prints a command for every combination" test "$(grep -c '^retort ' out)" -eq 8
run recipe show small.yaml --json
if have python3; then
    check "as JSON, too" python3 -c 'import json; d = json.load(open("out")); assert len(d["commands"]) == 8 and d["commands"][0]["words"][0] == "train" and not d["commands"][0]["finished"]'
fi
run recipe show small.yaml --scale small
check "a stage like another has its loops and flags, and its own" grep -q '^retort distill --teacher=results/small/small/runs/teacher-1 --data=spiral:n=200 --arch=mlp:12 --epochs=1 --seed=1 --method=ae-kd --out=results/small/small/runs/extra-1$' out
check "and so has one that is like that" grep -q '^retort distill --teacher=results/small/small/runs/teacher-1 --data=spiral:n=200 --arch=mlp:12 --epochs=1 --seed=7 --method=ae-kd --alpha=0.5 --out=results/small/small/runs/further-1$' out
run recipe run small.yaml
expect 0 "" "a recipe runs"
check "the table has means over seeds" grep -qE '^\| ensemble \| .*± .*\(80\.0 ± 1\.0 [✓✗]\)' out
check "and a verdict on the claim" grep -qE '^- \*\*(holds|does not hold|within noise):\*\* the ensemble beats kd \(by -?[0-9.]+ ± [0-9.]+, two runs\)$' out
check "the least of the runs has no deviation" grep -qE '^\| any seed \| [0-9.]+ \| 2 \|$' out
least() { sed -n "s/^| $1 | \([0-9.]*\) | .*/\1/p" out | head -n 1; }
check "and is the least" test "$(least 'any seed')" = "$(printf '%s\n' "$(least 'seed one')" "$(least 'seed two')" | sort -n | head -n 1)"
check "time left is known from the start" grep -q '^\[1/8\] teacher-1  (0:00 so far, [0-9]' err
check "rows of no run are left out" sh -c '! grep -q "seed three" out'
sed -n '/^### Ranked/,/^### /p' out | grep -E '^. (teacher|kd|no) ' >ranked
check "sorted rows are from best to worst, those without a number last" sh -c 'head -n 4 ranked | cut -d"|" -f3 | sort -cn && tail -n 1 ranked | grep -q "no number" && test "$(wc -l <ranked)" -eq 5'
check "what is off at this scale is left out: stages, columns, rows, claims" sh -c 'grep -q "^| .* | always | runs |$" out && grep -q "of what is always there" out && ! grep -qE "more alone|extra|of more|only there" out && ! ls results/small/quick/runs | grep -q extra'
check "results are JSON" json $dir/results.json
check "a whole table, too" sh -c 'grep -A2 "^### A whole table" out | grep -q "^Not part of this scale"'
run recipe run small.yaml --scale small
check "a table that is on is there" sh -c 'grep -A4 "^### A whole table" out | grep -q "^| kd | [0-9]"'
check "a scale that compares orderings does not judge cells" grep -qE '^\| ensemble \| .*\(80\.0 ± 1\.0\)' out
check "what is on at this scale is there" sh -c 'grep -q "^| .* | always | more alone | runs |$" out && grep -q "^| extra |" out && grep -q "of more" out && grep -q "only there" out'
tr '\n' ' ' <out >joined # prose is folded
check "and says so" grep -q 'only orderings can be compared' joined
check "a table of no run at this scale is left out, and its claims" sh -c 'grep -A2 "^### Second seed" out | grep -q "^Not part of this scale" && ! grep -q "more than none" out'

run recipe run small.yaml --progress none -o quietly
check "no progress if none is wanted" sh -c '! grep -q "^\[1/8\]" err && grep -q "^| ensemble" out'

check "every command is noted with its processor" test "$(grep -cE '"seconds": ?[0-9.]+, ?"cpu": ?"[^"]+, (none|plain|avx2|avx512)"' $dir/measured.json)" -eq 8
tr '\n' ' ' <$dir/tables.md >joined
check "and the tables say which" grep -qE ' minutes \(commands: 8 on [^;]*, (none|plain|avx2|avx512)\)\. Cells' joined
cp -r results before
run recipe run small.yaml
expect 0 "8 finished" "again: everything is finished"
check "nothing was touched" diff -r before/small/quick/done $dir/done
check "the same numbers" diff before/small/quick/results.json $dir/results.json

# Killed in the middle: the rest is done, what was finished is not repeated, the numbers are the same.
forget() { sed -i "/^\"$1\": /d" "$dir/measured.json"; }
last_line_without_comma() { sed -i -z 's/},\n}}/}\n}}/' "$dir/measured.json"; }
rm $dir/done/kd-2 $dir/done/measure.kd-2 $dir/results.json
forget kd-2
forget measure.kd-2
last_line_without_comma
sed -i 's/minutes: 1,/minutes: 60000,/' small.yaml # a thousand hours
run recipe run small.yaml
expect 0 "6 finished;" "continues after an interruption"
check "time left goes by what this processor took, not by what the recipe says" grep -q '^\[[0-9]*/8\] kd-2  (0:00 so far, [0-9]*:[0-9][0-9] left)' err
cp "$RT_SOURCE_DIR/tests/cli/recipe.yaml" small.yaml
check "and ends with the same tables" diff before/small/quick/tables.md $dir/tables.md
check "finished stages keep their marks" cmp before/small/quick/done/teacher-1 $dir/done/teacher-1

# A fresh clone has measured.json alone, and its data elsewhere: nothing is run, and the numbers are the same.
mkdir -p clone/small/quick
cp $dir/measured.json clone/small/quick
run recipe run small.yaml -o clone --data-dir elsewhere
expect 0 "8 commands, 8 finished;" "what is committed need not be run again"
check "not a single run is there" sh -c '! test -e clone/small/quick/runs'
check "and its tables are the same" diff $dir/tables.md clone/small/quick/tables.md
dir=clone/small/quick
sed -i '/^"measure.kd-2"/s/"cpu":"[^"]*",//; /^"kd-2"/s/"cpu":"[^"]*"/"cpu":"an abacus"/' $dir/measured.json
run recipe tables small.yaml -o clone
tr '\n' ' ' <out >joined
check "several processors, and one that was not noted, are told apart" grep -qE ' minutes \(commands: 6 on [^;]*; 1 on an abacus; 1 on processors that were not noted\)\.' joined
cp results/small/quick/measured.json $dir
forget measure.kd-1
run recipe run small.yaml -o clone
expect 0 "7 finished (2 of them are run again" "what is missing is run, with what it needs"
check "and nothing else" test "$(ls $dir/runs | tr '\n' ' ')" = "kd-1 teacher-1 "
check "the same tables, still" diff results/small/quick/tables.md $dir/tables.md
mkdir -p order/small/quick
cp results/small/quick/measured.json order/small/quick
dir=order/small/quick
forget kd-1
forget measure.kd-1
forget measure.kd-2
run recipe show small.yaml -o order
sed -n '/^# finished$/{n;d};s/^retort .*--out=.*runs\/\([^ ]*\).*/\1/p;s/^retort eval .*runs\/\([^ ]*\) .*/eval \1/p' out | tr '\n' ' ' >order.txt
check "what is run again comes right before the first that wants it" grep -qx 'teacher-1 kd-1 eval kd-1 teacher-2 kd-2 eval kd-2 ' order.txt
dir=results/small/quick

# Data may move between two beginnings: what was begun with them elsewhere is begun anew.
sed 's/data: "spiral:n=200"/data: "csv:${data}\/a.csv"/' small.yaml >moved.yaml
mkdir -p here
"$RETORT" data spiral:n=200 --out here/a.csv >/dev/null 2>&1
dir=results/moved/quick
run recipe run moved.yaml --data-dir here
expect 0 "" "a recipe of a file runs"
cp $dir/tables.md moved.md
mv here there
rm $dir/done/kd-2 $dir/done/measure.kd-2
forget kd-2
forget measure.kd-2
last_line_without_comma
run recipe run moved.yaml --data-dir there
expect 0 "6 finished;" "continues with data that have moved"
check "and ends with the same tables" diff moved.md $dir/tables.md
dir=results/small/quick

# A result that could not be stored is not one.
forget measure.kd-2
last_line_without_comma
rm $dir/done/measure.kd-2
printf '{"retort": "0", "valid_accuracy": 0.5}' >$dir/runs/kd-2/metrics.json
if have flock; then
    flock $dir/runs/kd-2/.lock "$RETORT" recipe run small.yaml >out 2>err </dev/null
    rc=$?
    check "an evaluation that was not stored fails" test $rc -ne 0
    check "and is not finished" sh -c '! grep -q "^\"measure.kd-2\"" results/small/quick/measured.json && ! test -e results/small/quick/done/measure.kd-2'
fi
run recipe run small.yaml
expect 0 "7 finished;" "the next run repairs it"
check "the same tables once more" diff before/small/quick/tables.md $dir/tables.md

# Two at a time would lose lines of measured.json.
if have flock; then
    flock $dir/.lock "$RETORT" recipe run small.yaml >out 2>err </dev/null
    rc=$?
    check "a second process is refused" test $rc -ne 0
fi

# Data that are missing are named before anything is run.
sed 's/data: "spiral:n=200", arch: "mlp:10", epochs/data: "csv:${data}\/a.csv,splits=${data}\/a.splits", arch: "mlp:10", epochs/' small.yaml >lacking.yaml
run recipe run lacking.yaml --data-dir mine
expect 3 "needs data that are not there: mine/a.csv, mine/a.splits; --data-dir says" "missing data are named"
check "before anything is run" sh -c '! test -e results/lacking'
sed 's/data: "spiral:n=200"}/data: "spiral:n=200", ood: ["ring=ring", "far=csv:far.csv"]}/' small.yaml >foreign.yaml
run recipe run foreign.yaml
expect 3 "measure.teacher-1: --ood far: data 'csv:far.csv': far.csv is not there" "so are data that a recipe names itself"
check "before anything is run, too" sh -c '! test -e results/foreign'
if have unshare && { unshare -rm true 2>/dev/null || { echo "skipped: no name spaces" && false; }; }; then
    sed 's/data: "spiral:n=200"}/data: "spiral:n=200", ood: ["clothes=fashion-mnist"]}/' small.yaml >clothes.yaml
    mkdir empty
    unshare -rm sh -c 'mount --bind empty /usr/share && exec "$RETORT" recipe run clothes.yaml' >out 2>err </dev/null
    rc=$?
    expect 3 "measure.teacher-1: --ood clothes: data 'fashion-mnist': /usr/share/datasets/fashion-mnist is not there; wanted fashion-mnist[:DIR]" "and those that have a place of their own"
fi
sed 's/^tables:/  - {name: answers, verb: predict, runs: ["@teacher seed=1"], with: {data: "spiral:n=200", out: made.csv}}\n  - {name: reader, verb: train, with: {data: "csv:made.csv", arch: "mlp:4", epochs: 1}}\n&/' small.yaml >made.yaml
run recipe run made.yaml
expect 0 "" "a file that a command of the recipe makes is not missed beforehand"
sed 's/epochs: 2/epochs: many/' small.yaml >flags.yaml
run recipe run flags.yaml
expect 2 "many" "a wrong flag is told"
check "before anything is run, as well" sh -c '! test -e results/flags'
sed 's/1\.\.2/5..1/' small.yaml >bad.yaml
run recipe show bad.yaml
expect 3 "the loop '5..1' has no value" "a loop that counts down is refused"

sed -i 's/arch: "mlp:10", members/arch: "mlp:11", members/' small.yaml
run recipe show small.yaml
check "a changed teacher makes all that depends on it unfinished" test "$(grep -c '^# finished' out)" -eq 0
run recipe run small.yaml
expect 0 "0 finished" "and it runs again"

run recipe page -o nothing
check "a page of nothing is a page" grep -q '</main></body></html>' out
sed 's/@teacher"/@nobody"/' small.yaml >bad.yaml
run recipe show bad.yaml
expect 3 "names no run" "a reference to nothing is refused"
# Two runs of one stage meet in a command: an ensemble of both.
cat >pair.yaml <<'END'
title: "Pair"
source: "-"
about: "x"
scales:
  quick: {about: "tiny.", minutes: 1, memory: "50 MB", disk: "1 MB", vars: {next_1: 2, next_2: 1}}
stages:
  - {name: one, verb: train, each: {seed: "1..2"}, with: {data: "spiral:n=100", arch: "mlp:8", epochs: 1, first-member: "${seed}", seed: 1}}
  - {name: both, verb: gather, each: {seed: "1..2"}, runs: ["@one", "@one seed=${next_${seed}}"]}
  - {name: measure, verb: eval, runs: ["@one", "@both"], with: {data: "spiral:n=100", bootstrap: 0}}
tables:
  - id: t
    title: T
    columns: [{id: m, label: "networks", value: "/members", digits: 0}, {id: nll, label: NLL, value: sets.test.nll, digits: 4}]
    rows: [{id: one, label: one, runs: one}, {id: both, label: both, runs: both}]
END
run recipe show pair.yaml
check "a loop of a run may have another value" grep -qx 'retort gather results/pair/quick/runs/one-2 results/pair/quick/runs/one-1 --out=results/pair/quick/runs/both-2' out
run recipe run pair.yaml
expect 0 "" "gathered runs are runs"
check "of two networks" sh -c 'grep -q "^| both | 2" out && test -e results/pair/quick/runs/both-1/member-001.safetensors'
run recipe run pair.yaml
expect 0 "8 finished" "and are finished"
rm -r results/pair/quick/measured.json results/pair/quick/done
run recipe run pair.yaml
expect 0 "" "and are made again where their mark is gone"
sed -i '/"both-[12]": /d; /"measure.both-[12]": /d' results/pair/quick/measured.json
sed -i -z 's/},\n}}/}\n}}/' results/pair/quick/measured.json
rm results/pair/quick/done/*both*
run recipe tables pair.yaml
check "rows that have no number yet are named below" sh -c 'grep -qx "Not measured yet: both." out && grep -q "^| one |" out && ! grep -q "^| both" out'
sed 's/@one seed=/@one seed /' pair.yaml >bad.yaml
run recipe show bad.yaml
expect 3 'wanted "@stage", or with values' "a loop without a value is refused"
sed 's/@one seed=${next_${seed}}/@one seed=7/' pair.yaml >bad.yaml
run recipe show bad.yaml
expect 3 "'@one seed=7' names no run" "a value without a run is refused"
sed 's/"${epochs}"/"${epoch}"/' small.yaml >bad.yaml
run recipe show bad.yaml
expect 3 "variable 'epoch'" "an unknown variable is refused"
sed 's/take: least/take: most/' small.yaml >bad.yaml
run recipe tables bad.yaml
expect 3 "takes 'most'; wanted least" "an unknown way to take a number is refused"
printf 'a: [1, 2\nb: 3\n' >bad.yaml
run recipe show bad.yaml
expect 3 "bad.yaml:2" "bad YAML is refused with its place"
run recipe run smal.yaml
expect 3 "smal.yaml" "a missing file"
run recipe run no-such-recipe
expect 2 "nor a recipe" "an unknown name"
run recipe run small.yaml --scale small
run recipe run small.yaml --scale small
expect 0 "nothing was left to run" "a recipe that is finished says so"
run recipe show small.yaml --scale huge
expect 2 "has no scale 'huge'" "an unknown scale"
run recipe stir small.yaml
expect 2 "wanted one of list" "an unknown action"
finish
