#include "analyzer/cache/Inputs.h"

#include <algorithm>
#include <map>

namespace devicetidy::cache {
namespace {

void writeStamp(ByteWriter &writer, const Stamp &stamp) {
  writer.number(stamp.size);
  writer.number(stamp.inode);
  writer.number(static_cast<std::uint64_t>(stamp.modified));
  writer.number(static_cast<std::uint64_t>(stamp.changed));
}

Stamp readStamp(ByteReader &reader) {
  Stamp stamp;
  stamp.size = reader.number();
  stamp.inode = reader.number();
  stamp.modified = static_cast<std::int64_t>(reader.number());
  stamp.changed = static_cast<std::int64_t>(reader.number());
  return stamp;
}

Freshness checkFile(const InputFile &file, FileStates &states, const IsProjectFile &isProject) {
  const std::optional<Stamp> stamp = states.stamp(file.path);
  if (!stamp || isProject(file.path.str()) != file.isProject)
    return Freshness::Stale;
  if (*stamp == file.stamp)
    return Freshness::Fresh;
  const std::optional<Digest> digest = states.digest(file.path);
  return digest && *digest == file.digest ? Freshness::Touched : Freshness::Stale;
}

Freshness checkAbsent(const AbsentFiles &absent, FileStates &states) {
  const std::optional<Stamp> stamp = states.stamp(absent.directory);
  if (stamp && *stamp == absent.stamp)
    return Freshness::Fresh;
  for (const std::string &path : absent.paths)
    if (states.stamp(Name(path)))
      return Freshness::Stale;
  return Freshness::Touched;
}

} // namespace

Freshness Inputs::check(FileStates &states, const IsProjectFile &isProject) const {
  Freshness result = Freshness::Fresh;
  for (const InputFile &file : files) {
    const Freshness one = checkFile(file, states, isProject);
    if (one == Freshness::Stale)
      return one;
    if (one == Freshness::Touched)
      result = one;
  }
  for (const AbsentFiles &each : absent) {
    const Freshness one = checkAbsent(each, states);
    if (one == Freshness::Stale)
      return one;
    if (one == Freshness::Touched)
      result = one;
  }
  for (const ListedDirectory &directory : directories) {
    const std::optional<Stamp> stamp = states.stamp(directory.path);
    if (!stamp || *stamp != directory.stamp)
      return Freshness::Stale;
  }
  return result;
}

void Inputs::renew(FileStates &states) {
  for (InputFile &file : files)
    file.stamp = states.keepable(states.stamp(file.path).value_or(Stamp{}));
  for (AbsentFiles &each : absent)
    each.stamp = states.keepable(states.stamp(each.directory).value_or(Stamp{}));
}

void Inputs::write(ByteWriter &writer) const {
  writer.number(files.size());
  for (const InputFile &file : files) {
    writer.text(file.path.view());
    writeStamp(writer, file.stamp);
    writer.digest(file.digest);
    writer.number((file.isProject ? 1u : 0u) | (file.isSource ? 2u : 0u));
  }
  writer.number(absent.size());
  for (const AbsentFiles &each : absent) {
    writer.text(each.directory.view());
    writeStamp(writer, each.stamp);
    writer.number(each.paths.size());
    for (const std::string &path : each.paths)
      writer.text(path);
  }
  writer.number(directories.size());
  for (const ListedDirectory &directory : directories) {
    writer.text(directory.path.view());
    writeStamp(writer, directory.stamp);
  }
}

std::optional<Inputs> Inputs::read(ByteReader &reader) {
  Inputs result;
  result.files.resize(reader.count());
  for (InputFile &file : result.files) {
    file.path = Name(reader.text());
    file.stamp = readStamp(reader);
    file.digest = reader.digest();
    const std::uint64_t flags = reader.number();
    file.isProject = (flags & 1) != 0;
    file.isSource = (flags & 2) != 0;
  }
  result.absent.resize(reader.count());
  for (AbsentFiles &each : result.absent) {
    each.directory = Name(reader.text());
    each.stamp = readStamp(reader);
    each.paths.resize(reader.count());
    for (std::string &path : each.paths)
      path = reader.text();
  }
  result.directories.resize(reader.count());
  for (ListedDirectory &directory : result.directories) {
    directory.path = Name(reader.text());
    directory.stamp = readStamp(reader);
  }
  if (!reader.ok)
    return std::nullopt;
  return result;
}

std::optional<Inputs> makeInputs(const FileTrace &trace, const std::vector<Name> &sources, FileStates &states,
                                 const IsProjectFile &isProject) {
  Inputs result;
  for (const FileTrace::Read &read : trace.reads) {
    const std::optional<Stamp> stamp = states.stamp(read.path);
    if (!stamp || stamp->size != read.size || stamp->inode != read.inode || stamp->modified != read.modified)
      return std::nullopt;
    const std::optional<Digest> digest = states.digest(read.path);
    if (!digest)
      return std::nullopt;
    const bool isSource = std::binary_search(sources.begin(), sources.end(), read.path);
    result.files.push_back(
        {read.path, states.keepable(*stamp), *digest, isProject(read.path.str()), isSource});
  }
  std::map<Name, std::vector<std::string>> byDirectory;
  for (const std::string &path : trace.absent) {
    if (states.stamp(Name(path)))
      return std::nullopt;
    byDirectory[states.existingDirectory(path)].push_back(path);
  }
  for (auto &[directory, paths] : byDirectory)
    result.absent.push_back(
        {directory, states.keepable(states.stamp(directory).value_or(Stamp{})), std::move(paths)});
  for (const std::string &path : trace.directories)
    if (const std::optional<Stamp> stamp = states.stamp(Name(path)))
      result.directories.push_back({Name(path), *stamp});
  return result;
}

} // namespace devicetidy::cache
