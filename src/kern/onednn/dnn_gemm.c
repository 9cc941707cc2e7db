/*
 * dnn_gemm.c - MATMUL and BMM by dnnl_sgemm: row-major, no state, fast for the products
 * of training. The thread that runs it must have gone through rt_kern_thread_init, or OpenMP would split the
 * product. It moves the stack pointer into the heap, hence the guard.
 */
#include "base/sigguard.h"
#include "kern/kern_gemm.h"
#include "kern/onednn/onednn_int.h"
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

static bool supports(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32);
}

static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    (void)p;
    in[0] = in[1] = *out = RT_LAYOUT_PLAIN;
}

/* One product after the other; what the library has no memory for is not a number, and trapped as such. */
static void products(const rt_gemm *g, float *c, const float *a, const float *b) {
    const rt_sigguard guard = rt_sigguard_begin();
    for (int64_t i = 0; i < g->count; i++)
        if (dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1.0f, a + i * g->sa, g->lda,
                       b + i * g->sb, g->ldb, 0.0f, c + i * g->sc, g->n) != dnnl_success)
            for (int64_t k = 0; k < g->sc; k++)
                c[i * g->sc + k] = NAN;
    rt_sigguard_end(&guard);
}

/* ---- getting ready: the library makes its code when it is first asked for a product, and does not survive being
 * out of memory then. So that happens when a plan is made, where there is room, and can fail. ---- */

enum { ROOM = 32 << 20, SIDE = 64 };
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static bool g_ready;

static void get_ready(void) {
    static float x[3][SIDE * SIDE];
    void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    munmap(room, ROOM);
    const int saved = rt_dnn_omp_enter();
    for (int i = 0; i < 12; i++) {
        const int64_t m = i / 4 == 1 ? 1 : SIDE, n = i / 4 == 2 ? 1 : SIDE;
        const bool ta = i & 1, tb = i & 2;
        const rt_gemm g = {.count = 1,
                           .ta = ta,
                           .tb = tb,
                           .m = m,
                           .n = n,
                           .k = SIDE,
                           .lda = ta ? m : SIDE,
                           .ldb = tb ? SIDE : n,
                           .sc = m * n};
        products(&g, x[0], x[1], x[2]);
    }
    rt_dnn_omp_leave(saved);
    g_ready = true;
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    (void)p;
    *state = NULL;
    *scratch = 0;
    pthread_once(&g_once, get_ready);
    RT_FAIL_IF(!g_ready, RT_E_MEMORY, "out of memory: oneDNN wants %d MB", ROOM >> 20);
    return RT_OK;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state, (void)ctx;
    rt_gemm g;
    if (rt_gemm_get(&g, p, RT_DTYPE_F32))
        products(&g, out, in[0], in[1]);
}

const rt_kern rt_k_matmul_f32__onednn = {
    .impl = "onednn", .supports = supports, .layouts = layouts, .prepare = prepare, .run = run};
const rt_kern rt_k_bmm_f32__onednn = {
    .impl = "onednn", .supports = supports, .layouts = layouts, .prepare = prepare, .run = run};
