"""A wheel for every Python 3 of this system: the library inside is reached by ctypes, not by Python's own C interface."""
import os
import re

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))


def version():
    with open(os.path.join(HERE, "retort.h" if os.path.exists(os.path.join(HERE, "retort.h")) else "../include/retort.h")) as f:
        return ".".join(re.findall(r"#define RT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", f.read()))


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=version(), distclass=Binary, cmdclass={"bdist_wheel": Wheel})
