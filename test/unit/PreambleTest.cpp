#include "analyzer/frontend/Preamble.h"
#include "analyzer/facts/Text.h"
#include "analyzer/frontend/IncludeScan.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <fstream>

using namespace devicetidy;
using namespace devicetidy::frontend;
namespace fs = llvm::sys::fs;
using Headers = std::vector<std::string>;

namespace {

/// A project in src and a library in lib.
class PreambleTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> place, real;
    ASSERT_FALSE(fs::createUniqueDirectory("preamble-test", place));
    ASSERT_FALSE(fs::real_path(place, real));
    root = real.str().str();
    for (const char *folder : {"/src", "/lib", "/lib/torch"})
      ASSERT_FALSE(fs::create_directory(root + folder));
    write("lib/torch/torch.h", "#pragma once\n"
                               "#ifdef SCALED\ntypedef long Scalar;\n#else\ntypedef int Scalar;\n#endif\n"
                               "namespace torch { struct Tensor { Scalar n; int dim() const { return n; } }; "
                               "Tensor ones(int n);\n"
                               "template <class T> T twice(T x) { return x + x; } }\n");
    write("lib/torch/script.h",
          "#pragma once\n#include <torch/torch.h>\nnamespace torch { Tensor load(); }\n");
    write("lib/plain.h", "#pragma once\nint plain();\n");
  }
  void TearDown() override { fs::remove_directories(root); }

  void write(const std::string &name, const std::string &text) const {
    std::ofstream(root + "/" + name, std::ios::binary) << text;
  }

  LowerOptions options() const {
    LowerOptions result;
    result.isProjectFile = [this](const std::string &file) { return file.rfind(root + "/src/", 0) == 0; };
    return result;
  }

  std::vector<std::string> flags() const { return {"clang++", "-std=c++17", "-isystem", root + "/lib"}; }

  /// The headers; the macros in front of each, as "-NAME".
  Headers leading(const std::string &text, std::vector<std::string> more = {}) const {
    write("src/main.cpp", text);
    std::vector<std::string> arguments = flags();
    arguments.insert(arguments.end(), more.begin(), more.end());
    const LeadingIncludes found =
        leadingIncludes(root + "/src/main.cpp", {root + "/src", arguments, options().isProjectFile});
    Headers result;
    std::size_t macros = 0;
    for (const LeadingInclude &header : found.headers) {
      for (; macros < header.macrosBefore; ++macros)
        result.push_back("-" + found.macros[macros]);
      result.push_back(header.name);
    }
    EXPECT_EQ(macros, found.macros.size());
    return result;
  }

  bool build(const std::string &text, Preamble &preamble) const {
    preamble.headerFile = root + "/preamble.h";
    preamble.binaryFile = root + "/preamble.pch";
    write("preamble.h", text);
    return buildPreamble(root, flags(), options(), preamble);
  }

  Unit lower(const std::string &text, const Preamble *preamble, bool *used = nullptr,
             FileTrace *trace = nullptr) const {
    write("src/main.cpp", text);
    std::vector<std::string> arguments = flags();
    arguments.push_back(root + "/src/main.cpp");
    return lowerTranslationUnit(root + "/src", root + "/src/main.cpp", arguments, options(),
                                {trace, preamble, used});
  }

  std::string root;
};

TEST_F(PreambleTest, scanFindsHeadersInTheOrderTheyAreMet) {
  write("src/own.h", "#pragma once\n#include <torch/script.h>\n#include \"deep.h\"\n");
  write("src/deep.h", "#ifndef DEEP_H\n#define DEEP_H\n#include \"plain.h\"\n#endif\n");
  EXPECT_EQ((Headers{"torch/script.h", "plain.h", "torch/torch.h", "vector"}),
            leading("// first\n#include \"own.h\"\nint x;\n#include <torch/torch.h>\n#include <vector>\n"));
}

TEST_F(PreambleTest, scanLeavesOutWhatIsConditional) {
  EXPECT_EQ((Headers{"plain.h"}), leading("#ifdef WITH_TORCH\n#include <torch/torch.h>\n#endif\n"
                                          "#include <plain.h>\n"));
  write("src/guarded.h", "#ifndef G\n#define G\n#if A\n#include <torch/script.h>\n#endif\n"
                         "#include <torch/torch.h>\n#endif\n");
  EXPECT_EQ((Headers{"torch/torch.h"}), leading("#include \"guarded.h\"\n"));
}

TEST_F(PreambleTest, scanSaysWhichMacrosAreInFront) {
  const Headers scaled{"-SCALED", "torch/torch.h"};
  EXPECT_EQ((Headers{"plain.h", "-SCALED", "torch/torch.h"}),
            leading("#include <plain.h>\n#define SCALED\n#include <torch/torch.h>\n#define LATER\n"));
  EXPECT_EQ(scaled, leading("#undef SCALED\n#include <torch/torch.h>\n"));
  write("src/config.h", "#pragma once\n#if 1\n#define SCALED(x) 1\n#endif\n");
  EXPECT_EQ(scaled, leading("#include \"config.h\"\n#include <torch/torch.h>\n"));
  EXPECT_EQ(scaled, leading("#if X\n#include \"config.h\"\n#endif\n#include <torch/torch.h>\n"));
}

TEST_F(PreambleTest, scanEndsAtAComputedInclude) {
  EXPECT_EQ((Headers{}), leading("#include CHOSEN\n#include <torch/torch.h>\n"));
}

