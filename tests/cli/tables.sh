#!/bin/sh
# Tables as people have them: what columns become, and predicting rows whose columns stand in another order or have no target.
. "$(dirname "$0")/tap.inc"

awk 'BEGIN { srand(3); print "\"id\";age; city;since;kind"; for (i = 0; i < 240; i++) { k = int(i / 80);
    age = rand() < 0.1 ? "" : int(20 + 15 * k + 8 * rand()); city = substr("BernOsloRiga", 4 * int(3 * rand()) + 1, 4);
    printf "%d;%s;%s;20%02d-%02d-%02d;%s\r\n", i, age, city, 10 + k, 1 + i % 12, 1 + i % 28, substr("abc", k + 1, 1) } }' >raw.csv
data=csv:raw.csv,drop=id

run data $data
check "each column and what it becomes" grep -q 'age .*number; gaps: .*(median); marked where missing' out
check "categories by name" grep -q 'city .*one-hot: Bern, Oslo, Riga' out
check "dates" grep -q 'since .*date: years, time of year, weekday' out
check "dropped columns" grep -q 'id .*nothing (dropped)' out
run data $data --json
check "and as JSON" grep -q '"city=Bern", *"city=Oslo"\|"city=Bern",' out

run train --data $data --arch mlp:16 --members 2 --epochs 40 --batch 16 --lr 0.01 --optimiser adam --out run --quiet
check "trains" test "$rc" -eq 0
# all rows, without the target, columns in another order, commas instead of semicolons
awk -F';' 'NR == 1 { print "since,age,city"; next } { print $4 "," $2 "," $3 }' raw.csv >new.csv
awk -F';' 'NR == 1 { print "city,since,age"; next } { print $3 "," $4 "," $2 }' raw.csv >newer.csv
run predict run --data csv:new.csv --out new-out.csv
check "predicts rows without a target" test "$(wc -l <new-out.csv)" -eq 241
run predict run --data csv:newer.csv --out newer-out.csv
check "columns in another order: the same numbers" cmp new-out.csv newer-out.csv
run predict run --data $data,target=none --out raw-out.csv
check "and the same as of the file it was trained on" cmp new-out.csv raw-out.csv
check "most rows right" awk -F, 'NR > 1 { n += $2 == int((NR - 2) / 80) } END { exit n < 200 }' new-out.csv
printf 'since,age,city\n,,Paris\n2031-01-01,1e6,\n' >odd.csv
run predict run --data csv:odd.csv
check "gaps and categories never seen" test "$rc" -eq 0

printf 'since,age,town\n2010-01-01,33,Bern\n' >wrong.csv
run predict run --data csv:wrong.csv
expect 3 "missing: city; unknown: town" "both kinds of wrong columns are named"
printf 'since,age,city\n2010-01-01,old,Bern\n' >wrong.csv
run predict run --data csv:wrong.csv
expect 3 "line 2, column 2 (age): 'old' is not a number" "a text where the model knows numbers"
printf 'since,age,city,kind\n2010-01-01,33,Bern,d\n' >wrong.csv
run eval run --data csv:wrong.csv,test=1
expect 3 "no class 'd'" "a class the model has not"
run eval run --data $data
check "evaluates" test "$rc" -eq 0
run distill --teacher run --data $data,seed=5 --arch mlp:8 --epochs 2 --out student --quiet
check "distils, with the teacher's columns" test "$rc" -eq 0
run eval run student --data $data
expect 3 "student: $data has other test rows than $data,seed=5" "but on rows of its own"
cp raw.csv others.csv # other rows, for all that the program knows
run eval run student --data csv:others.csv,drop=id
check "both in one table" grep -q student out

# 285 of one class and 15 of the other, which overlap: unweighted, nearly all rows are the first
awk 'BEGIN { srand(5); print "x,kind"; for (i = 0; i < 300; i++) { rare = i >= 285;
    print rand() + rand() + rand() + 0.7 * rare "," (rare ? "rare" : "usual") } }' >rare.csv
