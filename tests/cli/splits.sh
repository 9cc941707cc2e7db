#!/bin/sh
# Which rows are held out: by class, whatever the order of the rows; the same ones for everything trained on a SPEC; and
# as they were for runs of older versions.
. "$(dirname "$0")/tap.inc"

# Three classes, sorted: 300 rows of two numbers.
awk 'BEGIN { print "a,b,y"; for (k = 0; k < 3; k++) for (i = 0; i < 100; i++)
    print k + sin(i * 7.1 + k) * 0.8 "," k * k + cos(i * 3.3) * 0.9 "," substr("antbeecat", 3 * k + 1, 3) }' >sorted.csv
run data csv:sorted.csv --test-split last --part train --out npy:X.npy,Y.npy

run train --data csv:sorted.csv --arch mlp:8 --epochs 2 --out r
expect 0 "train   243 rows: ant 81, bee 81, cat 81" "csv: a run tells the classes it trains on"
expect 0 "valid   27 rows: ant 9, bee 9, cat 9" "csv: validation has all of them"
expect 0 "test    30 rows: ant 10, bee 10, cat 10" "csv: so has the test part"
check "its configuration says how" grep -qx 'valid-split: stratified' r/config.yaml
check "for the test part, too" grep -qx 'test-split: stratified' r/config.yaml
run train --data csv:sorted.csv --arch mlp:8 --epochs 1 --out r7 --seed 7
run data csv:sorted.csv --valid 0.1 --part valid --out v1.csv
run data csv:sorted.csv --valid 0.1 --part valid --out v2.csv --seed 9
check "every seed holds out the same rows" cmp v1.csv v2.csv
check "data --part valid has what train validates on" test "$(grep -c ant v1.csv)" -eq 9
run data csv:sorted.csv,seed=3 --valid 0.1 --part valid --out v3.csv
check "but for the seed of the SPEC" test "$(cksum <v1.csv)" != "$(cksum <v3.csv)"

run train --data npy:X.npy,Y.npy --arch mlp:8 --epochs 1 --out n
expect 0 "valid   24 rows: 0 9, 1 9, 2 6" "npy: by class"
run train --data csv:sorted.csv --valid-split last --arch mlp:8 --epochs 1 --out last
expect 0 "valid   27 rows: ant 0, bee 0, cat 27" "the last rows, when asked for"
expect 0 "no validation row is of class ant, nor of others" "with a warning"

# Pictures of 8 x 8, in folders: sorted by nature.
mkdir set
head -c 4000 "$RETORT" >pixels
{ printf '\000\000\010\003\000\000\000\050\000\000\000\010\000\000\000\010' && head -c 2560 pixels; } >set/train-images-idx3-ubyte
{ printf '\000\000\010\001\000\000\000\050' && printf '\000\001\001\000\001%.0s' 1 2 3 4 5 6 7 8; } >set/train-labels-idx1-ubyte
run data idx:set --out images:pictures
run train --data images:pictures --arch mlp:8 --epochs 1 --out p
expect 0 "valid   4 rows: 0 2, 1 2" "images: by class"
run train --data idx:set --arch mlp:8 --epochs 1 --out i
check "a published order stays: nothing is said about it" sh -c '! grep -q split: i/config.yaml'
run data idx:set --valid 5 --part valid --out idx:tail
check "its validation rows are the last" test "$(tail -c 320 set/train-images-idx3-ubyte | cksum)" = "$(tail -c 320 tail/train-images-idx3-ubyte | cksum)"

# A run of an older version: its configuration does not have the parameters.
mkdir old
grep -v -e '-split:' r/config.yaml >old/config.yaml
run train --out old --resume
expect 0 "valid   27 rows: ant 0, bee 0, cat 27" "an older run goes on with its own rows"
check "and stays an older one" sh -c '! grep -q split: old/config.yaml'
run eval old --data csv:sorted.csv --json
expect 0 "" "eval of an older run"
check "finds the rows that it held out" sh -c '! grep -q "the data is not what the run was trained on" out'
"$RETORT" data csv:sorted.csv --test-split random --part test --out x.csv 2>/dev/null
sed '1s/.*/a,b,y/' x.csv >random.csv
run predict old --data csv:sorted.csv --logits old.npy
run predict old --data csv:random.csv,test=1 --logits random.npy
check "predict, too" cmp old.npy random.npy
run eval old r --data csv:sorted.csv
expect 2 "each was trained on test rows of the other" "an older and a newer run have different test rows"
run eval old r --data csv:sorted.csv --test-split stratified
expect 0 "" "--test-split decides for both"
run distill --teacher old --data csv:sorted.csv --epochs 1 --out s
check "a student tests on what its teacher did not see" grep -qx 'test-split: random' s/config.yaml
run average r r7 --data csv:sorted.csv --method naive --out a
check "an average holds out what its models did" grep -qx 'valid-split: stratified' a/config.yaml
finish
