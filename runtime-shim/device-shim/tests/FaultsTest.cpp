// Faults at every phase of a training, chosen by chance: all ranks end, each with an error that names rank
// and cause, and the training goes on from the last checkpoint as if nothing had been.
//
// FAULT_ROUNDS says how many rounds, FAULT_SEED which.
#include "SmallDisk.h"
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/ShardedDataParallel.h>

#include <csignal>
#include <random>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
namespace fs = std::filesystem;

namespace {

constexpr int kRanks = 2, kSteps = 5; // the rank without the fault is the other one

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

// What a rank does wrong, from the environment; nothing when there is no FAULT_KIND.
struct Fault {
  std::string kind = variable("FAULT_KIND"), phase = variable("FAULT_PHASE");
  int rank = std::atoi(variable("FAULT_RANK").c_str()), step = std::atoi(variable("FAULT_STEP").c_str());
  int delay = std::atoi(variable("FAULT_DELAY").c_str()); ///< microseconds

  bool isDue(const std::string &inPhase, int ofRank, int inStep) const {
    return !kind.empty() && phase == inPhase && rank == ofRank && step == inStep;
  }
  void happen() const {
    if (kind == "slow")
      return std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    if (kind == "throw")
      throw std::runtime_error("injected");
    if (kind == "exit")
      std::exit(0);
    raise(kind == "stop" ? SIGSTOP : SIGKILL);
  }
  /// Some time after now, in whatever the rank does then.
  void happenSoon() const {
    std::thread([fault = *this] {
      std::this_thread::sleep_for(std::chrono::microseconds(fault.delay));
      fault.happen();
    }).detach();
  }
};

int currentRank = 0, currentStep = 0;

void strike(const char *phase) {
  static const Fault fault;
  if (fault.isDue(phase, currentRank, currentStep))
    fault.happen();
}

struct TrapPass : torch::autograd::Function<TrapPass> {
  static torch::Tensor forward(torch::autograd::AutogradContext *, torch::Tensor x) { return x.clone(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext *,
                                               torch::autograd::tensor_list gradients) {
    strike("backward");
    return gradients;
  }
};

struct TrapImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    strike("forward");
    return TrapPass::apply(x);
  }
};
TORCH_MODULE(Trap);

Sequential trappedNet(int seed) {
  torch::manual_seed(seed);
  return Sequential(Linear(kWidth, 64), Trap(), torch::nn::ReLU(), Linear(64, kClasses));
}

template <typename Model>
void save(Model &model, const std::string &file, torch::optim::Optimizer &optimizer) {
  static const Fault fault;
  if (!fault.isDue("save", currentRank, currentStep))
    return model.save(file, &optimizer);
  if (fault.kind != "disk") {
    fault.happenSoon();
    return model.save(file, &optimizer);
  }
  SmallDisk disk(static_cast<rlim_t>(fault.delay));
  model.save(file, &optimizer);
}

// How many steps the optimizer's state has taken.
int stepsTaken(torch::optim::Optimizer &optimizer) {
  const auto &state = *optimizer.state().begin()->second;
  return static_cast<int>(dynamic_cast<const torch::optim::AdamParamState &>(state).step());
}

// From the last checkpoint on.
template <typename Model>
void train(Model &model, torch::optim::Optimizer &optimizer, Communicator &all, const std::string &folder) {
  const std::string file = folder + "/model.pt";
  if (fs::exists(file)) {
    if (const Fault fault; fault.isDue("load", currentRank, 0))
      fault.happenSoon();
    model.load(file, &optimizer);
    currentStep = stepsTaken(optimizer);
  }
  const int end = variable("UNTIL").empty() ? kSteps : std::stoi(variable("UNTIL"));
  for (; currentStep < end; ++currentStep) {
    const auto batch = batchOf(currentStep, 8).part(all.rank(), all.size());
    optimizer.zero_grad();
    loss(model.forward(batch.input), batch).backward();
    strike("reduce");
    optimizer.step();
    try {
      save(model, file, optimizer);
    } catch (const PeerError &) {
      throw;
    } catch (const Error &error) {
      std::cerr << "not saved: " << error.what() << std::endl; // and goes on
    }
    all.barrier();
  }
  if (end == kSteps)
    model.save(folder + "/final.pt");
}

} // namespace

