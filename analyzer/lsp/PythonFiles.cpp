#include "analyzer/lsp/PythonFiles.h"

#include "analyzer/driver/support/Parallel.h"
#include "analyzer/facts/Language.h"
#include "analyzer/python/Models.h"

#include <thread>

namespace devicetidy::lsp {
namespace {

bool isRead(const std::string &file) { return !isNotebook(file); }

} // namespace

PythonFiles::State PythonFiles::stateOf(const DocumentMap &documents) const {
  State result;
  cache::FileStates states;
  for (const auto &[file, number] : state)
    result[file] = textNumber(file, documents, states);
  return result;
}

bool PythonFiles::isChangedOnDisk(const DocumentMap &documents) const { return stateOf(documents) != state; }

bool PythonFiles::update(const DocumentMap &documents, const std::set<std::string> &own,
                         const std::atomic<bool> &stop) {
  python::Request request;
  request.interpreter = interpreter;
  request.stop = &stop;
  for (const std::string &file : own)
    if (isRead(file))
      request.files.push_back(file);
  for (const auto &[file, document] : documents)
    if (!document.isSaved && isRead(file))
      request.texts[file] = *document.text;
  const std::set<std::string> wanted(request.files.begin(), request.files.end());
  if (failure.empty() && wanted == documentsRead && !state.empty() && stateOf(documents) == state)
    return true;
  failure.clear();
  bool isComplete = false;
  const bool survived = driver::runGuarded([&] { isComplete = reader.read(request, failure); });
  if (stop)
    return false;
  if (!survived)
    failure = "the analyzer itself failed on a Python file";
  if (!survived || !isComplete)
    return true; // what was found last stays
  std::vector<Unit> lowered(reader.sources().size());
  driver::inParallel(driver::Task::Parse, lowered.size(), std::thread::hardware_concurrency(),
                     [&](std::size_t i) {
                       if (driver::runGuarded([&] { lowered[i] = reader.lower(i); }))
                         return;
                       lowered[i] = {};
                       lowered[i].mainFile = Name(reader.sources()[i].path);
                       lowered[i].joining = Joining::Imported;
                     });
  units = std::move(lowered);
  for (Unit &model : python::lowerModels())
    units.push_back(std::move(model));
  documentsRead = wanted;
  state.clear();
  for (const python::Source &source : reader.sources())
    state[source.path] = 0;
  state = stateOf(documents);
  return true;
}

std::vector<std::size_t> PythonFiles::roots() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < units.size(); ++i)
    if (documentsRead.count(units[i].mainFile.str()))
      result.push_back(i);
  return result;
}

std::set<Name> PythonFiles::rootFiles() const {
  std::set<Name> result;
  for (const std::string &file : documentsRead)
    result.insert(Name(file));
  return result;
}

std::string PythonFiles::whyLeftOut(const std::string &file) const {
  return isPython(file) && !isRead(file) ? "a notebook is analysed by the command" : std::string();
}

} // namespace devicetidy::lsp
