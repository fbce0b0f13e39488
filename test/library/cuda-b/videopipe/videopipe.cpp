#include "pipeline.h"

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

namespace videopipe {
namespace {

std::mutex registry_mutex;
std::map<vp_handle, std::shared_ptr<Pipeline>> registry;
vp_handle next_handle = 1;
thread_local std::string last_error;

template <typename Work> int guarded(vp_handle handle, Work work) {
  const auto pipeline = find(handle);
  if (!pipeline)
    return VP_BAD_HANDLE;
  try {
    return work(*pipeline);
  } catch (const c10::Error &error) {
    last_error = error.what_without_backtrace();
#ifdef DT_RUN
    throw;
#endif
    return VP_DEVICE_ERROR;
  }
}

} // namespace

Pipeline::Pipeline(const vp_config &config_)
    : config(config_), device(torch::kCUDA, static_cast<c10::DeviceIndex>(config_.device)) {
  staging = torch::empty({config.height * 3 / 2, config.width}, torch::dtype(torch::kByte).pinned_memory(true));
  coefficients = torch::tensor({1.164f, 0.f, 1.596f, 1.164f, -0.392f, -0.813f, 1.164f, 2.017f, 0.f}).to(device);
}

void Pipeline::push(torch::Tensor frame) {
  if (!frames.empty())
    previous = frames.back();
  frames.push_back(std::move(frame));
  while (static_cast<int>(frames.size()) > config.ring)
    frames.pop_front();
}

torch::Tensor &Pipeline::current() {
  TORCH_CHECK(!frames.empty(), "no frame was pushed");
  return frames.back();
}

std::shared_ptr<Pipeline> find(vp_handle handle) {
  const std::lock_guard<std::mutex> lock(registry_mutex);
  const auto found = registry.find(handle);
  return found == registry.end() ? nullptr : found->second;
}

} // namespace videopipe

using namespace videopipe;

int vp_open(const vp_config *config, vp_handle *out) {
  if (!config || !out || config->width <= 0 || config->height <= 0 || config->height % 2)
    return VP_BAD_ARGUMENT;
  auto pipeline = std::make_shared<Pipeline>(*config);
  const std::lock_guard<std::mutex> lock(registry_mutex);
  *out = next_handle++;
  registry[*out] = std::move(pipeline);
  return VP_OK;
}

int vp_close(vp_handle handle) {
  const std::lock_guard<std::mutex> lock(registry_mutex);
  return registry.erase(handle) ? VP_OK : VP_BAD_HANDLE;
}

int vp_push_nv12(vp_handle handle, const uint8_t *luma, const uint8_t *chroma) {
  return guarded(handle, [&](Pipeline &p) {
    const size_t plane = static_cast<size_t>(p.config.width) * p.config.height;
    auto *staged = p.staging.data_ptr<uint8_t>();
    std::memcpy(staged, luma, plane);
    std::memcpy(staged + plane, chroma, plane / 2);
    const auto nv12 = p.staging.to(p.device, /*non_blocking=*/true);
    p.push(nv12_to_rgb(nv12, p.coefficients, p.config.height, p.config.width));
    return VP_OK;
  });
}

int vp_push_rgb(vp_handle handle, const uint8_t *pixels) {
  return guarded(handle, [&](Pipeline &p) {
    const auto bytes = torch::from_blob(const_cast<uint8_t *>(pixels), {p.config.height, p.config.width, 3}, torch::kByte);
    p.push(bytes.to(p.device).permute({2, 0, 1}).to(torch::kFloat).div(255).contiguous());
    return VP_OK;
  });
}

/* `device_pixels` is memory of the GPU of the pipeline, planar floats. */
int vp_push_device(vp_handle handle, const void *device_pixels) {
  return guarded(handle, [&](Pipeline &p) {
    const auto options = torch::dtype(torch::kFloat).device(p.device);
    const auto view = torch::from_blob(const_cast<void *>(device_pixels), {3, p.config.height, p.config.width}, options);
    p.push(view.clone());
    return VP_OK;
  });
}

/* `pixels` stays the caller's; it is copied when the frame is converted. */
int vp_push_shared(vp_handle handle, uint8_t *pixels) {
  return guarded(handle, [&](Pipeline &p) {
    const auto frame = torch::from_blob( // [[device-host-access]]
        pixels, {p.config.height, p.config.width, 3}, torch::TensorOptions().dtype(torch::kByte).device(p.device));
    p.push(frame.permute({2, 0, 1}).to(torch::kFloat).div_(255));
    return VP_OK;
  });
}

int vp_convert(vp_handle handle) {
  return guarded(handle, [](Pipeline &p) {
    auto &frame = p.current();
    const auto matrix = p.coefficients.view({3, 3});
    frame = torch::einsum("kc,chw->khw", {matrix, frame}).clamp(0, 1).contiguous();
    return VP_OK;
  });
}

int vp_resize(vp_handle handle, int width, int height) {
  if (width <= 0 || height <= 0)
    return VP_BAD_ARGUMENT;
  return guarded(handle, [&](Pipeline &p) {
    namespace F = torch::nn::functional;
    auto options = F::InterpolateFuncOptions().size(std::vector<int64_t>{height, width}).mode(torch::kBilinear);
    p.current() = F::interpolate(p.current().unsqueeze(0), options.align_corners(false)).squeeze(0);
    return VP_OK;
  });
}

int vp_tone_map(vp_handle handle, float gamma) {
  return guarded(handle, [&](Pipeline &p) {
    const auto table = torch::linspace(0, 1, 256, torch::device(p.device)).pow(1.0 / gamma);
    p.current() = tone_map(p.current().contiguous(), table);
    return VP_OK;
  });
}

