"""Tables and pictures as people have them, made from nothing but a seed (for bench/own_data and for trying things out).

    python3 bench/messy.py DIR      writes DIR/messy.csv, DIR/heavy.csv, their .splits, and DIR/pictures

messy.csv  three classes by name, 70, 25 and 5 of 100 rows, sorted by class; numbers with gaps (more often in one class), a
           category of five, one of 300 shops, a day, an amount with a long tail, an identifier that says nothing; ';', CRLF,
           quotes and a mark at the start.
pictures/  three classes by folder, 65, 25 and 10 of 100: discs, squares and crosses of any colour, turned, on backgrounds of any
           colour, with noise; 20 to 80 pixels wide and high, PNG (colour, grey, palette, with alpha) and JPEG. new/ has
           others of the same kind, all in one folder, and new.csv their classes. Needs Pillow.
heavy.csv  a regression whose target spans seven orders of magnitude, with noise in proportion to it.
"""
import math
import random
import sys
from pathlib import Path


def split_line(groups, share, draw):
    """Zero-based numbers of test rows: a share of every group."""
    rows = []
    for group in groups:
        rows += draw.sample(group, round(share * len(group)))
    return " ".join(map(str, sorted(rows))) + "\n"


def messy(directory, n=4000, seed=1):
    draw = random.Random(seed)
    names = ["browse", "buy", "return"]
    shops = [("shop %d" % i, draw.gauss(0, 1)) for i in range(300)]
    plans = {"free": -1.0, "basic": 0.0, "plus": 0.5, "family": 1.0, "pro": 1.5}
    rows = {name: [] for name in names}
    want = {"browse": round(0.70 * n), "buy": round(0.25 * n), "return": n - round(0.70 * n) - round(0.25 * n)}
    while any(len(rows[k]) < want[k] for k in names):
        plan = draw.choice(list(plans))
        shop, liking = draw.choice(shops)
        age = draw.gauss(40, 12)
        visits = draw.expovariate(0.2)
        amount = math.exp(draw.gauss(3, 1.2))
        day = draw.randrange(730)
        year, month, date = 2023 + day // 365, day % 365 // 31 + 1, day % 31 % 28 + 1
        winter = math.cos(2 * math.pi * (month - 1) / 12)
        buy = 0.8 * plans[plan] + liking + 0.12 * visits - 0.04 * (age - 40) + 0.8 * winter - 0.5
        back = 0.9 * math.log(amount) - 3 - 1.2 * winter + 0.5 * liking * (plan == "free")
        noise = [-math.log(-math.log(draw.random())) for _ in names]
        score = [0.0 + noise[0], 1.5 * buy + noise[1], 1.5 * back + noise[2]]
        name = names[score.index(max(score))]
        if len(rows[name]) >= want[name]:
            continue
        gap = 0.25 if name == "return" else 0.08
        rows[name].append([
            "%08x" % draw.getrandbits(32),
            "" if draw.random() < gap else "%.0f" % age,
            "%d" % visits,
            "NA" if draw.random() < 0.05 else '"%s"' % plan,
            shop,
            "" if draw.random() < 0.03 else "%04d-%02d-%02d" % (year, month, date),
            "%.2f" % amount,
            name,
        ])
    lines = [row for name in names for row in rows[name]]
    header = ["customer", " age", "visits", "plan", "shop", "day of visit", "amount", "what"]
    text = "\ufeff" + "".join(";".join(row) + "\r\n" for row in [header] + lines)
    (directory / "messy.csv").write_bytes(text.encode())
    at, groups = 0, []
    for name in names:
        groups.append(range(at, at + len(rows[name])))
        at += len(rows[name])
    (directory / "messy.splits").write_text(split_line(groups, 0.2, draw))


def heavy(directory, n=4000, seed=2):
    draw = random.Random(seed)
    with open(directory / "heavy.csv", "w") as f:
        f.write("a,b,c,d,kind,price\n")
        for _ in range(n):
            a, b, c, d = draw.gauss(0, 1), draw.gauss(0, 1), draw.uniform(0, 3), draw.gauss(0, 1)
            kind = draw.choice(["small", "middle", "large"])
            log = 1.2 * a + math.sin(3 * b) + c + {"small": 0, "middle": 1.5, "large": 3}[kind] + 0.3 * a * b
            f.write("%.5g,%.5g,%.5g,%.5g,%s,%.6g\n" % (a, b, c, d, kind, math.exp(1.3 * log + draw.gauss(0, 0.3))))
    (directory / "heavy.splits").write_text(split_line([range(n)], 0.2, draw))


def picture(draw, kind):
    from PIL import Image, ImageDraw
    w, h = draw.randint(20, 80), draw.randint(20, 80)
    colour = lambda: tuple(draw.randrange(256) for _ in range(3))
    back, front = colour(), colour()
    while sum(abs(a - b) for a, b in zip(back, front)) < 150:
        front = colour()
    scale = 4
    image = Image.new("RGB", (w * scale, h * scale), back)
    pen = ImageDraw.Draw(image)
    r = scale * min(w, h) * draw.uniform(0.22, 0.4)
    x, y = scale * w / 2 + draw.uniform(-0.1, 0.1) * scale * w, scale * h / 2 + draw.uniform(-0.1, 0.1) * scale * h
    turn = draw.uniform(0, math.pi / 2)
    at = lambda a, b: (x + a * math.cos(turn) - b * math.sin(turn), y + a * math.sin(turn) + b * math.cos(turn))
    if kind == "disc":
        pen.ellipse((x - r, y - r, x + r, y + r), fill=front)
    elif kind == "square":
        s = 0.9 * r
        pen.polygon([at(-s, -s), at(s, -s), at(s, s), at(-s, s)], fill=front)
    else:
        s = 0.3 * r
        pen.polygon([at(-r, -s), at(r, -s), at(r, s), at(-r, s)], fill=front)
        pen.polygon([at(-s, -r), at(s, -r), at(s, r), at(-s, r)], fill=front)
    image = image.resize((w, h))
    noise = Image.frombytes("L", (w, h), bytes(draw.randrange(256) for _ in range(w * h))).convert("RGB")
    return Image.blend(image, noise, draw.uniform(0.05, 0.25))


def pictures(directory, n=1500, new=500, seed=3):
    draw = random.Random(seed)
    shares = {"cross": 0.65, "disc": 0.25, "square": 0.10}
    forms = [("png", None), ("png", "L"), ("png", "P"), ("png", "RGBA"), ("jpg", None)]
    names = []
    for part, count in (("pictures", n), ("new", new)):
        for kind, share in shares.items():
            place = directory / part / (kind if part == "pictures" else "")
            place.mkdir(parents=True, exist_ok=True)
            for i in range(round(share * count)):
                ending, mode = draw.choice(forms)
                name = "%08x.%s" % (draw.getrandbits(32), ending)
                image = picture(draw, kind)
                (image.convert(mode) if mode else image).save(place / name)
                if part == "new":
                    names.append("%s,%s\n" % (name, kind))
    (directory / "new.csv").write_text("file,kind\n" + "".join(sorted(names)))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    messy(place)
    heavy(place)
    pictures(place)
