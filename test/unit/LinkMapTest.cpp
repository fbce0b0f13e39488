// What the files of a build say about linking.
#include "analyzer/driver/input/LinkMap.h"
#include "analyzer/driver/input/NinjaFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace devicetidy;
using namespace devicetidy::driver;
using Strings = std::vector<std::string>;
using Paths = std::set<std::string>;

namespace {

class LinkMapOnDisk : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "links-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void write(const std::string &name, const std::string &text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  std::string at(const std::string &name) const { return (root / name).string(); }
  LinkMap readFor(const std::string &object) const {
    Unit unit;
    unit.objects = {at(object)};
    return LinkMap::of({unit});
  }

  std::filesystem::path root;
};

TEST(NinjaFile, LinkEdges) {
  const NinjaFile file = readNinjaFile("ninja_required_version = 1.5\n"
                                       "dir = out\n"
                                       "include CMakeFiles/rules.ninja\n"
                                       "rule CXX_EXECUTABLE_LINKER__app_\n"
                                       "  command = $PRE_LINK && c++ $in -o $TARGET_FILE $LINK_LIBRARIES\n"
                                       "build a.o: CXX_COMPILER__app_ ../a.cpp || link_order\n"
                                       "  DEFINES = -DX\n"
                                       "build app | app.map: CXX_EXECUTABLE_LINKER__app_ a.o $\n"
                                       "    with$ blank.o c$:d$$.o | $dir/libx.a || tool order\n"
                                       "  LINK_LIBRARIES = -Wl,-rpath,/x  ${dir}/liby.so -lz\n"
                                       "  POST_BUILD = cp libother.so .\n"
                                       "build libz.a: STATIC_LINKER z.o\r\n");
  EXPECT_EQ(file.includes, Strings{"CMakeFiles/rules.ninja"});
  ASSERT_EQ(file.links.size(), 2u);
  EXPECT_EQ(file.links[0].outputs, (Strings{"app", "app.map"}));
  EXPECT_EQ(file.links[0].inputs, (Strings{"a.o", "with blank.o", "c:d$.o", "out/libx.a", "out/liby.so"}));
  EXPECT_EQ(file.links[1].outputs, Strings{"libz.a"});
  EXPECT_EQ(file.links[1].inputs, Strings{"z.o"});
}

TEST(NinjaFile, DamageIsPassedOver) {
  for (const char *text :
       {"build", "build ", "build link", "build link:", "build x: LINK $", "build ${", "build link${}",
        "build link: $", "=", " = ", "build a: LINKER b |", "$", "\n\n$\n", "build link$"})
    readNinjaFile(text);
  EXPECT_TRUE(readNinjaFile("").links.empty());
}

TEST_F(LinkMapOnDisk, LinkCommandsOfMakefiles) {
  write("CMakeFiles/TargetDirectories.txt", at("CMakeFiles/app.dir") + "\n" + at("sub/CMakeFiles/x.dir") +
                                                "\n" + at("CMakeFiles/edit_cache.dir"));
  write("CMakeFiles/app.dir/link.txt", "/usr/bin/c++ -O2 @CMakeFiles/app.dir/objects1.rsp -o \"bin/my app\" "
                                       "-Wl,-rpath,x sub/libx.a -ltorch \n");
  write("CMakeFiles/app.dir/objects1.rsp", "CMakeFiles/app.dir/a.cpp.o CMakeFiles/obj.dir/o.cpp.o");
  write("sub/CMakeFiles/x.dir/link.txt", "/usr/bin/ar qc libx.a CMakeFiles/x.dir/x.cpp.o\n"
                                         "/usr/bin/ar q libx.a CMakeFiles/x.dir/more.cpp.o\n"
                                         "/usr/bin/ranlib libx.a\n");
  const LinkMap map = readFor("sub/CMakeFiles/x.dir/x.cpp.o");
  EXPECT_EQ(map.problems, Strings{});
  const std::vector<LinkedImage> images = map.images();
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].path, at("bin/my app"));
  EXPECT_EQ(images[0].objects, (Paths{at("CMakeFiles/app.dir/a.cpp.o"), at("CMakeFiles/obj.dir/o.cpp.o")}));
  EXPECT_EQ(images[0].libraryObjects,
            (Paths{at("sub/CMakeFiles/x.dir/x.cpp.o"), at("sub/CMakeFiles/x.dir/more.cpp.o")}));
}

TEST_F(LinkMapOnDisk, NinjaWithIncludedFiles) {
  write("build.ninja", "subninja obj/app.ninja\nbuild libs.so.1: CXX_SHARED_LIBRARY_LINKER__s s.o\n"
                       "build libs.so: CMAKE_SYMLINK_LIBRARY libs.so.1\n");
  write("obj/app.ninja", "build app: link obj/a.o | libs.so\nsubninja obj/app.ninja\n");
  const std::vector<LinkedImage> images = readFor("obj/a.o").images();
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].objects, Paths{at("obj/a.o")});
  EXPECT_EQ(images[0].libraryObjects, Paths{at("s.o")});
}

TEST_F(LinkMapOnDisk, NinjaWithSeveralConfigurations) {
  write("build.ninja", "include CMakeFiles/impl-Debug.ninja\n");
  write("build-Debug.ninja", "include CMakeFiles/impl-Debug.ninja\n");
  write("build-Release.ninja", "include CMakeFiles/impl-Release.ninja\n");
  for (const std::string config : {"Debug", "Release"})
    write("CMakeFiles/impl-" + config + ".ninja",
          "build " + config + "/app: CXX_EXECUTABLE_LINKER__app_" + config + " " + config + "/a.o\n");
  EXPECT_EQ(readFor("Debug/a.o").images().size(), 2u);
}

TEST_F(LinkMapOnDisk, WhatCannotBeReadIsAProblemAndNoMore) {
  std::filesystem::create_directories(root / "build.ninja"); // a directory cannot be read, by nobody
  const LinkMap map = readFor("a.o");
  ASSERT_EQ(map.problems.size(), 1u);
  EXPECT_EQ(map.problems[0].rfind(at("build.ninja") + ": ", 0), 0u);
  EXPECT_TRUE(map.images().empty());
}

TEST_F(LinkMapOnDisk, ABuildThatSaysNothing) {
  const LinkMap map = readFor("a.o");
  EXPECT_TRUE(map.problems.empty());
  EXPECT_TRUE(map.images().empty());
}

TEST(LinkMap, LibrariesNobodyLinksAreImages) {
  LinkMap map;
  map.addLink("/b/plugin.so", {"/b/p.o", "/b/libx.a"});
  map.addLink("/b/libx.a", {"/b/x.o"});
  const std::vector<LinkedImage> images = map.images();
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].objects, Paths{"/b/p.o"});
  EXPECT_EQ(images[0].libraryObjects, Paths{"/b/x.o"});
}

TEST(LinkMap, CyclesEnd) {
  LinkMap map;
  map.addLink("/b/app", {"/b/a.o", "/b/libx.a"});
  map.addLink("/b/libx.a", {"/b/x.o", "/b/liby.a"});
  map.addLink("/b/liby.a", {"/b/y.o", "/b/libx.a"});
  ASSERT_EQ(map.images().size(), 1u);
  EXPECT_EQ(map.images()[0].libraryObjects, (Paths{"/b/x.o", "/b/y.o"}));
}

} // namespace
