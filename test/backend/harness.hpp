#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "raptor/model/reference.hpp"
#include "raptor/model/reference_compare.hpp"
#include "raptor/onnx/import.hpp"
#include "raptor/onnx/load.hpp"
#include "raptor/onnx/test_data.hpp"

/// Runs the ONNX backend tests through the importer and any number of ways to execute a model, and writes the table of results.
namespace raptor::backend {

/// A way to execute a model: takes the imported graph and its inputs, gives its outputs. Throws raptor::error with the code
/// unsupported, where it declares the model unsupported.
struct stage {
  std::string name;
  std::function<std::vector<model::tensor_value>(const model::graph&, std::span<const model::tensor_value>)> execute;
  double relative_tolerance = 1e-3;  ///< that of the ONNX test runner, unless the stage can keep a tighter one
};

enum class status { pass, unsupported, fail };

struct verdict {
  status result = status::fail;
  std::string reason;  ///< of anything but a pass
};

/// One test in one form.
struct row {
  std::string suite, test;
  std::string operators;  ///< distinct operators of the model, in alphabetical order
  std::string form;       ///< "inputs": as recorded; "constants": all inputs but the first are initializers
  verdict import;         ///< unsupported: no stage was tried
  std::vector<verdict> stages;
};

/// |actual − expected| ≤ absolute + relative · |expected|, where relative is the stage's, or one unit in the last place of a
/// narrower type that an output was recorded in (Raptor computes in f32).
inline constexpr double absolute_tolerance = 1e-7;
[[nodiscard]] inline double relative_tolerance(const stage& s, const ::onnx::TensorProto& recorded) {
  if (recorded.data_type() == ::onnx::TensorProto::FLOAT16) return std::max(s.relative_tolerance, 1.0 / 1024);
  if (recorded.data_type() == ::onnx::TensorProto::BFLOAT16) return std::max(s.relative_tolerance, 1.0 / 128);
  return s.relative_tolerance;
}

[[nodiscard]] inline verdict verdict_of(const error& e) {
  std::string reason;
  for (const auto& detail : e.details()) reason += (reason.empty() ? "" : "; ") + detail;
  if (reason.empty()) reason = e.place().empty() ? e.what() : e.place() + ": " + e.what();
  return {e.code() == error_code::unsupported ? status::unsupported : status::fail, reason};
}

/// Distinct operators of a model, subgraphs left out.
[[nodiscard]] inline std::string operators_of(const ::onnx::ModelProto& model) {
  std::set<std::string> names;
  for (const auto& node : model.graph().node()) names.insert(node.op_type());
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Recordings of the package that contradict the standard: their corners are aligned to a length that is not whole.
inline constexpr std::string_view wrong_recordings[] = {"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"};

/// What makes a recording unusable: it is known to be wrong, or has an input of another shape than the model declares. Empty: nothing.
[[nodiscard]] inline std::string contradiction(const std::string& test, const model::graph& g, const onnx_io::test_data& data) {
  if (std::find(std::begin(wrong_recordings), std::end(wrong_recordings), test) != std::end(wrong_recordings))
    return "the recording is known to be wrong: it aligns the corners to a length that is not whole";
  for (std::size_t i = 0; i < data.inputs.size() && i < g.inputs.size(); ++i) {
    const auto& declared = g.at(g.inputs[i]);
    const shape recorded(data.inputs[i].dims().begin(), data.inputs[i].dims().end());
    if (declared.sizes != recorded)
      return "the recording of \"" + declared.name + "\" has shape " + to_string(recorded) + ", the model declares " + to_string(declared.sizes);
  }
  return {};
}

[[nodiscard]] inline verdict run_stage(const stage& s, const model::graph& g, const onnx_io::test_data& data) {
  try {
    std::vector<model::tensor_value> inputs;
    for (const auto& in : data.inputs) inputs.push_back(onnx_io::value_of(in));
    const auto outputs = s.execute(g, inputs);
    if (outputs.size() != data.outputs.size()) return {status::fail, std::to_string(outputs.size()) + " outputs, not " + std::to_string(data.outputs.size())};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto d = model::compare(outputs[i], onnx_io::value_of(data.outputs[i]), relative_tolerance(s, data.outputs[i]));
      if (d.excess > absolute_tolerance)
        return {status::fail, "output " + std::to_string(i) + " differs by " + std::to_string(d.absolute) + " at element " + std::to_string(d.where)};
    }
    return {status::pass, {}};
  } catch (const error& e) {
    return verdict_of(e);
  }
}

/// Runs one model in one form through every stage; a stage is tried only where all before it passed.
[[nodiscard]] inline row run_form(const onnx_io::backend_test& test, const ::onnx::ModelProto& model, const onnx_io::test_data& data,
                                  std::string form, std::span<const stage> stages) {
  row r{test.suite, test.name, operators_of(model), std::move(form), {}, {}};
  model::graph g;
  try {
    g = onnx_io::import_model(model, test.folder, {});
    r.import = {status::pass, contradiction(test.name, g, data)};
    if (!r.import.reason.empty()) r.import.result = status::unsupported;
  } catch (const error& e) {
    r.import = verdict_of(e);
  }
  if (r.import.result != status::pass) return r;
  for (const auto& s : stages) {
    r.stages.push_back(run_stage(s, g, data));
    if (r.stages.back().result != status::pass) break;
  }
  return r;
}

/// All forms of one test: as recorded, and with constants where it has more than one input.
[[nodiscard]] inline std::vector<row> run_test(const onnx_io::backend_test& test, std::span<const stage> stages) {
  ::onnx::ModelProto model;
  onnx_io::test_data data;
  try {
    model = onnx_io::load_model(test.folder / "model.onnx");
    data = onnx_io::read_test_data(test.folder / "test_data_set_0", model.graph());
  } catch (const error& e) {
    return {{test.suite, test.name, operators_of(model), "inputs", verdict_of(e), {}}};
  }
  std::vector<row> rows{run_form(test, model, data, "inputs", stages)};
  if (data.inputs.size() > 1) {
    const auto [changed, rest] = onnx_io::with_constants(model, data);
    rows.push_back(run_form(test, changed, rest, "constants", stages));
  }
  return rows;
}

[[nodiscard]] inline std::vector<row> run_all(const std::filesystem::path& root, std::span<const stage> stages) {
  std::vector<row> rows;
  for (const auto& test : onnx_io::list_backend_tests(root))
    for (auto& r : run_test(test, stages)) rows.push_back(std::move(r));
  return rows;
}

/// The reference evaluator as a stage.
[[nodiscard]] inline stage reference_stage() {
  return {"reference", [](const model::graph& g, std::span<const model::tensor_value> inputs) { return model::evaluate(g, inputs); }, 1e-5};
}

/// Worst outcome of a row: what its last stage says, or the import.
[[nodiscard]] inline const verdict& outcome(const row& r) { return r.stages.empty() ? r.import : r.stages.back(); }

/// The table as Markdown: counts, the rows that were executed, the rows that were not and why.
[[nodiscard]] inline std::string markdown(const std::vector<row>& rows, std::span<const stage> stages) {
  const auto cell = [](std::string text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') text[i] = ' ';
      if (text[i] == '|') text.insert(i++, 1, '\\');
    }
    return text;
  };
  const auto shown = [&](const verdict& v) {
    if (v.result == status::pass) return std::string("PASS");
    return (v.result == status::fail ? "FAIL: " : "UNSUPPORTED: ") + cell(v.reason);
  };
  std::string text =
      "# ONNX backend tests\n\n"
      "Generated by `raptor_backend_table`; a test compares this file with what it prints. Data: the package libonnx-testdata 1.12.\n\n"
      "Each test runs as recorded (form `inputs`: weights are graph inputs) and, where it has more than one input, with all inputs but the\n"
      "first made initializers (form `constants`: as in the files of real networks). PASS: |actual - expected| <= 1e-7 + r |expected|.\n"
      "Columns:";
  for (const auto& s : stages) {
    std::ostringstream tolerance;
    tolerance << s.relative_tolerance;
    text += " " + s.name + " (r = " + tolerance.str() + (&s == &stages.back() ? ")." : "),");
  }
  text += " A column is tried where all before it passed.\n\n## Counts\n\n| suite | rows | PASS | UNSUPPORTED | FAIL |\n|---|---|---|---|---|\n";
  const auto count = [&](const std::string& suite, auto which) {
    return std::to_string(std::count_if(rows.begin(), rows.end(), [&](const row& r) { return (suite.empty() || r.suite == suite) && which(outcome(r).result); }));
  };
  std::vector<std::string> suites(std::begin(onnx_io::backend_suites), std::end(onnx_io::backend_suites));
  suites.emplace_back();
  for (const auto& suite : suites) {
    text += "| " + (suite.empty() ? "all" : suite) + " | " + count(suite, [](status) { return true; });
    for (const auto wanted : {status::pass, status::unsupported, status::fail}) text += " | " + count(suite, [&](status s) { return s == wanted; });
    text += " |\n";
  }
  text += "\n## Imported\n\n| test | form | operators |";
  for (const auto& s : stages) text += " " + s.name + " |";
  text += "\n|---|---|---|";
  for (std::size_t i = 0; i < stages.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& r : rows) {
    if (r.import.result != status::pass) continue;
    text += "| " + r.suite + "/" + r.test + " | " + r.form + " | " + r.operators + " |";
    for (std::size_t i = 0; i < stages.size(); ++i) text += " " + (i < r.stages.size() ? shown(r.stages[i]) : "") + " |";
    text += "\n";
  }
  text += "\n## Not imported\n\n| test | form | operators | reason |\n|---|---|---|---|\n";
  for (const auto& r : rows)
    if (r.import.result != status::pass) text += "| " + r.suite + "/" + r.test + " | " + r.form + " | " + r.operators + " | " + shown(r.import) + " |\n";
  return text;
}

}  // namespace raptor::backend
