/*
 * assign.c - the linear assignment problem: a permutation p that maximises sum_i gain[i][p(i)].
 *
 * Jonker and Volgenant (1987), in double. The costs are c = -gain; v are prices of columns, and a row wants
 * the column of least c - v:
 *
 *     column reduction         each column is offered at its lowest cost to that row
 *     augmenting row reduction a free row takes its best column and raises its price until the second best is as
 *                              good; who is driven out tries again (a bounded number of times)
 *     augmentation             for each row still free, the shortest path (Dijkstra) to a free column; prices are
 *                              changed so that all reduced costs stay optimal
 *
 * O(n^3) at worst; near a good solution, as in matching, most rows are settled by the first two. Ties go to
 * the lowest number, so that equal gains give equal answers.
 */
#include "align/align.h"
#include "base/alloc.h"
#include "base/stop.h"
#include <math.h>

enum { TRIES_PER_ROW = 10 };

typedef struct lap {
    int64_t n;
    const double *gain;
    double *v, *d;          /* prices; lengths of paths to columns not yet reached */
    double *open, *reached; /* -v, infinite where reached; lengths of paths to `column` */
    int64_t *col, *row;     /* of a row; of a column: -1 is free */
    int64_t *from, *column; /* row before a column on its path; columns in the order they were reached */
    int64_t *free;
} lap;

static double cost(const lap *p, int64_t i, int64_t j) {
    return -p->gain[i * p->n + j];
}

static void column_reduction(lap *p) {
    for (int64_t j = 0; j < p->n; j++) {
        p->v[j] = cost(p, 0, j);
        p->from[j] = 0;
        p->row[j] = p->col[j] = -1;
    }
    for (int64_t i = 1; i < p->n; i++)
        for (int64_t j = 0; j < p->n; j++)
            if (cost(p, i, j) < p->v[j]) {
                p->v[j] = cost(p, i, j);
                p->from[j] = i;
            }
    for (int64_t j = 0; j < p->n; j++)
        if (p->col[p->from[j]] < 0) {
            p->col[p->from[j]] = j;
            p->row[j] = p->from[j];
        }
}

/* The two best columns of a row. */
static void best_two(const lap *p, int64_t i, int64_t j[2], double u[2]) {
    j[0] = j[1] = -1;
    u[0] = u[1] = INFINITY;
    for (int64_t k = 0; k < p->n; k++) {
        const double h = cost(p, i, k) - p->v[k];
        if (h < u[0] || j[0] < 0) {
            u[1] = u[0];
            j[1] = j[0];
            u[0] = h;
            j[0] = k;
        } else if (h < u[1] || j[1] < 0) {
            u[1] = h;
            j[1] = k;
        }
    }
}

static void row_reduction(lap *p, int64_t nfree) {
    int64_t at = 0, tries = TRIES_PER_ROW * p->n;
    while (at < nfree && !rt_stop_wanted()) {
        const int64_t i = p->free[at++];
        int64_t j[2];
        double u[2];
        best_two(p, i, j, u);
        const double price = p->v[j[0]] - (u[1] - u[0]);
        const bool rises = price < p->v[j[0]] && tries-- > 0;
        int64_t take = j[0];
        if (rises)
            p->v[take] = price;
        else if (!(u[0] < u[1]) && p->row[take] >= 0)
            take = j[1];
        const int64_t out = p->row[take];
        p->col[i] = take;
        p->row[take] = i;
        if (out >= 0)
            p->col[out] = -1;
        if (out >= 0 && rises)
            p->free[--at] = out; /* at once; otherwise in the next pass */
    }
}

/* Lengths of paths that go on from row i, and the nearest column that is not reached:
 * `open` is infinite at those that are, so that the loop needs no list of the others. */
static int64_t relax(lap *p, int64_t i, double base) {
    const double *gain = p->gain + i * p->n;
    double least = INFINITY;
    int64_t best = -1;
    for (int64_t k = 0; k < p->n; k++) {
        const double h = base - gain[k] + p->open[k];
        if (h < p->d[k]) {
            p->d[k] = h;
            p->from[k] = i;
        }
        if (p->d[k] < least) {
            least = p->d[k];
            best = k;
        }
    }
    return best;
}

static void augment(lap *p, int64_t start) {
    for (int64_t j = 0; j < p->n; j++) {
        p->d[j] = INFINITY;
        p->open[j] = -p->v[j];
    }
    int64_t i = start, reached = 0, j;
    double base = 0, length;
    for (;;) {
        j = relax(p, i, base);
        length = p->d[j];
        i = p->row[j];
        if (i < 0)
            break;
        p->column[reached] = j;
        p->reached[reached++] = length;
        p->d[j] = INFINITY; /* never looked at again; `open` keeps it so */
        p->open[j] = INFINITY;
        base = length - (cost(p, i, j) - p->v[j]);
    }
    for (int64_t k = 0; k < reached; k++)
        p->v[p->column[k]] += p->reached[k] - length;
    for (i = -1; i != start;) {
        i = p->from[j];
        const int64_t next = p->col[i];
        p->row[j] = i;
        p->col[i] = j;
        j = next;
    }
}

static int64_t free_rows(lap *p) {
    int64_t nfree = 0;
    for (int64_t i = 0; i < p->n; i++)
        if (p->col[i] < 0)
            p->free[nfree++] = i;
    return nfree;
}

rt_status rt_assign(int64_t *perm, const double *gain, int64_t n) {
    lap p = {.n = n, .gain = gain, .col = perm};
    double *numbers = NULL;
    int64_t *places = NULL;
    rt_status st;
    for (int64_t k = 0; k < n * n; k++)
        RT_FAIL_IF(!isfinite(gain[k]), RT_E_NUMERIC, "assignment: gain %lld is not finite", (long long)k);
    if (n == 0)
        return RT_OK;
    RT_TRY_GOTO(rt_calloc(&numbers, (size_t)n, 4 * sizeof *numbers));
    RT_TRY_GOTO(rt_calloc(&places, (size_t)n, 4 * sizeof *places));
    p.v = numbers;
    p.d = numbers + n;
    p.open = numbers + 2 * n;
    p.reached = numbers + 3 * n;
    p.row = places;
    p.from = places + n;
    p.column = places + 2 * n;
    p.free = places + 3 * n;
    column_reduction(&p);
    if (n > 1)
        for (int pass = 0; pass < 2; pass++)
            row_reduction(&p, free_rows(&p));
    RT_TRY_GOTO(rt_stop_check("matching", "units")); /* a reduction that was cut short */
    for (int64_t left = free_rows(&p), k = 0; k < left; k++) {
        RT_TRY_GOTO(rt_stop_check("matching", "units"));
        augment(&p, p.free[k]);
    }
done:
    rt_free(numbers);
    rt_free(places);
    return st;
}
