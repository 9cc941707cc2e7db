/*
 * fuzz.h - runs a reader on thousands of damaged inputs and holds it to its promises.
 *
 * A *family* is a reader with intact inputs to start from (its seeds). A round draws a seed, mutates it and
 * lets the reader have it. Whatever the bytes are, the reader must
 *
 *   - accept, or refuse with a status of bad input whose message is there and names the file;
 *   - give back all memory it took, and never ask for more than the family's limit;
 *   - end soon, without a crash;
 *   - take the intact seed afterwards as if nothing had happened.
 *
 * A round is a pure function of the family's name and the round's number. One that fails is printed, and
 * can be replayed alone; environment variables:
 *
 *   RT_FUZZ_ROUNDS=100000      rounds of each family instead of its own few hundred
 *   RT_FUZZ_ONLY=npy           one family;  RT_FUZZ_ONLY=npy:123   one round of it
 *   RT_FUZZ_SAVE=FILE          with the latter: the mutant is written there
 */
#ifndef RT_TESTS_FUZZ_FUZZ_H
#define RT_TESTS_FUZZ_FUZZ_H

#include "fuzz/mutate.h"
#include "unit/io/io_support.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
enum { FUZZ_SLOWER = 10 };
#else
enum { FUZZ_SLOWER = 1 };
#endif

enum { FUZZ_SEEDS = 16, FUZZ_FAILURES_MAX = 10, FUZZ_MIB = 16, FUZZ_SECONDS = 1, FUZZ_INTACT_EVERY = 32 };

typedef struct fuzz_family {
    const char *name;
    int rounds;
    bool text; /* mutations of text, too */
    bool user; /* what a user types: may ask for much memory, and is told that there is not so much */
    int mib;   /* most memory at a time; 0: FUZZ_MIB */
    void (*open)(void);  /* makes the seeds by fuzz_add; may be NULL if they are there */
    void (*close)(void); /* or NULL */
    /* Mutates a seed in place in a way the format understands; NULL: fuzz_mutate. */
    void (*mutate)(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d);
    /* Reads, uses what it read, frees it. The bytes are a block of their own of n + 1 bytes, the last a NUL. */
    rt_status (*read)(int seed, const uint8_t *data, size_t n);
} fuzz_family;

static struct {
    const fuzz_family *family;
    scratch dir;
    fuzz_bytes seeds[FUZZ_SEEDS];
    char says[FUZZ_SEEDS][64]; /* a part of every message about this seed's mutants */
    int nseeds;
    char label[160]; /* of the round that runs, for whoever ends the program */
    uint64_t before, limit;
    uint64_t refused_bytes; /* the allocation that went over the limit */
    int failures;
} fuzz;

/* A seed, copied; `says` must be part of each refusal (NULL: any words will do). */
static inline void fuzz_add(const void *p, size_t n, const char *says) {
    assert_true(fuzz.nseeds < FUZZ_SEEDS);
    snprintf(fuzz.says[fuzz.nseeds], sizeof fuzz.says[0], "%s", says ? says : "");
    fuzz.seeds[fuzz.nseeds++] = fuzz_copy(p, n);
}

static inline void fuzz_add_text(const char *text, const char *says) {
    fuzz_add(text, strlen(text), says);
}

static inline void fuzz_add_file(const char *path, const char *says) {
    uint8_t *data = NULL;
    size_t n = 0;
    assert_ok(rt_file_read(path, 1 << 24, &data, &n));
    fuzz_add(data, n, says);
    rt_free(data);
}

/* ---- watching ---- */

static inline bool fuzz_on_alloc(void *user, uint64_t call, size_t bytes) {
    (void)user;
    (void)call;
    rt_alloc_stats s;
    rt_alloc_get_stats(&s);
    const bool fits = bytes <= fuzz.limit && s.live_bytes + bytes - fuzz.before <= fuzz.limit;
    if (!fits && !fuzz.refused_bytes)
        fuzz.refused_bytes = bytes;
    return fits;
}

static inline void fuzz_last_words(void) {
    const ssize_t n = write(2, fuzz.label, strlen(fuzz.label));
    (void)n;
}

