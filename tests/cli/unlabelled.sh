#!/bin/sh
# Rows without labels are predicted, from every source, and refused where labels are needed; pictures of mixed sizes and
# colours, broken ones; which rows predict reads and what it calls them.
. "$(dirname "$0")/tap.inc"

# idx SET N H W FIRST: N images of H x W in two classes; bytes of the program itself, from FIRST on, serve as pixels.
byte() { printf "\\$(printf %03o "$1")"; }
idx() {
    mkdir -p "$1"
    { printf '\000\000\010\003\000\000\000' && byte "$2" && printf '\000\000\000' && byte "$3" && printf '\000\000\000' && byte "$4" &&
        tail -c +"$5" "$RETORT" | head -c $(($2 * $3 * $4)); } >"$1/train-images-idx3-ubyte"
    { printf '\000\000\010\001\000\000\000' && byte "$2" && awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%c", i % 2 ? "b" : "a" }' |
        tr 'ab' '\000\001'; } >"$1/train-labels-idx1-ubyte"
}
hash() { "$RETORT" data "$1" --json 2>/dev/null | sed 's/.*"sha256":"\([0-9a-f]*\)".*/\1/'; }
rows() { tail -n +2 "$1" | wc -l; }
idx a 40 8 8 1000
idx b 40 12 16 9000
"$RETORT" data idx:a --out images:pets 2>/dev/null
mv pets/0 pets/cat && mv pets/1 pets/dog
"$RETORT" data idx:b --out images:more 2>/dev/null

# ---- pictures
run train --data images:pets --arch mlp:8 --epochs 1 --out r --quiet
mkdir album && cp pets/cat/000000.png album/tom.png && cp more/0/000000.png album/wide.png
run predict r album/tom.png album/wide.png --out p.csv
expect 0 "predictions for 2 rows" "pictures by name, of any size"
check "with the names of their files" grep -q '^1,album/wide.png,[01],' p.csv
check "and no truth" sh -c '! head -n 1 p.csv | grep -q true_'
run predict r album --out q.csv
expect 0 "" "a folder without classes"
check "is the same pictures" cmp p.csv q.csv
run predict r --data 'images:album/*.png' --out q.csv
expect 0 "" "a pattern"
check "the same again" cmp p.csv q.csv
run predict r 'album/w*.png' --out q.csv
check "a pattern of one" test "$(rows q.csv)" -eq 1
run predict r album/tom.png --out q.jsonl
check "JSON lines have the file" grep -q '{"row":0,"file":"album/tom.png","label":' q.jsonl
run predict r pets --out q.csv
check "a folder with the model's classes: all rows" test "$(rows q.csv)" -eq 40
check "with the truth, under another name" awk -F, 'NR == 1 && ($3 != "label" || $(NF - 1) != "true_label" || $NF != "true_class") { exit 1 }
    NR > 1 && $NF != ($2 ~ /cat/ ? "cat" : "dog") { exit 1 }' q.csv
