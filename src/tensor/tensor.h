/*
 * tensor.h - what an array is: element type, shape, memory layout. No data, no ownership.
 *
 * Layouts. PLAIN is row-major. C8 and C16 store a 4-D tensor (n, c, h, w) as n, c/B, h, w, B with B = 8 or
 * 16 channels innermost (oneDNN's nChw8c, nChw16c); channels are padded to a multiple of B and the padding
 * is always zero. The W_ layouts are the blocked forms of convolution weights (o, i, h, w) that fast
 * kernels want; each is named after its oneDNN tag.
 *
 *     C8:   [n][c/8][h][w][8c]            W_OIHW8I8O: [o/8][i/8][h][w][8i][8o]
 *                                         W_OIHW8O8I: [o/8][i/8][h][w][8o][8i]      W_OHWI8O: [o/8][h][w][i][8o]
 *
 * The last two hold 3x3 weights in the domain of Winograd's products F(4x4, 3x3), for the forward and the
 * backward data pass: 36 numbers, linear in its 9, for each filter. They are no permutations, and nothing is
 * ever reordered from them.
 */
#ifndef RT_TENSOR_TENSOR_H
#define RT_TENSOR_TENSOR_H

#include "base/status.h"
#include "base/str.h"

enum { RT_MAX_RANK = 5 };

typedef enum rt_dtype { RT_DTYPE_F32, RT_DTYPE_F64, RT_DTYPE_I32, RT_DTYPE_U8, RT_DTYPE_COUNT } rt_dtype;

typedef enum rt_layout {
    RT_LAYOUT_PLAIN,
    RT_LAYOUT_C8,
    RT_LAYOUT_C16,
    RT_LAYOUT_W_OIHW8I8O,
    RT_LAYOUT_W_OIHW8O8I,
    RT_LAYOUT_W_OHWI8O,
    RT_LAYOUT_W_OIHW16I16O,
    RT_LAYOUT_W_OIHW16O16I,
    RT_LAYOUT_W_OHWI16O,
    RT_LAYOUT_W_IOHW16O16I, /* [i/16][o/16][h][w][16o][16i] */
    RT_LAYOUT_W_WINO,       /* [36][o/16][i][16o] */
    RT_LAYOUT_W_WINO_T,     /* [36][i/16][o][16i] */
    RT_LAYOUT_COUNT
} rt_layout;

typedef struct rt_shape {
    int rank;
    int64_t d[RT_MAX_RANK];
} rt_shape;

typedef struct rt_desc {
    rt_dtype dtype;
    rt_layout layout;
    rt_shape shape;
} rt_desc;

size_t rt_dtype_size(rt_dtype t);
const char *rt_dtype_name(rt_dtype t);
const char *rt_layout_name(rt_layout l);
int64_t rt_layout_block(rt_layout l); /* channel block of C8, C16: 8, 16; else 1 */
bool rt_layout_is_wino(rt_layout l);  /* W_WINO, W_WINO_T: not a permutation of the elements */

rt_shape rt_shape_make(int rank, ...); /* int64_t dims: rt_shape_make(2, (int64_t)n, (int64_t)k) */
rt_shape rt_shape0(void);
rt_shape rt_shape1(int64_t a);
rt_shape rt_shape2(int64_t a, int64_t b);
rt_shape rt_shape3(int64_t a, int64_t b, int64_t c);
rt_shape rt_shape4(int64_t a, int64_t b, int64_t c, int64_t d);
bool rt_shape_equal(const rt_shape *a, const rt_shape *b);
/* Product of dims; false if a dim is negative or the product overflows. Rank 0 has one element. */
bool rt_shape_count(const rt_shape *s, int64_t *out);
int64_t rt_shape_elems(const rt_shape *s);           /* for shapes already validated */
void rt_shape_print(const rt_shape *s, rt_str *out); /* "128x3x32x32", "scalar" */

rt_desc rt_desc_make(rt_dtype t, rt_shape s, rt_layout l);
bool rt_desc_equal(const rt_desc *a, const rt_desc *b);
int64_t rt_desc_elems(const rt_desc *d); /* stored elements, padding included */
size_t rt_desc_bytes(const rt_desc *d);  /* stored bytes, padding included */
/* Axis 0 in n equal parts: true if they lie in memory one behind the other, each as *part describes it. False where
 * a part would begin within a block, or where another axis is outermost, however well the sizes agree. */
bool rt_desc_divide(const rt_desc *d, int64_t n, rt_desc *part);
/* Position of logical element (i0, i1, i2, i3) of a 4-D desc in memory, in elements; not of W_WINO*. */
int64_t rt_desc_index4(const rt_desc *d, int64_t i0, int64_t i1, int64_t i2, int64_t i3);

#endif