static inline void fuzz_on_signal(int number) {
    static const char hang[] = "it does not end: ", crash[] = "it crashes: ";
    const ssize_t n = number == SIGPROF ? write(2, hang, sizeof hang - 1) : write(2, crash, sizeof crash - 1);
    (void)n;
    fuzz_last_words();
    _exit(1);
}

static inline void fuzz_watch(void) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(fuzz_last_words);
#else
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (int64_t i = 0; i < RT_COUNT(numbers); i++)
        signal(numbers[i], fuzz_on_signal);
#endif
    signal(SIGPROF, fuzz_on_signal);
}

static inline void fuzz_deadline(int seconds) {
    const struct itimerval t = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &t, NULL);
}

/* ---- one round ---- */

static inline bool fuzz_status_fits(rt_status st) {
    return st == RT_E_INPUT || st == RT_E_USAGE || st == RT_E_UNSUPPORTED ||
           (st == RT_E_MEMORY && (fuzz.family->user || !fuzz.refused_bytes));
}

/* What is wrong with how the reader took these bytes; "" if nothing. */
static inline void fuzz_judge(char *out, size_t size, int seed, const fuzz_bytes *b, rt_status *st) {
    rt_alloc_stats s;
    uint8_t *exact = malloc(b->n + 1);
    assert_non_null(exact);
    memcpy(exact, b->p, b->n + 1);
    rt_error_clear();
    rt_alloc_get_stats(&s);
    const uint64_t blocks = s.live_blocks;
    fuzz.before = s.live_bytes;
    fuzz.limit = (uint64_t)(fuzz.family->mib ? fuzz.family->mib : FUZZ_MIB) << 20;
    fuzz.refused_bytes = 0;
    rt_alloc_set_hook(fuzz_on_alloc, NULL);
    const clock_t start = clock();
    *st = fuzz.family->read(seed, exact, b->n);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    rt_alloc_set_hook(NULL, NULL);
    free(exact);
    rt_alloc_get_stats(&s);
    const char *text = rt_error_text();
    out[0] = 0;
    if (s.live_blocks != blocks)
        snprintf(out, size, "%lld blocks of memory are lost (%s)", (long long)(s.live_blocks - blocks),
                 rt_status_name(*st));
    else if (fuzz.refused_bytes && !fuzz.family->user)
        snprintf(out, size, "asks for %llu bytes", (unsigned long long)fuzz.refused_bytes);
    else if (seconds > FUZZ_SECONDS * FUZZ_SLOWER)
        snprintf(out, size, "takes %.1f s", seconds);
    else if (*st != RT_OK && !fuzz_status_fits(*st))
        snprintf(out, size, "%s: %s", rt_status_name(*st), text);
    else if (*st != RT_OK && (!*text || !strstr(text, fuzz.says[seed])))
        snprintf(out, size, "the message '%.300s' does not say '%s'", text, fuzz.says[seed]);
    else if (*st != RT_OK && rt_error_last()->code != *st)
        snprintf(out, size, "%s, but the record has %s", rt_status_name(*st),
                 rt_status_name(rt_error_last()->code));
}

static inline void fuzz_print_bytes(const fuzz_bytes *b, size_t most) {
    for (size_t i = 0; i < b->n && i < most; i++)
        if (b->p[i] >= ' ' && b->p[i] < 0x7f && b->p[i] != '\\')
            print_error("%c", b->p[i]);
        else
            print_error("\\x%02x", b->p[i]);
    print_error("%s\n", b->n > most ? " ..." : "");
}

static inline void fuzz_report(const fuzz_bytes *b, const char *what) {
    fuzz.failures++;
    print_error("%s%s\n", fuzz.label, what);
    fuzz_print_bytes(b, 600);
}

/* The intact seed is taken. */
static inline void fuzz_check_intact(int seed) {
    char what[512];
    rt_status st;
    fuzz_judge(what, sizeof what, seed, &fuzz.seeds[seed], &st);
    if (st != RT_OK)
        snprintf(what, sizeof what, "the intact seed is refused: %.400s", rt_error_text());
    if (what[0])
        fuzz_report(&fuzz.seeds[seed], what);
}

