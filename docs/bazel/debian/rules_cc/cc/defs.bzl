"""The rules of Bazel 4 itself, where a build asks rules_cc for them."""

load(":builtin.bzl", "builtin")

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite

CcInfo = builtin.CcInfo
cc_common = builtin.cc_common
