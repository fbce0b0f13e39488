/* Plugin interface of the simulation engine: learned potentials. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct md_potential md_potential;

enum md_status { MD_OK = 0, MD_INVALID = 1, MD_FAILED = 2 };

md_potential *md_create(const char *model_file, int gpu, int atoms);
void md_destroy(md_potential *self);
const char *md_message(void);

int md_set_types(md_potential *self, const int *types);
int md_set_charges(md_potential *self, const double *charges);
int md_set_cell(md_potential *self, const double cell[3]);
int md_set_restraint(md_potential *self, const double *reference, double stiffness);

int md_energy(md_potential *self, const double *positions, double *energy);
int md_forces(md_potential *self, const double *positions, double *forces);
int md_forces_direct(md_potential *self, const double *positions, double *forces);
int md_coulomb(md_potential *self, const double *positions, double *energy);
int md_restraint_energy(md_potential *self, const double *positions, double *energy);
int md_dipole(md_potential *self, const double *positions, double dipole[3]);
int md_closest(md_potential *self, const double *positions, double *distance);
int md_virial(md_potential *self, const double *positions, double virial[9]);

#ifdef __cplusplus
}
#endif
