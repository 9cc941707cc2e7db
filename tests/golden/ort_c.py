"""ONNX Runtime's C interface by ctypes: what its bindings for Node.js leave out, inputs that have a default.

The functions stand in a table that only grows; their places are below.
"""
import ctypes as c
import glob
import os

import numpy as np

PLACES = {"GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10, "SetSessionLogSeverityLevel": 22,
          "SessionGetOverridableInitializerCount": 32, "CreateTensorWithDataAsOrtValue": 49, "GetTensorMutableData": 51,
          "GetTensorElementType": 60, "GetTensorShapeElementCount": 64, "GetTensorTypeAndShape": 65, "CreateCpuMemoryInfo": 69}
TYPES = {1: c.c_float, 7: c.c_int64, 9: c.c_uint8}


class Session:
    def __init__(self, directory, file):
        path, = glob.glob(os.path.join(directory, "node_modules/onnxruntime-node/bin/napi-v*/linux/x64/libonnxruntime.so*"))
        library = c.CDLL(path)
        library.OrtGetApiBase.restype = c.POINTER(c.CFUNCTYPE(c.c_void_p, c.c_uint32))
        self.table = c.cast(library.OrtGetApiBase()[0](17), c.POINTER(c.c_void_p))
        env, options, self.memory, self.session = (c.c_void_p() for _ in range(4))
        self.call("CreateEnv", c.c_int(3), b"retort", c.byref(env))
        self.call("CreateSessionOptions", c.byref(options))
        self.call("SetSessionLogSeverityLevel", options, c.c_int(3))
        self.call("CreateSession", env, os.fsencode(file), options, c.byref(self.session))
        self.call("CreateCpuMemoryInfo", c.c_int(0), c.c_int(0), c.byref(self.memory))
        n = c.c_size_t()
        self.call("SessionGetOverridableInitializerCount", self.session, c.byref(n))
        self.overridable = n.value

    def call(self, name, *arguments):
        at = self.table[PLACES[name]]
        status = c.CFUNCTYPE(c.c_void_p)(at)(*arguments)
        if status:
            raise RuntimeError(c.CFUNCTYPE(c.c_char_p)(self.table[PLACES["GetErrorMessage"]])(c.c_void_p(status)).decode())

    def run(self, feeds, outputs):
        """feeds: name -> float32 array; outputs: names. Name -> flat array."""
        arrays = [np.ascontiguousarray(a, np.float32) for a in feeds.values()]
        values = (c.c_void_p * len(arrays))()
        for i, a in enumerate(arrays):
            shape = (c.c_int64 * max(a.ndim, 1))(*np.shape(list(feeds.values())[i]))
            self.call("CreateTensorWithDataAsOrtValue", self.memory, a.ctypes.data_as(c.c_void_p), c.c_size_t(a.nbytes), shape,
                      c.c_size_t(np.ndim(list(feeds.values())[i])), c.c_int(1), c.byref(values, i * c.sizeof(c.c_void_p)))
        names = (c.c_char_p * len(arrays))(*[n.encode() for n in feeds])
        wanted = (c.c_char_p * len(outputs))(*[n.encode() for n in outputs])
        got = (c.c_void_p * len(outputs))()
        self.call("Run", self.session, None, names, values, c.c_size_t(len(arrays)), wanted, c.c_size_t(len(outputs)), got)
        return {name: self.take(c.c_void_p(got[i])) for i, name in enumerate(outputs)}

    def take(self, value):
        info, kind, count, data = c.c_void_p(), c.c_int(), c.c_size_t(), c.c_void_p()
        self.call("GetTensorTypeAndShape", value, c.byref(info))
        self.call("GetTensorElementType", info, c.byref(kind))
        self.call("GetTensorShapeElementCount", info, c.byref(count))
        self.call("GetTensorMutableData", value, c.byref(data))
        return np.array(c.cast(data, c.POINTER(TYPES[kind.value]))[:count.value], np.float64)
