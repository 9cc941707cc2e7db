#!/bin/sh
# The PyTorch loader of docs/formats/model.md, as it stands there, computes every architecture and every student from the model
# file alone, to what predict --logits writes.
. "$(dirname "$0")/tap.inc"

for python in "${PYTHON:-python3}" /usr/bin/python3 none; do
    [ "$python" = none ] || ! "$python" -c 'import torch, numpy' 2>/dev/null || break
done
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$RT_SOURCE_DIR/docs/formats/model.md" >loader.py
check "the loader is short" test "$(grep -c . loader.py)" -le 40
if [ "$python" = none ]; then
    echo "# no Python with PyTorch: the loader is not run"
    finish
    exit
fi
cat >make.py <<'P'
import numpy as np
r = np.random.default_rng(1)
for name, side in (("small", 8), ("large", 64)):
    y = np.arange(24) % 3
    x = r.normal(size=(24, 3, side, side)) + y[:, None, None, None] * r.normal(size=(3, 1, 1))
    np.save(name + ".npy", x.astype("float32"))
    np.save(name + "-bytes.npy", np.clip(40 * x + 128, 0, 255).astype("uint8"))
    np.save("y.npy", y.astype("int32"))
x = r.normal(size=(60, 4))
np.savetxt("t.csv", np.c_[x, x[:, 0] - x[:, 1] ** 2 + 5], delimiter=",", header="a,b,c,d,y", comments="", fmt="%.5f")
np.save("t.npy", np.loadtxt("t.csv", delimiter=",", skiprows=1)[:, :4].astype("float32"))
P
cat >compare.py <<'P'
import glob, json, struct, numpy as np, torch, loader
torch.set_num_threads(1)
for line in open("runs.txt"):
    run, rows = line.split()
    x = torch.from_numpy(np.load(rows))
    files = sorted(glob.glob(run + "/member-*.safetensors")) or [run + "/model.safetensors"]
    with torch.no_grad():
        y = np.concatenate([loader.load(f)(x).numpy() for f in files], 1)
    want = np.load(run + ".npy")
    want = want.reshape(len(want), -1, want.shape[-1])
    head = open(files[0], "rb").read()
    task = json.loads(json.loads(head[8:8 + struct.unpack("<Q", head[:8])[0]])["__metadata__"]["task"])
    if task["kind"] == "regression":
        y = np.stack([task["target_mean"] + task["target_std"] * y[..., 0],
                      task["target_std"] ** 2 * np.exp(np.clip(y[..., 1], -10, 10))], -1)
    off = float(np.abs(y - want).max() / max(1, np.abs(want).max())) if y.shape == want.shape else float("inf")
    print(run, "agrees" if off <= 1e-5 else "differs", off, flush=True)
P
"$python" make.py

compare() { # compare RUN ROWS.npy DATA: what the program says of all rows, to be compared with the loader at the end
    run predict "$1" --data "$3" --logits "$1.npy"
    check "$1 predicts" test "$rc" -eq 0
    echo "$1 $2" >>runs.txt
}

how="--epochs 1 --batch 8 --lr 0.001 --quiet --threads 1"
for arch in mlp:12,9 vgg16 resnet20 resnet18 resnet50 wrn:10,2; do
    name=$(echo $arch | tr -d ':,')
    data=npy:small.npy,y.npy,test=0
    run train --data $data --arch $arch --members 2 $how --out $name
    compare $name small.npy npy:small.npy,y.npy,test=1
    [ $arch != resnet50 ] || continue # its students are those of resnet18, and large
    for student in batch-ensemble:2 latent-be:2 hydra:2 dirichlet; do
        [ $student != hydra:2 ] || [ $arch != vgg16 ] || continue # heads need a cut, which is the same code
        objective=one-to-one
        [ $student != dirichlet ] || objective=end2
        run distill --teacher $name --data $data --arch $arch --student $student --objective $objective $how --out $name-${student%:*}
        compare $name-${student%:*} small.npy npy:small.npy,y.npy,test=1
    done
done
run distill --teacher wrn102 --data npy:small.npy,y.npy,test=0 --arch wrn:10,2 --student batch-ensemble:2 --member-bn --objective one-to-one $how --out member-bn
compare member-bn small.npy npy:small.npy,y.npy,test=1
run train --data npy:large.npy,y.npy,test=0 --arch resnet18 $how --out stem7
compare stem7 large.npy npy:large.npy,y.npy,test=1
run train --data npy:small-bytes.npy,y.npy,test=0 --arch wrn:10,1 $how --out bytes
compare bytes small-bytes.npy npy:small-bytes.npy,y.npy,test=1
run train --data npy:small.npy,y.npy,test=0 --arch mlp:7 --activation softplus --no-standardise $how --out plain
compare plain small.npy npy:small.npy,y.npy,test=1
run train --data csv:t.csv,test=0 --target-transform none --arch mlp:7 --members 2 $how --out table
compare table t.npy csv:t.csv,test=1
"$python" compare.py >results.txt 2>err
while read -r name rows; do
    check "$name: the loader agrees" grep -q "^$name agrees" results.txt
done <runs.txt
finish
