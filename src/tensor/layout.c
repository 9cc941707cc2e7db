/*
 * layout.c - where the elements of a 4-D array lie in memory.
 *
 * Every layout is described by two blocks, one on dimension 0 and one on dimension 1 (1 = not blocked), and
 * by the order in which the seven indices follow each other, outermost first. Write i0 = O B0 + o and i1 =
 * I B1 + i. The orders that occur:
 *
 *     O I h w o i     PLAIN (B0 = B1 = 1), C8 and C16 (B1 = 8, 16), W_OIHW8O8I, W_OIHW16O16I
 *     O I h w i o     W_OIHW8I8O, W_OIHW16I16O
 *     O h w I o       W_OHWI8O, W_OHWI16O (B1 = 1)
 *     I O h w o i     W_IOHW16O16I
 *
 * Winograd's layouts have 36 positions in place of h w, and no place for a single element.
 *
 * A blocked dimension is padded to a whole number of blocks; the padding holds zeros.
 */
#include "tensor/tensor.h"

typedef enum order { ORDER_OIHWOI, ORDER_OIHWIO, ORDER_OHWIO, ORDER_IOHWOI, ORDER_WINO } order;
enum { WINO_POSITIONS = 36 };

static const struct {
    const char *name;
    int64_t b0, b1;
    order order;
} layouts[RT_LAYOUT_COUNT] = {
    [RT_LAYOUT_PLAIN] = {"plain", 1, 1, ORDER_OIHWOI},
    [RT_LAYOUT_C8] = {"nChw8c", 1, 8, ORDER_OIHWOI},
    [RT_LAYOUT_C16] = {"nChw16c", 1, 16, ORDER_OIHWOI},
    [RT_LAYOUT_W_OIHW8I8O] = {"OIhw8i8o", 8, 8, ORDER_OIHWIO},
    [RT_LAYOUT_W_OIHW8O8I] = {"OIhw8o8i", 8, 8, ORDER_OIHWOI},
    [RT_LAYOUT_W_OHWI8O] = {"Ohwi8o", 8, 1, ORDER_OHWIO},
    [RT_LAYOUT_W_OIHW16I16O] = {"OIhw16i16o", 16, 16, ORDER_OIHWIO},
    [RT_LAYOUT_W_OIHW16O16I] = {"OIhw16o16i", 16, 16, ORDER_OIHWOI},
    [RT_LAYOUT_W_OHWI16O] = {"Ohwi16o", 16, 1, ORDER_OHWIO},
    [RT_LAYOUT_W_IOHW16O16I] = {"IOhw16o16i", 16, 16, ORDER_IOHWOI},
    [RT_LAYOUT_W_WINO] = {"wino36Oi16o", 16, 1, ORDER_WINO},
    [RT_LAYOUT_W_WINO_T] = {"wino36Io16i", 1, 16, ORDER_WINO},
};

static bool known(rt_layout l) {
    return (unsigned)l < (unsigned)RT_LAYOUT_COUNT;
}

const char *rt_layout_name(rt_layout l) {
    return known(l) ? layouts[l].name : "?";
}

int64_t rt_layout_block(rt_layout l) {
    return l == RT_LAYOUT_C8 ? 8 : l == RT_LAYOUT_C16 ? 16 : 1;
}

bool rt_layout_is_wino(rt_layout l) {
    return l == RT_LAYOUT_W_WINO || l == RT_LAYOUT_W_WINO_T;
}

rt_desc rt_desc_make(rt_dtype t, rt_shape s, rt_layout l) {
    RT_ASSERT(l == RT_LAYOUT_PLAIN || s.rank == 4);
    return (rt_desc){.dtype = t, .layout = l, .shape = s};
}

bool rt_desc_equal(const rt_desc *a, const rt_desc *b) {
    return a->dtype == b->dtype && a->layout == b->layout && rt_shape_equal(&a->shape, &b->shape);
}

static int64_t blocks(int64_t n, int64_t block) {
    return n / block + (n % block != 0);
}

int64_t rt_desc_elems(const rt_desc *d) {
    if (d->layout == RT_LAYOUT_PLAIN)
        return rt_shape_elems(&d->shape);
    int64_t b0 = layouts[d->layout].b0, b1 = layouts[d->layout].b1;
    const int64_t window = rt_layout_is_wino(d->layout) ? WINO_POSITIONS : d->shape.d[2] * d->shape.d[3];
    return blocks(d->shape.d[0], b0) * b0 * blocks(d->shape.d[1], b1) * b1 * window;
}

size_t rt_desc_bytes(const rt_desc *d) {
    return (size_t)rt_desc_elems(d) * rt_dtype_size(d->dtype);
}

static bool first_is_outermost(rt_layout l) {
    return layouts[l].order != ORDER_IOHWOI && layouts[l].order != ORDER_WINO;
}

bool rt_desc_divide(const rt_desc *d, int64_t n, rt_desc *part) {
    *part = *d;
    if (n == 1)
        return true;
    if (n < 1 || d->shape.rank < 1 || d->shape.d[0] % n != 0)
        return false;
    part->shape.d[0] /= n;
    return first_is_outermost(d->layout) && part->shape.d[0] % layouts[d->layout].b0 == 0;
}

int64_t rt_desc_index4(const rt_desc *d, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    RT_ASSERT(d->shape.rank == 4);
    int64_t b0 = layouts[d->layout].b0, b1 = layouts[d->layout].b1;
    int64_t big1 = blocks(d->shape.d[1], b1), h = d->shape.d[2], w = d->shape.d[3];
    int64_t O = i0 / b0, o = i0 % b0, I = i1 / b1, i = i1 % b1;
    int64_t outer;
    switch (layouts[d->layout].order) {
    case ORDER_OIHWOI:
        outer = ((O * big1 + I) * h + i2) * w + i3;
        return (outer * b0 + o) * b1 + i;
    case ORDER_OIHWIO:
        outer = ((O * big1 + I) * h + i2) * w + i3;
        return (outer * b1 + i) * b0 + o;
    case ORDER_OHWIO:
        outer = (O * h + i2) * w + i3;
        return (outer * big1 + I) * b0 + o;
    case ORDER_IOHWOI:
        outer = ((I * blocks(d->shape.d[0], b0) + O) * h + i2) * w + i3;
        return (outer * b0 + o) * b1 + i;
    case ORDER_WINO:
        RT_ASSERT(!"a layout that keeps single elements");
        break;
    }
    return 0;
}
