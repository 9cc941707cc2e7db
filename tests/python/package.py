#!/usr/bin/python3
"""The Python package, as its users meet it; prints TAP.

    package.py RETORT [whole]       RETORT_LIBRARY or an installed wheel gives the library; whole: everything, slower
"""
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import retort
from retort import Data, Model
from tap import finish, ok

PROGRAM = os.path.abspath(sys.argv[1])
WHOLE = len(sys.argv) > 2


def raises(kind, text, what, f, *arguments, **keys):
    try:
        f(*arguments, **keys)
    except kind as e:
        ok(text in str(e), what if text in str(e) else f"{what}: it says {e}")
        return e
    except Exception as e:  # noqa: BLE001
        ok(False, f"{what}: {type(e).__name__} {e}")
    else:
        ok(False, f"{what}: nothing was raised")


def skip(what):
    print(f"skipped: {what}", flush=True)


def rows(n=600, seed=0):
    g = np.random.default_rng(seed)
    y = g.integers(0, 3, n).astype(np.int32)
    x = np.c_[np.cos(y * 2.1), np.sin(y * 2.1)] * 2 + g.normal(size=(n, 2)) * 0.7
    return x.astype(np.float32), y


def program(*arguments):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def same_files(a, b):
    names = sorted(n for n in os.listdir(a) if n.endswith(".safetensors"))
    def read(d, n): return open(os.path.join(d, n), "rb").read()
    return names == sorted(n for n in os.listdir(b) if n.endswith(".safetensors")) and all(read(a, n) == read(b, n) for n in names) and names


# ---- verbs and models ----

def verbs():
    x, y = rows()
    data = Data(x, y, class_names=["left", "top", "right"])
    ok(np.shares_memory(data.parts[0][0], x) and np.shares_memory(data.parts[0][1], y), "arrays are not copied")
    seen = []
    told = retort.train(data, arch="mlp:16", members=3, epochs=5, out="teacher", progress=seen.append)
    ok(told["retort"] == retort.__version__, "train tells what --json prints")
    ok(seen and seen[-1]["epochs"] == 5 and any(s["epoch_end"] for s in seen) and np.isfinite(seen[-1]["loss"]), "progress is told")
    retort.distill(data, teacher="teacher", arch="mlp:16", method="hydra", epochs=5, out="student")
    retort.distill(data, teacher="teacher", arch="mlp:16", method="end2", epochs=5, out="prior")
    seen.clear()
    retort.average("teacher", data, method="match", out="average", progress=seen.append)
    sets = retort.evaluate(["teacher", "student"], data, ood={"far": Data(x + 9, name="far")}, bootstrap=0,
                           progress=seen.append)["runs"][1]["sets"]
    ok({s["note"] for s in seen} >= {"matching", "run 2/2 student: test"}, "average and evaluate say what they do")
    ok(set(sets) >= {"test", "ood:far"} and 0 < sets["test"]["nll"] < 2, "evaluate, with foreign rows from memory")
    ok(retort.report(["teacher", "student"], out="page.html")["retort"] and os.path.getsize("page.html") > 1e5, "report")
    told = retort.calibrate("student", reject="coverage=0.9", conformal="alpha=0.1", trained_on=data)
    ok(told["rows_from"] == "held-out rows" if "rows_from" in told else "held-out" in str(told), "calibrate finds the rows that were held out, in memory")
    told = Model.load("student").export("student.onnx", trained_on=data)
    ok(told["rows_from"] == "held-out rows" and os.path.getsize("student.onnx") == told["bytes"], "export, checked on them")
    keys = retort.settings("distill")
    ok(keys["alpha"]["kind"] == "number" and keys["alpha"]["highest"] == 1 and "weight" in keys["alpha"]["help"], "settings are listed")