mkdir -p dates/2023 && cp album/* dates/2023
run predict r dates --out q.csv
check "folders that are no classes: rows without labels" test "$(rows q.csv)" -eq 2
run predict r album/tom.png p.csv
expect 2 "one table" "pictures and a table"
run predict r album --part train
expect 2 "predicted whole" "files have no parts"
run predict r
expect 2 "FILE... or --data" "nothing to predict"
run predict r nothere.png
expect 3 "nothere.png" "a file that is not there"
run train --data images:album --arch mlp:8 --out no
expect 3 "these rows have no labels, and training needs them" "nothing to train on"
run eval r --data images:album
expect 3 "these rows have no labels, and eval needs them" "nothing to evaluate on"
run data images:album
check "but something to describe" grep -q 'none: rows without labels' out
run eval r --data images:pets --ood more=images:album --json
expect 0 "" "foreign pictures need no labels"
check "all of them count" grep -q '"ood:more".*"rows":2' out

# ---- folders and names that are not what they seem
mkdir -p split/train split/val split/test && cp -r pets/* split/train && cp -r pets/* split/val && cp -r pets/* split/test
rm split/val/cat/00000[0-4].png
: >split/val/dog/broken.png
run train --data images:split --arch mlp:8 --epochs 1 --skip-broken --out own
expect 0 "train   40 rows: cat 20, dog 20" "a folder for validation: none of it is trained on"
check "all of it validates" grep -q 'valid   37 rows: cat 17, dog 20' out err
check "as the run's configuration says" sh -c 'grep -q "^valid: 37" own/config.yaml && grep -q "^valid-split: last" own/config.yaml'
run predict own --data images:split --part valid --out q.csv
check "its rows are found again" sh -c 'test $(grep -c "split/val/" q.csv) -eq 37'
run calibrate own
expect 0 "37 rows" "and decisions are fitted on them"
run data images:split --skip-broken --part valid --out idx:val-alone
expect 0 "37 rows" "they can be written, too"
run train --data images:split --arch mlp:8 --epochs 1 --skip-broken --valid 0.2 --out drawn
expect 0 "valid   15 rows" "--valid draws from both folders"
cp -r split split2 && mv split2/test split2/elsewhere
run train --data images:split2 --arch mlp:8 --epochs 1 --skip-broken --out no-test
expect 0 "split2/val is not read, because there is no test/ beside it" "without a test part it is named"
cp -r pets split/validation
run data images:split --skip-broken
expect 0 "split/validation is not read: the validation rows are those of split/val" "two of them"
mkdir alone-test && cp -r pets alone-test/test
run data images:alone-test
expect 0 "" "the test part alone"
check "has its classes" grep -q 'cat.*20' out
run eval r --data images:alone-test --json
check "and all its rows" grep -q '"rows":40' out
run train --data images:alone-test --arch mlp:8 --epochs 1 --out no
check "there is nothing to train on" test "$rc" -ne 0
for i in 1 2 3 4 5; do : >album/$i.webp; done
run predict r album --out q.csv
expect 0 "5 names are passed over, the first: album/1.webp (neither .png nor .jpg)" "other files are counted"
check "in one line" test "$(grep -c 'passed over' err)" -eq 1
mkdir foreign && mv album/*.webp foreign
run predict r foreign
expect 3 "foreign: no .png and no .jpg file, but 5.webp" "nothing else is there"
cp pets/cat/000000.png album/.hidden.png
run predict r 'pets/*/00000[0-3].png' --out q.csv
expect 0 "" "a pattern in every part of a path"
check "its pictures in the order of their names" sh -c "cut -d, -f2 q.csv | tail -n +2 | sort -c && test $(rows q.csv) -eq 4"
run predict r './p*s/c?t/*.png' --out q.csv
check "three of them" test "$(rows q.csv)" -eq 20
run predict r 'album/*.png' --out q.csv
check "hidden ones are not meant" test "$(rows q.csv)" -eq 2
rm album/.hidden.png
run predict r 'pets/*/*.jpg'
expect 3 "no .png and no .jpg file is called pets/*/*.jpg" "a pattern of nothing"

