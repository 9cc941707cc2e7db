#!/bin/sh
# docs/deploy.md is true: its commands are run as they stand, block by block, in the order of the page. Blocks of a client that
# is not installed are left out, saying so.
. "$(dirname "$0")/tap.inc"
build=$(dirname "$RETORT")
plain_library "$build" "other programs"
# What the page takes for granted: the program, the library and the package are installed, python3 is Debian's.
mkdir bin
ln -s "$RETORT" bin/retort
ln -s /usr/bin/python3 bin/python3
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >said 2>&1 || cat said
lib=$(dirname "$(find "$prefix" -name libretort.a)")
sed -i "s|^prefix=.*|prefix=$prefix|" "$lib/pkgconfig/retort.pc"
export PATH="$work/bin:$PATH" PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib PYTHONPATH=$RT_SOURCE_DIR/python RETORT_LIBRARY=$build/libretort.so \
    PYTHONDONTWRITEBYTECODE=1
has() { /usr/bin/python3 -c "import $1" 2>/dev/null; }

# block HEADING: the indented lines under it, as a script
block() {
    awk -v want="$1" '/^#+ / { sub(/^#+ /, ""); on = $0 == want; next } on && /^    / { print substr($0, 5) } on && /^$/ { print "" }' "$RT_SOURCE_DIR/docs/deploy.md"
}
# follow HEADING TEXT: its commands succeed, and say TEXT (a pattern)
follow() {
    block "$1" >script
    sh -e script >said 2>err
    rc=$?
    check "$1: has commands" grep -q '[a-z]' script
    [ "$rc" -eq 0 ] && { [ -z "$2" ] || grep -qE -e "$2" said; }
    ok $? "$1: its commands work"
}
follow "A run with a decision" ''
follow "The program" '^row,.*mutual_information'
follow "C" 'knowledge [0-9.]+, reject [01], set [01]{3}'
if has numpy; then
    follow "Python" 'reject'
else
    echo "skipped: no numpy, deploy.md's Python is not run"
fi
if has sklearn; then
    follow "scikit-learn" '^(0\.9|1\.0)'
else
    echo "skipped: no scikit-learn"
fi
if have_onnx; then
    follow "ONNX" ''
    if command -v node >/dev/null && [ -d "$build/ort/node_modules/onnxruntime-node" ]; then
        ln -s "$build/ort/node_modules" node_modules
        echo true >bin/npm && sed -i '1i #!/bin/sh' bin/npm && chmod +x bin/npm # it is installed
        follow "ONNX Runtime in Node.js" 'Float32Array'
    elif [ -n "${RT_REQUIRE_SHARED:-}" ]; then
        follow "ONNX Runtime in Node.js" 'Float32Array'
    else
        echo "skipped: no onnxruntime-node"
    fi
    if has onnxruntime; then # not among Debian's packages; tests/golden/onnx_live gives the threshold by the C interface
        follow "ONNX Runtime in Python" 'True|False'
    fi
    if has cv2; then
        follow "OpenCV" '0\.[0-9]'
    else
        echo "skipped: no OpenCV"
    fi
fi
finish
