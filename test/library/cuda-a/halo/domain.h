#pragma once

#include "mpi.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>
#include <torch/torch.h>

#include <string>
#include <vector>

namespace halo {

/// What a rank knows of the machine: which rank it is on its node, and its neighbours.
struct Topology {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0, size = 1, local_rank = 0;
  int lower = MPI_PROC_NULL, upper = MPI_PROC_NULL;

  static Topology discover(MPI_Comm comm);
};

torch::Device pick_device(const Topology &topology);
torch::Device last_device();
torch::Device device_for(const Topology &topology, int reserved);

/// Library handles and a stream of this rank.
struct Resources {
  cublasHandle_t blas = nullptr;
  curandGenerator_t random = nullptr;
  cudaStream_t stream = nullptr;
  torch::Device device{torch::kCPU};

  void open(const Topology &topology, unsigned long long seed);
  void open_reproducible(const Topology &topology);
  void close();
};

/// A slab of a periodic field: rows [1, n] are owned, rows 0 and n + 1 are halos.
class Slab {
public:
  Slab(const Topology &topology, int64_t rows, int64_t cols, torch::Device device);

  void exchange();
  void exchange_direct();
  void exchange_buffered();
  void step(double dt);
  double residual() const;
  double energy() const;
  double max_speed() const;
  torch::Tensor gather(int root) const;
  void add_sources(const std::vector<int64_t> &rows, double strength);
  void damp_borders(int64_t width);
  const torch::Tensor &field() const { return field_; }

private:
  Topology topology_;
  int64_t rows_, cols_;
  torch::Device device_;
  torch::Tensor field_, send_, recv_;
};

torch::Tensor make_initial(const Topology &topology, int64_t rows, int64_t cols);
torch::Tensor make_initial_on(const Topology &topology, int64_t rows, int64_t cols, torch::Device device);
void fill_noise(Resources &resources, torch::Tensor &field);

} // namespace halo