RANK_WORKER(faulty_training) {
  currentRank = std::stoi(variable("RANK"));
  strike("init");
  DistributedOptions options;
  options.init_timeout = std::chrono::seconds(8);
  options.heartbeat_timeout = std::chrono::seconds(4);
  options.failure_grace = std::chrono::seconds(2);
  options.collective_timeout = std::chrono::seconds(30);
  const auto all = init_distributed(options);
  const auto net = trappedNet(1);
  if (variable("MODE") == "replicas") {
    DistributedDataParallel<Sequential> model(net, all);
    torch::optim::Adam optimizer(net->parameters(), 0.01);
    return train(model, optimizer, *all, variable("FOLDER"));
  }
  ShardedOptions sharded;
  sharded.stage = variable("MODE") == "stage 2" ? 2 : 3;
  ShardedDataParallel<Sequential> model(net, all, sharded);
  torch::optim::Adam optimizer(model.optimizer_parameters(), 0.01);
  train(model, optimizer, *all, variable("FOLDER"));
}

namespace {

using Environment = std::map<std::string, std::string>;

std::vector<ranks::Ended> runTraining(const std::string &mode, const std::string &folder, Environment fault,
                                      bool stops) {
  ranks::Launch launch{"faulty_training", kRanks, -1, std::move(fault), 90};
  launch.environment.insert({{"MODE", mode}, {"FOLDER", folder}});
  launch.survivors = stops ? 1 : 0;
  return ranks::run(launch);
}

std::vector<torch::Tensor> resultIn(const std::string &folder) {
  auto net = trappedNet(2);
  torch::load(net, folder + "/final.pt");
  return net->parameters();
}

// Of a training without faults.
const std::vector<torch::Tensor> &expectedResult(const std::string &mode) {
  static std::map<std::string, std::vector<torch::Tensor>> all;
  auto &result = all[mode];
  if (result.empty()) {
    const auto folder = ranks::temporaryDirectory();
    for (const auto &rank : runTraining(mode, folder, {}, false))
      EXPECT_EQ(rank.exitCode, 0) << rank.output;
    result = resultIn(folder);
  }
  return result;
}

void expectResult(const std::string &mode, const std::string &folder,
                  const std::vector<ranks::Ended> &ended) {
  for (const auto &rank : ended)
    ASSERT_EQ(rank.exitCode, 0) << rank.output;
  EXPECT_LT(distance(resultIn(folder), expectedResult(mode)), 1e-5);
  for (const auto &entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find(".writing-"), std::string::npos) << entry.path();
}

bool hasAny(const std::string &text, const std::vector<std::string> &parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string &part) { return text.find(part) != std::string::npos; });
}

// That the ranks without the fault ended with an error that names the other and what became of it.
void expectNamed(const std::vector<ranks::Ended> &ended, int faulty) {
  const auto number = std::to_string(faulty);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == faulty)
      continue;
    EXPECT_EQ(ended[rank].exitCode, 1) << ended[rank].output;
    EXPECT_TRUE(hasAny(ended[rank].output, {"rank " + number, "missing: " + number})) << ended[rank].output;
    EXPECT_TRUE(hasAny(ended[rank].output,
                       {"was killed", "ended with an error", "exit()", "gave no sign of life", "is gone",
                        "missing: ", "could not reach", "got no answer", "lost the store"}))
        << ended[rank].output;
  }
}

class Round {
public:
  explicit Round(unsigned seed) : random(seed) {}

