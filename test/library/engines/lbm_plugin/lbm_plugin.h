/* C interface of the lattice Boltzmann plug-in. */
#ifndef LBM_PLUGIN_H
#define LBM_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lbm_sim lbm_sim;

typedef enum { LBM_OK = 0, LBM_BAD_ARGUMENT = 1, LBM_DEVICE_FAILURE = 2 } lbm_status;

lbm_sim* lbm_create(int nx, int ny, int gpu);
void lbm_destroy(lbm_sim* sim);
lbm_status lbm_set_walls(lbm_sim* sim, const uint8_t* walls);
lbm_status lbm_set_force_field(lbm_sim* sim, const float* force);
lbm_status lbm_set_inflow(lbm_sim* sim, const float* profile, int count);
lbm_status lbm_step(lbm_sim* sim, int steps);
lbm_status lbm_step_driven(lbm_sim* sim, int steps);
lbm_status lbm_migrate(lbm_sim* sim, int gpu);
const float* lbm_density(lbm_sim* sim);
const float* lbm_velocity(lbm_sim* sim);
float lbm_probe(lbm_sim* sim, int x, int y);
float lbm_drag(lbm_sim* sim);
lbm_status lbm_copy_populations(lbm_sim* sim, float* out, size_t count);
lbm_status lbm_load_populations(lbm_sim* sim, const float* in, size_t count);
lbm_status lbm_add_tracer(lbm_sim* sim, const float* xy, int count);
lbm_status lbm_advect(lbm_sim* sim);
lbm_status lbm_collide_entropic(lbm_sim* sim);
const char* lbm_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
