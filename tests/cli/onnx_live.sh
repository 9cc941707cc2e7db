#!/bin/sh
# Exported files in runtimes of others, the small form; tests/golden/onnx_live is the whole. Wants Node.js with
# onnxruntime-node in BUILD/ort (where that script installs it) and Debian's python3-onnx, -opencv, -scipy.
. "$(dirname "$0")/tap.inc"
build=$(dirname "$RETORT")
if ! /usr/bin/python3 -c 'import numpy, scipy, onnx, cv2' 2>/dev/null || ! command -v node >/dev/null; then
    echo "skipped: no Node.js, or no Debian Python with numpy, scipy, onnx and OpenCV"
elif [ ! -d "$build/ort/node_modules/onnxruntime-node" ] && [ -z "${RT_REQUIRE_SHARED:-}" ]; then
    echo "skipped: no onnxruntime-node in $build/ort; tests/golden/onnx_live installs it"
elif have_onnx; then
    /usr/bin/python3 "$RT_SOURCE_DIR/tests/golden/onnx_live" "$build" small >said 2>&1
    rc=$?
    grep -E '^(ok|not ok) ' said
    [ "$rc" -eq 0 ] || grep -vE '^ok ' said | tail -n 20
    cp said err
    check "all of them" test "$rc" -eq 0
fi
finish
