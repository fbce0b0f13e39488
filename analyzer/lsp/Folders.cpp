#include "analyzer/lsp/Folders.h"

#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/LSP/Protocol.h"

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

/// Adds the folder of a URI. Only file: URIs can be analysed.
void add(const json::Value *uri, std::vector<std::string> &folders) {
  llvm::lsp::URIForFile place;
  json::Path::Root root;
  if (uri && uri->kind() == json::Value::String && fromJSON(*uri, place, root) && !place.file().empty())
    folders.push_back(driver::absolutePath(place.file()));
}

/// Of a list of WorkspaceFolder.
std::vector<std::string> foldersIn(const json::Value *list) {
  std::vector<std::string> folders;
  if (const json::Array *array = list ? list->getAsArray() : nullptr)
    for (const json::Value &each : *array)
      if (const json::Object *folder = each.getAsObject())
        add(folder->get("uri"), folders);
  return folders;
}

} // namespace

std::vector<std::string> openFolders(const json::Value &initializeParams) {
  const json::Object *params = initializeParams.getAsObject();
  if (!params)
    return {};
  std::vector<std::string> folders = foldersIn(params->get("workspaceFolders"));
  if (folders.empty())
    add(params->get("rootUri"), folders);
  if (const auto path = params->getString("rootPath"); folders.empty() && path && !path->empty())
    folders.push_back(driver::absolutePath(*path));
  return folders;
}

void changeFolders(const json::Value &params, std::vector<std::string> &folders) {
  const json::Object *object = params.getAsObject();
  const json::Object *event = object ? object->getObject("event") : nullptr;
  if (!event)
    return;
  for (const std::string &removed : foldersIn(event->get("removed")))
    llvm::erase(folders, removed);
  llvm::append_range(folders, foldersIn(event->get("added")));
}

} // namespace devicetidy::lsp