TEST_F(PreambleTest, knowsEveryWordOfItsText) {
  Preamble preamble;
  ASSERT_TRUE(build("#include <torch/torch.h>\n", preamble));
  const auto mentions = [&](const char *word) {
    return std::binary_search(preamble.identifiers.begin(), preamble.identifiers.end(), identifierHash(word));
  };
  // A condition, a skipped body, a parameter; not the branch that is not read.
  for (const char *word : {"SCALED", "dim", "x", "twice"})
    EXPECT_TRUE(mentions(word)) << word;
  EXPECT_FALSE(mentions("OWN_MACRO"));
}

TEST_F(PreambleTest, scanReadsNoCommentsStringsOrLaterText) {
  EXPECT_EQ((Headers{"torch/torch.h"}),
            leading("/*\n#include <plain.h>\n#define A\n*/\nconst char *s = R\"(\n#define B\n)\";\n"
                    "#  include /* c */ <torch/torch.h>\n"));
}

TEST_F(PreambleTest, scanStartsWithForcedIncludes) {
  write("src/forced.h", "#define SCALED\n");
  EXPECT_EQ(
      (Headers{"-SCALED", "torch/torch.h"}),
      leading("#include <torch/torch.h>\n", {"-Xclang", "-include", "-Xclang", root + "/src/forced.h"}));
  EXPECT_EQ((Headers{"plain.h", "torch/torch.h"}),
            leading("#include <torch/torch.h>\n", {"-Xclang", "-include", "-Xclang", "plain.h"}));
}

TEST_F(PreambleTest, scanSurvivesHeadersThatIncludeEachOther) {
  write("src/a.h", "#include \"b.h\"\n");
  write("src/b.h", "#include \"a.h\"\n#include <torch/torch.h>\n");
  EXPECT_EQ((Headers{"torch/torch.h"}), leading("#include \"a.h\"\n"));
}

TEST_F(PreambleTest, factsAreTheSameWithAndWithout) {
  Preamble preamble;
  ASSERT_TRUE(build("#include <torch/torch.h>\n#include <algorithm>\n", preamble));
  const std::string code =
      "#include <torch/torch.h>\n#include <algorithm>\n#include <vector>\n"
      "struct Net { torch::Tensor w = torch::ones(3); int size() { return w.dim(); } };\n"
      "int main() { Net net; std::vector<int> v{1, 2};\n"
      "std::sort(v.begin(), v.end(), [](auto a, auto b) { return a < b; });\n"
      "return torch::twice(net.size()); }\n";
  bool used = false;
  FileTrace plainTrace, trace;
  const Unit plain = lower(code, nullptr, nullptr, &plainTrace);
  const Unit with = lower(code, &preamble, &used, &trace);
  EXPECT_TRUE(used);
  EXPECT_TRUE(plain.parseErrors.empty());
  EXPECT_EQ(writeText(plain), writeText(with));
  // All that a plain parse reads is known to be read; what stands in for it is not.
  for (const FileTrace::Read &read : plainTrace.reads)
    EXPECT_EQ(1, std::count_if(trace.reads.begin(), trace.reads.end(),
                               [&](const FileTrace::Read &each) { return each.path == read.path; }))
        << read.path.str();
  for (const FileTrace::Read &read : trace.reads)
    EXPECT_EQ(std::string::npos, read.path.str().find("preamble.")) << read.path.str();
}

TEST_F(PreambleTest, unitThatDoesNotBearItIsParsedWithout) {
  Preamble preamble;
  ASSERT_TRUE(build("#include <torch/torch.h>\n", preamble));
  // With the header read already, the macro would come too late.
  const std::string code = "#define SCALED\n#include <torch/torch.h>\n"
                           "static_assert(sizeof(Scalar) == sizeof(long), \"\");\nint main() { return 0; }\n";
  bool used = true;
  const Unit unit = lower(code, &preamble, &used);
  EXPECT_FALSE(used);
  EXPECT_TRUE(unit.parseErrors.empty());
  EXPECT_EQ(writeText(lower(code, nullptr)), writeText(unit));
}

TEST_F(PreambleTest, missingBinaryMeansAPlainParse) {
  Preamble preamble;
  ASSERT_TRUE(build("#include <torch/torch.h>\n", preamble));
  fs::remove(preamble.binaryFile);
  const std::string code = "#include <torch/torch.h>\nint main() { return torch::ones(2).dim(); }\n";
  bool used = true;
  const Unit unit = lower(code, &preamble, &used);
  EXPECT_FALSE(used);
  EXPECT_TRUE(unit.parseErrors.empty());
  EXPECT_EQ(writeText(lower(code, nullptr)), writeText(unit));
}

TEST_F(PreambleTest, noneIsMadeOfBrokenOrProjectHeaders) {
  Preamble preamble;
  EXPECT_FALSE(build("#include <torch/none.h>\n", preamble));
  EXPECT_FALSE(fs::exists(root + "/preamble.pch"));
  write("src/own.h", "#pragma once\nint own();\n");
  write("lib/leads_back.h", "#include \"../src/own.h\"\n");
  EXPECT_FALSE(build("#include <leads_back.h>\n", preamble));
  EXPECT_FALSE(fs::exists(root + "/preamble.pch"));
}

} // namespace
