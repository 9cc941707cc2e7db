#!/bin/sh
# Generated pages are what the program would write now.
. "$(dirname "$0")/tap.inc"
check "tools/docs runs" "$RT_SOURCE_DIR/tools/docs" "$RETORT" "$work/docs"
check "docs/params.md is fresh (else: tools/docs build/retort)" cmp docs/params.md "$RT_SOURCE_DIR/docs/params.md"
for page in docs/ops.md docs/man/*.1; do
    check "$page is fresh" cmp "$page" "$RT_SOURCE_DIR/$page"
done
if [ -e docs/verbs.pyi ]; then # not with a sanitizer
    check "verbs.pyi is fresh" cmp docs/verbs.pyi "$RT_SOURCE_DIR/python/retort/verbs.pyi"
fi
check "no page is left over" test "$(ls docs/man)" = "$(ls "$RT_SOURCE_DIR/docs/man")"
"$RT_SOURCE_DIR/tools/results" -n >results.md
check "docs/results.md is fresh (else: tools/results)" cmp results.md "$RT_SOURCE_DIR/docs/results.md"
"$RT_SOURCE_DIR/tools/results" -m >methods.md
check "the tables of docs/methods/README.md are fresh (else: tools/results)" cmp methods.md "$RT_SOURCE_DIR/docs/methods/README.md"
awk '/^<!-- .*, of results/ { n = 0 } /^[|] / { n++ } /^<!-- end -->$/ { print n }' methods.md >rows
check "and there, each with its rows" sh -c 'test -s rows && ! grep -qv "^[1-9][0-9]*$" rows && test "$(sort -n rows | head -n 1)" -gt 5'
"$RETORT" recipe page --out "$RT_SOURCE_DIR/results" --quiet >results.html
check "docs/results.html is fresh (else: tools/results)" cmp results.html "$RT_SOURCE_DIR/docs/results.html"
check "and needs nothing but itself" sh -c '! grep -qE "<script|<link|src=|url\\(|@import" results.html'
for heading in $(grep '^## ' results.md | tr ' ' '_' | sort | uniq -d); do
    check "$heading stands once in docs/results.md" false
done
finish
