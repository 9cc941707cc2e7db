/*
 * test_dist.c - sharing out, and exchanges among ranks. Alone it tests the first; tests/cli/ranks.sh starts it on
 * several ranks, where the exchanges have somebody to talk to.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "dist/dist.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

static void shares_cover(void **state) {
    (void)state;
    for (int64_t things = 0; things < 40; things++)
        for (int64_t parts = 1; parts < 20; parts++) {
            int64_t at = 0;
            for (int64_t i = 0; i < parts; i++) {
                const rt_share s = rt_share_of(things, parts, i);
                assert_int_equal(s.lo, at);
                assert_in_range(s.hi - s.lo, things / parts, things / parts + 1);
                at = s.hi;
            }
            assert_int_equal(at, things);
        }
}

static void teams_cover(void **state) {
    (void)state;
    for (int n = 1; n < 18; n++)
        for (int64_t members = 1; members < 18; members++) {
            const rt_ranks all = {0, n};
            int64_t seen = 0;
            for (int r = 0; r < n; r++) {
                const rt_team t = rt_team_of(all, members, r);
                assert_in_range(r, t.ranks.first, t.ranks.first + t.ranks.n - 1);
                assert_true(t.members.hi > t.members.lo);
                assert_true(t.ranks.n == 1 || t.members.hi - t.members.lo == 1);
                for (int64_t m = t.members.lo; m < t.members.hi; m++)
                    assert_int_equal(rt_team_leader(all, members, m), t.ranks.first);
                if (r == t.ranks.first) {
                    assert_int_equal(t.members.lo, seen);
                    seen = t.members.hi;
                }
            }
            assert_int_equal(seen, members);
        }
}

static uint8_t byte_of(int trial, size_t i) {
    return (uint8_t)((size_t)trial * 131 + i * 7 + i / 251);
}

/* Parts of random sizes, many of them empty, some of a megabyte. */
static void gathers(void **state) {
    (void)state;
    const rt_ranks all = rt_dist_all();
    size_t offset[65];
    assert_true(all.n <= 64);
    for (int trial = 0; trial < 60; trial++) {
        const rt_rng r = rt_rng_make(1, 2, (uint64_t)trial, 0);
        offset[0] = 0;
        for (int i = 0; i < all.n; i++) {
            const uint64_t kind = rt_rng_below(r, 2 * (uint64_t)i, 4);
            const size_t most = kind == 0 ? 1 : kind == 1 ? 20 : kind == 2 ? 5000 : (size_t)1 << 20;
            offset[i + 1] = offset[i] + (size_t)rt_rng_below(r, 2 * (uint64_t)i + 1, most);
        }
        uint8_t *data;
        OK(rt_calloc(&data, offset[all.n] + 1, 1));
        for (size_t i = offset[rt_dist_rank()]; i < offset[rt_dist_rank() + 1]; i++)
            data[i] = byte_of(trial, i);
        OK(rt_dist_allgather(all, data, offset));
        for (size_t i = 0; i < offset[all.n]; i++)
            if (data[i] != byte_of(trial, i))
                fail_msg("trial %d, byte %zu of %zu", trial, i, offset[all.n]);
        rt_free(data);
    }
}

static void agrees(void **state) {
    (void)state;
    double v[2] = {rt_dist_rank(), -rt_dist_rank()};
    OK(rt_dist_most(rt_dist_all(), v, 2));
    assert_true(v[0] == rt_dist_size() - 1 && v[1] == 0);
    int value = rt_dist_rank() == 0 ? 41 : -1;
    OK(rt_dist_lead(RT_OK, &value));
    assert_int_equal(value, 41);
    OK(rt_dist_same("alike", RT_E_USAGE, "a word", "none"));
    /* halves, each with exchanges of its own */
    const int half = rt_dist_size() / 2;
    const rt_ranks mine =
        rt_dist_rank() < half ? (rt_ranks){0, half} : (rt_ranks){half, rt_dist_size() - half};
    int first = rt_dist_rank();
    OK(rt_dist_broadcast(mine, &first, sizeof first));
    assert_int_equal(first, mine.first);
}

