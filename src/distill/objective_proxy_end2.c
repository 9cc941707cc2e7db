/*
 * objective_proxy_end2.c - reverse KL to a proxy Dirichlet of the teachers (Ryabinin et al. 2021; reversed in
 * Nam et al. 2022).
 *
 *     q   = mean_m p_m                                                            at T = 1
 *     b_0 = (K - 1) / (2 sum_c q_c (ln q_c - mean_m ln p_mc) + 1.19e-7)
 *     b   = q b_0 + offset,   a = e^z + offset                                    offset 1
 *     L   = mean over rows of KL(Dir(a) || Dir(b)) / sum_c b_c
 *
 * KL is the exact divergence, with psi(a_c) - psi(a_0); the formula printed in Nam et al. (Eq. 33) has
 * psi(b_c) in the place of psi(a_0). Division by the concentration of the target keeps rows on which the
 * teachers agree from taking over the batch; where they agree completely the constant, the smallest float
 * distinguishable from 1, keeps the target finite.
 */
#include "distill/distill_int.h"
#include <float.h>

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val b =
        rt_scale(g, rt_dirichlet_proxy(g, in->teacher, FLT_EPSILON), 1, in->dirichlet_offset); // (n, K)
    const rt_val target = rt_stop_grad(g, rt_tile_members(g, b, rt_groups(g, in->student)));
    const rt_val kl = rt_dirichlet_kl(g, in->student, target, in->dirichlet_offset);
    return rt_mix_labels(in, rt_batch_mean(g, rt_div(g, kl, rt_row_sum(g, target))));
}

const rt_objective rt_objective_proxy_end2 = {.name = "proxy-end2",
                                              .meaning = "reverse KL to a proxy Dirichlet of the teachers",
                                              .needs =
                                                  RT_OBJ_TEACHER | RT_OBJ_DIRICHLET | RT_OBJ_CLASSIFICATION,
                                              .build = build,
                                              .offset = 1};