def models():
    x, y = rows(500, 1)
    m = Model.load("student")
    ok((m.task, m.members, m.outputs, m.input_shape, m.class_names, m.unit) == ("classification", 3, 3, (2,), ["left", "top", "right"], None),
       "a model says what it is")
    p = m.predict_proba(x)
    ok(p.dtype == np.float32 and p.shape == (500, 3) and np.allclose(p.sum(1), 1, atol=1e-5) and np.array_equal(m.predict(x), p.argmax(1)),
       "classes and probabilities")
    u = m.uncertainty(x)
    ok(set(u) == {"confidence", "entropy", "expected_entropy", "mutual_information", "epkl"} and (u["mutual_information"] >= 0).all(),
       "uncertainty of one with knowledge")
    d = m.decide(x)
    ok(set(d) == {"reject", "set"} and d["reject"].dtype == bool and d["set"].shape == (500, 3), "decisions that calibrate stored")
    ok(set(Model.load("average").uncertainty(x)) == {"confidence", "entropy", "expected_entropy"}, "and of one without")
    alpha = Model.load("prior").run(x, "alpha")["alpha"]
    ok(alpha.shape == (500, 1, 3) and (alpha > 0).all(), "concentrations of a Dirichlet")
    mine = np.empty((500, 3), np.float32)
    got = m.run(x, out={"probs": mine})
    ok(got["probs"] is mine and np.array_equal(mine, p), "answers are written into arrays that are given")
    np.save("x.npy", x)
    np.save("y.npy", y.astype(np.int64))
    program("predict", "student", "--data", "npy:x.npy", "--probs", "probs.npy", "--uncertainty", "u.npy", "-q", "--raw", "--out", "p.csv")
    ok(np.array_equal(np.load("probs.npy").reshape(500, 3, 3), m.run(x, "member_probs")["member_probs"])
       and np.array_equal(np.load("u.npy"), np.stack([u["entropy"], u["expected_entropy"], u["mutual_information"]], 1)),
       "the numbers of `retort predict`, to the bit")
    with open("mixed.csv", "w") as f:
        f.write("town,since,size,kind\n")
        for i, k in enumerate(y):
            f.write(f"{('Bern', 'Oslo', 'Rome')[(k + i % 2) % 3]},20{10 + i % 9}-0{1 + i % 9}-11,{'' if i % 7 == 0 else x[i, 0]},{'abc'[k]}\n")
    program("train", "--data", "csv:mixed.csv,target=kind", "--arch", "mlp:8", "--epochs", "3", "--out", "mixed", "-q")
    program("predict", "mixed", "mixed.csv", "--inputs", "inputs.npy", "--probs", "probs.npy", "-q")
    inputs = np.load("inputs.npy")
    ok(inputs.shape == (500, Model.load("mixed").input_shape[0]) and inputs.shape[1] > 10
       and np.array_equal(np.load("probs.npy"), Model.load("mixed").predict_proba(inputs)),
       "rows of a table as `retort predict --inputs` encodes them have the same answers")
    ok(m.meta("decision")["conformal"]["alpha"] == 0.1 and m.meta("nothing") is None, "metadata")
    ok(m.run(np.empty((0, 2), np.float32), "probs")["probs"].shape == (0, 3), "no rows, no answers")


def threads():
    x, _ = rows(20000, 2)
    m = Model.load("teacher")
    want = m.run(x, "probs", "mutual_information", threads=1)
    answers = [None] * 8
    def work(i): answers[i] = m.run(x, "probs", "mutual_information", threads=1)
    started = time.perf_counter()
    work(0)
    one = time.perf_counter() - started
    all_threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    started = time.perf_counter()
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    eight = time.perf_counter() - started
    ok(all(np.array_equal(a[k], want[k]) for a in answers for k in want), "eight threads with one model give equal answers")
    print(f"# one call {one * 1e3:.1f} ms, eight at a time {eight * 1e3:.1f} ms on {os.cpu_count()} cores")
    if WHOLE and (os.cpu_count() or 1) > 1:
        ok(eight < 8 * one, "and are faster than one after the other")


def errors():
    x, y = rows(100)
    e = raises(retort.UsageError, "members", "an unknown key names the nearest", retort.train, (x, y), arch="mlp:4", memebrs=2, out="e")
    ok(e is not None and e.status == 20 and e.code == "RT_E_USAGE", "errors have number and name")
    raises(ValueError, "epochs", "a value out of range is a ValueError", retort.train, (x, y), arch="mlp:4", epochs=-1, out="e")
    raises(retort.InputError, "nothere", "a run that is not there", Model.load, "nothere")
    raises(retort.UsageError, "labels", "fewer labels than rows", Data, x, y[:50])
    raises(retort.UsageError, "axes", "rows with three axes", Data, x[:, :, None])
    raises(retort.UsageError, "(3,)", "rows of another width", Model.load("teacher").predict, np.zeros((4, 3), np.float32))
    raises(retort.RetortError, "not finite", "a row with NaN", Model.load("teacher").predict, np.array([[np.nan, 0]], np.float32))
    raises(retort.UsageError, "no alpha", "what the model cannot say", Model.load("teacher").run, x, "alpha")
    raises(retort.UsageError, "colour", "an unknown field", Model.load("teacher").run, x, "colour")
    raises(retort.UsageError, "contiguous", "a place that does not fit", Model.load("teacher").run, x, out={"probs": np.empty((100, 2), np.float32)})
    raises(retort.UsageError, "two data sets", "two sets of one name", retort.evaluate, "teacher", Data(x, y), ood={"far": Data(x)})
    raises(retort.RetortError, "", "no room for the file", retort.export, "teacher", "/dev/full/x.onnx")
    bad = x.copy()
    bad[5, 1] = np.inf
    raises(retort.InputError, "finite", "training rows with inf", retort.train, (bad, y), arch="mlp:4", out="e")
    ok(not os.path.exists("e"), "nothing is left of runs that did not begin")

    def boom(_): raise RuntimeError("from the callback")
    raises(RuntimeError, "from the callback", "an exception of the callback stops the run", retort.train, (x, y), arch="mlp:4", epochs=10000,
           out="stopped", progress=boom)
    seen = []
    handler = logging.Handler()
    handler.emit = seen.append
    logging.getLogger("retort").addHandler(handler)
    retort.train((x[:30], np.r_[y[:29] % 2, 2]), arch="mlp:4", epochs=1, out="warned")
    logging.getLogger("retort").removeHandler(handler)
    ok(any("class 2" in r.getMessage() for r in seen), "remarks go to the logger")