int vp_equalize(vp_handle handle) {
  return guarded(handle, [](Pipeline &p) {
    p.current() = equalize(p.current().contiguous());
    return VP_OK;
  });
}

int vp_blend_previous(vp_handle handle, float weight) {
  return guarded(handle, [&](Pipeline &p) {
    if (!p.previous.defined())
      return static_cast<int>(VP_BAD_ARGUMENT);
    p.current() = torch::lerp(p.current(), p.previous, weight);
    return static_cast<int>(VP_OK);
  });
}

int vp_blend_reference(vp_handle handle, const float *reference, float weight) {
  return guarded(handle, [&](Pipeline &p) {
    const auto frame = p.current();
    const auto still = torch::from_blob(const_cast<float *>(reference), frame.sizes(), torch::kFloat).clone();
    p.current() = torch::lerp(frame, still, weight); // [[device-mixed-op]]
    return VP_OK;
  });
}

int vp_overlay(vp_handle handle, const float *mask) {
  return guarded(handle, [&](Pipeline &p) {
    auto &frame = p.current();
    const auto alpha = torch::from_blob(const_cast<float *>(mask), {frame.size(1), frame.size(2)}, torch::kFloat);
    frame[0].copy_(alpha, /*non_blocking=*/false);
    frame[1] = alpha;
    return VP_OK;
  });
}

int vp_read_rgb(vp_handle handle, uint8_t *out, size_t bytes) {
  return guarded(handle, [&](Pipeline &p) {
    const auto packed = p.current().mul(255).to(torch::kByte).permute({1, 2, 0}).contiguous();
    if (packed.nbytes() > bytes)
      return static_cast<int>(VP_BAD_ARGUMENT);
    std::memcpy(out, packed.data_ptr<uint8_t>(), packed.nbytes()); // [[device-host-access]]
    return static_cast<int>(VP_OK);
  });
}

int vp_read_planar(vp_handle handle, float *out, size_t count) {
  return guarded(handle, [&](Pipeline &p) {
    const auto &frame = p.current();
    if (static_cast<size_t>(frame.numel()) > count)
      return static_cast<int>(VP_BAD_ARGUMENT);
    std::memcpy(out, frame.to(torch::kCPU).contiguous().data_ptr<float>(), frame.numel() * sizeof(float));
    return static_cast<int>(VP_OK);
  });
}

/* Valid until the next call of vp_map for this handle. */
const float *vp_map(vp_handle handle) {
  const float *mapped = nullptr;
  guarded(handle, [&](Pipeline &p) {
    p.mapped = p.current().to(torch::kCPU, torch::kFloat).contiguous();
    mapped = p.mapped.data_ptr<float>();
    return VP_OK;
  });
  return mapped;
}

/* Valid until the frame changes. */
const float *vp_luma_row(vp_handle handle, int row) {
  const auto pipeline = find(handle);
  if (!pipeline || row < 0 || row >= pipeline->config.height)
    return nullptr;
  const auto &frame = pipeline->current();
  const float *luma = frame.mean(0).cpu().data_ptr<float>(); // [[device-dangling-data]]
  return luma + static_cast<ptrdiff_t>(row) * pipeline->config.width;
}

int vp_mean(vp_handle handle, float *out) {
  return guarded(handle, [&](Pipeline &p) {
    const auto mean = p.current().mean({1, 2}).cpu();
    for (int c = 0; c < 3; ++c)
      out[c] = mean[c].item<float>();
    return VP_OK;
  });
}

const char *vp_last_error(void) { return last_error.c_str(); }

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
struct Open {
  Open() { vp_config c{8, 4, 1, 2}; vp_open(&c, &h); std::vector<uint8_t> p(96, 128); vp_push_rgb(h, p.data()); }
  ~Open() { vp_close(h); }
  vp_handle h;
};
void push_nv12_ok() { Open o; std::vector<uint8_t> p(48, 100); vp_push_nv12(o.h, p.data(), p.data()); }
void push_rgb_ok() { Open o; }
void push_device_ok() { Open o; auto x = dtl::gpu({3, 4, 8}); vp_push_device(o.h, x.data_ptr()); }
void push_shared_bad() { Open o; std::vector<uint8_t> p(96); vp_push_shared(o.h, p.data()); }
void convert_ok() { Open o; vp_convert(o.h); vp_resize(o.h, 4, 2); }
void tone_map_bad() { Open o; vp_tone_map(o.h, 2.2f); }
void equalize_ok() { Open o; vp_equalize(o.h); }
void blend_previous_ok() { Open o; std::vector<uint8_t> p(96, 128); vp_push_rgb(o.h, p.data()); vp_blend_previous(o.h, .5f); }
void blend_reference_bad() { Open o; std::vector<float> r(96); vp_blend_reference(o.h, r.data(), .5f); }
void overlay_ok() { Open o; std::vector<float> m(32); vp_overlay(o.h, m.data()); }
void read_rgb_bad() { Open o; std::vector<uint8_t> p(96); vp_read_rgb(o.h, p.data(), 96); }
void read_planar_ok() { Open o; std::vector<float> p(96); vp_read_planar(o.h, p.data(), 96); }
void map_ok() { Open o; auto p = vp_map(o.h); dtl::require(p[40] > .4f, "pixels"); }
void luma_row_bad() { Open o; auto p = vp_luma_row(o.h, 2); dtl::require(std::fabs(p[3] - .5f) < .1f, "freed memory was read"); }
void mean_ok() { Open o; float m[3]; vp_mean(o.h, m); }
} // namespace
DT_MAIN(push_nv12_ok, push_rgb_ok, push_device_ok, push_shared_bad, convert_ok, tone_map_bad, equalize_ok,
        blend_previous_ok, blend_reference_bad, overlay_ok, read_rgb_bad, read_planar_ok, map_ok, luma_row_bad, mean_ok)
#endif