/* All to all, in pieces. */
static void exchanges(void **state) {
    (void)state;
    enum { PIECES = 3, BYTES = 100000 };
    const int n = rt_dist_size(), me = rt_dist_rank();
    rt_piece send[64 * PIECES], receive[64 * PIECES];
    uint8_t *data;
    int64_t k = 0;
    OK(rt_calloc(&data, (size_t)n * PIECES * 2 + 1, BYTES));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < PIECES && i != me; j++, k++) {
            send[k] = (rt_piece){data + (2 * k) * BYTES, BYTES, i};
            receive[k] = (rt_piece){data + (2 * k + 1) * BYTES, BYTES, i};
            memset(send[k].data, 1 + me * PIECES + j, BYTES);
        }
    OK(rt_dist_exchange(send, k, receive, k));
    for (int64_t i = 0; i < k; i++) {
        const uint8_t *got = receive[i].data;
        const uint8_t want = (uint8_t)(1 + receive[i].rank * PIECES + i % PIECES);
        assert_true(got[0] == want && got[BYTES - 1] == want);
    }
    rt_free(data);
}

/* What a piece finds: its ranks are a world, and only the first of it writes. */
typedef struct spread {
    int64_t n;
    int world, level;
    double *ranks; /* (n): that did a piece */
} spread;

static rt_status do_piece(void *user, int64_t i) {
    spread *s = user;
    const rt_ranks all = rt_dist_all();
    double most = rt_dist_rank() + 1;
    int first = rt_dist_rank() == 0 ? 100 + (int)i : 0;
    assert_in_range(i, 0, s->n - 1);
    assert_int_equal(all.first, 0);
    assert_int_equal(all.n, rt_dist_size());
    assert_int_equal(rt_dist_alone().first, rt_dist_rank());
    assert_int_equal(rt_file_reads_only(), rt_dist_rank() > 0);
    RT_TRY(rt_dist_most(all, &most, 1));
    assert_int_equal((int)most, rt_dist_size());
    RT_TRY(rt_dist_lead(RT_OK, &first));
    assert_int_equal(first, 100 + i);
    s->ranks[i] = s->level == 0 ? rt_dist_size() : s->ranks[i];
    if (s->level > 0) /* teams part again */
        RT_TRY(rt_dist_spread(3, do_piece, &(spread){3, s->world, s->level - 1, (double[3]){0}}));
    return RT_OK;
}

static void spreads(void **state) {
    (void)state;
    const int n = rt_dist_size(), me = rt_dist_rank();
    for (int64_t pieces = 0; pieces < 12; pieces++)
        for (int level = 0; level < 2; level++) {
            double ranks[12] = {0}, all = 0;
            OK(rt_dist_spread(pieces, do_piece, &(spread){pieces, n, level, ranks}));
            assert_int_equal(rt_dist_size(), n);
            assert_int_equal(rt_dist_rank(), me);
            assert_int_equal(rt_file_reads_only(), me > 0);
            OK(rt_dist_most(rt_dist_all(), ranks, 12));
            for (int64_t i = 0; i < pieces && level == 0; i++) {
                assert_true(ranks[i] >= 1); /* somebody did it */
                all += ranks[i];
            }
            if (level == 0 && pieces % n != 0)
                assert_int_equal((int)all, pieces / n * n + n); /* nobody was idle at the end */
        }
}

static rt_status stop_at(void *user, int64_t i) {
    return i == *(int *)user ? rt_error_set(RT_E_INTERRUPTED, __FILE__, __LINE__, "piece %d", (int)i) : RT_OK;
}

/* One is interrupted: all are. Last, because nothing goes on after that. */
static void stops(void **state) {
    (void)state;
    int last = 2 * rt_dist_size() - 1;
    assert_int_equal(rt_dist_spread(last + 1, stop_at, &last), RT_E_INTERRUPTED);
}

static void alarm_line(const char *line) {
    fputs(line, stderr);
}

static void say(void *user, rt_status st) {
    *(int *)user = (int)st;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_cover), cmocka_unit_test(teams_cover), cmocka_unit_test(gathers),
        cmocka_unit_test(agrees),       cmocka_unit_test(exchanges),   cmocka_unit_test(spreads),
        cmocka_unit_test(stops),
    };
    int said = RT_OK;
    rt_status st = rt_dist_start(20, alarm_line, NULL);
    if (st != RT_OK) {
        fprintf(stderr, "%s\n", rt_error_text());
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rt_dist_end(RT_OK, say, &said) == RT_OK && said == RT_OK ? failed : 1;
}
