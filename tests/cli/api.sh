#!/bin/sh
# The library as its users see it: header, exported symbols, the example.
. "$(dirname "$0")/tap.inc"
build=$(dirname "$RETORT")
header=$RT_SOURCE_DIR/include/retort.h
if nm -D "$build/libretort.so" | grep -q __asan_init; then
    ok 0 "a library with sanitizers is not for other programs"
    finish
    exit
fi
cat >alone.c <<'END'
#include "retort.h"
int main(void) { return rt_version() == 0; }
END
check "the header compiles alone as C11" cc -std=c11 -Wall -Wextra -Werror -pedantic -I"$RT_SOURCE_DIR/include" -fsyntax-only alone.c
if have g++; then
    check "and as C++" g++ -x c++ -Wall -Wextra -Werror -I"$RT_SOURCE_DIR/include" -fsyntax-only alone.c
fi
grep -oE '\brt_[a-z_]+\(' "$header" | tr -d '(' | sort -u >declared
nm -D --defined-only "$build/libretort.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
check "the library exports what the header declares, and nothing else" diff declared exported
grep -oE '\brt_[a-z_]+' "$RT_SOURCE_DIR/tests/unit/api/test_api.c" | sort -u | comm -23 exported - >untested
check "every function is called by tests/unit/api/test_api.c" test ! -s untested
nm -D --undefined-only "$build/libretort.so" | awk '{ sub(/@.*/, "", $2); print $2 }' | grep -xE 'exit|_exit|abort|printf|puts|putchar|__assert_fail' >forbidden
check "the library neither prints, exits nor aborts" test ! -s forbidden
check "a tiny ensemble" "$RETORT" train --data spiral:n=50 --arch mlp:8 --members 2 --epochs 2 --out run --quiet
check "the example compiles" cc -std=c11 -I"$RT_SOURCE_DIR/include" "$RT_SOURCE_DIR/examples/predict.c" -L"$build" -lretort -o predict
echo "100 -20
3.5, 7" | LD_LIBRARY_PATH=$build ./predict run >answers
check "the example answers every row" test "$(grep -c 'entropy' answers)" = 2
finish
