#include "solvers.h"

namespace num {

Tableau<4> bogackiShampine(const SolverOptions &options) {
  Tableau<4> tableau;
  tableau.nodes = {0.0, 0.5, 0.75, 1.0};
  tableau.coefficients = torch::zeros({4, 4}, torch::kFloat64);
  tableau.coefficients[1][0] = 0.5;
  tableau.coefficients[2][1] = 0.75;
  tableau.coefficients[3][0] = 2.0 / 9.0;
  tableau.coefficients[3][1] = 1.0 / 3.0;
  tableau.coefficients[3][2] = 4.0 / 9.0;
  tableau.weights = torch::tensor({2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0, 0.0}, options.dtype);
  tableau.errors = torch::tensor({-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0}, options.dtype);
  return tableau;
}

Tableau<4> classicRungeKutta() {
  Tableau<4> tableau;
  tableau.nodes = {0.0, 0.5, 0.5, 1.0};
  tableau.coefficients = torch::zeros({4, 4}, torch::kFloat64);
  tableau.coefficients[1][0] = 0.5;
  tableau.coefficients[2][1] = 0.5;
  tableau.coefficients[3][2] = 1.0;
  tableau.weights = torch::tensor({1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}, torch::kFloat32);
  tableau.errors = torch::zeros_like(tableau.weights);
  return tableau;
}

LinearResult ConjugateGradient::solve(const LinearMap &map, const torch::Tensor &b) const {
  const auto right = b.to(options_.device, options_.dtype);
  LinearResult result;
  result.x = torch::zeros_like(right);
  auto r = right.clone();
  auto p = r.clone();
  auto rr = r.dot(r);
  const double limit = options_.relative * right.norm().item<double>();
  for (; result.iterations < options_.maxSteps && rr.sqrt().item<double>() > limit; ++result.iterations) {
    const auto ap = map(p);
    const auto alpha = rr / p.dot(ap);
    result.x += alpha * p;
    r -= alpha * ap;
    const auto next = r.dot(r);
    p = r + next / rr * p;
    rr = next;
  }
  result.residual = rr.sqrt().item<double>();
  return result;
}

LinearResult ConjugateGradient::solvePreconditioned(const LinearMap &map, const torch::Tensor &b) const {
  TORCH_CHECK(inverse_.defined(), "setJacobi() first");
  const auto right = b.to(options_.device, options_.dtype);
  LinearResult result;
  result.x = torch::zeros_like(right);
  auto r = right.clone();
  auto z = inverse_ * r; // [[device-mixed-op]]
  auto p = z.clone();
  auto rz = r.dot(z);
  const double limit = options_.relative * right.norm().item<double>();
  for (; result.iterations < options_.maxSteps && r.norm().item<double>() > limit; ++result.iterations) {
    const auto ap = map(p);
    const auto alpha = rz / p.dot(ap);
    result.x += alpha * p;
    r -= alpha * ap;
    z = inverse_.to(r.device()) * r;
    const auto next = r.dot(z);
    p = z + next / rz * p;
    rz = next;
  }
  result.residual = r.norm().item<double>();
  return result;
}

// Starts from the solution of the previous call, which is kept on the host between the calls.
LinearResult ConjugateGradient::warmSolve(const LinearMap &map, const torch::Tensor &b) {
  auto right = b.to(options_.device, options_.dtype);
  if (last_.defined() && last_.sizes() == right.sizes())
    right = right - map(last_.to(right.device()));
  auto result = solve(map, right);
  if (last_.defined() && last_.sizes() == right.sizes())
    result.x += last_; // [[device-mixed-op]]
  last_ = result.x.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
  return result;
}

PoissonSolver::PoissonSolver(int64_t size, SolverOptions options) : size_(size), options_(options) {
  frequencies_ = 2 * M_PI * torch::fft::fftfreq(size_, 1.0 / static_cast<double>(size_));
  const auto k = frequencies_.to(options_.device);
  symbol_ = k.pow(2).unsqueeze(0) + k.pow(2).unsqueeze(1);
  symbol_[0][0] = 1.0;
}

torch::Tensor PoissonSolver::solve(const torch::Tensor &density) const {
  TORCH_CHECK(density.size(0) == size_ && density.size(1) == size_, "the grid is ", size_, " x ", size_);
  const auto spectrum = torch::fft::fft2(density.to(options_.device)) / symbol_;
  spectrum[0][0].zero_();
  return torch::real(torch::fft::ifft2(spectrum));
}

std::pair<torch::Tensor, torch::Tensor> PoissonSolver::gradient(const torch::Tensor &potential) const {
  const auto spectrum = torch::fft::fft2(potential.to(options_.device));
  const auto derivative = torch::complex(torch::zeros_like(frequencies_), frequencies_);
  const auto x = torch::real(torch::fft::ifft2(spectrum * derivative.unsqueeze(0))); // [[device-mixed-op]]
  const auto y = torch::real(torch::fft::ifft2(spectrum * derivative.unsqueeze(1).to(spectrum.device())));
  return {x, y};
}

torch::Tensor PoissonSolver::smooth(const torch::Tensor &field, double width) const {
  const auto spectrum = torch::fft::fft2(field.to(options_.device));
  return torch::real(torch::fft::ifft2(spectrum * torch::exp(-0.5 * width * width * symbol_)));
}

double PoissonSolver::total(const torch::Tensor &density) const {
  const auto cell = torch::tensor(1.0 / static_cast<double>(size_ * size_));
  return (density.to(options_.device).sum() * cell).item<double>();
}

std::vector<double> PoissonSolver::profile(const torch::Tensor &field) const {
  const auto rows = field.to(options_.device).mean(1).to(torch::kFloat64).contiguous();
  const auto values = rows.accessor<double, 1>();
  std::vector<double> out(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i)
    out[i] = values[i]; // [[device-host-access]]
  return out;
}

Interpolant::Interpolant(std::vector<double> knots, std::vector<double> values, SolverOptions options) : options_(options) {
  TORCH_CHECK(knots.size() == values.size() && knots.size() > 1, "as many knots as values are needed");
  knots_ = torch::tensor(knots).to(torch::kFloat32);
  values_ = torch::tensor(values).to(options_.device, torch::kFloat32);
}

torch::Tensor Interpolant::linear(const torch::Tensor &at) const {
  const auto x = at.to(options_.device, torch::kFloat32);
  const auto knots = knots_.to(x.device());
  const auto right = torch::searchsorted(knots, x).clamp(1, knots.numel() - 1);
  const auto x0 = knots.index_select(0, right - 1), x1 = knots.index_select(0, right);
  const auto y0 = values_.index_select(0, right - 1), y1 = values_.index_select(0, right);
  return y0 + (x - x0) / (x1 - x0) * (y1 - y0);
}

torch::Tensor Interpolant::nearest(const torch::Tensor &at) const {
  const auto x = at.to(options_.device, torch::kFloat32).contiguous();
  const auto index = torch::bucketize(x, knots_).clamp_max(knots_.numel() - 1); // [[device-mixed-op]]
  return values_.index_select(0, index);
}

double Interpolant::integrate() const {
  const auto width = (knots_.slice(0, 1) - knots_.slice(0, 0, -1));
  const auto middle = 0.5 * (values_.slice(0, 1) + values_.slice(0, 0, -1)).cpu();
  return (width * middle).sum().item<double>();
}

torch::Tensor Interpolant::resampled(int64_t count) const {
  const auto first = knots_[0].item<double>(), last = knots_[-1].item<double>();
  return linear(torch::linspace(first, last, count));
}

torch::Tensor Interpolant::derivative() const {
  const auto rise = values_.slice(0, 1) - values_.slice(0, 0, -1);
  auto run = torch::empty_like(rise);
  run.copy_(knots_.slice(0, 1) - knots_.slice(0, 0, -1));
  return rise / run;
}

torch::Tensor leastSquares(const torch::Tensor &design, const torch::Tensor &target, double ridge) {
  const auto y = target.to(design.device());
  auto normal = torch::matmul(design.t(), design);
  normal.diagonal().add_(ridge);
  return torch::matmul(torch::inverse(normal), torch::matmul(design.t(), y));
}

torch::Tensor polynomialFit(const torch::Tensor &x, const torch::Tensor &y, int64_t degree) {
  std::vector<torch::Tensor> powers;
  for (int64_t d = 0; d <= degree; ++d)
    powers.push_back(x.pow(d));
  return leastSquares(torch::stack(powers, 1), y, 1e-6);
}

torch::Tensor powerIteration(const torch::Tensor &matrix, int64_t iterations) {
  auto v = torch::ones({matrix.size(1)}, matrix.options());
  for (int64_t i = 0; i < iterations; ++i) {
    v = torch::mv(matrix, v);
    v = v / v.norm();
  }
  return v.dot(torch::mv(matrix, v));
}

double determinantSign(const torch::Tensor &matrix) {
  const auto host = matrix.to(torch::kCPU, torch::kFloat64);
  return torch::det(host).sign().item<double>();
}

std::vector<double> diagonalOf(const torch::Tensor &matrix) {
  TORCH_CHECK(matrix.dim() == 2 && matrix.size(0) == matrix.size(1), "expected a square matrix");
  const auto host = matrix.to(torch::kCPU, torch::kFloat64);
  const double *entries = host.diagonal().clone().data_ptr<double>(); // [[device-dangling-data]]
  std::vector<double> diagonal;
  for (int64_t i = 0; i < matrix.size(0); ++i)
    diagonal.push_back(entries[i]);
  return diagonal;
}

} // namespace num

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace num;

