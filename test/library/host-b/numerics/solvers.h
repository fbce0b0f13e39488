#pragma once

#include <torch/torch.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

namespace num {

struct SolverOptions {
  double relative = 1e-4;
  double absolute = 1e-6;
  double firstStep = 0.1;
  double safety = 0.9;
  int64_t maxSteps = 200;
  torch::Device device = torch::kCPU;
  torch::Dtype dtype = torch::kFloat32;

  torch::TensorOptions tensor() const { return torch::TensorOptions().dtype(dtype).device(device); }
};

struct Solution {
  std::vector<double> times;
  torch::Tensor states;
  int64_t evaluations = 0;
  int64_t rejected = 0;
};

using Field = std::function<torch::Tensor(double, const torch::Tensor &)>;

// Runge-Kutta methods with coefficients in tensors, so that the stages are one product.
template <int Stages>
struct Tableau {
  std::array<double, Stages> nodes;
  torch::Tensor coefficients; // stages x stages
  torch::Tensor weights;      // stages
  torch::Tensor errors;       // stages
};

Tableau<4> bogackiShampine(const SolverOptions &options);
Tableau<4> classicRungeKutta();

template <int Stages>
class RungeKutta {
public:
  RungeKutta(Tableau<Stages> tableau, SolverOptions options) : tableau_(std::move(tableau)), options_(options) {}

  Solution fixed(const Field &field, const torch::Tensor &start, double begin, double end, int64_t steps) const {
    TORCH_CHECK(steps > 0 && end > begin, "nothing to integrate");
    Solution solution;
    auto y = start.to(options_.device, options_.dtype);
    const double h = (end - begin) / static_cast<double>(steps);
    std::vector<torch::Tensor> states{y};
    for (int64_t i = 0; i < steps; ++i) {
      const double t = begin + h * static_cast<double>(i);
      const auto k = stages(field, t, h, y);
      solution.evaluations += Stages;
      y = y + h * torch::tensordot(tableau_.weights.to(y.device()), k, {0}, {0});
      states.push_back(y);
      solution.times.push_back(t + h);
    }
    solution.states = torch::stack(states);
    return solution;
  }

  Solution adaptive(const Field &field, const torch::Tensor &start, double begin, double end) const {
    Solution solution;
    auto y = start.to(options_.device, options_.dtype);
    double t = begin, h = options_.firstStep;
    std::vector<torch::Tensor> states{y};
    for (int64_t step = 0; step < options_.maxSteps && t < end; ++step) {
      h = std::min(h, end - t);
      const auto k = stages(field, t, h, y);
      const auto next = y + h * torch::tensordot(tableau_.weights, k, {0}, {0}); // [[device-mixed-op]]
      const double error = errorNorm(y, next, h * torch::tensordot(tableau_.errors.to(k.device()), k, {0}, {0}));
      solution.evaluations += Stages;
      if (error <= 1.0) {
        t += h;
        y = next;
        states.push_back(y);
        solution.times.push_back(t);
      } else {
        ++solution.rejected;
      }
      h *= std::min(5.0, std::max(0.2, options_.safety * std::pow(std::max(error, 1e-10), -1.0 / 3.0)));
    }
    solution.states = torch::stack(states);
    return solution;
  }

  double errorNorm(const torch::Tensor &before, const torch::Tensor &after, const torch::Tensor &error) const {
    const auto scale = options_.absolute + options_.relative * torch::max(before.abs(), after.abs());
    return (error / scale).pow(2).mean().sqrt().template item<double>();
  }

  torch::Tensor stages(const Field &field, double t, double h, const torch::Tensor &y) const {
    auto k = torch::zeros({Stages, y.numel()}, y.options());
    for (int s = 0; s < Stages; ++s) {
      auto inner = y.flatten().clone();
      for (int j = 0; j < s; ++j)
        inner.add_(k[j], h * tableau_.coefficients[s][j].template item<double>());
      k[s] = field(t + h * tableau_.nodes[s], inner.view_as(y)).flatten();
    }
    return k.view(join(y.sizes()));
  }

private:
  static std::vector<int64_t> join(torch::IntArrayRef sizes) {
    std::vector<int64_t> shape{Stages};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    return shape;
  }

  Tableau<Stages> tableau_;
  SolverOptions options_;
};

// A x = b without a matrix.
using LinearMap = std::function<torch::Tensor(const torch::Tensor &)>;

struct LinearResult {
  torch::Tensor x;
  double residual = 0;
  int64_t iterations = 0;
};

class ConjugateGradient {
public:
  explicit ConjugateGradient(SolverOptions options) : options_(options) {}
  void setJacobi(const torch::Tensor &diagonal) { inverse_ = diagonal.cpu().to(torch::kFloat32).reciprocal(); }
  LinearResult solve(const LinearMap &map, const torch::Tensor &b) const;
  LinearResult solvePreconditioned(const LinearMap &map, const torch::Tensor &b) const;
  LinearResult warmSolve(const LinearMap &map, const torch::Tensor &b);

private:
  SolverOptions options_;
  torch::Tensor inverse_;
  torch::Tensor last_;
};

// -laplace(u) = f on a periodic square.
class PoissonSolver {
public:
  PoissonSolver(int64_t size, SolverOptions options);
  torch::Tensor solve(const torch::Tensor &density) const;
  std::pair<torch::Tensor, torch::Tensor> gradient(const torch::Tensor &potential) const;
  torch::Tensor smooth(const torch::Tensor &field, double width) const;
  double total(const torch::Tensor &density) const;
  std::vector<double> profile(const torch::Tensor &field) const;

private:
  int64_t size_;
  SolverOptions options_;
  torch::Tensor frequencies_;
  torch::Tensor symbol_;
};

// Piecewise linear and cubic interpolation of samples.
class Interpolant {
public:
  Interpolant(std::vector<double> knots, std::vector<double> values, SolverOptions options);
  torch::Tensor linear(const torch::Tensor &at) const;
  torch::Tensor nearest(const torch::Tensor &at) const;
  double integrate() const;
  torch::Tensor resampled(int64_t count) const;
  torch::Tensor derivative() const;

private:
  SolverOptions options_;
  torch::Tensor knots_, values_;
};

torch::Tensor leastSquares(const torch::Tensor &design, const torch::Tensor &target, double ridge);
torch::Tensor polynomialFit(const torch::Tensor &x, const torch::Tensor &y, int64_t degree);
torch::Tensor powerIteration(const torch::Tensor &matrix, int64_t iterations);
double determinantSign(const torch::Tensor &matrix);
std::vector<double> diagonalOf(const torch::Tensor &matrix);

} // namespace num