how="--data csv:rare.csv,test=0 --arch mlp:8 --epochs 60 --batch 30 --lr 0.01 --optimiser adam --keep last --quiet"
run train $how --out plain
run train $how --class-weights balanced --out balanced
for one in plain balanced; do
    run predict $one rare.csv
    cp out $one.csv
done
check "unweighted, rare rows are lost" awk -F, 'NR > 1 { n += $3 == "rare" } END { exit n > 15 }' plain.csv
check "balanced, most of them are found" awk -F, 'NR > 286 { n += $3 == "rare" } END { exit n < 9 }' balanced.csv
run train --data csv:rare.csv,target=x --arch mlp:4 --class-weights balanced --out none
expect 2 "has no classes" "weights of classes that are not there"
run distill --teacher plain --data csv:rare.csv --class-weights balanced --out none
expect 2 "does not look at labels" "weights that nothing would use"

# prices over seven orders of magnitude, noise in proportion: learned by their logarithm, answered in their own units
awk 'BEGIN { srand(7); print "a,b,price"; for (i = 0; i < 900; i++) { a = 6 * rand(); b = 2 * rand() - 1;
    print a "," b "," exp(2.5 * a + 2 * b * b + 0.2 * (rand() + rand() + rand() - 1.5)) } }' >heavy.csv
how="--data csv:heavy.csv,target=price --arch mlp:20 --members 2 --epochs 150"
run train $how --out heavy --progress plain
check "many epochs are told in few lines, the last one among them" awk '/^epoch/ { n++; last = $2 } END { exit !(n > 20 && n < 90 && last == "150/150") }' out err
check "a heavy tail is seen and told" grep -q 'target  learned by its logarithm' out err
check "and kept in the run" grep -q '"target_transform": "log"' heavy/metrics.json
run train $how --target-transform none --out asitis --quiet

# The unit of a target goes with the model, and from teacher to student.
how_few="--data csv:heavy.csv,target=price --arch mlp:4 --epochs 1 --quiet"
run train $how_few --unit "CHF \"new\"" --out unit
run distill --teacher unit $how_few --method kd --out unit-student
run info unit-student --json
check "a student has its teacher's unit" grep -qF '"unit":"CHF \"new\""' out
run eval unit-student --data csv:heavy.csv,target=price --bootstrap 0 --json
check "an evaluation names it" grep -qF '"unit":"CHF \"new\""' out
run distill --teacher unit $how_few --method kd --unit EUR --out none
expect 2 "the teacher answers in CHF" "another unit than the teacher's"
run train --data csv:rare.csv --arch mlp:4 --unit EUR --out none
expect 2 "classes have none" "classes have no unit"
run train $how --target-transform quantile --out ranks --quiet
run eval heavy asitis ranks --data csv:heavy.csv,target=price --bootstrap 0 --metrics rmse,nll --format csv
cp out heavy.eval
check "far better than the target as it is, by error and likelihood" awk -F, 'NR > 1 && $0 !~ /each alone/ { r[++n] = $(NF - 1); l[n] = $NF }
    END { exit !(n == 3 && r[1] < 0.6 * r[2] && r[3] < 0.9 * r[2] && l[1] < l[2] - 2 && l[3] < l[2] - 1) }' heavy.eval
for one in heavy ranks; do
    run predict $one --data csv:heavy.csv,target=price --out $one-out.csv --logits $one.npy
    check "$one: predictions are those that eval measures" sh -c "awk -F, 'NR > 1 { d = \$2 - \$6; s += d * d } END { printf \"%.6g\", sqrt(s / (NR - 1)) }' $one-out.csv >rmse
        awk -F, -v want=\$(cat rmse) 'index(\$0, \"$one\") && \$0 !~ /each alone/ { d = \$(NF - 1) / want - 1; exit d * d > 1e-6 }' heavy.eval"
    run calibrate $one --conformal alpha=0.2
    run predict $one --data csv:heavy.csv,target=price --part train --out $one-out.csv
    check "$one: intervals hold what they promise, and no more" awk -F, 'NR > 1 { n += $6 <= $8 && $8 <= $7 } END { exit !(n > 0.7 * NR && n < 0.97 * NR) }' $one-out.csv
    run export $one --out $one.onnx
    check "$one: exports, checked against the model" test "$rc" -eq 0
    run distill --teacher $one --data csv:heavy.csv,target=price --arch mlp:20 --epochs 3 --out $one-kd --quiet
    check "$one: the student sees the target as its teacher" sh -c "strings $one-kd/model.safetensors | grep -q transform"
