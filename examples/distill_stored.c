/*
 * distill_stored.c - a student of teachers that retort has never seen: only what they answered is known.
 *
 *     cc distill_stored.c $(pkg-config --cflags --libs retort) -lm -o distill_stored
 *     ./distill_stored DIR               the file of answers and the student's run are made under DIR
 *
 * The answers are a .npy file of floats, (rows, teachers, classes), in the order of the training rows: any program can
 * write it. Here three classifiers by distance, each with other centres, stand for teachers from elsewhere.
 */
#include <math.h>
#include <retort.h>
#include <stdio.h>

enum { ROWS = 600, FEATURES = 2, TEACHERS = 3, CLASSES = 2 };

static int fail(const char *what) {
    fprintf(stderr, "distill_stored: %s: %s\n", what, rt_error_text());
    return 1;
}

static void make_rows(float *x, int32_t *label) {
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % CLASSES;
        x[2 * i] = (float)((label[i] ? 1 : -1) + 0.8 * sin(i * 12.9898));
        x[2 * i + 1] = (float)(0.8 * sin(i * 78.233));
    }
}

/* Logits: minus the squared distances to a centre per class, a little elsewhere for each teacher. */
static void answer(float *logits, const float *x) {
    for (int i = 0; i < ROWS * TEACHERS * CLASSES; i++) {
        const int row = i / (TEACHERS * CLASSES), teacher = i / CLASSES % TEACHERS, k = i % CLASSES;
        const double dx = (double)x[2 * row] - (k ? 1 : -1), dy = (double)x[2 * row + 1] - 0.6 * (teacher - 1) * (k ? 1 : -1);
        logits[i] = (float)(-1.5 * (dx * dx + dy * dy));
    }
}

/* Version 1 of the format: a magic, the length of a header that ends at a multiple of 64 bytes, the header, the numbers. */
static int write_npy(const char *path, const float *y) {
    char head[129];
    const int n = snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }", ROWS,
                           TEACHERS, CLASSES);
    FILE *f = fopen(path, "wb");
    if (!f)
        return 1;
    const size_t numbers = (size_t)ROWS * TEACHERS * CLASSES;
    int bad = fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f) != 10 || fprintf(f, "%s%*s\n", head, 117 - n, "") != 118 ||
              fwrite(y, sizeof *y, numbers, f) != numbers;
    bad |= fclose(f) != 0;
    return bad;
}

int main(int argc, char **argv) {
    static float x[ROWS * FEATURES], logits[ROWS * TEACHERS * CLASSES];
    static int32_t label[ROWS];
    char from[512], out[512];
    if (argc != 2) {
        fprintf(stderr, "usage: distill_stored DIR\n");
        return 2;
    }
    make_rows(x, label);
    answer(logits, x);
    snprintf(from, sizeof from, "teacher=logits:%s/answers.npy", argv[1]);
    snprintf(out, sizeof out, "out=%s/student", argv[1]);
    if (write_npy(from + 15, logits)) {
        fprintf(stderr, "distill_stored: cannot write %s\n", from + 15);
        return 1;
    }

    rt_memory points = RT_MEMORY_INIT;
    points.name = "points";
    points.task = RT_TASK_CLASSIFICATION;
    points.rank = 1;
    points.dims[0] = FEATURES;
    points.classes = CLASSES;
    points.train.rows = ROWS;
    points.train.x = x;
    points.train.label = label;
    const char *settings[] = {"data=memory:points,test=0", "arch=mlp:32", "method=hydra", "epochs=30", from, out, "force=true"};
    rt_job job = RT_JOB_INIT;
    job.memory = &points;
    job.nmemory = 1;
    job.settings = settings;
    job.nsettings = 7;
    if (rt_job_run("distill", &job))
        return fail("distill");

    rt_model *m = NULL;
    const float ask[] = {1, 0, 0, 2}; /* the middle of a class; where the teachers disagree */
    float probs[2 * CLASSES], knowledge[2];
    rt_prediction p = RT_PREDICTION_INIT;
    p.probs = probs;
    p.mutual_information = knowledge;
    if (rt_model_load(&m, out + 4) || rt_model_run(m, ask, 2, &p, 1))
        return fail("student");
    for (int i = 0; i < 2; i++)
        printf("(%g, %g): class 1 with probability %.3f, knowledge uncertainty %.4f\n", (double)ask[2 * i],
               (double)ask[2 * i + 1], (double)probs[2 * i + 1], (double)knowledge[i]);
    printf("teachers disagree more at the second: %s\n", knowledge[1] > knowledge[0] ? "yes" : "no");
    rt_model_destroy(&m);
    return 0;
}
