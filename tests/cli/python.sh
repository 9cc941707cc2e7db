#!/bin/sh
# The Python package: from the sources over the library of this build, and as a wheel in an empty environment. All that it
# needs is Debian's (tools/deps oracle); what is not there is said.
. "$(dirname "$0")/tap.inc"
build=$(dirname "$RETORT")
python=/usr/bin/python3
plain_library "$build" "Python"
has() { "$python" -c "import $1" 2>/dev/null; }
if ! has numpy; then
    echo "skipped: no Debian Python with numpy"
    finish
    exit
fi
source=$RT_SOURCE_DIR/python
export PYTHONDONTWRITEBYTECODE=1
# package: one test each line of the program
RETORT_LIBRARY=$build/libretort.so PYTHONPATH=$source "$python" "$RT_SOURCE_DIR/tests/python/package.py" "$RETORT" ${RT_WHOLE:+whole} >said 2>&1
rc=$?
grep -E '^(ok|not ok|skipped|#)' said | sed 's/^\(not \)\{0,1\}ok [0-9]* /\1ok package /'
[ "$rc" -eq 0 ] || sed 's/^/#   /' said | tail -n 30
check "the package, from its sources" test "$rc" -eq 0
RETORT_LIBRARY=$build/libretort.so PYTHONPATH=$source "$python" "$RT_SOURCE_DIR/tests/python/promises.py" >said 2>err
rc=$?
grep -E '^(ok|not ok)' said | sed 's/^\(not \)\{0,1\}ok [0-9]* /\1ok promises /'
check "promises of calibrate are kept" test "$rc" -eq 0
RETORT_LIBRARY=$build/libretort.so PYTHONPATH=$source "$python" "$source/examples/uncertainty.py" walk >said 2>err
rc=$?
check "the example runs" test "$rc" -eq 0
if has matplotlib; then
    check "and draws" test -s walk/uncertainty.png
else
    check "and says that there are no pictures" grep -q 'no matplotlib' said
fi
if has mypy; then
    cp -r "$source" typed
    cat >typed/use.py <<'END'
import numpy as np
import retort

m = retort.Model.load("run")
p: "np.typing.NDArray[np.float32]" = m.predict_proba([[0.0]])
retort.train("spiral", arch="mlp:8", members=3, optimiser="adam", out="run")
END
    (cd typed && "$python" -m mypy --cache-dir=/dev/null retort examples use.py) >said 2>&1
    ok $? "mypy is content, and so it is with a program that uses the package"
    printf 'import retort\nretort.train("spiral", memebrs=3)\nretort.train("spiral", optimiser="magic")\n' >typed/wrong.py
    (cd typed && "$python" -m mypy --cache-dir=/dev/null wrong.py) >said 2>&1
    check "but not with unknown keys and values" grep -q 'Found 2 errors' said
else
    echo "skipped: no mypy"
fi
if ! command -v patchelf >/dev/null || ! has build || ! has venv; then
    echo "skipped: no patchelf, python3-build or python3-venv: no wheel is made"
    finish
    exit
fi
# ---- the wheel, in an environment that has numpy and nothing else ----
mkdir to && ln -s "$build/libretort.so" to/libretort.so
check "a wheel is made" "$RT_SOURCE_DIR/tools/wheel" to
wheel=$(ls to/*.whl)
check "one for every Python 3 of this system" test "$(basename "$wheel")" = "retort-$("$RETORT" --version | awk 'NR == 1 { print $2 }')-py3-none-linux_x86_64.whl"
"$python" -m venv env
# numpy as Debian has it, and no other package of the system: a directory with links to it
mkdir numpy-only && ln -s /usr/lib/python3/dist-packages/numpy* numpy-only
echo "$work/numpy-only" >"$(echo env/lib/python3*/site-packages)/numpy.pth"
check "pip installs it without an index" env/bin/pip install --quiet --no-index --disable-pip-version-check "$wheel"
cat >use.py <<'END'
import sys
import numpy as np
import retort

try:
    import scipy
    sys.exit("the environment is not empty")
except ImportError:
    pass
x = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int32)
retort.train((x, y), arch="mlp:8", members=2, epochs=30, out="run")
m = retort.Model.load("run")
assert (m.predict(x) == y).mean() > 0.8 and m.uncertainty(x)["mutual_information"].shape == (200,)
m.export("m.onnx")
maps = open("/proc/self/maps").read()
alien = [l.split()[-1] for l in maps.splitlines() if any(n in l for n in ("libretort", "libdnnl", "libyaml", "libpng", "libprotobuf-c", "libjpeg"))]
assert alien and all("/env/" in f for f in alien), alien
END
env -i HOME="$work" PATH=/nowhere env/bin/python use.py >said 2>&1
ok $? "it trains, predicts and exports there, with the libraries inside"
env -i env/bin/python -c 'import retort.sklearn' >said 2>&1
check "without scikit-learn the estimators say what is missing" grep -q "No module named 'sklearn'" said
cp said err
# the library of the wheel is the one of this build: so are the bits
"$RETORT" train --data spiral:n=200 --arch mlp:8 --members 2 --epochs 3 --out by-program -q
env -i HOME="$work" ${RETORT_ISA:+RETORT_ISA="$RETORT_ISA"} env/bin/python -c 'import retort; retort.train("spiral:n=200", arch="mlp:8", members=2, epochs=3, out="by-wheel")' 2>err
check "its models are those of the program" same_files by-program by-wheel member-000.safetensors member-001.safetensors
finish