SolverOptions onGpu() {
  SolverOptions options;
  options.device = torch::Device(torch::kCUDA, 1);
  return options;
}
const torch::Device gpu(torch::kCUDA, 1);
torch::Tensor decay(double, const torch::Tensor &y) { return -y; }
LinearMap map() {
  auto a = torch::eye(5, gpu) * 3 + 0.1;
  return [a](const torch::Tensor &x) { return torch::mv(a, x); };
}
PoissonSolver poisson() { return PoissonSolver(8, onGpu()); }
Interpolant interpolant() { return Interpolant({0, 1, 2, 3}, {1, 4, 9, 16}, onGpu()); }

void fixed_ok() { RungeKutta<4>(classicRungeKutta(), onGpu()).fixed(decay, torch::rand({3, 2}), 0, 1, 5); }
void adaptive_bad() { RungeKutta<4>(bogackiShampine(onGpu()), onGpu()).adaptive(decay, torch::rand({3}), 0, 1); }
void cg_ok() { ConjugateGradient(onGpu()).solve(map(), torch::rand({5})); }
void cg_preconditioned_bad() {
  ConjugateGradient cg(onGpu());
  cg.setJacobi(torch::ones({5}, gpu));
  cg.solvePreconditioned(map(), torch::rand({5}));
}
void cg_warm_bad() {
  ConjugateGradient cg(onGpu());
  cg.warmSolve(map(), torch::rand({5}));
  cg.warmSolve(map(), torch::rand({5}));
}
void poisson_ok() { poisson().solve(torch::rand({8, 8})); }
void gradient_bad() { poisson().gradient(torch::rand({8, 8})); }
void smooth_ok() { poisson().smooth(torch::rand({8, 8}), 0.5); }
void total_ok() { poisson().total(torch::rand({8, 8})); }
void profile_bad() { poisson().profile(torch::rand({8, 8})); }
void linear_ok() { interpolant().linear(torch::rand({5})); }
void nearest_bad() { interpolant().nearest(torch::rand({5})); }
void integrate_ok() { interpolant().integrate(); }
void resampled_ok() { interpolant().resampled(7); }
void derivative_ok() { interpolant().derivative(); }
void least_squares_ok() { leastSquares(torch::rand({6, 2}, gpu), torch::rand({6}), 0.1); }
void polynomial_ok() { polynomialFit(torch::rand({6}, gpu), torch::rand({6}, gpu), 2); }
void power_ok() { powerIteration(torch::rand({6, 6}, gpu), 3); }
void determinant_ok() { determinantSign(torch::rand({3, 3}, gpu)); }
void diagonal_dangling_bad() { diagonalOf(torch::eye(50, gpu) * 7); }

} // namespace

DT_MAIN(fixed_ok, adaptive_bad, cg_ok, cg_preconditioned_bad, cg_warm_bad, poisson_ok, gradient_bad, smooth_ok, total_ok,
        profile_bad, linear_ok, nearest_bad, integrate_ok, resampled_ok, derivative_ok, least_squares_ok, polynomial_ok,
        power_ok, determinant_ok, diagonal_dangling_bad)
#endif
