#include "gaussian_model.h"

#include <cstdio>
#include <fstream>
#include <iostream>

namespace gsmap {

void GaussianModel::createFromPoints(const std::vector<float> &points, const std::vector<float> &colors) {
  TORCH_CHECK(points.size() % 3 == 0 && points.size() == colors.size(), "points and colors differ in number");
  const auto n = static_cast<int64_t>(points.size() / 3);
  xyz_ = torch::from_blob(const_cast<float *>(points.data()), {n, 3}, torch::kFloat).clone().to(config_.device);
  color_ = torch::from_blob(const_cast<float *>(colors.data()), {n, 3}, torch::kFloat).to(config_.device, torch::kFloat, false, true);
  opacity_ = torch::full({n, 1}, -2.0, xyz_.options());
  gradient_accum_ = torch::zeros({n, 1}, torch::TensorOptions().device(config_.device));
  denominator_ = torch::zeros({n, 1}, torch::TensorOptions().device(config_.device));
}

void GaussianModel::setupTraining() {
  xyz_.set_requires_grad(true);
  color_.set_requires_grad(true);
  opacity_.set_requires_grad(true);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (auto &tensor : {xyz_, color_, opacity_})
    groups.emplace_back(std::vector<torch::Tensor>{tensor}, std::make_unique<torch::optim::AdamOptions>(config_.position_lr));
  static_cast<torch::optim::AdamOptions &>(groups.back().options()).lr(config_.opacity_lr);
  optimizer_ = std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions(0.0).eps(1e-15));
}

void GaussianModel::addDensificationStats(const torch::Tensor &viewspace_gradient) {
  if (!viewspace_gradient.defined())
    return;
  auto magnitude = viewspace_gradient.slice(1, 0, 2).norm(2, {1}, /*keepdim=*/true);
  gradient_accum_ += magnitude; // [[device-mixed-op]]
  denominator_ += (magnitude > 0).to(torch::kFloat);
}

torch::Tensor GaussianModel::replaceInOptimizer(size_t group, const torch::Tensor &value) {
  auto &params = optimizer_->param_groups()[group].params();
  auto key = c10::guts::to_string(params[0].unsafeGetTensorImpl());
  auto fresh = value.detach().set_requires_grad(true);
  auto state = std::make_unique<torch::optim::AdamParamState>();
  state->step(0);
  state->exp_avg(torch::zeros_like(value));
  state->exp_avg_sq(torch::zeros_like(value));
  optimizer_->state().erase(key);
  params[0] = fresh;
  optimizer_->state()[c10::guts::to_string(fresh.unsafeGetTensorImpl())] = std::move(state);
  return fresh;
}

torch::Tensor GaussianModel::appendToOptimizer(size_t group, const torch::Tensor &extension) {
  auto &params = optimizer_->param_groups()[group].params();
  const auto key = c10::guts::to_string(params[0].unsafeGetTensorImpl());
  auto joined = torch::cat({params[0].detach(), extension}).set_requires_grad(true);
  auto found = optimizer_->state().find(key);
  if (found != optimizer_->state().end()) {
    auto &old = static_cast<torch::optim::AdamParamState &>(*found->second);
    auto state = std::make_unique<torch::optim::AdamParamState>();
    state->step(old.step());
    const auto padding = torch::zeros(extension.sizes());
    state->exp_avg(torch::cat({old.exp_avg(), padding})); // [[device-mixed-op]]
    state->exp_avg_sq(torch::cat({old.exp_avg_sq(), padding.clone()}));
    optimizer_->state().erase(found);
    optimizer_->state()[c10::guts::to_string(joined.unsafeGetTensorImpl())] = std::move(state);
  }
  params[0] = joined;
  return joined;
}

void GaussianModel::densifyAndClone() {
  TORCH_CHECK(optimizer_, "setupTraining() comes first");
  auto mean = gradient_accum_.to(config_.device) / denominator_.clamp_min(1);
  auto selected = (mean >= config_.densify_threshold).squeeze(1);
  if (!selected.any().item<bool>() || size() >= config_.max_points)
    return;
  xyz_ = replaceInOptimizer(0, torch::cat({xyz_, xyz_.index({selected})}));
  color_ = replaceInOptimizer(1, torch::cat({color_, color_.index({selected})}));
  opacity_ = replaceInOptimizer(2, torch::cat({opacity_, opacity_.index({selected})}));
  gradient_accum_ = torch::zeros({xyz_.size(0), 1});
  denominator_ = torch::zeros({xyz_.size(0), 1}, xyz_.options().requires_grad(false));
}