def interruption():
    x, y = rows(400)
    np.save("ix.npy", x)
    np.save("iy.npy", y.astype(np.int64))
    keys = dict(arch="mlp:8", members=2, epochs=60, batch=20, seed=3)
    retort.train("npy:ix.npy,iy.npy", out="straight", **keys)
    # a process of its own, which gets SIGINT in the middle, as Ctrl-C sends it
    code = ("import retort, os, signal, time\n"
            "def step(p):\n"
            "    if p['epoch'] == 7: os.kill(os.getpid(), signal.SIGINT); time.sleep(1)\n"
            f"try:\n    retort.train('npy:ix.npy,iy.npy', out='broken', progress=step, **{keys!r})\n"
            "except KeyboardInterrupt as e:\n    print('INTERRUPTED', e)\n")
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    ok(done.stdout.startswith("INTERRUPTED"), "Ctrl-C becomes KeyboardInterrupt")
    ok(any("checkpoint" in n for n in os.listdir("broken")), "and the state is saved")
    retort.train("npy:ix.npy,iy.npy", out="broken", resume=True, **keys)
    ok(same_files("straight", "broken"), "resumed, the model is the one that was never stopped")


# ---- scikit-learn ----

def equal_files():
    from retort.sklearn import RetortClassifier, RetortRegressor
    x, y = rows(300, 5)
    np.save("fx.npy", x)
    np.save("fy.npy", y.astype(np.int64))
    RetortClassifier(arch="mlp:12", members=2, epochs=6, random_state=9, out="by-python").fit(x, y)
    program("train", "--data", "npy:fx.npy,fy.npy,test=0", "--arch", "mlp:12", "--members", "2", "--epochs", "6", "--seed", "9", "-q", "--out", "by-program")
    ok(same_files("by-python", "by-program"), "fit and `retort train` write the same files")
    os.makedirs("elsewhere", exist_ok=True)
    for n in ("fx.npy", "fy.npy"):
        os.replace(n, os.path.join("elsewhere", n))
    program("train", "--data", "npy:elsewhere/fx.npy,elsewhere/fy.npy,test=0", "--arch", "mlp:12", "--members", "2", "--epochs", "6", "--seed", "9", "-q",
            "--out", "by-program2")
    ok(same_files("by-python", "by-program2"), "wherever the data lies")
    t = x[:, 0] * 3 + 1
    np.savetxt("r.csv", np.c_[x, t], delimiter=",", header="a,b,y", comments="", fmt="%.9g")
    r = RetortRegressor(arch="mlp:12", members=2, epochs=6, random_state=9, out="r-python").fit(x, t)
    program("train", "--data", "csv:r.csv,target=y,task=regression,test=0", "--arch", "mlp:12", "--members", "2", "--epochs", "6", "--seed", "9", "-q",
            "--out", "r-program")
    a, b = Model.load("r-program"), r.model_
    ok(np.array_equal(a.run(x, "mean")["mean"], b.run(x, "mean")["mean"]), "a regressor answers as the one of `retort train` on a table")
    # a student of stored probabilities, against the program's
    p = np.random.default_rng(1).dirichlet([1, 1, 1], (300, 4))
    np.save("logits.npy", np.log(np.maximum(p, 1e-30)).astype(np.float32))
    c = RetortClassifier(arch="mlp:12", method="hydra", epochs=6, random_state=9).fit(x, y, teacher_proba=p)
    c.save("d-python")
    program("distill", "--teacher", "logits:logits.npy", "--data", "npy:elsewhere/fx.npy,elsewhere/fy.npy,test=0", "--arch", "mlp:12", "--method", "hydra",
            "--epochs", "6", "--seed", "9", "-q", "--out", "d-program")
    ok(same_files("d-python", "d-program"), "fit with teacher_proba and `retort distill` write the same files")


