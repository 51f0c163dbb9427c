// Every network of the zoo: every stage passes its verifier and its text form reads back, communication cannot deadlock, and binding
// needed no copy.
#include "support.hpp"

#include "raptor/communication/text.hpp"
#include "raptor/lowering/text.hpp"
#include "raptor/program/equality.hpp"
#include "raptor/program/text.hpp"
#include "tools/write.hpp"

using namespace raptor;
using namespace system_test;

namespace {

void check_reads_back(const lowering::compute_graph& computes) {
  const auto form = lowering::to_text(computes);
  const auto again = lowering::to_text(lowering::parse_text(form.text, form.constants).value);
  CHECK(again.text == form.text);
  CHECK(again.constants == form.constants);
}
void check_reads_back(const program::program& p) {
  const auto form = program::to_text(p);
  const auto parsed = program::parse_text(form.text, form.constants);
  CHECK(program::same_structure(parsed.value, p));
  CHECK(program::to_text(parsed.value).text == form.text);
}

}  // namespace

TEST_CASE("every network: verified at every stage, all text forms read back, no deadlock, no copy inserted") {
  for (const auto& name : onnx_io::network_names()) {
    CAPTURE(name);
    const bool own_size = onnx_io::find_network(name).default_size < 64;
    const auto m = load_network(name, own_size ? 0 : name == "inception_v3" ? 96 : 64);
    const auto options = chip(144, 64, 128);
    const auto target = tools::make_target(options);
    std::vector<stage> stages;
    const auto result = tools::compile_model(m.canonical, target, options, [&](stage s, const compilation& c) {
      stages.push_back(s);
      CHECK_NOTHROW(tools::verify_stage(s, c, m.canonical, target.chip()));
      CHECK_FALSE(tools::text_of(s, c, m.canonical).empty());
      switch (s) {
        case stage::lowered: check_reads_back(c.lowered.graph); break;
        case stage::merged: check_reads_back(c.computes); break;
        case stage::scheduled: {
          const auto form = communication::to_text(c.computes, c.schedule);
          const auto parsed = communication::parse_spatial(form.text, form.constants);
          CHECK(communication::to_text(parsed).text == form.text);
          CHECK(parsed.schedule.order == c.schedule.order);
          CHECK(parsed.schedule.predicted == c.schedule.predicted);
          break;
        }
        case stage::realized: check_reads_back(c.realized); break;
        case stage::bound: check_reads_back(c.image.bound); break;
        default: break;
      }
    });
    CHECK(stages == std::vector{stage::planned, stage::lowered, stage::merged, stage::scheduled, stage::realized, stage::bound, stage::image});
    CHECK(tools::detect_deadlock(result.realized) == "no communication deadlock");
    CHECK(tools::detect_deadlock(result.image.bound) == "no communication deadlock");
    const auto proof = tools::prove_copy_freedom(result.realized, result.image.bound);
    CHECK(proof.find("none inserted") != std::string::npos);
  }
}

TEST_CASE("what --EmitSpatial and --EmitPim write can be read with nothing but their directory") {
  const temporary_folder folder;
  for (const char* name : {"tiny", "shufflenet", "inception_v3"}) {
    CAPTURE(name);
    const auto m = load_network(name, std::string(name) == "tiny" ? 0 : 96);
    auto options = chip(144, 64, 128);
    options.last = stage::realized;
    const auto c = compile(m, options);
    const auto spatial = folder / (std::string(name) + ".spatial"), realized = folder / (std::string(name) + ".program");
    tools::write_spatial(c, spatial);
    tools::write_program(c, realized);
    const auto text = [](const std::filesystem::path& file) {
      std::ifstream in(file, std::ios::binary);
      return std::string{std::istreambuf_iterator<char>(in), {}};
    };
    const auto read = communication::parse_spatial(text(spatial / "spatial.txt"));
    CHECK(read.schedule.order == c.schedule.order);
    const auto bytes = text(realized / "constants.bin");
    std::vector<float> constants(bytes.size() / sizeof(float));
    if (!constants.empty()) std::memcpy(constants.data(), bytes.data(), constants.size() * sizeof(float));
    CHECK(program::same_structure(program::parse_text(text(realized / "program.txt"), constants).value, c.realized));
  }
}

TEST_CASE("the deadlock detector and the copy-freedom proof refuse a broken program") {
  const auto m = load_network("tiny", 0);
  auto options = chip(4, 16, 64);
  options.last = stage::bound;
  const auto c = compile(m, options);
  // A send whose receive is gone.
  auto broken = c.realized;
  bool dropped = false;
  for (auto& core : broken.cores)
    for (auto item = core.body.begin(); item != core.body.end() && !dropped; ++item)
      if (const auto* o = std::get_if<program::operation>(&item->what); o != nullptr && o->op == isa::opcode::recv) {
        core.body.erase(item);
        dropped = true;
        break;
      }
  REQUIRE(dropped);
  CHECK_THROWS_AS(static_cast<void>(tools::detect_deadlock(broken)), error);
  // A copy that the realized program does not have.
  auto copied = c.image.bound;
  const auto core = static_cast<std::size_t>(std::find_if(copied.cores.begin(), copied.cores.end(), [](const auto& x) { return !x.body.empty(); }) - copied.cores.begin());
  std::vector<std::uint32_t> own;
  for (std::uint32_t b = 0; b < copied.buffers.size(); ++b)
    if (copied.buffers[b].core == static_cast<std::int32_t>(core)) own.push_back(b);
  REQUIRE(own.size() > 1);
  program::operation copy;
  copy.op = isa::opcode::lmv, copy.length = 1;
  copy.d = {own[0], 0}, copy.a = {own[1], 0};
  copied.cores[core].body.push_back(program::item{copy});
  CHECK_THROWS_AS(static_cast<void>(tools::prove_copy_freedom(c.realized, copied)), error);
}
