#include "analyzer/driver/input/Arguments.h"
#include "analyzer/driver/input/CudaHeaders.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace devicetidy::driver;
using Strings = std::vector<std::string>;

namespace {

/// What is left of `options`, without the compiler, without what the adjuster adds, and without the file.
Strings adjusted(Strings options) {
  options.insert(options.begin(), "g++");
  options.push_back("a.cpp");
  Strings all = adjustArguments(options, "/p/a.cpp", "/p").arguments;
  EXPECT_EQ(all.front(), "g++");
  EXPECT_EQ(all.back(), "/p/a.cpp");
  const auto added = std::find_if(
      all.begin(), all.end(), [](const std::string &each) { return each.rfind("-resource-dir=", 0) == 0; });
  EXPECT_NE(added, all.end());
  // CUDA's headers come last, on a machine without CUDA.
  return {all.begin() + 1, *(added - 1) == "-I" + cudaStandIns() ? added - 1 : added};
}

TEST(Arguments, KeepsWhatTheParseNeeds) {
  const Strings needed = {"-std=gnu++17", "-D",   "A=1",      "-I",         "inc", "-isystem",
                          "/sys",         "-U",   "B",        "-O2",        "-g",  "-march=native",
                          "-fPIC",        "-m64", "-pthread", "-nostdinc++"};
  EXPECT_EQ(adjusted(needed), needed);
}

TEST(Arguments, DropsOutputs) {
  EXPECT_EQ(adjusted({"-c", "-o", "a.o", "-MD", "-MT", "a.o", "-MFa.d", "-MMD", "-MP", "-save-temps=obj",
                      "-Wp,-MMD,x"}),
            Strings{});
}

TEST(Arguments, KeepsMacrosForThePreprocessor) { EXPECT_EQ(adjusted({"-Wp,-DA=1,-MMD"}), Strings{"-DA=1"}); }

TEST(Arguments, DropsWhatOnlyGccKnows) {
  EXPECT_EQ(
      adjusted({"-fno-canonical-system-headers", "-mno-direct-extern-access", "-fmodules-ts", "-fconcepts",
                "-fplugin=x.so", "-wrapper", "gdb,--args", "-fdiagnostics-generate-patch"}),
      Strings{});
}

TEST(Arguments, DropsWarningsButNotTheirAbsence) {
  EXPECT_EQ(
      adjusted({"-Wall", "-Werror", "-Werror=unused", "-Wno-narrowing", "-pedantic-errors", "-Winvalid-pch"}),
      Strings{"-Wno-narrowing"});
}

TEST(Arguments, DropsWhatOnlyNvccKnows) {
  EXPECT_EQ(
      adjusted({"--expt-relaxed-constexpr", "-gencode", "arch=compute_80,code=sm_80", "-arch=sm_80", "-ccbin",
                "g++", "--generate-code=arch=compute_70", "-Xptxas", "-v", "--use_fast_math"}),
      Strings{});
}

TEST(Arguments, PassesOnWhatNvccPassesOn) {
  EXPECT_EQ(adjusted({"-Xcompiler", "-fPIC,-pthread", "-Xcompiler=-O2"}),
            (Strings{"-fPIC", "-pthread", "-O2"}));
}

TEST(Arguments, ReadsTheTextOfAPrecompiledHeader) {
  const Strings text = {"-Xclang", "-include", "-Xclang", "/p/pch.hxx"};
  EXPECT_EQ(adjusted({"-include", "/p/pch.hxx", "-Winvalid-pch"}), text);
  EXPECT_EQ(adjusted({"-Xclang", "-include-pch", "-Xclang", "/p/pch.hxx.pch", "-Xclang", "-include",
                      "-Xclang", "/p/pch.hxx", "-Xclang", "-fno-pch-timestamp"}),
            text);
}

TEST(Arguments, DropsPluginsOfOtherCompilers) {
  EXPECT_EQ(adjusted({"-Xclang", "-load", "-Xclang", "x.so", "-Xclang", "-add-plugin", "-Xclang", "x",
                      "-fpass-plugin=y.so", "-mllvm", "-inline-threshold=1"}),
            Strings{});
}

TEST(Arguments, TakesOneArchitectureOfAUniversalBinary) {
  EXPECT_EQ(adjusted({"-arch", "x86_64", "-arch", "arm64"}), (Strings{"-arch", "x86_64"}));
}

TEST(Arguments, KnowsTheLanguage) {
  const auto language = [](const Strings &arguments, const std::string &file) {
    return adjustArguments(arguments, file, "/p").language;
  };
  EXPECT_EQ(language({"clang++", "-x", "cuda", "a.cpp"}, "/p/a.cpp"), Language::Cuda);
  EXPECT_EQ(language({"nvcc", "-x", "cu", "a.cpp"}, "/p/a.cpp"), Language::Cuda);
  EXPECT_EQ(language({"nvcc", "-x", "c++", "a.cu"}, "/p/a.cu"), Language::Cxx);
  EXPECT_EQ(language({"hipcc", "-x", "hip", "a.cpp"}, "/p/a.cpp"), Language::Hip);
  EXPECT_EQ(language({"nvcc", "a.cu"}, "/p/a.cu"), Language::Cuda);
  EXPECT_EQ(language({"hipcc", "a.hip"}, "/p/a.hip"), Language::Hip);
  EXPECT_EQ(language({"gcc", "a.c"}, "/p/a.c"), Language::Other);
  EXPECT_EQ(language({"g++", "a.C"}, "/p/a.C"), Language::Cxx);
}

TEST(Arguments, ReadsTheHostsPartOfCuda) {
  const Strings all = adjustArguments({"nvcc", "-x", "cu", "--gpu-architecture=sm_80",
                                       "--cuda-gpu-arch=sm_80", "-DA", "a.cu"},
                                      "/p/a.cu", "/p")
                          .arguments;
  const auto has = [&](const std::string &argument) {
    return std::find(all.begin(), all.end(), argument) != all.end();
  };
  EXPECT_TRUE(has("--cuda-host-only"));
  EXPECT_TRUE(has("-I" + cudaStandIns()));
  EXPECT_TRUE(has("A"));
  EXPECT_FALSE(has("cu"));
  EXPECT_FALSE(has("--gpu-architecture=sm_80"));
  EXPECT_FALSE(has("--cuda-gpu-arch=sm_80"));
}

TEST(Arguments, LendsTheHeadersOfCudaWhereThereAreNone) {
  ASSERT_FALSE(cudaStandIns().empty());
  const std::string standIns = "-I" + cudaStandIns();
  const auto has = [&](const Strings &arguments) {
    const Strings all = adjustArguments(arguments, "/p/a.cpp", "/p").arguments;
    return std::find(all.begin(), all.end(), standIns) != all.end();
  };
  if (!findsCuda({})) // of this machine
    EXPECT_TRUE(has({"g++", "-I", "inc", "a.cpp"}));
  EXPECT_FALSE(has({"g++", "-isystem", cudaStandIns(), "a.cpp"})); // which hold what is looked for
}

TEST(Arguments, SearchesTheUsersHeadersBeforeTheStandIns) {
  const std::filesystem::path sdk = std::filesystem::path(testing::TempDir()) / "device-tidy-sdk";
  std::filesystem::create_directories(sdk);
  std::ofstream(sdk / "cuda_runtime_api.h") << "#error not for clang\n";
  const Strings all =
      adjustArguments({"nvcc", "-I" + sdk.string(), "-Invtx", "a.cu"}, "/p/a.cu", "/p").arguments;
  std::filesystem::remove_all(sdk);
  const auto place = [&](const std::string &folder) {
    return std::find_if(all.begin(), all.end(),
                        [&](const std::string &each) { return each == folder || each == "-I" + folder; }) -
           all.begin();
  };
  EXPECT_LT(place("nvtx"), place(cudaStandIns()));
  EXPECT_LT(place(cudaStandIns()), place(sdk.string()));
  EXPECT_LT(place(sdk.string()), static_cast<std::ptrdiff_t>(all.size()));
}

TEST(Arguments, FindsSystemDirectories) {
  EXPECT_EQ(systemDirectories({"g++", "-isystem", "../torch", "-isystem/abs/x", "-I", "mine"}, "/p/build"),
            (Strings{"/p/torch", "/abs/x"}));
}

TEST(Arguments, SurvivesNonsense) {
  EXPECT_EQ(adjusted({"", "-", "--", "-Xcompiler"}), Strings{});
  EXPECT_EQ(adjustArguments({}, "/p/a.cpp", "/p").arguments.front(), "clang++");
}

} // namespace
