#!/bin/sh
# A run directory from a stranger, and a disk that does not keep its word: nothing outside the run is written, nothing
# that was asked for and lost counts as done, nothing hangs, nothing stays behind.
. "$(dirname "$0")/tap.inc"
data="--data spiral:n=60"
flags="$data --arch mlp:8 --epochs 3 --batch 30 --quiet"
if command -v timeout >/dev/null; then limit="timeout 60"; else limit=; fi
go() { # like run, but whatever hangs is ended
    $limit "$RETORT" "$@" >out 2>err </dev/null
    rc=$?
}

go train $flags --out good
go eval good $data --bootstrap 0 --quiet
expect 0 "" "a run to attack"
go train $flags --out half --stop-after 3
expect 4 "" "one to resume"

# victim TEXT: a file, a directory with a file, and what they hold
victim() {
    rm -rf outside
    mkdir -p outside/dir
    echo "precious" >outside/file
    echo "precious" >outside/dir/file
}
untouched() {
    [ "$(cat outside/file)" = precious ] && [ "$(ls -A outside)" = "dir
file" ] && [ "$(ls -A outside/dir)" = file ] && [ "$(cat outside/dir/file)" = precious ]
}

# attack RUN NAME KIND: a copy of the run in which NAME is something else
attack() {
    victim
    rm -rf bad
    cp -r "$1" bad
    rm -rf "bad/$2"
    case $3 in
    link) ln -s "$work/outside/file" "bad/$2" ;;
    dangling) ln -s "$work/outside/new" "bad/$2" ;;
    dirlink) ln -s "$work/outside/dir" "bad/$2" ;;
    hard) ln outside/file "bad/$2" ;;
    pipe) mkfifo "bad/$2" ;;
    esac
}

for name in .lock pictures/map-entropy.png; do
    [ "$name" = .lock ] || name=pictures/$(ls good/pictures | head -n 1)
    for kind in link dangling pipe; do
        attack good "$name" $kind
        go eval bad $data --bootstrap 0 -q
        expect 1 "bad/$name" "eval, $name is a $kind: refused and named"
        check "eval, $name is a $kind: nothing outside changed" untouched
    done
done
for kind in dirlink link; do
    attack good pictures $kind
    go eval bad $data --bootstrap 0 -q
    expect 1 "'pictures' in it is a symbolic link" "eval, pictures is a $kind: refused and named"
    check "eval, pictures is a $kind: nothing outside changed" untouched
done
attack good pictures pipe
go eval bad $data --bootstrap 0 -q
expect 1 "'pictures' in it is a pipe, not a directory" "eval, pictures is a pipe: refused and named"
go train $flags --members 2 --out pair
for kind in link dangling pipe hard; do
    for name in .lock metrics.json member-000.safetensors; do
        attack pair $name $kind
        [ $name = .lock ] || [ $kind = pipe ] || [ $kind = dangling ] || cat pair/$name >outside/file
        cp outside/file before
        go calibrate bad -q
        if [ $rc -eq 0 ]; then # read, and not written
            check "calibrate, $name is a $kind: left alone" cmp before outside/file
        else
            check "calibrate, $name is a $kind: refused, and not by a signal" test $rc -lt 6
            check "calibrate, $name is a $kind: named" grep -q "bad/$name" err
            check "calibrate, $name is a $kind: nothing outside changed" cmp before outside/file
        fi
        check "calibrate, $name is a $kind: nothing new outside" test "$(ls -A outside | wc -l)" -eq 2
    done
done
attack good metrics.json link
cp good/metrics.json outside/file
go eval bad $data --bootstrap 0 -q
expect 1 "bad/metrics.json: is a symbolic link" "eval, metrics.json is a link to another run's: refused"
check "and the other is as it was" cmp good/metrics.json outside/file
attack good .lock hard
go eval bad $data --bootstrap 0 -q
expect 1 "hard links" "eval, .lock is another name of a file: refused"
check "and the file is as it was" grep -q precious outside/file

for kind in link dangling pipe hard; do
    attack half log.jsonl $kind
    go train --out bad --resume -q
    expect 1 "bad/log.jsonl" "resume, log.jsonl is a $kind: refused and named"
    [ $kind = hard ] || check "resume, log.jsonl is a $kind: nothing outside changed" untouched
    check "resume, log.jsonl is a $kind: the file holds what it held" grep -q precious outside/file
