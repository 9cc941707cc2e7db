/*
 * predict.c - classes and their uncertainty for rows of numbers, with retort.h alone.
 *
 *     cc predict.c $(pkg-config --cflags --libs retort) -o predict
 *     ./predict RUN < rows.txt          one input per line, numbers separated by spaces or commas
 */
#include <retort.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
    fprintf(stderr, "predict: %s: %s\n", what, rt_error_text());
    return 1;
}

/* The next input; 0 at the end, -1 if the line ends too early. */
static int read_row(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (scanf("%f%*[ ,]", &x[i]) != 1)
            return i == 0 ? 0 : -1;
    return 1;
}

int main(int argc, char **argv) {
    rt_model *model = NULL;
    rt_session *session = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: predict RUN < rows\n");
        return 2;
    }
    if (rt_model_load(&model, argv[1]) || rt_session_create(&session, model, 1))
        return fail(argv[1]);
    const int64_t n = rt_model_row(model), k = rt_model_outputs(model);
    float *x = (float *)malloc((size_t)n * sizeof *x), *p = (float *)malloc((size_t)k * sizeof *p), entropy;
    float knowledge = 0; /* a single network has none */
    rt_prediction out = RT_PREDICTION_INIT;
    out.probs = p;
    out.entropy = &entropy;
    out.mutual_information = rt_model_members(model) > 1 ? &knowledge : NULL;
    int more = 0;
    while ((more = read_row(x, n)) == 1) {
        if (rt_session_run(session, x, 1, &out))
            return fail("row");
        int64_t best = 0;
        for (int64_t c = 1; c < k; c++)
            if (p[c] > p[best])
                best = c;
        printf("%s %.4f  entropy %.4f  knowledge %.4f\n", rt_model_class_name(model, best), (double)p[best],
               (double)entropy, (double)knowledge);
    }
    free(x);
    free(p);
    rt_session_destroy(&session);
    rt_model_destroy(&model);
    return more == 0 ? 0 : (fprintf(stderr, "predict: a row has fewer than %lld numbers\n", (long long)n), 1);
}
