#!/bin/sh
# data: describe, split, corrupt, shift, convert, in every form and back; predict: top classes, rejection.
. "$(dirname "$0")/tap.inc"

# A set of 20 + 10 images of 8 x 8 in two classes; bytes of the program itself serve as pixels.
mkdir set
{ printf '\000\000\010\003\000\000\000\024\000\000\000\010\000\000\000\010' && head -c 1280 "$RETORT"; } >set/train-images-idx3-ubyte
{ printf '\000\000\010\003\000\000\000\012\000\000\000\010\000\000\000\010' && head -c 4640 "$RETORT" | tail -c 640; } >set/t10k-images-idx3-ubyte
{ printf '\000\000\010\001\000\000\000\024' && printf '\000\001\001\000\001%.0s' 1 2 3 4; } >set/train-labels-idx1-ubyte
{ printf '\000\000\010\001\000\000\000\012' && printf '\001\000%.0s' 1 2 3 4 5; } >set/t10k-labels-idx1-ubyte
hash() { "$RETORT" data "$1" --json 2>/dev/null | sed 's/.*"sha256":"\([0-9a-f]*\)".*/\1/'; }
rows() { "$RETORT" data "$1" --json 2>/dev/null | sed 's/.*"parts":{"[a-z]*":{"rows":\([0-9]*\).*/\1/'; }

run data idx:set
expect 0 "" "describe"
want=$(hash idx:set)
run data idx:set --out idx:copy
expect 0 "20 train and 10 test rows" "convert to IDX"
check "IDX to IDX keeps everything" test "$(hash idx:copy)" = "$want"
check "the files are the same" same_files set copy train-images-idx3-ubyte t10k-labels-idx1-ubyte
run data idx:set --out images:pictures
expect 0 "" "convert to pictures"
check "a folder per part and class" test "$(ls pictures/train/0 pictures/train/1 | grep -c png)" -eq 20
run data images:pictures --out idx:again
check "pictures and back: other order, same bytes" test "$(wc -c <again/train-images-idx3-ubyte)" -eq 1296
run data idx:set --out images:pictures
expect 2 "not empty" "pictures are not mixed"
# An attempt that was killed: a mark, some pictures, a piece of one.
mkdir -p cut/train/0 cut/train/1 outside
touch cut/.unfinished cut/train/0/000000.png cut/train/1/000777.png cut/train/1/.000778.png.tmp-1-2 outside/000001.png
run data images:cut
expect 3 "cut: some of its pictures are missing" "a folder that was not finished is not read"
run data idx:set --out images:cut
expect 0 "" "it is written anew"
check "it is the same as another" diff -r pictures cut
touch cut/.unfinished cut/train/0/mine.png
run data idx:set --out images:cut
expect 2 "not empty" "files of somebody else among them stay"
check "and they alone" test "$(find cut -type f)" = cut/train/0/mine.png
mkdir linked
touch linked/.unfinished
ln -s ../outside linked/train
run data idx:set --out images:linked
expect 1 "linked/train" "nothing is removed through a link"
check "what it leads to stays" test -e outside/000001.png
run data idx:set --part test --out X.npy,Y.npy
expect 0 "X.npy,Y.npy: 10 rows" "convert to arrays"
run data npy:X.npy,Y.npy,test=1 --out idx:back --part test
check "arrays and back" same_files set back t10k-images-idx3-ubyte t10k-labels-idx1-ubyte
run data idx:set --part test --out t.csv
check "convert to CSV" test "$(wc -l <t.csv)" -eq 11
run data idx:set --out rows.xlsx
expect 2 "idx:DIR" "a form that does not exist"
run data spiral:n=20 --out images:nothing
expect 2 "table" "a table has no pictures"

run data idx:set --valid 5 --part valid --out idx:valid
run data idx:set --valid 5 --part train --out idx:rest
check "split: what is validated" test "$(rows idx:valid)" -eq 5
check "split: the rest" test "$(rows idx:rest)" -eq 15
{ tail -c +17 rest/train-images-idx3-ubyte; tail -c +17 valid/train-images-idx3-ubyte; } >joined
check "the parts are the whole" test "$(tail -c +17 set/train-images-idx3-ubyte | cksum)" = "$(cksum <joined)"
run data idx:set --valid 0.2
expect 2 "--out" "a split that goes nowhere"
run data idx:set --valid 5 --part test --out v.csv
expect 2 "training part" "the test part is not split"

