#!/usr/bin/python3
"""Corruptions without randomness, the line blur, and rotations, by numpy, scipy and Pillow.

    corruptions.py > corruptions.txt        writes the numbers that test_corruptions.c reads
    corruptions.py --check corruptions.txt  recomputes them and compares

Written from the definitions of Hendrycks and Dietterich (2019); the pictures are a formula both sides know.
"""
import colorsys
import io
import sys

import numpy as np
from PIL import Image
from scipy import ndimage


def picture(c, h, w):
    """(h, w, c) of bytes: a slope, some texture, a grey patch, a black and a white corner."""
    y, x, k = np.meshgrid(np.arange(h), np.arange(w), np.arange(c), indexing="ij")
    p = (y * 11 + x * (7 + 3 * k) + (y * x * (k + 1)) % 17 * 5 + k * 29) % 256
    p[2:4, 2:5] = 90
    p[0, 0] = 0
    p[-1, -1] = 255
    return p.astype(np.uint8)


def to_bytes(x):
    return (np.clip(x, 0, 1) * 255 + 2.0**-10).astype(np.uint8)


def per_channel(x, f):
    return np.stack([f(x[..., k]) for k in range(x.shape[2])], 2)


def defocus(x, r, a):
    g = np.arange(-8, 9)
    disk = (g[:, None] ** 2 + g**2 <= r * r).astype(float)
    e = np.exp(-np.array([1, 0, 1]) / (2 * a * a))
    kernel = ndimage.convolve(disk / disk.sum(), np.outer(e, e) / e.sum() ** 2, mode="constant")
    return per_channel(x, lambda p: ndimage.correlate(p, kernel, mode="mirror"))


def zoom_blur(x, end):
    def zoomed(z):
        h, w = x.shape[:2]
        ch, cw = int(np.ceil(h / z)), int(np.ceil(w / z))
        t, l = (h - ch) // 2, (w - cw) // 2
        big = ndimage.zoom(x[t:t + ch, l:l + cw], (z, z, 1), order=1, mode="nearest")
        t, l = (big.shape[0] - h) // 2, (big.shape[1] - w) // 2
        return big[t:t + h, l:l + w]

    zooms = np.arange(1, end, 0.01)
    return (x + sum(zoomed(z) for z in zooms)) / (len(zooms) + 1)


def hsv(x, change):
    out = np.empty_like(x)
    for i in np.ndindex(*x.shape[:2]):
        out[i] = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*x[i])))
    return out


def jpeg(p, quality):
    f = io.BytesIO()
    Image.fromarray(p.squeeze()).save(f, "JPEG", quality=quality)
    return np.asarray(Image.open(f)).reshape(p.shape)


def pixelate(p, c):
    h, w = p.shape[:2]
    small = Image.fromarray(p.squeeze()).resize((int(w * c), int(h * c)), Image.BOX)
    return np.asarray(small.resize((w, h), Image.BOX)).reshape(p.shape)


def one(v):
    return min(max(v, 0), 1)


def gaussian_blur(x, c):
    return per_channel(x, lambda p: ndimage.gaussian_filter(p, c, mode="nearest", truncate=4))


CORRUPTIONS = {
    "contrast": ([.75, .5, .4, .3, .15], lambda x, c: (x - x.mean((0, 1))) * c + x.mean((0, 1))),
    "brightness": ([.05, .1, .15, .2, .3],
                   lambda x, c: hsv(x, lambda h, s, v: (h, s, one(v + c))) if x.shape[2] == 3 else x + c),
    "saturate": ([(.3, 0), (.1, 0), (1.5, 0), (2, .1), (2.5, .2)],
                 lambda x, c: hsv(x, lambda h, s, v: (h, one(c[0] * s + c[1]), v)) if x.shape[2] == 3 else x),
    "gaussian_blur": ([.4, .6, .7, .8, 1], gaussian_blur),
    "defocus_blur": ([(.3, .4), (.4, .5), (.5, .6), (1, .2), (1.5, .1)], lambda x, c: defocus(x, *c)),
    "zoom_blur": ([1.06, 1.11, 1.16, 1.21, 1.26], zoom_blur),
    "pixelate": ([.95, .9, .85, .75, .65], pixelate),
    "jpeg_compression": ([80, 65, 58, 50, 40], jpeg),
}


def line_blur(x, radius, sigma, degrees):
    """One-sided, of 2 radius + 1 taps; the edge is extended; rounded to 16 bits, cut off to 8."""
    i = np.arange(2 * radius + 1)
    k = np.exp(-i**2 / (2 * sigma**2))
    k /= k.sum()
    dx = np.ceil(i * np.cos(np.radians(degrees)) - 0.5).astype(int)
    dy = np.ceil(i * np.sin(np.radians(degrees)) - 0.5).astype(int)
    h, w = x.shape
    y, c = np.mgrid[:h, :w]
    out = sum(a * x[np.clip(y + b, 0, h - 1), np.clip(c + d, 0, w - 1)] for a, b, d in zip(k, dy, dx))
    return np.floor(out * 65535 + 0.5).astype(int) // 257


def rotate(x, degrees):
    big = ndimage.rotate(x, degrees)
    h, w = x.shape
    out = np.zeros((h, w))
    t, l = (big.shape[0] - h) // 2, (big.shape[1] - w) // 2
    for y in range(h):
        for c in range(w):
            if 0 <= y + t < big.shape[0] and 0 <= c + l < big.shape[1]:
                out[y, c] = big[y + t, c + l]
    return out


def cases():
    for name, (params, f) in CORRUPTIONS.items():
        for c, h, w in [(3, 10, 12)] + [(1, 9, 17)] * (name != "saturate"):
            p = picture(c, h, w)
            for severity, param in enumerate(params, 1):
                whole = name in ("pixelate", "jpeg_compression")
                out = f(p, param) if whole else to_bytes(f(p / 255.0, param))
                yield name, [c, h, w, severity], out.transpose(2, 0, 1).ravel()
    x = picture(1, 10, 14)[..., 0] / 255.0
    for radius, sigma, degrees in [(6, 1, -45), (6, 2, 0), (9, 2.5, 33), (12, 6, -100), (14, 12, -50)]:
        yield "line", [1, 10, 14, radius, sigma, degrees], line_blur(x, radius, sigma, degrees).ravel()
    for h, w, amounts in [(12, 12, range(15, 181, 15)), (9, 14, [20, 90, -35, 200]), (28, 28, [45])]:
        x = picture(1, h, w)[..., 0] / 255.0
        for degrees in amounts:
            yield "rotate", [1, h, w, degrees], rotate(x, degrees).ravel()


def text(a):
    return " ".join(f"{v:.6g}" for v in a)


def main():
    if len(sys.argv) == 1:
        print("# Written by corruptions.py: channels, height, width, parameters; the result as planes.")
        for name, what, out in cases():
            print(f"case {name}\nwhat {len(what)} {text(what)}\nout {len(out)} {text(out)}\nend")
        return
    lines = [line for line in open(sys.argv[2]) if line.startswith("out ")]
    worst = 0
    for line, (name, what, out) in zip(lines, cases(), strict=True):
        stored = np.array([float(v) for v in line.split()[2:]])
        worst = max(worst, np.abs(stored - out).max())
        assert np.allclose(stored, out, atol=1e-5), (name, what)
    print(f"{len(lines)} cases, largest difference {worst:.2g}")


main()