  void run() {
    mode = pick<std::string>({"replicas", "stage 2", "stage 3"});
    folder = ranks::temporaryDirectory();
    const auto phase =
        pick<std::string>({"init", "forward", "backward", "reduce", "save", "save", "load", "file"});
    SCOPED_TRACE(mode + ", " + phase);
    const bool goesOn = phase == "load" || phase == "file" || below(2) == 0;
    if (goesOn) {
      for (const auto &rank : runTraining(mode, folder, {{"UNTIL", std::to_string(kFirstSteps)}}, false))
        ASSERT_EQ(rank.exitCode, 0) << rank.output;
    }
    if (phase == "file")
      damageFile();
    else
      injure(phase, goesOn ? kFirstSteps : 0);
    fs::remove_all(folder);
  }

private:
  static constexpr int kFirstSteps = 2;

  int below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
  template <typename T> T pick(const std::vector<T> &from) {
    return from[below(static_cast<int>(from.size()))];
  }

  std::string kindFor(const std::string &phase) {
    if (phase == "save")
      return pick<std::string>({"kill", "kill", "stop", "disk", "disk"});
    if (phase == "load")
      return pick<std::string>({"kill", "kill", "stop"});
    return pick<std::string>({"kill", "kill", "stop", "slow", "throw", "exit"});
  }

  // One rank fails; then all start again.
  void injure(const std::string &phase, int first) {
    const auto kind = kindFor(phase);
    const int rank = kind == "disk" ? 0 : below(kRanks);
    const int step = phase == "load" ? 0 : phase == "init" ? 0 : first + below(kSteps - 1 - first);
    SCOPED_TRACE(kind + " of rank " + std::to_string(rank) + " in step " + std::to_string(step));
    const auto ended = runTraining(mode, folder,
                                   {{"FAULT_KIND", kind},
                                    {"FAULT_PHASE", phase},
                                    {"FAULT_RANK", std::to_string(rank)},
                                    {"FAULT_STEP", std::to_string(step)},
                                    {"FAULT_DELAY", std::to_string(below(kind == "disk" ? 40000 : 4000))}},
                                   kind == "stop");
    if (kind == "slow" || kind == "disk")
      return expectResult(mode, folder, ended);
    // What comes some time later may come when the others need the rank no more.
    const bool isLate = (phase == "save" || phase == "load") && ended[1 - rank].exitCode == 0;
    if (!isLate)
      expectNamed(ended, rank);
    expectResult(mode, folder, runTraining(mode, folder, {}, false));
  }

  // All ranks refuse the file, or the byte that changed has no meaning.
  void damageFile() {
    const auto file = folder + "/model.pt";
    const auto kind = pick<std::string>({"truncated", "flipped", "flipped", "foreign"});
    SCOPED_TRACE(kind);
    std::stringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    auto bytes = content.str();
    const auto place = below(static_cast<int>(bytes.size()));
    if (kind == "truncated")
      bytes.resize(place);
    else if (kind == "foreign")
      bytes = std::string(static_cast<size_t>(place), 'x');
    else
      bytes[place] ^= static_cast<char>(1 << below(8));
    std::ofstream(file, std::ios::binary) << bytes;
    const auto ended = runTraining(mode, folder, {}, false);
    if (kind == "flipped" && ended[0].exitCode == 0)
      return expectResult(mode, folder, ended);
    for (const auto &rank : ended) {
      EXPECT_EQ(rank.exitCode, 1) << rank.output;
      EXPECT_NE(rank.output.find(file), std::string::npos) << rank.output;
    }
    EXPECT_FALSE(fs::exists(folder + "/final.pt"));
  }

  std::mt19937 random;
  std::string mode, folder;
};

int numberOf(const char *name, int otherwise) {
  return variable(name).empty() ? otherwise : std::stoi(variable(name));
}

} // namespace

TEST(Faults, Rounds) {
  const int rounds = numberOf("FAULT_ROUNDS", 4), seed = numberOf("FAULT_SEED", 1);
  for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
    SCOPED_TRACE("FAULT_SEED=" + std::to_string(seed + round) + " FAULT_ROUNDS=1");
    Round(static_cast<unsigned>(seed + round)).run();
  }
}
