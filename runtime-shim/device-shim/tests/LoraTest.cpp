// Low-rank adapters: training, merging, files.
#include "Ranks.h"

#include <device_shim/Error.h>
#include <device_shim/Lora.h>

using namespace device_shim;

TEST(Lora, BeginsAsItsBaseAndTrainsOnlyTheAdapter) {
  torch::manual_seed(1);
  torch::nn::Linear base(6, 4);
  const auto input = torch::randn({3, 2, 6});
  const auto before = base->forward(input), weight = base->weight.detach().clone();
  LoraOptions options;
  options.rank = 2;
  LoraLinear layer(base, options);
  EXPECT_TRUE(layer->forward(input).equal(before));
  EXPECT_EQ(train_only_adapters(*layer), 2 * 6 + 4 * 2);
  torch::optim::SGD optimizer(trainable_parameters(*layer), 0.1);
  const auto target = torch::randn({3, 2, 4});
  double first = 0, last = 0;
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    auto value = torch::mse_loss(layer->forward(input), target);
    value.backward();
    optimizer.step();
    last = value.item<double>();
    first = step == 0 ? last : first;
  }
  EXPECT_LT(last, first);
  EXPECT_TRUE(base->weight.equal(weight));
  const auto trained = layer->forward(input);
  layer->merge();
  EXPECT_TRUE(layer->forward(input).allclose(trained, 1e-5, 1e-6));
  EXPECT_FALSE(base->weight.equal(weight));
  layer->unmerge();
  EXPECT_TRUE(base->weight.allclose(weight, 1e-5, 1e-6));

  const auto path = ranks::temporaryDirectory() + "/adapters.pt";
  torch::nn::Sequential net(layer, torch::nn::ReLU(), LoraLinear(4, 4, options));
  save_adapters(*net, path);
  torch::manual_seed(2);
  torch::nn::Sequential other(LoraLinear(6, 4, options), torch::nn::ReLU(), LoraLinear(4, 4, options));
  load_adapters(*other, path);
  EXPECT_TRUE(other->at<LoraLinearImpl>(0).lora_B.equal(layer->lora_B));
  options.alpha = 64;
  torch::nn::Sequential louder(LoraLinear(6, 4, options));
  MUST_THROW(load_adapters(*louder, path), Error,
             "the adapter '0' in '" + path + "' was trained with alpha 16,");
  options.rank = 3;
  torch::nn::Sequential wrong(LoraLinear(6, 4, options));
  EXPECT_THROW(load_adapters(*wrong, path), Error);
  options.rank = 0;
  EXPECT_THROW(LoraLinear(6, 4, options), UsageError);
}

TEST(Lora, MergedLayersAreSavedUnmerged) {
  torch::manual_seed(1);
  const auto input = torch::randn({3, 6});
  const auto make = [] { return torch::nn::Sequential(LoraLinear(6, 4)); };
  auto net = make(), loaded = make();
  auto &layer = net->at<LoraLinearImpl>(0);
  torch::nn::init::normal_(layer.lora_B);
  const auto expected = net->forward(input);
  layer.merge();
  loaded->at<LoraLinearImpl>(0).merge();
  const auto path = ranks::temporaryDirectory() + "/merged.pt";
  torch::save(net, path);
  torch::load(loaded, path);
  EXPECT_FALSE(loaded->at<LoraLinearImpl>(0).merged());
  EXPECT_TRUE(loaded->forward(input).allclose(expected, 1e-5, 1e-5));
  EXPECT_TRUE(layer.merged());
  EXPECT_TRUE(net->forward(input).allclose(expected, 1e-5, 1e-5));
}

TEST(Lora, UnmergeTakesOutWhatMergeAdded) {
  torch::manual_seed(1);
  LoraLinear layer(6, 4);
  const auto before = layer->base_layer->weight.detach().clone();
  {
    torch::NoGradGuard noGrad;
    layer->lora_B.normal_();
    layer->merge();
    layer->lora_A.fill_(7);
    layer->to(torch::kDouble);
    layer->unmerge();
  }
  EXPECT_TRUE(layer->base_layer->weight.allclose(before.to(torch::kDouble), 1e-5, 1e-5));

  const auto path = ranks::temporaryDirectory() + "/adapters.pt";
  save_adapters(*layer, path);
  layer->merge();
  try {
    load_adapters(*layer, path);
    FAIL();
  } catch (const UsageError &error) {
    EXPECT_NE(std::string(error.what()).find("call unmerge() before load_adapters()"), std::string::npos);
  }
  layer->unmerge();
  load_adapters(*layer, path);
}

TEST(Lora, TiedAdaptersCountOnce) {
  LoraLinear layer(6, 4);
  torch::nn::Sequential net(layer, layer);
  EXPECT_EQ(train_only_adapters(*net), 8 * 6 + 4 * 8);
  EXPECT_EQ(trainable_parameters(*net).size(), 2u);
}
