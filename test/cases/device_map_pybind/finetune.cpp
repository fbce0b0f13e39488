// Embedded Python fine-tuning: the program initialises torch.distributed, so a placement map is a bug here.
// These functions need the transformers package; they are analysed, not run.
#include <pybind11/embed.h>
#include <pybind11/stl.h>

#include <map>
#include <string>

namespace py = pybind11;
using namespace pybind11::literals;

void init_distributed() {
  auto dist = py::module_::import("torch.distributed");
  dist.attr("init_process_group")("backend"_a = "nccl");
}

py::object model_class() { return py::module_::import("transformers").attr("AutoModelForCausalLM"); }

py::object load_auto_bad(const std::string &path) {
  return model_class().attr("from_pretrained")(path, "device_map"_a = "auto"); // [[device-map-distributed]]
}

py::object load_none_ok(const std::string &path) {
  return model_class().attr("from_pretrained")(path, "device_map"_a = py::none());
}

py::object load_without_map_ok(const std::string &path) {
  return model_class().attr("from_pretrained")(path, "torch_dtype"_a = "auto", "trust_remote_code"_a = true);
}

py::object load_balanced_bad(const std::string &path) {
  auto cls = model_class();
  return cls.attr("from_pretrained")(path, py::arg("device_map") = "balanced"); // [[device-map-distributed]]
}

py::object load_kwargs_bad(const std::string &path) {
  py::dict kwargs;
  kwargs["torch_dtype"] = "auto";
  kwargs["device_map"] = "sequential";
  return model_class().attr("from_pretrained")(path, **kwargs); // [[device-map-distributed]]
}

py::object load_kwargs_ok(const std::string &path) {
  py::dict kwargs;
  kwargs["torch_dtype"] = "auto";
  kwargs["attn_implementation"] = "sdpa";
  return model_class().attr("from_pretrained")(path, **kwargs);
}

py::object load_several_entries_bad(const std::string &path) {
  py::dict placement("model.embed_tokens"_a = 0, "model.layers"_a = 1, "lm_head"_a = 1);
  auto cls = model_class();
  return cls.attr("from_pretrained")(path, "device_map"_a = placement); // [[device-map-distributed]]
}

// The whole model on this rank's own GPU: one entry, legal.
py::object load_single_entry_ok(const std::string &path, int local_rank) {
  py::dict placement;
  placement[""] = local_rank;
  return model_class().attr("from_pretrained")(path, "device_map"_a = placement);
}

void python_source_bad() {
  PyRun_SimpleString("m = Model.from_pretrained('qwen', device_map='auto')"); // [[device-map-distributed]]
}

void python_source_ok() {
  PyRun_SimpleString("m = AutoModel.from_pretrained('qwen', torch_dtype='auto')");
}

int main(int argc, char **argv) {
  py::scoped_interpreter interpreter;
  init_distributed();
  const std::string path = argc > 1 ? argv[1] : "Qwen/Qwen-14B-Chat";
  auto model = argc > 2 ? load_auto_bad(path) : load_none_ok(path);
  if (argc > 3)
    model = load_balanced_bad(path);
  else if (argc > 4)
    model = load_kwargs_bad(path);
  else if (argc > 5)
    model = load_several_entries_bad(path);
  model = load_kwargs_ok(path);
  model = load_single_entry_ok(path, 0);
  model = load_without_map_ok(path);
  python_source_bad();
  python_source_ok();
  model.attr("train")();
  return 0;
}
