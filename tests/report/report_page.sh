#!/bin/sh
# The page of `retort report` from the runs beside this script: sections, sizes, speed, messages.
. "$(dirname "$0")/../cli/tap.inc"
runs=$RT_SOURCE_DIR/tests/report/runs

run report "$runs/teacher" "$runs/latent-be" "$runs/hydra" "$runs/unfinished" "$runs/merged" "$runs/spiral" "$runs/houses" --out all.html
expect 0 "all.html: 7 runs" "a page of seven runs"
for id in results cost uncertainty reliability classes intervals histograms rejection roc shift corruptions line diversity maps average training doubtful commands; do
    check "section $id" grep -q "<section id=\"$id\">" all.html
    check "link to $id" grep -q "<a href=\"#$id\">" all.html
done
expect 0 "next: retort eval" "a hint for runs that are not evaluated"
check "the page has the hint" grep -q 'retort eval .*unfinished.*--data fashion-mnist' all.html
check "no place of the frame is left" sh -c '! grep -q "{{" all.html'
check "nothing is loaded from elsewhere" sh -c '! grep -qE "<(script|link|img|iframe)[^>]*(src|href)=\"?(https?:)?//" all.html'
check "pictures are inside" test "$(grep -o 'data:image/png;base64,' all.html | wc -l)" -eq 10
check "below 5 MB" test "$(wc -c <all.html)" -lt 5000000

check "the script has the tables of the program" sh -c 'grep -q "\"name\":\"ece_calibrated\",\"heading\":\"ECE at best T\",\"better\":-1" all.html && grep -q "\"name\":\"confidence\",\"certainty\":true" all.html'
check "a column says by which measure" grep -q 'AUROC digits by entropy' all.html
check "a matrix for every run that has one" test "$(grep -o 'class="confusion"' all.html | wc -l)" -eq 3
run report "$runs/teacher" "$runs/latent-be" "$runs/hydra" --out three.html
check "what finds foreign data best is named, with the data" grep -q 'finds foreign data best: noise by mutual information (AUROC)' three.html
check "six cards are two rows of three" grep -q 'class="cards" style="--across:3"' three.html
mkdir unasked
sed 's/"ood:/"not:/g' "$runs/hydra/metrics.json" >unasked/metrics.json
run report "$runs/teacher" unasked --out part.html
check "nobody finds best what another was not asked about" sh -c '! grep -q "finds foreign data best" part.html && grep -q "highest accuracy" part.html'

run report "$runs/houses" --out houses.html
check "regressions have their own words" sh -c 'grep -q "variance of the mixture" houses.html && grep -q "variances in squared units of the target" houses.html'
check "and none of entropies" sh -c '! sed "s/<script.*//" houses.html | grep -q "entropy of the averaged\|in nats"'

run report "$runs/teacher" "$runs/unfinished" --title 'a <b> & c' --out two.html --json
expect 0 "" "two runs, with a heading"
check "runs that were not evaluated are not counted as such" grep -q "2 runs, 1 of them evaluated on fashion-mnist" two.html
check "the heading is escaped" grep -q '<h1>a &lt;b&gt; &amp; c</h1>' two.html
check "one JSON object" json out
check "which says how many are evaluated" grep -q '"runs":2,"evaluated":1' out
check "no section without data" sh -c '! grep -q "<section id=\"average\"" two.html'

for i in 0 1 2 3 4 5 6 7 8 9; do
    mkdir "long$i"
    cp -r "$runs/latent-be/metrics.json" "$runs/latent-be/pictures" "long$i/"
    awk 'BEGIN { for (e = 1; e <= 2000; e++)
        printf "{\"event\":\"epoch\",\"epoch\":%d,\"lr\":%.17g,\"train_loss\":%.17g,\"valid_loss\":%.17g,\"train_accuracy\":%.17g,\"valid_accuracy\":%.17g}\n",
            e, 0.1 / e, 1 / e, 2 / e, 1 - 1 / e, 1 - 2 / e }' >"long$i/log.jsonl"
done
start=$(date +%s)
run report long? --out ten.html
expect 0 "10 runs" "ten runs of 2000 epochs"
check "in less than five seconds" test "$(($(date +%s) - start))" -le 5
check "below 5 MB, too" test "$(wc -c <ten.html)" -lt 5000000

run report "$runs/teacher" --out page.txt
expect 2 "does not end in .html" "a name that is no page"
run report "$runs/nothing" --out none.html
expect 3 "no such directory" "a run that is not there"
check "leaves no page" test ! -e none.html
mkdir bad
echo '{"evaluation": {"curves": {"line": {"alpha": [0, 1], "loss": [1]}}}}' >bad/metrics.json
run report bad --out bad.html
expect 3 "bad/metrics.json: evaluation/curves/line/loss: expected as many numbers" "a bad file is named, with the place"
finish
