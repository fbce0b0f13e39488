#pragma once
#include "../../cases/cases.h"
#include <cstdlib>
#include <exception>
#include <thread>
extern "C" int dtl_mpi_rank, dtl_mpi_size;
namespace dtl {
// Runs f(rank) as each of n processes would: a fresh thread, in which cuda:0 is current.
template <typename F> void ranks(int n, F f) {
  for (int r = 0; r < n; ++r) {
    setenv("LOCAL_RANK", std::to_string(r).c_str(), 1);
    setenv("RANK", std::to_string(r).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(n).c_str(), 1);
    dtl_mpi_rank = r;
    dtl_mpi_size = n;
    std::exception_ptr error;
    std::thread([&] {
      try { f(r); } catch (...) { error = std::current_exception(); }
    }).join();
    if (error) std::rethrow_exception(error);
  }
}
inline torch::Tensor gpu(std::vector<int64_t> sizes, int i = 1) { return torch::rand(sizes, torch::Device(torch::kCUDA, i)); }
inline torch::Tensor ints(std::vector<int64_t> sizes, int i = 1) { return torch::zeros(sizes, torch::dtype(torch::kInt).device(torch::Device(torch::kCUDA, i))); }
inline torch::Tensor longs(std::vector<int64_t> sizes, int i = 1) { return torch::zeros(sizes, torch::dtype(torch::kLong).device(torch::Device(torch::kCUDA, i))); }
inline torch::Device dev(int i) { return torch::Device(torch::kCUDA, i); }
} // namespace dtl
