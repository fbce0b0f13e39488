#include "analyzer/driver/input/ProjectFiles.h"

#include "gtest/gtest.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace devicetidy::driver;
namespace fs = std::filesystem;

namespace {

/// A directory tree that lives as long as a test.
class ProjectFilesTest : public testing::Test {
protected:
  ProjectFilesTest()
      : root(fs::temp_directory_path() / ("device-tidy-project-" + std::to_string(::getpid()))) {
    fs::remove_all(root);
    fs::create_directories(root);
  }
  ~ProjectFilesTest() override { fs::remove_all(root); }

  /// Makes an empty file, or one with `text`, and gives its path.
  std::string file(const std::string &name, const std::string &text = "") {
    const fs::path path = root / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  /// The project of these sources.
  CommandSet sources(const std::vector<std::string> &names) {
    CommandSet commands;
    for (const std::string &name : names) {
      commands.databaseFiles.push_back(file(name));
      commands.commands.push_back({root.string(), commands.databaseFiles.back(), {}});
    }
    return commands;
  }

  std::string path(const std::string &name) const { return (root / name).string(); }

  const fs::path root;
};

TEST_F(ProjectFilesTest, IsWhatTheSourcesShare) {
  const ProjectFiles project(sources({"proj/src/a.cpp", "proj/src/sub/b.cpp"}));
  EXPECT_TRUE(project.isProject(path("proj/src/sub/b.h")));
  EXPECT_TRUE(project.isProject(path("proj/include/c.h"))); // beside src/
  EXPECT_FALSE(project.isProject(path("elsewhere/c.h")));
  EXPECT_FALSE(project.isProject("/usr/include/stdio.h"));
}

TEST_F(ProjectFilesTest, IsTheRepository) {
  file("proj/.git/HEAD");
  const ProjectFiles project(sources({"proj/apps/train/a.cpp"}));
  EXPECT_TRUE(project.isProject(path("proj/libs/x.h")));
  EXPECT_FALSE(project.isProject(path("other/x.h")));
}

TEST_F(ProjectFilesTest, IsWhatCMakeWasConfiguredFor) {
  CommandSet commands = sources({"proj/apps/train/a.cpp"});
  file("out/CMakeCache.txt", "# a cache\nCMAKE_HOME_DIRECTORY:INTERNAL=" + path("proj") + "\n");
  commands.databaseDirectory = path("out");
  EXPECT_TRUE(ProjectFiles(commands).isProject(path("proj/libs/x.h")));
}

TEST_F(ProjectFilesTest, LeavesOutVendoredDirectories) {
  const ProjectFiles project(sources({"p/a.cpp", "p/third_party/lib/b.cpp"}));
  EXPECT_FALSE(project.isProject(path("p/third_party/lib/b.h")));
  EXPECT_FALSE(project.isProject(path("p/build/_deps/fmt-src/fmt.h")));
  EXPECT_TRUE(project.isProject(path("p/third_party/lib/b.cpp"))); // it was asked for
  EXPECT_FALSE(project.isOwnPlace(path("p/third_party/lib/b.cpp")));
}

TEST_F(ProjectFilesTest, LeavesOutAVendoredLibTorch) {
  file("p/dist/include/ATen/ATen.h");
  const ProjectFiles project(sources({"p/a.cpp", "p/b/c.cpp"}));
  EXPECT_FALSE(project.isProject(path("p/dist/include/ATen/ATen.h")));
  EXPECT_FALSE(project.isProject(path("p/dist/include/c10/util/x.h")));
  EXPECT_TRUE(project.isProject(path("p/b/c.h")));
}

TEST_F(ProjectFilesTest, LeavesOutALibTorchInTheRoot) {
  file("p/torch/csrc/api/x.h");
  const ProjectFiles project(sources({"p/a.cpp", "p/b/c.cpp"}));
  EXPECT_FALSE(project.isProject(path("p/torch/csrc/api/x.h")));
  EXPECT_FALSE(project.isProject(path("p/c10/core/Device.h")));
  EXPECT_TRUE(project.isProject(path("p/b/c.h")));
}

TEST_F(ProjectFilesTest, LeavesOutSystemDirectoriesBelowTheRoot) {
  CommandSet commands = sources({"p/a.cpp", "p/b/c.cpp"});
  commands.systemDirectories = {path("p/deps/inc"), path("p"), "/usr/include"};
  const ProjectFiles project(commands);
  EXPECT_FALSE(project.isProject(path("p/deps/inc/x.h")));
  EXPECT_TRUE(project.isProject(path("p/b/x.h"))); // the root itself on -isystem changes nothing
}

TEST_F(ProjectFilesTest, LeavesOutLargeHeadersWithoutLibTorch) {
  const std::string parser(300'000, ' ');
  const ProjectFiles project(sources({"proj/src/a.cpp"}));
  EXPECT_FALSE(project.isProject(file("proj/src/json.hpp", parser)));
  EXPECT_TRUE(project.isProject(file("proj/src/generated.h", parser + "#include <torch/torch.h>")));
  EXPECT_TRUE(project.isProject(file("proj/src/small.hpp", "template <class T> class Parser;")));
}

TEST_F(ProjectFilesTest, MayHaveSeveralRoots) {
  file("one/.git/HEAD");
  file("two/.git/HEAD");
  const ProjectFiles project(sources({"one/a.cpp", "two/b.cpp"}));
  EXPECT_TRUE(project.isProject(path("one/x.h")));
  EXPECT_TRUE(project.isProject(path("two/x.h")));
  EXPECT_FALSE(project.isProject(path("three/x.h")));
}

} // namespace
