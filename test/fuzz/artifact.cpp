// An artifact directory: config.json, core_0.pim and the weights of its array groups; loaded and executed, and loaded for timing.
#include "support.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "raptor/sim/artifact.hpp"
#include "raptor/sim/executor.hpp"
#include "raptor/sim/timing_input.hpp"

namespace {

/// The folder of this process, with weights of 4 × 8 for four array groups of both cores.
struct folder {
  std::filesystem::path path;
  folder() {
    const std::filesystem::path memory = "/dev/shm";
    path = (std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()) / ("raptor_fuzz_" + std::to_string(::getpid()));
    const std::string weights(4 * 8 * sizeof(float), '\x3f'), bytes(512, '\0');
    for (const char* core : {"core_0", "core_1"}) {
      std::filesystem::create_directories(path / core);
      for (int g = 0; g < 4; ++g) write(std::string(core) + "/group_" + std::to_string(g) + ".bin", weights);
    }
    write("memory.bin", bytes);
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace raptor;
  static const folder where;
  auto rest = fuzz::text_of(data, size);
  const auto config = fuzz::next_part(rest);
  where.write("config.json", config);
  where.write("core_0.pim", rest);
  where.write("core_1.pim", rest);
  fuzz::run(size, [&](std::int64_t& own) {
    const auto program = sim::load_artifact(where.path);
    std::int64_t input = 0;
    for (const auto& region : program.inputs) input += region.size;
    own = 2 * input + (1 << 20);
    sim::execution_options options;
    options.local_memory_limit = 1 << 16;
    options.total_memory_limit = 1 << 18;
    std::vector<std::byte> bytes(static_cast<std::size_t>(input));
    static_cast<void>(sim::execute(program, bytes, options));
  });
  fuzz::run(size, [&](std::int64_t&) {
    target::configuration hardware;
    hardware.chip_config.core_cnt = 16;
    hardware.chip_config.core_config.matrix_config.xbar_array_count = 16;
    static_cast<void>(sim::timing::load_timed(where.path, hardware));
    static_cast<void>(sim::timing::load_timed(where.path / "config.json", hardware));
  });
  return 0;
}
