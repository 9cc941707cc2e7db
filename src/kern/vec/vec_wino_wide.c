/*
 * vec_wino_wide.c - vec_wino.c once more, with vectors of 16 channels, where there are such vectors.
 *
 * A vector is then the same pixel of two neighbouring blocks of 8 channels: half as many loads into the transforms,
 * operations and stores. For an even number of blocks on both sides; the results are those of the other, bit by bit.
 */
#define WINO_WIDE
#include "base/compiler.h"
#if defined(__AVX512F__)
#include "kern/vec/vec_wino.c"
#endif