done
attack half checkpoint.safetensors link
cp half/checkpoint.safetensors outside/file
go train --out bad --resume -q --stop-after 4
check "resume, the checkpoint is a link: read, never written" sh -c 'test '"$rc"' -eq 1 && cmp half/checkpoint.safetensors outside/file'
attack half model.safetensors link
go train --out bad --resume -q
expect 1 "bad/model.safetensors: is a symbolic link" "resume, the model is a link: refused"
check "resume, the model is a link: nothing outside changed" untouched
for name in predictions; do
    attack good $name dirlink
    go distill --teacher good $flags --method kd --out bad --force
    check "distill, $name is a link: nothing outside changed" untouched
done
for name in groups search; do
    victim
    rm -rf bad
    mkdir bad
    ln -s "$work/outside/dir" bad/$name
    case $name in
    groups) go train $flags --members 2 --at-once 1 --out bad ;;
    search) go train $flags --hyper --hyper-runs 2 --members 2 --out bad ;;
    esac
    expect 1 "'$name' in it is a symbolic link" "train, $name is a link: refused"
    check "train, $name is a link: nothing outside changed" untouched
done

# The directory of a recipe, of which one command is to be done again.
cat >r.yaml <<'END'
title: "R"
source: "-"
about: "x"
scales: {quick: {about: "tiny.", minutes: 1, memory: "50 MB", disk: "1 MB"}}
stages:
  - {name: one, verb: train, with: {data: "spiral:n=60", arch: "mlp:8", epochs: 1}}
tables:
  - {id: t, title: T, columns: [{id: a, label: a, value: /valid_accuracy}], rows: [{id: one, label: one, runs: one}]}
END
go recipe run r.yaml -q
expect 0 "" "a recipe to attack"
mv results/r/quick recipe
for name in .lock done runs runs/one tables.md results.json; do
    for kind in dirlink dangling pipe; do
        attack recipe $name $kind
        rm -f bad/measured.json bad/done/one*
        rm -rf results/r && mkdir results/r && mv bad results/r/quick
        go recipe run r.yaml -q
        [ $rc -ne 3 ] || rc=1 # read before it is written
        expect 1 "results/r/quick/$name" "recipe, $name is a $kind: refused and named"
        check "recipe, $name is a $kind: nothing outside changed" untouched
    done
done

# The directory itself, and whatever is only read, may be links.
ln -s "$work/good" linked
go eval linked $data --bootstrap 0 -q
expect 0 "" "a run that is named by a link"
rm -rf bad
mkdir bad
for f in config.yaml log.jsonl model.safetensors metrics.json; do ln -s "$work/good/$f" bad/$f; done
go eval bad $data --bootstrap 0 --no-save -q
expect 0 "" "files that are links are read"
go predict bad $data --out linked.csv -q
expect 0 "" "and predicted with"
echo old >target.csv
ln -sf target.csv wanted.csv
go predict good $data --out wanted.csv -q
check "an output that the user named may be a link: its target is replaced" sh -c 'test -L wanted.csv && ! grep -q old target.csv'

# ---- what is asked for and not kept ----
# full VERB...: every limit on the size of files from nothing up: code 0 and complete, or a message and not 0.
full() {
    name=$1
    file=$2
    shift 2
    rm -rf whole.d && cp -r good whole.d
    (cd whole.d && $limit "$RETORT" "$@" >../out 2>../err </dev/null) || echo "not run"
    size=$(cat "whole.d/$file" | wc -c)
    for blocks in 0 1 2 8; do
        rm -rf full.d && cp -r good full.d
        (cd full.d && ulimit -f $blocks && exec $limit "$RETORT" "$@" >/dev/null 2>/dev/null </dev/null)
        rc=$?
        if [ $rc -eq 0 ]; then
            check "$name, files of at most $blocks blocks: done and whole" test "$(cat "full.d/$file" | wc -c)" -eq "$size"
        else
            check "$name, files of at most $blocks blocks: not called done" test $rc -eq 1
        fi
        check "$name, files of at most $blocks blocks: no half file" sh -c "test -z \"\$(find full.d -name '.*.tmp-*')\""
    done
}
full predict p.csv predict . $data --out p.csv -q
full eval metrics.json eval . $data --bootstrap 0 -q
full report r.html report . --out r.html -q
full data d.csv data spiral:n=60 --out csv:d.csv -q
full average avg/model.safetensors average . . $data --method match --out avg -q
full calibrate model.safetensors calibrate . -q
full distill s/model.safetensors distill --teacher . $data --method kd --epochs 1 --out s -q
full gather g/model.safetensors gather . --out g -q
if have_onnx; then full export m.onnx export . --out m.onnx -q; fi
cp r.yaml good
full recipe results/r/quick/runs/one/model.safetensors recipe run r.yaml -q
rm good/r.yaml
full train t/model.safetensors train $flags --out t
if [ -w /dev/full ]; then
    for verb in "info good" "info --arch mlp:8 --input 2" "data spiral:n=60" "eval good $data --bootstrap 0" "predict good $data" \
        "recipe list" "--help" "--version" "help --markdown"; do
        $limit "$RETORT" $verb >/dev/full 2>err </dev/null
        rc=$?
        expect 1 "standard output" "'$verb' to a full disk"
    done
