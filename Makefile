# The front door. `make` builds build/retort; `make check` tests it; `make demo` shows it.
.PHONY: all demo check check-long bench install format clean
PREFIX ?= /usr/local
BUILD := build
NINJA := ninja -C $(BUILD)

all:
	@tools/deps build
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort

demo:
	@tools/deps demo
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort
	@tools/demo $(BUILD)/retort

check:
	@tools/deps check
	@cmake --preset release -DRT_TESTS=ON >/dev/null && $(NINJA)
	@tools/check_layers
	@tools/run_tests $(BUILD)

# Sanitizers, the build without vendor libraries, live comparison with PyTorch, numpy and scipy.
check-long: check
	@tools/deps oracle
	@tests/golden/parity_live $(BUILD)
	@tests/golden/objectives_live $(BUILD)
	@tests/golden/corruptions_live $(BUILD)
	@tests/golden/metrics_live $(BUILD)
	@tools/check_sanitizers

bench:
	@tools/deps oracle
	@cmake --preset release -DRT_TESTS=OFF >/dev/null && $(NINJA) retort
	@bench/run $(BUILD)/retort

install:
	@tools/deps build
	@cmake --preset release -DRT_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null && $(NINJA)
	cmake --install $(BUILD)

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-*