def estimators():
    import sklearn
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator

    from retort.sklearn import RetortClassifier, RetortRegressor
    for estimator in (RetortClassifier(members=2, epochs=20), RetortRegressor(members=2, epochs=20)):
        bad, n = [], 0
        for one, check in check_estimator(estimator, generate_only=True):
            n += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check(one)
            except unittest.SkipTest:
                pass  # pandas is not there
            except Exception as e:  # noqa: BLE001
                bad.append(f"{check.func.__name__}: {e}")
        ok(not bad and n > 30, f"check_estimator of scikit-learn {sklearn.__version__} on {type(estimator).__name__}, {n} checks {bad}")
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    c = RetortClassifier(arch="mlp:20", members=2, epochs=200)
    pipe = make_pipeline(StandardScaler(), c).fit(x, names)
    ok(pipe.score(x, names) > 0.9, "Pipeline, classes that are words")
    search = GridSearchCV(c, {"arch": ["mlp:8", "mlp:20"], "members": [1, 2]}, cv=3).fit(x, y)
    ok(search.best_score_ > 0.9 and search.best_params_["arch"] in ("mlp:8", "mlp:20"), "GridSearchCV")
    p = cross_val_predict(c, x, y, cv=3, method="predict_proba")
    ok((p.argmax(1) == y).mean() > 0.9 and np.allclose(p.sum(1), 1, atol=1e-5), "cross_val_predict")
    ok(CalibratedClassifierCV(c, cv=3).fit(x, y).score(x, y) > 0.9, "CalibratedClassifierCV")
    r = RetortRegressor(arch="mlp:20", members=3, epochs=60).fit(x[:, :3], x[:, 3])
    mean, std = r.predict(x[:, :3], return_std=True)
    ok(r.score(x[:, :3], x[:, 3]) > 0.8 and std.shape == mean.shape and (std > 0).all(), "predict(return_std=True)")
    ok(set(r.predict_uncertainty(x[:, :3])) == {"variance", "data_variance", "knowledge_variance"}, "predict_uncertainty of a regressor")
    c.fit(x, names)
    u = c.predict_uncertainty(x)
    far = c.predict_uncertainty(x + 30)
    ok(far["mutual_information"].mean() != u["mutual_information"].mean() and len(u["entropy"]) == 150, "predict_uncertainty of a classifier")
    again = pickle.loads(pickle.dumps(c))
    ok(np.array_equal(again.predict_proba(x), c.predict_proba(x)), "a pickled estimator answers alike")
    # students
    s = RetortClassifier(arch="mlp:20", epochs=40).fit(x, y, teacher_proba=p)
    ok(s.model_.members == 1 and s.score(x, y) > 0.9, "a student of cross-validated probabilities")
    m = np.stack([np.c_[x[:, 3], np.full(150, 0.04)]] * 2, 1)
    t = RetortRegressor(arch="mlp:20", epochs=60).fit(x[:, :3], x[:, 3], teacher_proba=m)
    ok(t.score(x[:, :3], x[:, 3]) > 0.8, "a regressor taught means and variances")
    raises(ValueError, "are these logits?", "logits given as probabilities", c.fit, x, y, teacher_proba=np.log(p + 1e-9))
    raises(ValueError, "wanted (150, 3)", "probabilities of another shape", c.fit, x, y, teacher_proba=p[:, :2])
    c = RetortClassifier(arch="mlp:20", members=2, epochs=30, out="kept").fit(x, y)
    s = RetortClassifier(arch="mlp:20", epochs=30, teacher="kept", method="hydra").fit(x, y)
    ok(s.model_.members == 2 and s.score(x, y) > 0.8, "a student of a run")
    g = np.random.default_rng(0)
    pixels = (g.random((60, 3 * 16 * 16)) * 0.5 + (np.arange(60) % 2)[:, None] * 0.4).astype(np.float32)
    images = RetortClassifier(arch="wrn:10,1", members=1, epochs=2, input_shape=(3, 16, 16)).fit(pixels, np.arange(60) % 2)
    ok(images.model_.input_shape == (3, 16, 16) and images.predict(pixels).shape == (60,), "pixels for an architecture that convolves")


def leaks():
    import resource
    from retort.sklearn import RetortClassifier
    x, y = rows(40)
    def fits(n):
        for _ in range(n):
            RetortClassifier(arch="mlp:4", members=1, epochs=1).fit(x, y).predict_proba(x)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = fits(200)
    after = fits(800)
    ok(after - before < 8192, f"1,000 fits: {after - before} kB more at the end than after 200")


def main():
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        parts = [verbs, models, threads, errors, interruption]
        try:
            import sklearn  # noqa: F401
            parts += [equal_files, estimators] + ([leaks] if WHOLE else [])
        except ImportError:
            skip("no scikit-learn: estimators are not tested")
        for part in parts:
            try:
                part()
            except Exception as e:  # noqa: BLE001
                import traceback
                traceback.print_exc()
                ok(False, f"{part.__name__}: {type(e).__name__}: {e}")
        os.chdir("/")
    finish()


main()
