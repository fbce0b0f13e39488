"""The rules of Bazel 4 itself: it asks rules_java for them in each workspace, of C++ too."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
