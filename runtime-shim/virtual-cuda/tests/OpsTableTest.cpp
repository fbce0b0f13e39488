// The rule table against what runs: one operator of every family, with all placements of its operands.
#include "OpCases.h"
#include "TestSupport.h"

#include <set>

using namespace support;
using namespace opcases;

namespace {

// "" or the device error; any other error fails the test.
std::string deviceError(const Case &op, Tensors tensors) {
  std::string text = thrown([&] { op.run(tensors); });
  EXPECT_TRUE(text.empty() || isDeviceError(text)) << op.name << ": " << text;
  return text;
}

void expect(Expect expected, const Case &op, Tensors tensors, const std::string &what) {
  std::string text = deviceError(op, std::move(tensors));
  EXPECT_EQ(text.empty(), expected == y) << op.name << " with " << what << ": " << text;
}

TEST(OpsTable, KnowsTextsAboutDevices) {
  for (const char *text :
       {"Expected all tensors to be on the same device, but got index is on cpu",
        "Input type (CUDAFloatType) and weight type (CPUFloatType) should be the same",
        "expected device cuda:0 but got device cpu for value tensor",
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0",
        "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
        "Expected a 'cuda' device type for generator but found 'cpu'"})
    EXPECT_TRUE(isDeviceError(text)) << text;
  for (const char *text : {"CUDA error: device-side assert triggered", "The size of tensor a (3) must match",
                           "CUDA error: no kernel image is available for execution on the device",
                           "invalid device ordinal", "the dtypes should be the same"})
    EXPECT_FALSE(isDeviceError(text)) << text;
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
      if (op.toOther[i] == n)
        expect(movesForeignScalar(op, i) ? y : n, op, movedTo(tensors, i, gpu1),
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
