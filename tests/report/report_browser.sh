#!/bin/sh
# The page in a browser: a headless Chromium opens it in frames of several widths, light and dark; in each the page checks itself (page.js, #selftest):
# no plot is blank, cells of tables are the numbers of metrics.json, tables sort, nothing is wider than the window. Nothing may be logged as an error.
. "$(dirname "$0")/../cli/tap.inc"
runs=$RT_SOURCE_DIR/tests/report/runs
have chromium || finish

evil='x<img src=q onerror=alert(1)>'
mkdir "$evil"
sed 's|fashion-mnist|</script><script>throw 1</script>|; s|T-shirt/top|<img src=q onerror=alert(2)>|; s|ood:digits|ood:<b>a/b</b>|g' "$runs/teacher/metrics.json" >"$evil/metrics.json"
cp -r "$runs/teacher/pictures" "$runs/latent-be/log.jsonl" "$evil/"
run report "$runs/teacher" "$runs/latent-be" "$runs/hydra" "$runs/unfinished" --out compare.html
expect 0 "" "a page that compares"
run report "$runs/merged" "$runs/spiral" "$runs/houses" --out other.html
expect 0 "" "a page of other kinds of runs"
run report "$evil" "$runs/teacher" --out evil.html
expect 0 "" "a page of hostile names"
run report "$runs/unfinished" --out bare.html
expect 0 "" "a page without an evaluation"

{
    echo '<!DOCTYPE html><meta charset="utf-8"><body>'
    for page in compare other evil bare; do
        for width in 360 1280 1920; do
            for theme in light dark; do
                echo "<iframe data-name=\"$page-$width-$theme\" src=\"$page.html#selftest,$theme\" style=\"width:${width}px;height:800px\"></iframe>"
            done
        done
    done
    cat <<'END'
<pre id="results">
</pre>
<script>
window.onload = function () {
    document.querySelectorAll('iframe').forEach(function (f) {
        var found = f.contentDocument.getElementById('selftest');
        document.getElementById('results').textContent += '\n@' + f.dataset.name + ' ' + (found ? found.textContent : 'did not finish') + '@\n';
    });
};
</script>
END
} >frames.html

timeout 300 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --allow-file-access-from-files --user-data-dir="$work/profile" --window-size=2000,1200 \
    --virtual-time-budget=60000 --enable-logging=stderr --v=0 --dump-dom "file://$work/frames.html" >dom 2>browser
rc=$?
grep CONSOLE browser >err # the rest is about buses and graphics cards
expect 0 "" "the browser runs"
grep -o '^@.*@$' dom | tr -d @ >results
check "no errors in the console" test ! -s err
for page in compare other evil bare; do
    for width in 360 1280 1920; do
        for theme in light dark; do
            line=$(grep "^$page-$width-$theme " results)
            case "$line" in *"selftest ok: "*) true ;; *) echo "# $line"; false ;; esac
            ok $? "$page, $width wide, $theme"
        done
    done
done
check "the frames were as wide as they should" grep -q 'compare-360-light .* width 3[0-9][0-9]$' results
plots=$(sed -n 's/^compare-1280-light selftest ok: \([0-9]*\) plots.*/\1/p' results)
check "plots are there" test "${plots:-0}" -ge 25
finish