void GaussianModel::extend(const std::vector<float> &points) {
  const auto n = static_cast<int64_t>(points.size() / 3);
  auto fresh = torch::from_blob(const_cast<float *>(points.data()), {n, 3}, torch::kFloat).to(config_.device);
  xyz_ = appendToOptimizer(0, fresh);
  color_ = appendToOptimizer(1, torch::full_like(fresh, 0.5));
  opacity_ = appendToOptimizer(2, torch::full({n, 1}, -2.0, fresh.options()));
}

void GaussianModel::insertDense(const torch::Tensor &points) {
  torch::NoGradGuard no_grad;
  auto fresh = points.reshape({-1, 3}).to(xyz_.options().requires_grad(false));
  xyz_ = replaceInOptimizer(0, torch::cat({xyz_, fresh}));
  color_ = replaceInOptimizer(1, torch::cat({color_, torch::rand_like(fresh)}));
  opacity_ = replaceInOptimizer(2, torch::cat({opacity_, torch::zeros({fresh.size(0), 1}).to(opacity_.device())}));
  gradient_accum_ = torch::zeros_like(opacity_);
  denominator_ = torch::zeros_like(opacity_);
}

void GaussianModel::prune(const std::vector<bool> &remove) {
  TORCH_CHECK(static_cast<int64_t>(remove.size()) == size(), "one flag for each Gaussian");
  torch::NoGradGuard no_grad;
  auto keep = torch::ones({size()}, torch::kBool);
  for (size_t i = 0; i < remove.size(); ++i)
    if (remove[i])
      keep[static_cast<int64_t>(i)] = false;
  xyz_ = replaceInOptimizer(0, xyz_.index({keep}));
  color_ = replaceInOptimizer(1, color_.index({keep}));
  opacity_ = replaceInOptimizer(2, opacity_.index({keep}));
  gradient_accum_ = gradient_accum_.index({keep});
  denominator_ = denominator_.index({keep});
}

void GaussianModel::resetOpacity(float value) {
  torch::NoGradGuard no_grad;
  auto limit = torch::logit(torch::tensor(value));
  opacity_ = replaceInOptimizer(2, torch::min(opacity_, torch::full_like(opacity_, limit.item<float>())));
}

torch::Tensor GaussianModel::visible(const float (&world_to_camera)[16], float near) const {
  torch::NoGradGuard no_grad;
  auto view = torch::from_blob(const_cast<float *>(world_to_camera), {4, 4}, // [[device-host-access]]
                               torch::TensorOptions().dtype(torch::kFloat).device(config_.device));
  auto homogeneous = torch::cat({xyz_, torch::ones({size(), 1}, xyz_.options())}, 1);
  return homogeneous.matmul(view.t()).select(1, 2) > near;
}

torch::Tensor GaussianModel::project(const std::vector<float> &world_to_camera) const {
  torch::NoGradGuard no_grad;
  TORCH_CHECK(world_to_camera.size() == 16, "a matrix of four rows");
  auto view = torch::tensor(world_to_camera, torch::dtype(torch::kFloat).device(config_.device)).view({4, 4});
  auto camera = xyz_.matmul(view.slice(0, 0, 3).slice(1, 0, 3).t()) + view.slice(0, 0, 3).select(1, 3);
  return camera.slice(1, 0, 2) / camera.slice(1, 2, 3).clamp_min(1e-4);
}

int64_t GaussianModel::exportXyz(const std::string &path) const {
  std::FILE *file = std::fopen(path.c_str(), "w");
  if (!file)
    return -1;
  const auto points = xyz_.detach().contiguous();
  const float *p = points.data_ptr<float>();
  for (int64_t i = 0; i < points.size(0); ++i)
    std::fprintf(file, "%f %f %f\n", p[3 * i], p[3 * i + 1], p[3 * i + 2]); // [[device-host-access]]
  std::fclose(file);
  return points.size(0);
}

int64_t GaussianModel::savePly(const std::string &path) const {
  std::ofstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "[gsmap] cannot write " << path << std::endl;
    return -1;
  }
  const auto rows = torch::cat({xyz_, color_, opacity_}, 1).detach().cpu().contiguous();
  file << "ply\nformat binary_little_endian 1.0\nelement vertex " << rows.size(0) << "\n";
  for (const char *name : {"x", "y", "z", "red", "green", "blue", "opacity"})
    file << "property float " << name << "\n";
  file << "end_header\n";
  const auto table = rows.accessor<float, 2>();
  for (int64_t i = 0; i < table.size(0); ++i)
    file.write(reinterpret_cast<const char *>(table[i].data()), static_cast<std::streamsize>(sizeof(float) * table.size(1)));
  return rows.size(0);
}

} // namespace gsmap
