#include "../cases.h"
#include <torch/torch.h>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>
namespace nn = torch::nn;

// positional encodings: registered, unregistered, built on the fly
struct PosEncPlainImpl : nn::Module {
  PosEncPlainImpl(int64_t d, int64_t len) {
    pe = torch::zeros({len, d});
    auto pos = torch::arange(len, torch::kFloat).unsqueeze(1);
    auto div = torch::exp(torch::arange(0, d, 2, torch::kFloat) * (-std::log(10000.0) / d));
    pe.slice(1, 0, d, 2) = torch::sin(pos * div);
    pe.slice(1, 1, d, 2) = torch::cos(pos * div);
  }
  torch::Tensor forward(torch::Tensor x) { return x + pe.slice(0, 0, x.size(1)).unsqueeze(0); } // [[device-unregistered-tensor]]
  torch::Tensor pe;
};
TORCH_MODULE(PosEncPlain);
struct PosEncBufferImpl : nn::Module {
  PosEncBufferImpl(int64_t d, int64_t len) {
    auto table = torch::zeros({len, d});
    auto pos = torch::arange(len, torch::kFloat).unsqueeze(1);
    auto div = torch::exp(torch::arange(0, d, 2, torch::kFloat) * (-std::log(10000.0) / d));
    table.slice(1, 0, d, 2) = torch::sin(pos * div);
    table.slice(1, 1, d, 2) = torch::cos(pos * div);
    pe = register_buffer("pe", table);
  }
  torch::Tensor forward(torch::Tensor x) { return x + pe.slice(0, 0, x.size(1)).unsqueeze(0); }
  torch::Tensor pe;
};
TORCH_MODULE(PosEncBuffer);

template <typename Enc>
struct EncoderModelImpl : nn::Module {
  EncoderModelImpl() : embed(100, 8), enc(8, 32) {
    register_module("embed", embed);
    register_module("enc", enc);
    out = register_module("out", nn::Linear(8, 100));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    return out(enc(embed(ids))); // [[device-mixed-op]]
  }
  nn::Embedding embed;
  Enc enc;
  nn::Linear out{nullptr};
};
void posenc_bad() {
  auto model = std::make_shared<EncoderModelImpl<PosEncPlain>>();
  model->to(torch::kCUDA);
  model->forward(torch::randint(0, 100, {2, 5}, torch::TensorOptions(torch::kLong).device(torch::kCUDA)));
}
void posenc_ok() {
  auto model = std::make_shared<EncoderModelImpl<PosEncBuffer>>();
  model->to(torch::kCUDA);
  model->forward(torch::randint(0, 100, {2, 5}, torch::TensorOptions(torch::kLong).device(torch::kCUDA)));
}

// token ids straight from the tokenizer
static torch::Tensor encode(const std::string& text) {
  std::vector<int64_t> ids;
  for (char c : text) ids.push_back(static_cast<int64_t>(static_cast<unsigned char>(c)) % 100);
  return torch::tensor(ids).unsqueeze(0);
}
void token_ids_bad() {
  EncoderModelImpl<PosEncBuffer> lm;
  lm.to(torch::kCUDA);
  lm.eval();
  auto ids = encode("hello");
  for (int i = 0; i < 2; ++i) {
    auto logits = lm.forward(ids);
    auto next = logits.select(1, -1).argmax(-1, true);
    ids = torch::cat({ids, next}, 1);
  }
}
void token_ids_ok() {
  EncoderModelImpl<PosEncBuffer> lm;
  lm.to(torch::kCUDA);
  lm.eval();
  auto ids = encode("hello").to(torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    auto logits = lm.forward(ids);
    auto next = logits.select(1, -1).argmax(-1, true);
    ids = torch::cat({ids, next}, 1);
  }
}

