// How checkpoints reach the disk: complete or not at all, and nothing that changed there is loaded.
#include "SmallDisk.h"
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/Lora.h>
#include <device_shim/ShardedDataParallel.h>

#include <csignal>
#include <numeric>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
namespace fs = std::filesystem;

namespace {

Sequential adapted(int seed = 1, int width = kWidth) {
  torch::manual_seed(seed);
  Sequential net(LoraLinear(width, width), LoraLinear(width, kClasses));
  for (auto &entry : net->named_parameters())
    if (entry.key().find("lora_B") != std::string::npos)
      torch::nn::init::normal_(entry.value());
  return net;
}

std::string bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

bool sameAdapters(const torch::nn::Module &a, const torch::nn::Module &b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  for (const auto &entry : left)
    if (entry.key().find("lora_") != std::string::npos && !entry.value().equal(right[entry.key()]))
      return false;
  return true;
}

// What an error of `work` says, "" for none.
template <typename Work> std::string errorOf(Work work) {
  try {
    work();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(Files, FullDisk) {
  const auto folder = ranks::temporaryDirectory(), path = folder + "/adapters.pt";
  auto older = adapted(1), newer = adapted(2), read = adapted(3);
  save_adapters(*older, path);
  {
    SmallDisk disk(100);
    const auto error = errorOf([&] { save_adapters(*newer, path); });
    EXPECT_NE(error.find("cannot write '" + path + "' (cannot write: "), std::string::npos) << error;
  }
  EXPECT_EQ(namesIn(folder), std::vector<std::string>{"adapters.pt"});
  load_adapters(*read, path);
  EXPECT_TRUE(sameAdapters(*read, *older));
}

TEST(Files, FolderThatIsNotThere) {
  const auto path = ranks::temporaryDirectory() + "/none/adapters.pt";
  const auto error = errorOf([&] { save_adapters(*adapted(), path); });
  EXPECT_NE(error.find("cannot write '" + path + "' (cannot open: No such file or directory)"),
            std::string::npos)
      << error;
}

// Of each byte that changes, wherever it is, either the file is refused or nothing depends on it.
TEST(Files, FlippedBytes) {
  const auto folder = ranks::temporaryDirectory(), path = folder + "/adapters.pt";
  auto net = adapted(1);
  save_adapters(*net, path);
  const auto whole = bytesOf(path);
  std::mt19937 random(7);
  int refused = 0;
  constexpr int kFlips = 400;
  for (int i = 0; i < kFlips; ++i) {
    auto bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    writeBytes(path, bytes);
    auto read = adapted(2);
    if (!errorOf([&] { load_adapters(*read, path); }).empty())
      ++refused;
    else
      EXPECT_TRUE(sameAdapters(*read, *net));
  }
  EXPECT_GT(refused, kFlips * 9 / 10);
}

TEST(Files, TruncatedAndForeign) {
  const auto path = ranks::temporaryDirectory() + "/adapters.pt";
  auto net = adapted(1);
  save_adapters(*net, path);
  const auto whole = bytesOf(path);
  std::vector<size_t> lengths(32);
  std::iota(lengths.begin(), lengths.end(), whole.size() - lengths.size()); // also in the comment at its end
  for (size_t length = 0; length < whole.size(); length += whole.size() / 37)
    lengths.push_back(length);
  for (const size_t length : lengths) {
    writeBytes(path, whole.substr(0, length));
    const auto error = errorOf([&] { load_adapters(*net, path); });
    EXPECT_NE(error.find("is not a complete file"), std::string::npos) << length << ": " << error;
  }
  writeBytes(path, std::string(5000, 'x'));
  EXPECT_NE(errorOf([&] { load_adapters(*net, path); }), "");
  EXPECT_NE(errorOf([&] { load_adapters(*net, path + "no"); }).find("No such file"), std::string::npos);
}

TEST(Files, LinksAndPermissionsStay) {
  const auto folder = ranks::temporaryDirectory(), real = folder + "/step5.pt", link = folder + "/latest.pt";
  auto net = adapted(1), read = adapted(2);
  save_adapters(*adapted(3), real);
  fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  fs::create_symlink("step5.pt", link);
  save_adapters(*net, link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(real).permissions(), fs::perms(0640));
  load_adapters(*read, real);
  EXPECT_TRUE(sameAdapters(*read, *net));
}

// A process that is killed at any time of its saving leaves the last complete file, and the next one that
// saves removes what it left beside it.
TEST(Files, KilledWhileSaving) {
  const auto folder = ranks::temporaryDirectory(), path = folder + "/adapters.pt";
  constexpr int kWide = 512; // 2 MiB of adapters
  auto net = adapted(1, kWide);
  save_adapters(*net, path);
  for (int round = 0; round < 12; ++round) {
    const auto child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      while (true)
        save_adapters(*net, path);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 7 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    auto read = adapted(2, kWide);
    load_adapters(*read, path);
    EXPECT_TRUE(sameAdapters(*read, *net));
  }
  save_adapters(*net, path);
  EXPECT_EQ(namesIn(folder), std::vector<std::string>{"adapters.pt"});
}

namespace {

using Replicated = DistributedDataParallel<Sequential>;

std::string file() { return std::string(std::getenv("FOLDER")) + "/model.pt"; }

Sequential plainNet(int seed) {
  torch::manual_seed(seed);
  return Sequential(Linear(kWidth, 8), torch::nn::BatchNorm1d(8), Linear(8, kClasses));
}

template <typename Model> void takeStep(Model &model, torch::optim::Optimizer &optimizer) {
  torch::manual_seed(11);
  optimizer.zero_grad();
  model.forward(torch::randn({4, kWidth})).square().mean().backward();
  optimizer.step();
}

bool sameState(const torch::nn::Module &a, const torch::nn::Module &b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  const auto leftBuffers = a.named_buffers(), rightBuffers = b.named_buffers();
  for (const auto &entry : left)
    if (!entry.value().allclose(right[entry.key()], 1e-5, 1e-6))
      return false;
  for (const auto &entry : leftBuffers)
    if (!entry.value().allclose(rightBuffers[entry.key()]))
      return false;
  return true;
}

} // namespace

// A run that goes on from the file is the run that was not interrupted.
RANK_WORKER(files_of_replicas) {
  auto all = init_distributed();
  auto net = plainNet(1), again = plainNet(2), alone = plainNet(3);
  Replicated model(net, all);
  torch::optim::Adam adam(net->parameters(), 0.05);
  GradScaler scaler;
  takeStep(model, adam);
  model.save(file(), &adam, &scaler);
  takeStep(model, adam);
  Replicated other(again, all);
  torch::optim::Adam fresh(again->parameters(), 0.5);
  GradScaler freshScaler;
  other.load(file(), &fresh, &freshScaler);
  MUST(fresh.param_groups()[0].options().get_lr() == 0.05);
  takeStep(other, fresh);
  MUST(sameState(*net, *again));
  torch::load(alone, file()); // in one process
  other.load(file());
  MUST(sameState(*alone, *again));
  torch::optim::SGD sgd(again->parameters(), 0.1);
  MUST_THROW(other.load(file(), &sgd), UsageError, "this optimizer is 'sgd'");
  torch::optim::Adam foreign(alone->parameters(), 0.1);
  MUST_THROW(other.save(file(), &foreign), UsageError, "works on no parameter of this model");
  MUST(sameState(*alone, *again));
}

TEST(Files, ReplicasGoOnFromTheirFile) {
  ranks::runAll({"files_of_replicas", 2, -1, {{"FOLDER", ranks::temporaryDirectory()}}});
}

// The file does not say how the model was trained.
RANK_WORKER(files_of_both_wrappers) {
  auto all = init_distributed();
  auto net = plainNet(1);
  Replicated replicated(net, all);
  torch::optim::Adam adam(net->parameters(), 0.05);
  takeStep(replicated, adam);
  replicated.save(file(), &adam);
  ShardedOptions options;
  options.stage = 2;
  const auto sharded = plainNet(2);
  ShardedDataParallel<Sequential> model(sharded, all, options);
  torch::optim::Adam own(model.optimizer_parameters(), 0.5);
  model.load(file(), &own);
  takeStep(model, own);
  takeStep(replicated, adam);
  model.synchronize();
  MUST(sameState(*net, *sharded));
  all->barrier();
  model.save(file(), &own);
  takeStep(replicated, adam);
  replicated.load(file(), &adam);
  MUST(sameState(*net, *sharded));
}

TEST(Files, WrappersReadEachOthersFiles) {
  ranks::runAll({"files_of_both_wrappers", 2, -1, {{"FOLDER", ranks::temporaryDirectory()}}});
}

// Rank 0 alone writes; its error is everyone's, and training goes on.
RANK_WORKER(files_on_a_full_disk) {
  auto all = init_distributed();
  auto net = plainNet(1), before = plainNet(2);
  Replicated model(net, all);
  torch::optim::Adam adam(net->parameters(), 0.05);
  model.save(file(), &adam);
  takeStep(model, adam);
  {
    SmallDisk disk(200);
    MUST_THROW(model.save(file(), &adam), Error, "rank 0 could not save: cannot write '" + file() + "'");
  }
  torch::load(before, file());
  takeStep(model, adam);
  model.save(file(), &adam);
  auto bytes = all->rank() == 0 ? bytesOf(file()) : std::string();
  if (all->rank() == 0) {
    bytes[bytes.size() / 2] ^= 1;
    writeBytes(file(), bytes);
  }
  all->barrier();
  MUST_THROW(model.load(file(), &adam), Error, "has changed since it was written");
}

TEST(Files, FullDiskIsAnErrorOnAllRanks) {
  ranks::runAll({"files_on_a_full_disk", 2, -1, {{"FOLDER", ranks::temporaryDirectory()}}});
}
