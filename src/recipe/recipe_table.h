/*
 * recipe_table.h - a table of a recipe, filled: what recipe_cell.c makes, recipe_claim.c judges and recipe_table.c
 * writes.
 */
#ifndef RT_RECIPE_RECIPE_TABLE_H
#define RT_RECIPE_RECIPE_TABLE_H

#include "recipe/recipe_int.h"

typedef struct rt_cell {
    double mean, deviation; /* of the runs; deviation NaN: of one run */
    double error;           /* standard error of the mean; NaN: not known */
    int n, wanted, missing; /* runs that gave a number; runs there are; runs not measured yet */
    const char *paper;
    double paper_mean, paper_deviation; /* NaN: none given */
    bool judged, reproduced;
} rt_cell;

typedef struct rt_table {
    rt_recipe *r;
    rt_jval spec, columns, rows;
    int64_t ncolumns, nrows;
    rt_cell *cells; /* (nrows, ncolumns) */
    int64_t *order; /* rows as they are shown */
} rt_table;

/* One run's number in a cell. */
typedef struct rt_sample {
    int node;
    double value, error; /* error: by bootstrap or by counting; NaN: not known */
} rt_sample;

rt_status rt_table_fill(rt_table *t, rt_recipe *r,
                        rt_jval spec) RT_MUST_CHECK; /* deinit, even if it failed */
void rt_table_deinit(rt_table *t);
const rt_cell *rt_table_cell(const rt_table *t, int64_t row, int64_t column);
/* Whether a run of this scale is in the row and column; -1: in any of them. */
bool rt_table_has(const rt_table *t, int64_t row, int64_t column);
/* Is any cell a number? */
/* Has a row of this scale no number yet, neither ours nor the paper's? */
bool rt_table_row_is_open(const rt_table *t, int64_t row);
/* "Not measured yet: KD; AE-KD." of such rows, or nothing. */
rt_status rt_table_open_rows(const rt_table *t, rt_str *out) RT_MUST_CHECK;
int rt_table_digits(const rt_table *t, int64_t column); /* behind the point */
bool rt_table_is_begun(const rt_table *t);
/* The runs of a cell that have a number, at most r->count of them; *wanted: all there are, *missing: not measured. */
rt_status rt_table_samples(const rt_table *t, int64_t row, int64_t column, rt_sample *out, int *n,
                           int *wanted, int *missing) RT_MUST_CHECK;
double rt_jval_number(rt_jval object, const char *key, double otherwise);
/* A scale too small for the paper's numbers says `compare: orderings`. */
bool rt_recipe_only_orderings(const rt_recipe *r);
const char *rt_recipe_title(const rt_recipe *r); /* the scale's, or the recipe's */

/* Of several comparisons the least decides. */
typedef enum rt_verdict {
    RT_CLAIM_NO_PART, /* of this scale */
    RT_CLAIM_FAILS,
    RT_CLAIM_UNKNOWN,        /* not measured yet */
    RT_CLAIM_NO_NOISE_KNOWN, /* single runs without an interval */
    RT_CLAIM_IN_NOISE,
    RT_CLAIM_HOLDS,
    RT_VERDICTS
} rt_verdict;
/* difference: by how much it is as claimed, with its standard error; NaN where there is none to tell. */
typedef struct rt_judgement {
    rt_verdict verdict;
    double difference, error;
    int64_t column; /* of the difference */
    int runs;       /* the fewest of a side; 0: sides of numbers alone */
} rt_judgement;
rt_status rt_claim_judge(const rt_table *t, rt_jval claim, rt_judgement *out) RT_MUST_CHECK;
/* What to say behind an error that few runs stand behind: ", one run", ", two runs", or nothing. */
const char *rt_judgement_caution(const rt_judgement *g);

#endif