done
run distill --teacher heavy --data csv:heavy.csv,target=price --target-transform none --arch mlp:20 --epochs 1 --out no
expect 2 "the teacher sees the target by log" "another transform than the teacher's"
run train --data $data --target-transform log --arch mlp:4 --out no
expect 2 "for classification" "a transform of classes"

awk 'BEGIN { print "note,y"; for (i = 0; i < 50; i++) print "remark no. " i " of this day," i }' >prose.csv
run train --data csv:prose.csv --arch mlp:4 --out prose
expect 3 "leave it out with drop=note" "prose is refused with advice"

# a column that counts the rows tells the class of a sorted file, and of new rows nothing
awk 'BEGIN { srand(2); print "Id,x,kind"; for (i = 0; i < 90; i++) print i "," rand() "," substr("abc", int(i / 30) + 1, 1) }' >sorted.csv
run data csv:sorted.csv
expect 0 "column Id counts the rows and is left out" "row numbers are left out"
check "and described" grep -q 'Id .*nothing (it counts the rows)' out
run data csv:sorted.csv,use=Id+x
check "unless they are asked for" grep -q 'Id .*number' out

# a student reads the table as its teacher does, whatever it is told of the columns; so does eval, of two choices of columns
awk 'BEGIN { srand(4); print "zip,x,plan"; for (i = 0; i < 200; i++) { z = int(5 * rand());
    print 8000 + z "," rand() "," (z % 2 ? "basic" : "pro") } }' >zip.csv
run train --data csv:zip.csv,category=zip --arch mlp:8 --epochs 2 --out by-name --quiet
run train --data csv:zip.csv,use=zip --arch mlp:8 --epochs 2 --out by-number --quiet
run distill --teacher by-name --data csv:zip.csv --arch mlp:8 --epochs 1 --out pupil --quiet
expect 0 "" "distils without a word about the columns"
check "which are the teacher's" sh -c 'strings pupil/model.safetensors | grep -q 8004'
run eval by-name by-number --data csv:zip.csv
expect 0 "" "two runs with different choices of columns"
run eval by-number by-name --data csv:zip.csv
expect 0 "" "in either order"

awk -F, 'NR % 20 == 0 { print $1 "," $2 ","; next } 1' zip.csv >partly.csv
run train --data csv:partly.csv --arch mlp:8 --epochs 1 --out no
expect 3 "unlabelled=skip leaves them out" "rows without an answer, and the way out"
run train --data csv:partly.csv,unlabelled=skip --arch mlp:8 --epochs 1 --out partly
expect 0 "10 rows have no plan and are left out" "which is counted"

# texts that were meant as something else
awk 'BEGIN { print "day,x,y"; for (i = 0; i < 60; i++) print 1 + i % 3 "/28/2024," i * i % 17 "," i % 2 }' >us.csv
run data csv:us.csv
expect 0 "'1/28/2024' is a category here (if it is a date with two readings, write 2024-12-31)" "dates of two readings are told about"
printf 'a, b\tc\ty\n1\t2\t3\n4\t6\t5\n' >tabs.tsv
run data csv:tabs.tsv --json
check "tabs of .tsv, whatever the names hold" grep -q '"row":\[2\]' out
run predict run tabs.tsv
expect 3 "its columns are not the model's" "which is a table by its name"
: >a.gif
run predict run a.gif
expect 2 "convert them to .png or .jpg" "a picture of another kind"
: >a.parquet
run predict run a.parquet
expect 2 "write tables as .csv" "a table of another kind"
run data csv:/dev/stdin
expect 3 "pipes and devices are not read" "a table comes from a file"
finish
