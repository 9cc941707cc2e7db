# The front door. `make` builds build/retort; `make check` tests it; `make demo` shows it.
.PHONY: all deps demo check check-long bench install wheel format clean
PREFIX ?= /usr/local
BUILD := build
NINJA := ninja -C $(BUILD)

# Only builds; names what is missing, and leaves installing it to `make deps`.
all:
	@tools/deps --missing build
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort

deps:
	@tools/deps build

demo:
	@tools/deps demo
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort
	@tools/demo $(BUILD)/retort

check:
	@tools/deps check
	@cmake --preset release -DRT_TESTS=ON >/dev/null && $(NINJA)
	@tools/check_layers
	@tools/run_tests $(BUILD)
	@tools/check_isa $(BUILD)

# Every test at every level of the CPU (the lower ones by clang's build and the one without oneDNN), sanitizers, every allocation,
# live comparison with PyTorch, numpy and scipy.
check-long: check
	@tools/deps oracle
	@tests/golden/parity_live $(BUILD)
	@tests/golden/objectives_live $(BUILD)
	@tests/golden/corruptions_live $(BUILD)
	@tests/golden/metrics_live $(BUILD)
	@tests/golden/onnx_live $(BUILD)
	@RT_WHOLE=1 tools/run_tests $(BUILD) cli/python
	@RT_WALK_ALL=1 tools/run_tests $(BUILD) cli/memory
	@tools/check_sanitizers
	@tools/check_threads
	@tools/check_ranks $(BUILD)
	@tools/check_clang
	@tools/check_packages
	@tools/check_mutations
	@tools/check_toys

bench:
	@tools/deps oracle
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort
	@bench/run $(BUILD)/retort

install:
	@tools/deps --missing build
	@cmake --preset release -DRT_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null && $(NINJA)
	cmake --install $(BUILD)

# The Python package with the library inside: build/retort-VERSION-py3-none-linux_x86_64.whl
wheel:
	@tools/deps python
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort_shared
	@tools/wheel $(BUILD)

# The public header and the examples are set by hand.
format:
	git ls-files 'src/*.[ch]' 'tests/*.[ch]' | xargs clang-format -i

clean:
	rm -rf build build-*