run data idx:set --corrupt fog --severity 5 --out idx:fog
expect 0 "10 rows of idx:set, fog" "corrupt the test part"
run data idx:set --corrupt frost --frost nowhere --out idx:frost
expect 3 "nowhere: cannot open directory" "frost from photographs that are not there"
run data idx:set --corrupt fog --severity 5 --threads 1 --out idx:fog1
check "on any number of threads" same_files fog fog1 t10k-images-idx3-ubyte
run data idx:set --corrupt fog --severity 5 --seed 2 --out idx:fog2
check "another seed, other fog" test "$(cksum <fog2/t10k-images-idx3-ubyte)" != "$(cksum <fog/t10k-images-idx3-ubyte)"
run data idx:set --corrupt fog --part train --out FX.npy,FY.npy
expect 0 "20 rows" "corrupt the training part"
run data idx:set --shift roll:3 --out idx:roll
run data idx:roll --shift roll:5 --out idx:rolled
check "rolled all around" same_files set rolled t10k-images-idx3-ubyte
run data idx:set --shift rotate:180 --out RX.npy,RY.npy
run info RX.npy
check "a shift leaves floats" grep -q '10x1x8x8' out
run data idx:set --corrupt fgo --out idx:x
expect 2 "did you mean 'fog'" "unknown corruption"
run data idx:set --corrupt fog
expect 2 "--out" "a corruption that goes nowhere"
run data idx:set --corrupt fog --severity 6 --out idx:x
expect 2 "severity" "severities are 1 to 5"
run data idx:set --severity 2
expect 2 "--corrupt" "severity of nothing"
run data idx:set --shift roll --out idx:x
expect 2 "roll" "a shift without amount"
run data idx:set --corrupt fog --shift roll:2 --out idx:x
expect 2 "one of them" "two distortions"
run data spiral:n=20 --corrupt fog --out s.csv
expect 2 "images" "a table cannot be corrupted"

data=spiral:n=100,noise=0.1
run train --data $data --arch mlp:16 --members 3 --epochs 40 --out ens --quiet
run predict ens --data $data --top 2 --reject 0.9 --out p.csv --uncertainty u.npy --json
expect 0 "rejected" "predict with rejection"
check "its JSON is one object" json out
check "and tells of the rejection" grep -q '"reject":{"measure":"entropy","threshold":0.9,"rejected":.*"accuracy":.*"accuracy_kept":' out
check "columns" grep -q 'probs_2,top_1,top_1_prob,top_2,top_2_prob,rejected,true_label,true_class$' p.csv
check "the first is the class, then falling" awk -F, 'NR > 1 && ($11 != $3 || $12 != $4 || $14 > $12) { exit 1 }' p.csv
check "rejected is entropy above 0.9" awk -F, 'NR > 1 && ($5 > 0.9) != $15 { exit 1 }' p.csv
n=$(awk -F, 'NR > 1 { n += $15 } END { print n }' p.csv)
check "as many as told" grep -q "\"rejected\":$n," out
run info u.npy
check "uncertainty is N x 3" grep -q 'shape 300x3' out
run predict ens --data $data --reject 0.6 --measure confidence --top 9 --out p.jsonl
expect 0 "confidence below 0.6" "by confidence"
check "JSON lines have both" test "$(grep -c '"top":\[{"label":[012],"class":"[012]","prob":.*}\],"rejected":\(true\|false\),"true_label":[012],"true_class":"[012]"}$' p.jsonl)" -eq 300
check "rejected is confidence below 0.6" awk -F'"confidence":' '{ split($2, a, ","); r = $0 ~ /"rejected":true/; if ((a[1] < 0.6) != r) exit 1 }' p.jsonl
run predict ens --data $data --reject 0.5 --out p.npy
expect 2 "FILE.csv" "an array has no such column"
run predict ens --data $data --measure entropy
expect 2 "--reject" "a measure of nothing"
run predict ens --data $data --reject 1 --measure data_variance
expect 2 "classification" "a variance of classes"
run predict ens --data $data --reject 0.1 --measure mutual_information --out p.csv
expect 0 "mutual_information above 0.1" "by mutual information"
run predict ens/member-000.safetensors --data $data --reject 0.1 --measure mutual_information
expect 2 "needs at least two members" "one network has no mutual information"
run predict ens --data $data --reject 0.1 --measure differential_entropy
expect 2 "single Dirichlet" "an ensemble has no differential entropy"
run eval ens --data $data --metrics mutual_information,entropy --format csv
check "predict and eval mean the same by it" sh -c 'awk -F, "NR > 1 { t += \$5; k += \$7 } END { printf \"%.5f,%.5f\", k / (NR - 1), t / (NR - 1) }" p.csv >a; awk -F, "NR == 2 { printf \"%.5f,%.5f\", \$7, \$10 }" out >b; cmp a b'
run predict ens --data $data --part valid
expect 0 "" "predict has the rows that were held out"
check "as many as train says" test "$(wc -l <out)" -eq 31

awk 'BEGIN { print "x,y,target"; for (i = 0; i < 200; i++) { a = (i * 37 % 200) / 100 - 1; b = (i * 91 % 200) / 100 - 1
    print a "," b "," 3 * a - b + 10 } }' >reg.csv
reg=csv:reg.csv,target=target,task=regression
run train --data $reg --arch mlp:16 --members 2 --epochs 5 --lr 0.01 --out reg --quiet
run predict reg --data $reg --reject 0.01 --out r.csv
expect 0 "total_variance above 0.01; RMSE of" "regression: by total variance"
check "regression: column" awk -F, 'NR == 1 && $6 != "rejected" { exit 1 } NR > 1 && ($3 > 0.01) != $6 { exit 1 }' r.csv
run predict reg --data $reg --top 2
expect 2 "regression" "regression: no classes"
finish
