// The rule table against what runs: one operator of every family, with all placements of its operands.
//
// What has to happen is written down here by hand, from PyTorch's sources, not read from the table: a wrong
// rule in the table fails.
#include "TestSupport.h"

#include <functional>
#include <set>

using namespace support;

namespace {

using Tensors = std::vector<torch::Tensor>;
using torch::indexing::Slice;

// What happens when the operand named by the column is moved away from cuda:0.
//   y    runs                       n    throws a device error
enum class Expect { Runs, Throws };
constexpr Expect y = Expect::Runs, n = Expect::Throws;

// An operator and its tensors, the first being `self`.
struct Case {
  const char *name;
  std::function<Tensors()> make; // on the CPU
  std::function<void(Tensors &)> run;
  // Per operand: moved to the CPU, and moved to cuda:1.
  std::vector<Expect> toCpu, toOther;
  // Per operand: 0-dim on the CPU; empty when the operator takes no 0-dim tensors there.
  std::vector<Expect> scalar;
};

torch::Tensor vec() { return torch::full({3}, 0.5); }
torch::Tensor mat() { return torch::full({3, 3}, 0.5); }
torch::Tensor idx() { return torch::zeros({3}, torch::kLong); }
torch::Tensor mask() { return torch::ones({3}, torch::kBool); }
constexpr Expect lerpScalar = isTorch1 ? n : y;
constexpr Expect whereScalar = isTorch1 ? n : y;

const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      // TensorIterator operators that take one 0-dim CPU tensor, which is never the output.
      {"add", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] + t[1]; }, {n, n}, {n, n}, {y, y}},
      {"add_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].add_(t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      {"add.out",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::add_out(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, y, y}},
      {"mul", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] * t[1]; }, {n, n}, {n, n}, {y, y}},
      {"div", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] / t[1]; }, {n, n}, {n, n}, {y, y}},
      {"pow",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].pow(t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"atan2",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::atan2(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"fmod",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::fmod(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"remainder",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::remainder(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"maximum",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::maximum(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"eq",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { (void)(t[0] == t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"lt_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].lt_(t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      // Composed: makes its output where self is, and an output is never the exception.
      {"logical_and",
       [] { return Tensors{mask(), mask()}; },
       [](Tensors &t) { torch::logical_and(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      {"bitwise_xor",
       [] { return Tensors{idx(), idx()}; },
       [](Tensors &t) { torch::bitwise_xor(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"mse_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::mse_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"smooth_l1_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::smooth_l1_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"isclose",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::isclose(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"lerp.Tensor",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::lerp(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {lerpScalar, lerpScalar, lerpScalar}},
      // TensorIterator operators that take none.
      {"addcmul",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::addcmul(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"addcdiv_",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { t[0].addcdiv_(t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"exp.out",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::exp_out(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"sum.out",
       [] { return Tensors{vec(), mat()}; },
       [](Tensors &t) { torch::sum_out(t[0], t[1], {0}); },
       {n, n},
       {n, n},
       {}},
      {"where",
       [] { return Tensors{mask(), vec(), vec()}; },
       [](Tensors &t) { torch::where(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {whereScalar, whereScalar, whereScalar}},
      {"binary_cross_entropy",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::binary_cross_entropy(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      // Strict operators: the generated check knows no exception.
      {"cat",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::cat({t[0], t[1], t[2]}); },
       {n, n, n},
       {n, n, n},
       {}},
      {"stack",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::stack({t[0], t[1]}); },
       {n, n},
       {n, n},
       {}},
      {"mm", [] { return Tensors{mat(), mat()}; }, [](Tensors &t) { t[0].mm(t[1]); }, {n, n}, {n, n}, {n, n}},
      {"bmm",
       [] { return Tensors{torch::ones({2, 3, 3}), torch::ones({2, 3, 3})}; },
       [](Tensors &t) { t[0].bmm(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"addmm",
       [] { return Tensors{mat(), mat(), mat()}; },
       [](Tensors &t) { torch::addmm(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"matmul",
       [] { return Tensors{mat(), vec()}; },
       [](Tensors &t) { t[0].matmul(t[1]); },
       {n, n},
       {n, n},
       {}},
      {"dot",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].dot(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"linear",
       [] { return Tensors{mat(), mat(), vec()}; },
       [](Tensors &t) { torch::linear(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"index_select",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].index_select(0, t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"gather",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].gather(0, t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"scatter_add_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].scatter_add_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"index_add_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_add_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"index_copy_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_copy_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"take",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].take(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"masked_select",
       [] { return Tensors{vec(), mask()}; },
       [](Tensors &t) { t[0].masked_select(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"masked_scatter_",
       [] { return Tensors{vec(), mask(), vec()}; },
       [](Tensors &t) { t[0].masked_scatter_(t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"embedding",
       [] { return Tensors{mat(), idx()}; },
       [](Tensors &t) { torch::embedding(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"nll_loss",
       [] { return Tensors{mat(), idx(), vec()}; },
       [](Tensors &t) { torch::nll_loss(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"cross_entropy",
       [] { return Tensors{mat(), idx()}; },
       [](Tensors &t) { torch::cross_entropy_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"huber_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::huber_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"layer_norm",
       [] { return Tensors{mat(), vec(), vec()}; },
       [](Tensors &t) { torch::layer_norm(t[0], {3}, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"batch_norm",
       [] { return Tensors{mat(), vec(), vec(), vec(), vec()}; },
       [](Tensors &t) { torch::batch_norm(t[0], t[1], t[2], t[3], t[4], true, 0.1, 1e-5, false); },
       {n, n, n, n, n},
       {n, n, n, n, n},
       {}},
      {"searchsorted",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::searchsorted(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"equal",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].equal(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"conv2d",
       [] { return Tensors{torch::ones({1, 2, 4, 4}), torch::ones({3, 2, 3, 3}), torch::ones({3})}; },
       [](Tensors &t) { torch::conv2d(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      // Families of their own.
      {"index.Tensor",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].index({t[1]}); },
       {n, y},
       {n, n},
       {}},
      {"index_put_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_put_({t[1]}, t[2]); },
       {n, y, n},
       {n, y, n},
       {}},
      {"masked_fill",
       [] { return Tensors{vec(), mask()}; },
       [](Tensors &t) { t[0].masked_fill(t[1], 1.0); },
       {n, n},
       {n, n},
       {}},
      {"masked_fill_.Tensor",
       [] { return Tensors{vec(), mask(), torch::scalar_tensor(2)}; },
       [](Tensors &t) { t[0].masked_fill_(t[1], t[2]); },
       {n, n, y},
       {n, n, y},
       {}},
      {"copy_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].copy_(t[1]); },
       {y, y},
       {y, y},
       {}},
      {"fill_.Tensor",
       [] { return Tensors{vec(), torch::scalar_tensor(2)}; },
       [](Tensors &t) { t[0].fill_(t[1]); },
       {y, y},
       {y, y},
       {}},
      {"t[i] = x",
       [] { return Tensors{mat(), vec()}; },
       [](Tensors &t) { t[0][1] = t[1]; },
       {y, y},
       {y, y},
       {}},
      {"index({Slice}) = x",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].index({Slice()}) = t[1]; },
       {y, y},
       {y, y},
       {}},
      {"_foreach_add",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::_foreach_add(Tensors{t[0]}, Tensors{t[1]}); },
       {n, n},
       {n, n},
       {}},
  };
  return all;
}

// "" or the device error; any other error fails the test.
std::string deviceError(const Case &op, Tensors tensors) {
  std::string text = thrown([&] { op.run(tensors); });
  bool device = text.find("device") != std::string::npos ||
                text.find("too many CPU scalars") != std::string::npos ||
                text.find("should be the same") != std::string::npos;
  EXPECT_TRUE(text.empty() || device) << op.name << ": " << text;
  return text;
}

Tensors onFirst(const Case &op) {
  Tensors tensors = op.make();
  for (torch::Tensor &tensor : tensors)
    tensor = tensor.to(gpu0);
  return tensors;
}

Tensors movedTo(Tensors tensors, size_t operand, torch::Device device) {
  tensors[operand] = tensors[operand].to(device);
  return tensors;
}

void expect(Expect expected, const Case &op, Tensors tensors, const std::string &what) {
  std::string text = deviceError(op, std::move(tensors));
  EXPECT_EQ(text.empty(), expected == y) << op.name << " with " << what << ": " << text;
}

TEST(OpsTable, RunsWithAllOperandsOnOneDevice) {
  for (const Case &op : cases()) {
    expect(y, op, op.make(), "all operands on the CPU");
    expect(y, op, onFirst(op), "all operands on cuda:0");
    Tensors tensors = op.make();
    for (torch::Tensor &tensor : tensors)
      tensor = tensor.to(torch::Device("cuda:3"));
    expect(y, op, tensors, "all operands on cuda:3");
  }
}

TEST(OpsTable, MovedOperands) {
  for (const Case &op : cases()) {
    size_t count = op.make().size();
    ASSERT_EQ(op.toCpu.size(), count) << op.name;
    ASSERT_EQ(op.toOther.size(), count) << op.name;
    for (size_t i = 0; i < count; ++i) {
      std::string operand = "operand " + std::to_string(i);
      expect(op.toCpu[i], op, movedTo(onFirst(op), i, cpu), operand + " on the CPU");
      expect(op.toOther[i], op, movedTo(onFirst(op), i, gpu1), operand + " on cuda:1");
    }
  }
}

TEST(OpsTable, ScalarOperands) {
  for (const Case &op : cases()) {
    for (size_t i = 0; i < op.scalar.size(); ++i) {
      Tensors tensors = onFirst(op);
      tensors[i] = tensors[i].flatten()[0].clone().cpu();
      expect(op.scalar[i], op, tensors, "0-dim operand " + std::to_string(i) + " on the CPU");
      // A 0-dim tensor of another GPU never joins; where() of 2.x moves all but the first.
      bool moves = !isTorch1 && i > 0 && op.name == std::string("where");
      if (op.toOther[i] == n)
        expect(moves ? y : n, op, movedTo(tensors, i, gpu1),
               "0-dim operand " + std::to_string(i) + " on cuda:1");
    }
  }
}

// Composed of other operators, and they check shapes on the way to the one that checks devices.
const std::set<std::string> kShapesFirst = {"stack", "cross_entropy", "batch_norm", "masked_fill"};

TEST(OpsTable, DevicesAreCheckedBeforeShapes) {
  for (const Case &op : cases()) {
    // A shape that fits nothing, in the last operand.
    size_t last = op.make().size() - 1;
    if (op.toCpu[last] == y || kShapesFirst.count(op.name))
      continue;
    Tensors tensors = onFirst(op);
    tensors[last] = torch::ones({7, 5}, tensors[last].options().device(cpu));
    std::string text = thrown([&] { op.run(tensors); });
    bool device =
        text.find("device") != std::string::npos || text.find("should be the same") != std::string::npos;
    EXPECT_TRUE(device) << op.name << ": " << text;
  }
}

} // namespace
