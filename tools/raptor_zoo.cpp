// raptor-zoo NAME: writes one of the bundled networks as an ONNX file with seeded weights.

#include "common.hpp"

#include <bit>
#include <cstdint>
#include <fmt/core.h>
#include <iostream>
#include <string>

#include "raptor/onnx/zoo.hpp"

namespace {

namespace po = boost::program_options;
using namespace raptor;

void list_networks() {
  fmt::print("{:<17} {:>14} {:>13}\n", "network", "input", "smallest size");
  for (const auto& n : onnx_io::networks)
    fmt::print("{:<17} {:>14} {:>13}\n", n.name, to_string(n.input_shape(n.default_size)), n.minimum_size);
}

/// The bytes of a seeded input: uniform in [-1, 1), f32 little endian, as raptor-sim reads it.
std::string seeded_input(const ::onnx::ModelProto& model, std::uint64_t seed) {
  shape sizes;
  for (const auto& d : model.graph().input(0).type().tensor_type().shape().dim()) sizes.push_back(d.dim_value());
  const auto count = element_count(sizes);
  std::string bytes;
  onnx_io::uniform_source source(seed, "input");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(source.next(0.0F, 1.0F));
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((word >> shift) & 0xffu));
  }
  return bytes;
}

int run(int argc, char** argv) {
  onnx_io::zoo_options options;
  std::string name, output, input;
  tools::command_line line("raptor-zoo", "NAME [--size=N] [--depth=N] [--no-softmax] [--seed=S] [-o FILE]",
                           "Writes one of the bundled networks as an ONNX file with seeded weights.");
  po::options_description group("Network");
  // clang-format off
  group.add_options()
    ("size", po::value(&options.size)->value_name("N"), "height and width of the input in pixels, or length of the sequence (default: the network's own)")
    ("depth", po::value(&options.depth)->value_name("N"), "build only the first N layers (yolo11n: 1 to 24)")
    ("no-softmax", "leave out every Softmax")
    ("output,o", po::value(&output)->value_name("FILE"), "file to write (default NAME.onnx)")
    ("write-input", po::value(&input)->value_name("FILE"), "also write a seeded input, raw f32, for raptor-sim")
    ("list", "list the networks and exit");
  // clang-format on
  line.add(group);
  line.add_positional("NAME", po::value(&name));
  if (!line.parse(argc, argv)) return tools::exit_success;
  if (line.has("list")) {
    list_networks();
    return tools::exit_success;
  }
  const auto seed = line.get<std::int64_t>("seed");
  if (name.empty()) throw tools::usage_error("no network named; --list shows the names");
  if (line.has("size") && options.size <= 0) throw tools::usage_error("--size must be positive");
  if (line.has("depth") && options.depth <= 0) throw tools::usage_error("--depth must be positive");
  options.softmax = !line.has("no-softmax");
  if (seed < 0) throw tools::usage_error("--seed must not be negative");
  options.seed = static_cast<std::uint64_t>(seed);
  if (output.empty()) output = name + ".onnx";

  const auto model = onnx_io::build_network(name, options);
  const auto bytes = model.SerializeAsString();
  tools::write_file_atomically(output, bytes);
  if (!input.empty()) tools::write_file_atomically(input, seeded_input(model, options.seed));
  if (tools::shows_progress(line))
    std::cerr << fmt::format("{}: {} nodes, {} initializers, {:.1f} MB\n", output, model.graph().node_size(),
                             model.graph().initializer_size(), static_cast<double>(bytes.size()) / 1e6);
  return tools::exit_success;
}

}  // namespace

int main(int argc, char** argv) {
  return raptor::tools::run_tool("raptor-zoo", [&] { return run(argc, argv); });
}
