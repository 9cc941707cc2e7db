/*
 * train_arrays.c - an ensemble trained, distilled, evaluated and asked, all from arrays in memory.
 *
 *     cc train_arrays.c $(pkg-config --cflags --libs retort) -lm -o train_arrays
 *     ./train_arrays DIR                runs are made under DIR
 */
#include <math.h>
#include <retort.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 900, FEATURES = 2 };

static int fail(const char *what) {
    fprintf(stderr, "train_arrays: %s: %s\n", what, rt_error_text());
    return 1;
}

/* Two moons, one above the other. */
static void make_rows(float *x, int32_t *label) {
    for (int i = 0; i < ROWS; i++) {
        const double t = 3.14159265 * (i / 2) / (ROWS / 2), noise = 0.15 * sin(i * 12.9898);
        label[i] = i % 2;
        x[2 * i] = (float)(i % 2 ? 1 - cos(t) + noise : cos(t) + noise);
        x[2 * i + 1] = (float)(i % 2 ? 0.5 - sin(t) - noise : sin(t) - noise);
    }
}

static void show(void *user, const rt_progress *p) {
    (void)user;
    if (p->epoch_end && p->epoch % 10 == 0)
        printf("  epoch %lld of %lld, loss %.3f\n", (long long)p->epoch, (long long)p->epochs, p->loss);
}

int main(int argc, char **argv) {
    static float x[ROWS * FEATURES];
    static int32_t label[ROWS];
    char teacher[512], student[512], from[512], *json = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: train_arrays DIR\n");
        return 2;
    }
    make_rows(x, label);
    rt_memory moons = RT_MEMORY_INIT;
    moons.name = "moons";
    moons.task = RT_TASK_CLASSIFICATION;
    moons.rank = 1;
    moons.dims[0] = FEATURES;
    moons.classes = 2;
    moons.train.rows = ROWS;
    moons.train.x = x;
    moons.train.label = label;

    snprintf(teacher, sizeof teacher, "out=%s/teacher", argv[1]);
    snprintf(student, sizeof student, "out=%s/student", argv[1]);
    snprintf(from, sizeof from, "teacher=%s/teacher", argv[1]);
    const char *train[] = {"data=memory:moons", "arch=mlp:32", "members=4", "epochs=20", teacher, "force=true"};
    const char *distill[] = {"data=memory:moons", "arch=mlp:32", "method=hydra", "epochs=20", from, student, "force=true"};
    rt_job job = RT_JOB_INIT;
    job.memory = &moons;
    job.nmemory = 1;
    job.progress = show;
    job.settings = train;
    job.nsettings = 6;
    puts("teacher");
    if (rt_job_run("train", &job))
        return fail("train");
    job.settings = distill;
    job.nsettings = 7;
    puts("student");
    if (rt_job_run("distill", &job))
        return fail("distill");

    const char *eval[] = {"data=memory:moons", "bootstrap=0"};
    const char *runs[] = {teacher + 4, student + 4};
    job.settings = eval;
    job.nsettings = 2;
    job.words = runs;
    job.nwords = 2;
    job.json = &json;
    if (rt_job_run("eval", &job))
        return fail("eval");
    puts(strstr(json, "\"accuracy\"") ? "evaluated" : "no accuracy");
    rt_free(json);

    rt_model *m = NULL;
    const float ask[] = {0, 1, 50, -80}; /* a point of a moon, and one far away */
    float probs[4], knowledge[2];
    rt_prediction out = RT_PREDICTION_INIT;
    out.probs = probs;
    out.mutual_information = knowledge;
    if (rt_model_load(&m, student + 4) || rt_model_run(m, ask, 2, &out, 1))
        return fail("student");
    for (int i = 0; i < 2; i++)
        printf("(%g, %g): class 0 with probability %.3f, knowledge uncertainty %.4f\n", (double)ask[2 * i],
               (double)ask[2 * i + 1], (double)probs[2 * i], (double)knowledge[i]);
    rt_model_destroy(&m);
    return 0;
}
