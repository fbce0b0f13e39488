#include "records/Frame.h"
#include "records/AddressLookup.h"
#include "records/SourceLines.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <unistd.h>

namespace {

using namespace devicerun;

TEST(Frame, Parses) {
  std::optional<Frame> frame = parseFrame("/home/me/a b:c/train.cpp:42 Net::step(at::Tensor)");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->file, "/home/me/a b:c/train.cpp");
  EXPECT_EQ(frame->line, 42);
  EXPECT_EQ(frame->function, "Net::step(at::Tensor)");
  EXPECT_EQ(parseFrame("a.cpp:7:13 f")->line, 7);
  EXPECT_EQ(parseFrame("a.cpp:7:13 f")->function, "f");
  EXPECT_EQ(parseFrame("a.cpp:7")->line, 7);
  EXPECT_EQ(parseFrame("a.cpp:7 (discriminator 2)")->line, 7);
  for (const char *wrong : {"", "main", "??:0", "a.cpp:?", ":7 f", "a.cpp:0 f", "/bin/x+0x12"})
    EXPECT_FALSE(parseFrame(wrong)) << wrong;
}

TEST(Frame, ParsesAddresses) {
  std::optional<Address> address = parseAddress("/opt/a+0x1/train+0x1a2b");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->module, "/opt/a+0x1/train");
  EXPECT_EQ(address->offset, 0x1a2bU);
  for (const char *wrong : {"", "+0x12", "train+0x", "train+0xzz", "train+12", "a.cpp:3 operator+"})
    EXPECT_FALSE(parseAddress(wrong)) << wrong;
}

TEST(Frame, ProjectCode) {
  EXPECT_TRUE(isProjectFile("/home/me/net.cpp"));
  EXPECT_TRUE(isProjectFile("src/net.cpp"));
  EXPECT_FALSE(isProjectFile("/usr/include/torch/csrc/api/include/torch/nn/module.h"));
  EXPECT_FALSE(isProjectFile("/opt/libtorch/include/ATen/core/TensorBody.h"));
  EXPECT_FALSE(isProjectFile("../sysdeps/x86_64/start.S"));
  EXPECT_FALSE(isProjectFile("??"));
  EXPECT_TRUE(isProjectModule("/home/me/build/train"));
  EXPECT_FALSE(isProjectModule("/opt/libtorch/lib/libtorch_cpu.so"));
  EXPECT_FALSE(isProjectModule("/opt/libtorch/lib/libtorch_cpu.so.2.6"));
  EXPECT_FALSE(isProjectModule("/opt/libtorch/lib/libc10.so"));
  for (const char *own :
       {"/home/me/libtorchnet.so", "/home/me/libtorch_ext.so.1", "/home/me/libc10d_plugin.so"})
    EXPECT_TRUE(isProjectModule(own)) << own;
  EXPECT_FALSE(isProjectModule("/usr/lib/x86_64-linux-gnu/libfoo.so"));
}

TEST(Frame, ResolverKeepsProjectFramesInOrder) {
  FrameResolver resolver;
  std::vector<Frame> places = resolver.places(
      {"/usr/include/torch/x.h:3 f", "/home/me/b.cpp:2 g", "nonsense", "/home/me/a.cpp:1 main"});
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].file, "/home/me/b.cpp");
  EXPECT_EQ(places[1].line, 1);
  EXPECT_FALSE(resolver.missedLines());
}

TEST(Frame, ResolverNoticesMissingDebugInformation) {
  FrameResolver resolver;
  EXPECT_TRUE(resolver.places(std::string("/no/such/program+0x10")).empty());
  EXPECT_TRUE(resolver.missedLines() || resolver.missedTool());
}

/// The lines that the compiler's line stands for, and the one that calls `op`.
class ClosingBrace : public testing::Test {
protected:
  void TearDown() override { std::remove(path.c_str()); }
  std::string linesOf(const std::string &text, int line, const std::string &op = "aten::stack") {
    std::ofstream(path) << text;
    SourceLines lines;
    const Frame moved = lines.outOfBrace({path, line, "f"}), call = lines.lineOfCall(moved, op);
    return std::to_string(moved.line) + "-" + std::to_string(moved.lastLine) + " " +
           std::to_string(call.line);
  }
  std::string path = testing::TempDir() + "/brace-" + std::to_string(getpid()) + ".cpp";
};

TEST_F(ClosingBrace, StandsForTheReturn) {
  const std::string text = "Batch f() {\n  if (x) { g(); }\n  return {\n    torch::stack(a), // }\n"
                           "    torch::ones(b).cuda()\n  };\n}\n";
  EXPECT_EQ(linesOf(text, 7), "3-6 4");
  EXPECT_EQ(linesOf(text, 7, "aten::to"), "3-6 5");
  EXPECT_EQ(linesOf(text, 7, "aten::unknown"), "3-6 3");
  EXPECT_EQ(linesOf(text, 6), "3-6 4");
  EXPECT_EQ(linesOf("B f() {\n  return {stack(a), stack(b)};\n}\n", 3), "2-2 2");
}

TEST_F(ClosingBrace, StandsForTheInitialiser) {
  EXPECT_EQ(linesOf("void f() {\n  Batch b{\n    stack(a),\n    ones(c)\n  };\n  use(b);\n}\n", 5), "2-5 3");
}

TEST_F(ClosingBrace, IsItselfWhereADestructorRuns) {
  EXPECT_EQ(linesOf("void f() {\n  Guard guard;\n  stack(a);\n}\n", 4), "4-0 4");
  EXPECT_EQ(linesOf("int f() {\n  Guard guard;\n  return stack(a);\n}\n", 4), "4-0 4");
  EXPECT_EQ(linesOf("B f() {\n  return {stack(a), stack(b)}; }\n", 2), "2-0 2");
}

TEST(AddressLookup, ReadsInlinedFunctions) {
  AddressLines lines =
      parseAddressLines("0x0000000000001234\ninner(int)\n/a/x.cpp:5\nouter()\n"
                        "/a/y.cpp:9 (discriminator 3)\n0x99\n??\n??:0\n0x9a\nf\n/a/z.cpp:?\n");
  ASSERT_EQ(lines.size(), 3U);
  ASSERT_EQ(lines[0x1234].size(), 2U);
  EXPECT_EQ(lines[0x1234][0].function, "inner(int)");
  EXPECT_EQ(lines[0x1234][0].line, 5);
  EXPECT_EQ(lines[0x1234][1].file, "/a/y.cpp");
  EXPECT_EQ(lines[0x1234][1].line, 9);
  ASSERT_EQ(lines[0x99].size(), 1U);
  EXPECT_FALSE(lines[0x99][0].known());
  EXPECT_FALSE(lines[0x9a][0].known());
}

} // namespace