fi
go eval good $data --bootstrap 0 --quiet
cp good/metrics.json before.json
{
    (ulimit -f 0 && exec $limit "$RETORT" eval good $data --bootstrap 0 -q 2>&1 </dev/null)
    echo "code $?"
} | cat >both
check "eval on a full disk, quiet: code 1" grep -q "^code 1$" both
check "and the reason" grep -q "the evaluation of good is not stored" both
check "the result is on standard output" grep -q "^good " both
check "what was stored before is still there" cmp before.json good/metrics.json

# ---- small files that want much ----
if have python3; then
    mkdir bombs
    python3 - <<'P'
import gzip, json, lzma, os, struct, zlib
def idx(name, rows, real):
    os.makedirs("bombs/" + name)
    with open("bombs/%s/t10k-images-idx3-ubyte.gz" % name, "wb") as f:
        f.write(gzip.compress(struct.pack(">IIII", 0x803, rows, 28, 28) + bytes(real), 9))
    with open("bombs/%s/t10k-labels-idx1-ubyte" % name, "wb") as f:
        f.write(struct.pack(">II", 0x801, 10) + bytes(10))
idx("gz-longer-than-promised", 10, 300 << 20)
idx("gz-shorter-than-promised", 4000000, 1 << 20)
head = json.dumps({"t%d" % i: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(1000000)}, separators=(",", ":")).encode()
with open("bombs/tensors.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
os.makedirs("bombs/png/a")
os.makedirs("bombs/png/b")
side = 7900
packer = zlib.compressobj(9)
body = b"".join(packer.compress(bytes(1 + 3 * side)) for _ in range(side)) + packer.flush()
for c in "ab":
    with open("bombs/png/%s/x.png" % c, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", body) + chunk(b"IEND", b""))
with open("bombs/array.npy.xz", "wb") as f:
    h = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10, 2), }"
    h += b" " * (118 - len(h) - 1) + b"\n"
    f.write(lzma.compress(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h + bytes(300 << 20)))
P
    # frugal MIB DESCRIPTION ARGS...: refused as bad input, with no more memory than that
    cat >frugal.py <<'P'
import resource, subprocess, sys
p = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=open("err", "w"))
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
print(p.returncode, peak)
sys.exit(not (p.returncode == 3 and peak <= int(sys.argv[1])))
P
    frugal() {
        most=$(($1 + slack))
        what=$2
        shift 2
        python3 frugal.py "$most" "$RETORT" "$@" >out
        ok $? "$what: refused with at most $most MiB (code and MiB: $(cat out))"
    }
    slack=0 # sanitizers keep what was freed, and surround what was taken
    ! nm -D "$RETORT" 2>/dev/null | grep -q '__asan_init\|__tsan_init' || slack=150
    base=$(python3 frugal.py 1000 "$RETORT" info nothing-there | cut -d' ' -f2)
    frugal $((base + 12)) "a .gz longer than its header promises" data mnist:bombs/gz-longer-than-promised
    frugal $((base + 12)) "a .gz whose header promises gigabytes" data mnist:bombs/gz-shorter-than-promised
    frugal $((base + 120)) "a million empty tensors" info bombs/tensors.safetensors
    frugal $((base + 12)) "two PNG of 180 MB in 0.2" data images:bombs/png
    frugal $((base + 12)) "an .npy.xz longer than its header promises" data npy:bombs/array.npy.xz,bombs/array.npy.xz
