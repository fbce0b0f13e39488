#include "analyzer/driver/options/ModelFiles.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/frontend/Lower.h"
#include "analyzer/models/bodies/Bodies.h"
#include "analyzer/solve/Solve.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace devicetidy::driver {
namespace {

// Where bodies find dt.h. Nothing on disk is looked at.
constexpr const char *headerFolder = "/device-tidy-models/";

std::string wrongWord(const models::Effect &effect) {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (std::string_view word : modelWords())
      all.emplace_back(word);
    return all;
  }();
  const bool isWord = effect.kind == models::Effect::Kind::Call || effect.kind == models::Effect::Kind::Name;
  if (!isWord || isModelWord(effect.word, effect.kind == models::Effect::Kind::Call))
    return {};
  return fmt::format("unknown word '{}'{}", effect.word, config::suggestion(effect.word, words));
}

bool isBodies(llvm::StringRef file) {
  const llvm::StringRef extension = llvm::sys::path::extension(file);
  return extension == ".cpp" || extension == ".cc" || extension == ".cxx";
}

bool lowerBodies(const std::string &file, const std::string &text, models::UserModels &models,
                 std::string &error) {
  const frontend::UnsavedFiles texts{{file, text},
                                     {std::string(headerFolder) + "dt.h", std::string(models::bodyHeader())}};
  frontend::LowerOptions options;
  options.isProjectFile = [](const std::string &) { return true; };
  frontend::LowerExtras extras;
  extras.unsaved = &texts;
  Unit unit = frontend::lowerTranslationUnit(
      "/", file, {"clang++", "-std=c++17", "-nostdinc", std::string("-I") + headerFolder, file}, options,
      extras);
  if (!unit.parseErrors.empty())
    error = unit.parseErrors.front();
  else if (!unit.opaqueExpressions.empty())
    error = fmt::format("{}:1:1: error: a model body cannot use {}", file,
                        unit.opaqueExpressions.begin()->first.str());
  else if (!unit.skippedFunctions.empty())
    error = fmt::format("{}:1:1: error: the model body {} cannot be read", file,
                        unit.skippedFunctions.front().str());
  else
    models.units.push_back(std::move(unit));
  return error.empty();
}

struct FileRead {
  std::string text;
  ModelsPointer models;
};

ModelsPointer readFile(const config::Sourced &file, std::string &error) {
  static std::mutex access;
  static std::map<std::string, FileRead> known;
  const auto buffer = llvm::MemoryBuffer::getFile(file.text);
  if (!buffer) {
    error = fmt::format("{}: error: Models: cannot read {}: {}", file.origin, file.text,
                        buffer.getError().message());
    return nullptr;
  }
  const std::string text = (*buffer)->getBuffer().str();
  const std::lock_guard lock(access);
  FileRead &read = known[file.text];
  if (read.models && read.text == text)
    return read.models;
  auto models = std::make_shared<models::UserModels>();
  const bool isRight = isBodies(file.text)
                           ? lowerBodies(file.text, text, *models, error)
                           : models::readUserModels(file.text, text, wrongWord, *models, error);
  if (!isRight)
    return nullptr;
  read = {text, models};
  return models;
}

} // namespace

ModelsPointer readModelFiles(const std::vector<config::Sourced> &files, std::string &error) {
  if (files.empty())
    return nullptr;
  auto all = std::make_shared<models::UserModels>();
  for (const config::Sourced &file : files) {
    const ModelsPointer read = readFile(file, error);
    if (!read)
      return nullptr;
    all->add(*read);
  }
  if (!all->units.empty())
    all->bodies = std::make_shared<const models::BodyIndex>(all->units);
  return all;
}

} // namespace devicetidy::driver