# ---- sizes, colours, broken files
mkdir -p mixed/cat mixed/dog
cp pets/cat/*.png mixed/cat && cp pets/dog/*.png mixed/dog && cp more/0/000000.png mixed/cat/x.png && cp more/1/000001.png mixed/dog/y.png
run train --data images:mixed --arch mlp:8 --epochs 1 --out m
expect 0 "pictures from 8 x 8 to 12 x 16: the middle of each, at 8 x 8" "mixed sizes train, and it is told how"
run info m/model.safetensors
check "the model says how, too" grep -q '"resize":"crop"' out
run predict m album --out q.csv
expect 0 "" "and predicts any size"
run train --data images:mixed,size=6x10 --arch mlp:8 --epochs 1 --out st --quiet
check "size= stretches" grep -q 'resize..:..stretch' st/model.safetensors
run data images:mixed,resize=bend
expect 2 "wanted one of crop, stretch" "an unknown way to resize"
head -c 40 pets/cat/000000.png >mixed/cat/broken.png
run train --data images:mixed --arch mlp:8 --epochs 1 --out no
expect 3 "mixed/cat/broken.png: bad PNG" "a broken file is named"
expect 3 "--skip-broken" "with the way out"
run train --data images:mixed --arch mlp:8 --epochs 1 --out sk --skip-broken
expect 0 "1 broken picture is left out, the first: mixed/cat/broken.png" "or left out, and counted"
check "the configuration knows" grep -qx 'skip-broken: true' sk/config.yaml

# ---- arrays, IDX, tables
"$RETORT" data idx:a --out X.npy,Y.npy 2>/dev/null
run train --data npy:X.npy,Y.npy --arch mlp:8 --epochs 1 --out n --quiet
run predict n X.npy --out all.csv
expect 0 "predictions for 40 rows" "an array without labels: all rows"
run predict n --data npy:X.npy --out q.csv
check "as a SPEC, too" cmp all.csv q.csv
run predict n --data npy:X.npy,Y.npy,test=1 --logits one.npy
run predict n X.npy --logits two.npy
check "labels change nothing" cmp one.npy two.npy
run predict n a/train-images-idx3-ubyte --logits three.npy
expect 0 "" "a file of IDX images"
check "is the same rows" cmp one.npy three.npy
mkdir alone && cp a/train-images-idx3-ubyte alone/t10k-images-idx3-ubyte
run predict n --data idx:alone --logits three.npy
check "so is a directory without labels" cmp one.npy three.npy
run train --data npy:X.npy --arch mlp:8 --out no
expect 3 "a second array (npy)" "no labels, no training"
run eval n --data npy:X.npy,Y.npy --ood x=npy:X.npy --json
check "--ood npy:X takes all rows" grep -q '"ood:x".*"rows":40' out
mkdir strange && cp a/train-images-idx3-ubyte strange/t10k-images-idx3-ubyte
{ printf '\000\000\010\001\000\000\000\050' && printf '\077%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; } >strange/t10k-labels-idx1-ubyte
run eval n --data npy:X.npy,Y.npy --ood x=mnist:strange
expect 0 "" "labels out of range do not matter there"
run data mnist:strange
expect 3 "label 63" "but do elsewhere"

# ---- arrays of other types, and large ones, which stay in their files
if have python3; then
    python3 - <<'END'
import array, json, struct

def npy(name, descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)

def half(v):
    return struct.pack("<%de" % len(v), *v)

n, f = 90000, 48
y = array.array("q", [3 * i // n for i in range(n)])
x = array.array("f", bytes(4 * n * f))
state = 1
for i in range(n * f):  # multiples of 1/64 below 16: exact in 16 bits
    state = (state * 1103515245 + 12345) & 0x7fffffff
    x[i] = (state >> 21) / 64 + (y[i // f] if i % f == 3 else 0)
few = array.array("f")
for i in range(0, n, 100):
    few += x[i * f:(i + 1) * f]
npy("big.npy", "<f4", (n, f), x.tobytes())
npy("y.npy", "<i8", (n,), y.tobytes())
npy("half.npy", "<f2", (n // 100, f), half(few))
npy("single.npy", "<f4", (n // 100, f), few.tobytes())
npy("double.npy", "<f8", (n // 100, f), array.array("d", few).tobytes())
npy("few.npy", "<i8", (n // 100,), y[::100].tobytes())
npy("half_big.npy", "<f2", (2 * n, f), half(x) * 2)
npy("single_big.npy", "<f4", (2 * n, f), x.tobytes() * 2)
npy("y2.npy", "<i8", (2 * n,), y.tobytes() * 2)
npy("l16.npy", "<f2", (810, 3), half([0.0] * 2430))
npy("l64.npy", "<f8", (810, 3), bytes(19440))
whole = [int(v) for v in few]  # from 0 to 17; as bytes, and in every type of whole numbers
for name, descr, code in (("u1", "|u1", "B"), ("i1", "|i1", "b"), ("i2", "<i2", "h"), ("i2be", ">i2", "h"), ("i4", "<i4", "i"), ("i8", "<i8", "q"),
                          ("u2", "<u2", "H"), ("u4", "<u4", "I"), ("u8", "<u8", "Q"), ("f4", "<f4", "f")):
    v = array.array(code, whole)
    if name == "i2be":
        v.byteswap()
    npy(name + ".npy", descr, (n // 100, f), v.tobytes())
npy("neg1.npy", "|i1", (4, 2), struct.pack("8b", *range(-4, 4)))
npy("neg2.npy", "<i2", (4, 2), struct.pack("<8h", *range(-4, 4)))
npy("neg4.npy", "<f4", (4, 2), struct.pack("<8f", *range(-4, 4)))
npy("bool.npy", "|b1", (n // 100,), bytes(i % 2 for i in range(n // 100)))
npy("last.npy", "|u1", (4, 8, 8, 3), bytes(768))
npy("first.npy", "|u1", (4, 3, 8, 8), bytes(768))
head = {"embeddings": {"dtype": "F32", "shape": [n, f], "data_offsets": [0, 4 * n * f]},
        "labels": {"dtype": "I64", "shape": [n], "data_offsets": [4 * n * f, 4 * n * f + 8 * n]}}
text = json.dumps(head).encode()
open("big.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + x.tobytes() + y.tobytes())
x[(n - 1) * f] = float("nan")
npy("bad.npy", "<f4", (n, f), x.tobytes())
END
    for type in half single double; do
        run train --data npy:$type.npy,few.npy --arch mlp:8 --epochs 1 --out t-$type --quiet
        run predict t-$type $type.npy --logits $type.logits.npy
    done
    for type in u1 i1 i2 i2be i4 i8 u2 u4 u8; do
        check "whole numbers of type $type are those of float32" test "$(hash npy:$type.npy)" = "$(hash npy:f4.npy)"
    done
    check "below zero, too" test "$(hash npy:neg1.npy)$(hash npy:neg2.npy)" = "$(hash npy:neg4.npy)$(hash npy:neg4.npy)"
    run data npy:f4.npy,bool.npy
    check "true and false are two classes" grep -q '2 classes' out
    run data npy:last.npy
    expect 3 "X.transpose(0, 3, 1, 2)" "colours that stand last"
    run data npy:first.npy
    expect 0 "" "and first"
    check "float16 is read as it is" cmp half.logits.npy single.logits.npy
    check "so is float64" cmp double.logits.npy single.logits.npy
    run train --data npy:big.npy,y.npy --arch mlp:8 --epochs 1 --batch 1000 --out big
    expect 0 "big.npy: 90000 rows of 48 numbers stay in the file" "a large table stays in its file"
    expect 0 "valid   8,100 rows" "and is divided by class"
    run train --data safetensors:big.safetensors --arch mlp:8 --epochs 1 --batch 1000 --out st2 --quiet
    check "tensors of a file are the same data" test "$(hash npy:big.npy,y.npy)" = "$(hash safetensors:big.safetensors)"
    run predict big big.npy --logits one.npy
    run predict st2 big.safetensors --logits two.npy
    check "and train the same network" cmp one.npy two.npy
    run train --data npy:half_big.npy,y2.npy --arch mlp:8 --epochs 1 --batch 1000 --out h2 --quiet
    run train --data npy:single_big.npy,y2.npy --arch mlp:8 --epochs 1 --batch 1000 --out s2 --quiet
    run predict h2 half_big.npy --logits one.npy
    run predict s2 single_big.npy --logits two.npy
    check "so do halves that stay in their file" cmp one.npy two.npy
    run eval big --data npy:big.npy,y.npy --ood x=npy:big.npy --json
    expect 0 "" "eval of a large table"
    run data npy:bad.npy,y.npy
    expect 3 "bad.npy: row 89999, value 0 is not a finite" "a number that is none is found there, too"
    run data safetensors:big.safetensors,x=nothere
    expect 2 "no such tensor" "a tensor that is not there"
    for type in l16 l64; do
        run distill --teacher logits:$type.npy --data npy:single.npy,few.npy --arch mlp:8 --epochs 1 --out d-$type --quiet
        expect 0 "" "stored outputs of type $type"
    done
fi
run distill --teacher X.npy --data npy:X.npy,Y.npy --arch mlp:8 --out no
expect 2 "said as logits:X.npy" "an array is no teacher without its prefix"
run train --resume --out nothere
expect 2 "there is no run in nothere" "nothing to resume"
run train --resume --out nothere --data spiral:n=60 --arch mlp:8
expect 2 "there is no run in nothere" "with every parameter, too: a mistyped name begins no other run"
mkdir -p strange
echo '{}' >strange/metrics.json
run train --resume --out strange --data spiral:n=60 --arch mlp:8
expect 2 "there is no run in strange" "a directory of somebody else is none"
check "and none is made" test ! -e nothere -a ! -e strange/config.yaml -a -s strange/metrics.json

# ---- the rows a run held out
run predict n --part valid --data npy:X.npy,Y.npy --out v.csv
expect 0 "predictions for 4 rows" "the validation rows of a run"
run predict n --part valid --out w.csv
check "of the data that it names itself" cmp v.csv w.csv
run data npy:X.npy,Y.npy --valid 0.1 --part valid --out V.npy,VY.npy
run predict n --part valid --logits v1.npy
run predict n V.npy --logits v2.npy
check "are those that train validated on" cmp v1.npy v2.npy
run predict n --part valid --data idx:a
expect 3 "is not what n was trained on" "of other data there are none"
run predict n/model.safetensors --part valid
expect 2 "known of a run only" "nor of a model file"
finish