static inline void fuzz_save(const fuzz_bytes *b) {
    const char *path = getenv("RT_FUZZ_SAVE");
    if (!path)
        return;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->p, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

static inline void fuzz_round(uint64_t round, bool alone) {
    char what[512];
    uint64_t name = 0;
    rt_status st;
    for (const char *s = fuzz.family->name; *s; s++)
        name = name * 131 + (uint8_t)*s;
    fuzz_dice d = {.rng = rt_rng_make(name, RT_RNG_TEST, round, 0)};
    const int seed = (int)fuzz_below(&d, (uint64_t)fuzz.nseeds);
    const fuzz_bytes *other = &fuzz.seeds[fuzz_below(&d, (uint64_t)fuzz.nseeds)];
    fuzz_bytes b = fuzz_copy(fuzz.seeds[seed].p, fuzz.seeds[seed].n);
    snprintf(fuzz.label, sizeof fuzz.label, "seed %d, round %llu, replay with RT_FUZZ_ONLY=%s:%llu: ", seed,
             (unsigned long long)round, fuzz.family->name, (unsigned long long)round);
    if (fuzz.family->mutate)
        fuzz.family->mutate(&b, seed, other, &d);
    else
        fuzz_mutate(&b, other, &d, fuzz.family->text);
    if (alone)
        fuzz_save(&b);
    fuzz_deadline(10 * FUZZ_SECONDS * FUZZ_SLOWER);
    fuzz_judge(what, sizeof what, seed, &b, &st);
    if (what[0])
        fuzz_report(&b, what);
    if (alone)
        print_message("%s:%llu: %s: %s\n", fuzz.family->name, (unsigned long long)round, rt_status_name(st),
                      st == RT_OK ? "accepted" : rt_error_text());
    else if (st != RT_OK && round % FUZZ_INTACT_EVERY == 0)
        fuzz_check_intact(seed);
    fuzz_free(&b);
}

/* A test of cmocka; its state is the family. */
static inline void fuzz_test(void **state) {
    const fuzz_family *f = *state;
    const char *only = getenv("RT_FUZZ_ONLY"), *rounds = getenv("RT_FUZZ_ROUNDS"), *colon = NULL;
    if (only) {
        colon = strchr(only, ':');
        const size_t n = colon ? (size_t)(colon - only) : strlen(only);
        if (strlen(f->name) != n || memcmp(f->name, only, n) != 0)
            return;
    }
    fuzz.family = f;
    fuzz.nseeds = fuzz.failures = 0;
    scratch_make(&fuzz.dir);
    f->open();
    fuzz_watch();
    snprintf(fuzz.label, sizeof fuzz.label, "%s, intact: ", f->name);
    for (int i = 0; i < fuzz.nseeds; i++)
        fuzz_check_intact(i);
    if (fuzz.failures)
        fail_msg("%s: bad seeds", f->name);
    const unsigned long long first = colon ? strtoull(colon + 1, NULL, 10) : 0;
    const unsigned long long count = colon ? 1 : rounds ? strtoull(rounds, NULL, 10) : (unsigned)f->rounds;
    for (unsigned long long i = 0; i < count && fuzz.failures < FUZZ_FAILURES_MAX; i++)
        fuzz_round(first + i, colon != NULL);
    for (int i = 0; i < fuzz.nseeds; i++) {
        fuzz_check_intact(i);
        fuzz_free(&fuzz.seeds[i]);
    }
    fuzz_deadline(0);
    if (f->close)
        f->close();
    scratch_remove(&fuzz.dir);
    if (fuzz.failures)
        fail_msg("%d rounds of %s failed", fuzz.failures, f->name);
}

/* The body of main: a test per family. */
static inline int fuzz_main(const fuzz_family *families, size_t n, const char *group) {
    struct CMUnitTest tests[32];
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < n && i < sizeof tests / sizeof *tests; i++)
        tests[i] =
            (struct CMUnitTest){families[i].name, fuzz_test, NULL, NULL, (void *)(uintptr_t)&families[i]};
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

#endif