fi
go data spiral:n=100000 --max-memory 0.0001
expect 1 "--max-memory" "what needs more than --max-memory is refused"

# ---- values at the edges ----
for v in 3e38 1e-40; do
    awk -v v=$v 'BEGIN { print "a,b,label"; for (i = 0; i < 200; i++) printf "%s%s,%s%s,%d\n", (i % 3 ? "" : "-"), v, (i % 5 ? "" : "-"), v, i % 2 }' >$v.csv
done
go train --data csv:3e38.csv --arch mlp:8 --epochs 2 --out huge -q
go eval huge --data csv:3e38.csv --bootstrap 0 -q
expect 0 "" "features near the largest number: evaluated, without a map"
go train --data csv:1e-40.csv --arch mlp:8 --epochs 2 --out tiny -q
expect 3 "feature 1 of the data has a deviation of" "features that cannot be scaled: the reason"
check "and no advice about --lr" sh -c '! grep -q -e --lr err'
go train $flags --optimiser adam --beta1 1 --out never
expect 2 "beta1" "--beta1 1 is refused"
go train $flags --optimiser adam --eps 0 --out never
expect 2 "eps" "--eps 0 is refused"
if [ -d /usr/share/datasets/fashion-mnist ]; then
    go data fashion-mnist --limit 3 --out images:few -q
    expect 2 "a folder of pictures cannot be empty" "data --limit --out images: classes without rows are refused"
    check "before anything is written" test ! -e few
else
    echo "skipped: no fashion-mnist"
fi
mkdir theirs
echo "their own" >theirs/config.yaml
echo '{"their": "own"}' >theirs/metrics.json
go train $flags --out theirs --force
expect 2 "--force replaces runs only" "--force where there is no run: refused"
check "their files are as they were" sh -c 'grep -q "their own" theirs/config.yaml && grep -q their theirs/metrics.json'
go train $flags --out half --force
expect 0 "" "--force on a run"

# ---- names that steer ----
printf 'x,y,label\n' >names.csv
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '%d,%d,=cmd\n%d,-%d,"e\033[2Jsc"\n' $i $i $i $i; done >>names.csv
go train --data csv:names.csv --arch mlp:8 --epochs 1 --out named -q
go predict named --data csv:names.csv --part train --out plain.csv -q
go predict named --data csv:names.csv --part train --out safe.csv --csv-safe -q
check "--csv-safe: no field begins with =" sh -c "! grep -q ',=cmd' safe.csv && ! grep -q ',\"=cmd' safe.csv"
check "without it names are as they are" sh -c "test \"\$(grep -c \"'=cmd\" plain.csv)\" -eq 0"
if have script; then
    script -qec "'$RETORT' predict named --data csv:names.csv --part train --quiet; '$RETORT' data csv:names.csv" /dev/null >screen 2>&1 </dev/null
    check "class names do not steer the terminal" sh -c 'test -s screen && ! grep -q "$(printf "\033\\[2J")" screen'
fi

# ---- what killed processes leave ----
mkdir -p good/pictures good/predictions
touch good/pictures/.a.png.tmp-1-2 good/predictions/.t.npy.tmp-3-4 good/.metrics.json.tmp-5-6 good/pictures/.keep.tmp-x
go eval good $data --bootstrap 0 -q
check "temporary files of killed processes are gone" test ! -e good/pictures/.a.png.tmp-1-2 -a ! -e good/predictions/.t.npy.tmp-3-4 -a ! -e good/.metrics.json.tmp-5-6
touch .big.csv.tmp-1-2 .big.csv.tmp-3-4 .other.csv.tmp-5-6 .big.csv.tmp-x
go data spiral:n=60 --out csv:big.csv -q
check "those beside a file that the user named go when it is written again" test ! -e .big.csv.tmp-1-2 -a ! -e .big.csv.tmp-3-4 -a -s big.csv
check "those of others are left alone" test -e .other.csv.tmp-5-6 -a -e .big.csv.tmp-x
check "other files are not" test -e good/pictures/.keep.tmp-x
finish