// attention with a causal mask
static torch::Tensor causalMask(int64_t n, c10::optional<torch::Device> device = c10::nullopt) {
  auto m = torch::ones({n, n}, torch::kBool);
  if (device) m = m.to(*device);
  return m.triu(1);
}
struct SelfAttentionImpl : nn::Module {
  explicit SelfAttentionImpl(int64_t d, bool maskOnDevice) : maskOnDevice(maskOnDevice) {
    qkv = register_module("qkv", nn::Linear(nn::LinearOptions(d, 3 * d).bias(false)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    auto parts = qkv(x).chunk(3, -1);
    auto &q = parts[0], &k = parts[1], &v = parts[2];
    auto scores = torch::matmul(q, k.transpose(-2, -1)) / std::sqrt(double(q.size(-1)));
    auto mask = maskOnDevice ? causalMask(x.size(1), x.device()) : causalMask(x.size(1));
    scores = scores.masked_fill(mask, -std::numeric_limits<float>::infinity()); // [[device-mixed-op]]
    return torch::matmul(scores.softmax(-1), v);
  }
  nn::Linear qkv{nullptr};
  bool maskOnDevice;
};
TORCH_MODULE(SelfAttention);
void causal_mask_bad() {
  SelfAttention att(8, false);
  att->to(torch::kCUDA);
  att(torch::randn({1, 4, 8}, torch::kCUDA));
}
void causal_mask_ok() {
  SelfAttention att(8, true);
  att->to(torch::kCUDA);
  att(torch::randn({1, 4, 8}, torch::kCUDA));
}

// KV cache
struct KvCache {
  torch::Tensor k, v;
  bool empty() const { return !k.defined(); }
  void append(const torch::Tensor& nk, const torch::Tensor& nv) {
    if (empty()) {
      k = nk;
      v = nv;
      return;
    }
    k = torch::cat({k, nk}, 1);
    v = torch::cat({v, nv}, 1);
  }
};
struct KvCachePrealloc {
  KvCachePrealloc(int64_t len, int64_t d) : k(torch::zeros({1, len, d})), v(torch::zeros({1, len, d})) {}
  void append(const torch::Tensor& nk, const torch::Tensor& nv) {
    k.narrow(1, used, nk.size(1)).copy_(nk);
    v.narrow(1, used, nv.size(1)).copy_(nv);
    used += nk.size(1);
  }
  torch::Tensor k, v;
  int64_t used = 0;
};
void kv_cache_ok() {
  auto dev = torch::Device("cuda:2");
  nn::Linear proj(8, 8);
  proj->to(dev);
  KvCache cache;
  for (int i = 0; i < 3; ++i) {
    auto h = proj(torch::randn({1, 1, 8}, dev));
    cache.append(h, h);
  }
  torch::bmm(proj(torch::randn({1, 1, 8}, dev)), cache.k.transpose(1, 2));
}
void kv_cache_bad() {
  auto dev = torch::Device("cuda:2");
  nn::Linear proj(8, 8);
  proj->to(dev);
  KvCachePrealloc cache(3, 8);
  for (int i = 0; i < 3; ++i) {
    auto h = proj(torch::randn({1, 1, 8}, dev));
    cache.append(h, h);
  }
  torch::bmm(proj(torch::randn({1, 1, 8}, dev)), cache.k.transpose(1, 2)); // [[device-mixed-op]]
}

// next token loss, label shifting, padding mask weights
static torch::Tensor lmLoss(const torch::Tensor& logits, const torch::Tensor& labels) {
  auto shiftLogits = logits.slice(1, 0, -1).contiguous();
  auto shiftLabels = labels.slice(1, 1).contiguous();
  return nn::functional::cross_entropy(shiftLogits.view({-1, logits.size(-1)}), shiftLabels.view({-1})); // [[device-loss-input]]
}
static torch::Tensor lmLossMoved(const torch::Tensor& logits, const torch::Tensor& labels) {
  auto shiftLogits = logits.slice(1, 0, -1).contiguous();
  auto shiftLabels = labels.slice(1, 1).contiguous().to(shiftLogits.device());
  return nn::functional::cross_entropy(shiftLogits.view({-1, logits.size(-1)}), shiftLabels.view({-1}));
}
void lm_pipeline_bad() {
  torch::Device first(torch::kCUDA, 0), last(torch::kCUDA, 3);
  nn::Embedding emb(50, 8);
  nn::Linear head(8, 50);
  emb->to(first);
  head->to(last);
  auto ids = torch::randint(0, 50, {2, 6}, torch::kLong).to(first);
  auto logits = head(emb(ids).to(last));
  lmLoss(logits, ids).backward();
}
void lm_pipeline_ok() {
  torch::Device first(torch::kCUDA, 0), last(torch::kCUDA, 3);
  nn::Embedding emb(50, 8);
  nn::Linear head(8, 50);
  emb->to(first);
  head->to(last);
  auto ids = torch::randint(0, 50, {2, 6}, torch::kLong).to(first);
  auto logits = head(emb(ids).to(last));
  lmLossMoved(logits, ids).backward();
}

// nn::TransformerEncoder with masks
void encoder_mask_bad() {
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dropout(0.0));
  nn::TransformerEncoder enc(layer, 2);
  enc->to(torch::kCUDA);
  auto src = torch::rand({5, 2, 8}, torch::kCUDA);
  auto mask = torch::full({5, 5}, 0.0);
  auto out = enc(src, mask); // [[device-mixed-op]]
  (void)out;
}
void encoder_mask_ok() {
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dropout(0.0));
  nn::TransformerEncoder enc(layer, 2);
  enc->to(torch::kCUDA);
  auto src = torch::rand({5, 2, 8}, torch::kCUDA);
  auto mask = torch::full({5, 5}, 0.0, src.options());
  auto out = enc(src, mask);
  (void)out;
}

// LoRA: low rank matrices created as plain members against a registered base
struct LoraLinearImpl : nn::Module {
  LoraLinearImpl(int64_t in, int64_t out, int64_t r) : base(register_module("base", nn::Linear(in, out))) {
    a = register_parameter("a", torch::randn({r, in}) * 0.01);
    scaling = torch::full({out}, 2.0);
    b = register_parameter("b", torch::zeros({out, r}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return base(x) + torch::linear(torch::linear(x, a), b) * scaling; // [[device-unregistered-tensor]]
  }
  nn::Linear base;
  torch::Tensor a, b, scaling;
};
TORCH_MODULE(LoraLinear);
struct LoraLinearScalarImpl : nn::Module {
  LoraLinearScalarImpl(int64_t in, int64_t out, int64_t r) : base(register_module("base", nn::Linear(in, out))) {
    a = register_parameter("a", torch::randn({r, in}) * 0.01);
    scaling = torch::tensor(2.0);
    b = register_parameter("b", torch::zeros({out, r}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return base(x) + torch::linear(torch::linear(x, a), b) * scaling;
  }
  nn::Linear base;
  torch::Tensor a, b, scaling;
};
TORCH_MODULE(LoraLinearScalar);
void lora_bad() {
  LoraLinear l(4, 4, 2);
  l->to(torch::kCUDA);
  l(torch::randn({2, 4}, torch::kCUDA)).sum().backward();
}
void lora_ok() {
  LoraLinearScalar l(4, 4, 2);
  l->to(torch::kCUDA);
  l(torch::randn({2, 4}, torch::kCUDA)).sum().backward();
}

DT_MAIN(posenc_bad, posenc_ok, token_ids_bad, token_ids_ok, causal_mask_bad, causal_mask_ok, kv_cache_ok,
        kv_cache_bad, lm_pipeline_bad, lm_pipeline_ok, encoder_mask_bad, encoder_mask_ok, lora_bad, lora_ok)
