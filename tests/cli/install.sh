#!/bin/sh
# An installed prefix, as programs of others use it: pkg-config, shared and static; CMake; C and C++.
. "$(dirname "$0")/tap.inc"
build=$(dirname "$RETORT")
plain_library "$build" "other programs"
prefix=$work/prefix
check "installs into any prefix" cmake --install "$build" --prefix "$prefix"
lib=$(dirname "$(find "$prefix" -name libretort.a)")
# The prefix is written into retort.pc at configuration; a staged one is told to pkg-config.
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
pc() { pkg-config --define-variable=prefix="$prefix" "$@" retort; }
version=$("$prefix/bin/retort" --version | awk 'NR == 1 { print $2 }')
check "pkg-config tells the program's version" test "$(pc --modversion)" = "$version"
soname=$(readelf -d "$lib/libretort.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
check "the SONAME has major and minor version" test "$soname" = "libretort.so.${version%.*}"
example=$RT_SOURCE_DIR/examples/predict.c
# shellcheck disable=SC2046
{
check "the example links to the shared library" cc -std=c11 "$example" $(pc --cflags --libs) -o shared
check "and as C++" g++ -x c++ -Wall -Wextra -Werror "$example" $(pc --cflags --libs) -o shared_cxx
mkdir archive && cp "$lib/libretort.a" archive
check "and, with pkg-config --static, to the archive alone" cc -std=c11 "$example" -Larchive $(pc --static --cflags --libs | sed "s|-L$lib||") -o static
}
check "an ensemble to ask" "$RETORT" train --data spiral:n=50 --arch mlp:8 --members 2 --epochs 2 --out run --quiet
for kind in shared shared_cxx static; do
    echo "100 -20" | ./$kind run >answer.$kind
    check "the $kind one answers" grep -q entropy answer.$kind
done
# shellcheck disable=SC2046
{
check "training from arrays compiles as C" cc -std=c11 -Wall -Wextra -Werror "$RT_SOURCE_DIR/examples/train_arrays.c" $(pc --cflags --libs) -lm -o arrays
check "and as C++" g++ -x c++ -Wall -Wextra -Werror "$RT_SOURCE_DIR/examples/train_arrays.c" $(pc --cflags --libs) -lm -o arrays_cxx
}
check "it trains, distils, evaluates and predicts" sh -c 'mkdir made made2 && ./arrays made >said && grep -q "knowledge uncertainty" said && ./arrays_cxx made2 | cmp - said'
# shellcheck disable=SC2046
{
check "distilling from stored answers compiles as C" cc -std=c11 -Wall -Wextra -Werror "$RT_SOURCE_DIR/examples/distill_stored.c" $(pc --cflags --libs) -lm -o stored
check "and as C++" g++ -x c++ -Wall -Wextra -Werror "$RT_SOURCE_DIR/examples/distill_stored.c" $(pc --cflags --libs) -lm -o stored_cxx
}
check "the student knows where its teachers disagree" sh -c 'mkdir kept kept2 && ./stored kept >said && grep -q "at the second: yes" said && ./stored_cxx kept2 | cmp - said'
check "all alike" sh -c 'cmp answer.shared answer.static && cmp answer.shared answer.shared_cxx'
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(client LANGUAGES C CXX)
find_package(retort REQUIRED)
add_executable(client client.c)
target_link_libraries(client retort::retort)
add_executable(client_static client.c)
target_link_libraries(client_static retort::static)
add_executable(client_cxx client.cc)
target_link_libraries(client_cxx retort::retort)
END
cat >client.c <<'END'
#include <retort.h>
#include <stdio.h>
int main(void) {
    puts(rt_version());
    return 0;
}
END
cp client.c client.cc
check "CMake finds the package" cmake -S . -B by-cmake -Dretort_DIR="$lib/cmake/retort"
check "and builds with it, in C and C++" cmake --build by-cmake
for client in client client_static client_cxx; do
    check "$client runs" test "$(by-cmake/$client)" = "$version"
done
cmake -S . -B no-pkg-config -Dretort_DIR="$lib/cmake/retort" -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >said 2>&1
check "without pkg-config, who links to the archive is told" grep -q static_needs_pkg-config said
sed -i '/static/d' CMakeLists.txt
check "and the shared library needs none" cmake -S . -B no-pkg-config
finish
