//===- MapText.h - device maps and launchers in text ------------*- C++ -*-===//
//
// Options reach loaders as text too: Python source, JSON and YAML, command lines. Nothing here knows of the
// solver.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace devicetidy {

/// Is `key` a name of a placement map (device_map, deviceMap, --device-map, m_deviceMap, model.device_map)?
bool isDeviceMapKey(std::string_view key);
/// Does a method of this name (without its class) store such a map: set_device_map, withDeviceMap,
/// device_map?
bool isDeviceMapSetter(std::string_view method);
/// The entry that such a map is kept under.
constexpr std::string_view deviceMapKey = "device_map";
/// Does a method of this name set the option that its first argument names, or give it?
bool isOptionSetter(std::string_view method);
bool isOptionGetter(std::string_view method);
/// A word that spreads a model over all devices ("auto", "balanced" ...).
bool isSpreadWord(std::string_view word);
/// The spread map that `text` assigns to such a key ("auto", "{3 entries}"); empty when it assigns none.
std::string mapInText(std::string_view text);
/// The number of entries of the mapping that `text` spells ("{'a': 0, 'b': 1}"), 0 when it spells none.
std::size_t entriesOf(std::string_view text);
/// Python source with its comments blanked out.
std::string withoutComments(std::string_view python);
/// The command in `text` that starts one process per device ("torchrun"); empty when there is none.
std::string_view launcherIn(std::string_view text);

} // namespace devicetidy
