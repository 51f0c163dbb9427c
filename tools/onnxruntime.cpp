#include "tools/onnxruntime.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace raptor::tools {

namespace {

// The C interface as far as it is used here. The table of functions only ever grows at its end; a position never changes.
struct api_base {
  const void* const* (*get_api)(std::uint32_t version);
  const char* (*get_version)();
};
using handle = void*;  // environments, sessions, values, …: opaque
using status = void*;  // null: success

enum class entry : std::size_t {
  error_message = 2,
  create_env = 3,
  create_session = 7,
  run = 9,
  create_session_options = 10,
  set_graph_optimization_level = 23,
  set_intra_op_threads = 24,
  set_inter_op_threads = 25,
  create_tensor_with_data = 49,
  tensor_data = 51,
  tensor_element_type = 60,
  dimension_count = 61,
  dimensions = 62,
  tensor_type_and_shape = 65,
  create_cpu_memory_info = 69,
  release_env = 92,
  release_status = 93,
  release_memory_info = 94,
  release_session = 95,
  release_value = 96,
  release_tensor_type_and_shape = 99,
  release_session_options = 100,
};
constexpr std::uint32_t table_version = 7;  // a version that libraries of 2021 and later have
constexpr int log_errors_only = 3, no_optimization = 0, arena_allocator = 1, default_memory = 0, element_float = 1;

}  // namespace

struct onnx_runtime::library {
  void* file = nullptr;
  const void* const* table = nullptr;
  handle environment = nullptr;
  std::string version;

  template <class Function>
  [[nodiscard]] Function* function(entry e) const {
    return reinterpret_cast<Function*>(const_cast<void*>(table[static_cast<std::size_t>(e)]));
  }
  void release(entry how, handle what) const {
    if (what != nullptr) function<void(handle)>(how)(what);
  }
  void require(status s, error_code code, const std::string& place) const {
    if (s == nullptr) return;
    const std::string message = function<const char*(status)>(entry::error_message)(s);
    release(entry::release_status, s);
    throw error(code, "ONNX Runtime: " + message, place);
  }
  ~library() {
    if (table != nullptr) release(entry::release_env, environment);
    // The library stays open: it has threads and destructors of its own that may still run.
  }
};

namespace {

/// Releases an object of the library at the end of its scope.
template <class Library>
class owned {
 public:
  owned(const Library& library, entry how) : library_(library), how_(how) {}
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() { library_.release(how_, what); }
  handle what = nullptr;

 private:
  const Library& library_;
  entry how_;
};

}  // namespace

onnx_runtime::onnx_runtime(const std::string& path) : library_(std::make_unique<library>()) {
  const char* chosen = std::getenv("RAPTOR_ONNXRUNTIME");
  const std::string name = !path.empty() ? path : chosen != nullptr && *chosen != '\0' ? chosen : "libonnxruntime.so.1";
  const std::string hint = "name the library with --onnxruntime=PATH or in RAPTOR_ONNXRUNTIME";
  library_->file = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_->file == nullptr) {
    const char* reason = ::dlerror();
    throw error(error_code::io, "ONNX Runtime cannot be opened: " + std::string(reason != nullptr ? reason : "unknown reason"), name, hint);
  }
  const auto base_of = reinterpret_cast<const api_base* (*)()>(::dlsym(library_->file, "OrtGetApiBase"));
  if (base_of == nullptr) throw error(error_code::io, "the library is not ONNX Runtime", name, hint);
  const auto* base = base_of();
  library_->version = base->get_version();
  library_->table = base->get_api(table_version);
  if (library_->table == nullptr) throw error(error_code::io, "ONNX Runtime " + library_->version + " is too old", name, hint);
  library_->require(library_->function<status(int, const char*, handle*)>(entry::create_env)(log_errors_only, "raptor", &library_->environment), error_code::io, name);
}
onnx_runtime::~onnx_runtime() = default;
onnx_runtime::onnx_runtime(onnx_runtime&&) noexcept = default;
onnx_runtime& onnx_runtime::operator=(onnx_runtime&&) noexcept = default;

const std::string& onnx_runtime::version() const noexcept { return library_->version; }

std::vector<model::tensor_value> onnx_runtime::evaluate(const std::filesystem::path& file, const model::graph& g,
                                                        std::span<const model::tensor_value> inputs) const {
  const auto& l = *library_;
  const std::string place = file.string();
  owned options(l, entry::release_session_options), session(l, entry::release_session), memory(l, entry::release_memory_info);
  const auto check = [&](status s, error_code code = error_code::malformed) { l.require(s, code, place); };
  check(l.function<status(handle*)>(entry::create_session_options)(&options.what));
  check(l.function<status(handle, int)>(entry::set_graph_optimization_level)(options.what, no_optimization));
  check(l.function<status(handle, int)>(entry::set_intra_op_threads)(options.what, 1));
  check(l.function<status(handle, int)>(entry::set_inter_op_threads)(options.what, 1));
  check(l.function<status(handle, const char*, handle, handle*)>(entry::create_session)(l.environment, place.c_str(), options.what, &session.what),
        error_code::unsupported);
  check(l.function<status(int, int, handle*)>(entry::create_cpu_memory_info)(arena_allocator, default_memory, &memory.what));

  std::vector<std::unique_ptr<owned<library>>> values;
  std::vector<handle> given, made(g.outputs.size(), nullptr);
  std::vector<const char*> input_names, output_names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& elements = inputs[i].floats();
    values.push_back(std::make_unique<owned<library>>(l, entry::release_value));
    // The library only reads it.
    check(l.function<status(handle, void*, std::size_t, const std::int64_t*, std::size_t, int, handle*)>(entry::create_tensor_with_data)(
        memory.what, const_cast<float*>(elements.data()), elements.size() * sizeof(float), inputs[i].sizes.data(), inputs[i].sizes.size(), element_float,
        &values.back()->what));
    given.push_back(values.back()->what);
    input_names.push_back(g.at(g.inputs[i]).name.c_str());
  }
  for (const auto t : g.outputs) output_names.push_back(g.at(t).name.c_str());
  check(l.function<status(handle, handle, const char* const*, const handle*, std::size_t, const char* const*, std::size_t, handle*)>(entry::run)(
      session.what, nullptr, input_names.data(), given.data(), given.size(), output_names.data(), output_names.size(), made.data()));
  for (const auto value : made) {
    values.push_back(std::make_unique<owned<library>>(l, entry::release_value));
    values.back()->what = value;
  }

  std::vector<model::tensor_value> results;
  for (const auto value : made) {
    owned form(l, entry::release_tensor_type_and_shape);
    check(l.function<status(handle, handle*)>(entry::tensor_type_and_shape)(value, &form.what));
    int type = 0;
    check(l.function<status(handle, int*)>(entry::tensor_element_type)(form.what, &type));
    if (type != element_float) throw error(error_code::unsupported, "ONNX Runtime gives an output that is no f32 tensor", place);
    std::size_t rank = 0;
    check(l.function<status(handle, std::size_t*)>(entry::dimension_count)(form.what, &rank));
    shape sizes(rank);
    check(l.function<status(handle, std::int64_t*, std::size_t)>(entry::dimensions)(form.what, sizes.data(), rank));
    void* data = nullptr;
    check(l.function<status(handle, void**)>(entry::tensor_data)(value, &data));
    std::vector<float> elements(static_cast<std::size_t>(element_count(sizes)));
    if (!elements.empty()) std::memcpy(elements.data(), data, elements.size() * sizeof(float));
    results.push_back(model::make_value(std::move(sizes), std::move(elements)));
  }
  return results;
}

}  // namespace raptor::tools
