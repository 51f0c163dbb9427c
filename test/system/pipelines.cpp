// Pipelines: batches of inputs through the stages of zoo networks, compared with the reference, input by input.
#include "support.hpp"

#include "../sync/mutants.hpp"
#include "raptor/memory/widen.hpp"
#include "raptor/schedule/pipeline_partition.hpp"
#include "raptor/sim/schedule_trials.hpp"
#include "raptor/verify/happens_before.hpp"
#include "raptor/verify/program.hpp"
#include "tools/write.hpp"

using namespace raptor;
using namespace system_test;

namespace {

/// The largest error of a batch of different inputs that a program executes without a pause, as a part of the largest output.
double batch_error(const tools::loaded_model& m, const memory::image& image, std::uint32_t batch) {
  std::vector<std::vector<model::tensor_value>> inputs(batch);
  std::vector<std::vector<std::byte>> bytes(batch);
  std::uint32_t seed = 17;
  for (std::uint32_t n = 0; n < batch; ++n)
    for (const auto t : m.imported.inputs) {
      auto elements = numbers(element_count(m.imported.at(t).sizes), seed++);
      const auto at = bytes[n].size();
      bytes[n].resize(at + elements.size() * sizeof(float));
      if (!elements.empty()) std::memcpy(bytes[n].data() + at, elements.data(), elements.size() * sizeof(float));
      inputs[n].push_back(model::make_value(m.imported.at(t).sizes, std::move(elements)));
    }
  const auto executed = tools::execute_batch(tools::load_image(image), bytes);
  REQUIRE(executed.outputs.size() == batch);
  double worst = 0, largest = 1e-30;
  for (std::uint32_t n = 0; n < batch; ++n) {
    const auto expected = model::evaluate(m.imported, inputs[n]);
    REQUIRE(executed.outputs[n].size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto got = executed.outputs[n][i].values();
      const auto& want = expected[i].floats();
      REQUIRE(got.size() == want.size());
      for (std::size_t k = 0; k < want.size(); ++k) {
        worst = std::max(worst, std::isfinite(got[k]) ? std::abs(static_cast<double>(got[k]) - static_cast<double>(want[k])) : 1e30);
        largest = std::max(largest, std::abs(static_cast<double>(want[k])));
      }
    }
  }
  return worst / largest;
}

std::size_t count_of(const program::program& p, isa::opcode op) {
  std::size_t n = 0;
  for (const auto& core : p.cores) program::for_each_operation(core.body, [&](const program::operation& o) { n += o.op == op; });
  return n;
}

/// A skip connection over five layers, two inputs, one of which is read late, and three outputs.
onnx::ModelProto branching() {
  onnx_io::model_builder b({.graph_name = "branching", .seed = 7});
  const shape image{1, 4, 16, 16};
  const auto first = b.input("first", image), second = b.input("second", image);
  int number = 0;
  const auto layer = [&](const std::string& x) {
    const auto name = "c" + std::to_string(number++);
    const auto w = b.he_uniform(name + ".w", {4, 4, 3, 3});
    const auto y = b.node("Conv", {x, w}, name).attribute("pads", {1, 1, 1, 1}).output();
    return b.node("Relu", {y}, name + ".r").output();
  };
  auto x = layer(first);
  const auto early = x;
  for (int i = 0; i < 5; ++i) x = layer(x);
  const auto y = b.node("Add", {x, early}, "y").output();
  const auto z = b.node("Add", {layer(y), second}, "z").output();
  const auto w = layer(z);
  for (const auto& o : {y, z, w}) b.output(o, image);
  return std::move(b).take();
}

}  // namespace

TEST_CASE("stages by rendezvous and through global memory compute what the reference does, for every input of a batch") {
  struct network {
    const char* name;
    std::int64_t size, stages;
  };
  for (const auto& [name, size, stages] : {network{"lenet5", 0, 3}, {"tiny", 0, 2}, {"resnet18", 64, 4}, {"googlenet", 64, 3}, {"mobilenetv2", 64, 8}, {"shufflenet", 64, 5}, {"unet", 64, 4}}) {
    const auto m = load_network(name, size);
    for (const auto channels : {tools::channel_choice::rendezvous, tools::channel_choice::memory}) {
      CAPTURE(name);
      auto options = chip(144, 64, 128);
      options.effort = 0, options.pipeline = stages, options.channels = channels;
      const auto c = compile(m, options);
      CHECK(c.stages.stages() >= 2);
      CHECK(c.stages.stages() <= static_cast<std::size_t>(stages));
      schedule::check_stages(c.computes, c.stages, 144);
      verify::check_program(c.realized);
      verify::check_happens_before(c.realized);
      memory::check_plan(c.image);
      const bool memory = channels == tools::channel_choice::memory;
      CHECK(c.schedule.channels.empty() == !memory);
      if (memory) CHECK(count_of(c.realized, isa::opcode::wait) > 0);
      CHECK(batch_error(m, c.image, 3) <= 1e-4);
    }
  }
}

TEST_CASE("narrow pipelines: the twin computes the batch") {
  const auto m = load_network("squeezenet1.1", 64);
  auto options = chip(144, 64, 128);
  options.effort = 0, options.pipeline = 4, options.element_bits = 8;
  const auto c = compile(m, options);
  CHECK(batch_error(m, memory::widen(c.image), 4) <= 1e-4);
}

TEST_CASE("a skip connection over the stages, two inputs, three outputs, an uneven chip") {
  const auto m = load(branching());
  std::size_t copies = 0;
  for (const std::int64_t cores : {7, 16})
    for (const std::int64_t stages : {2, 3, 5, 6})
      for (const auto channels : {tools::channel_choice::rendezvous, tools::channel_choice::memory}) {
        CAPTURE(cores);
        CAPTURE(stages);
        auto options = chip(cores, 16, 32);
        options.effort = 0, options.pipeline = stages, options.channels = channels;
        const auto c = compile(m, options);
        schedule::check_stages(c.computes, c.stages, cores);
        verify::check_happens_before(c.realized);
        for (lowering::vertex v = 0; v < c.computes.size(); ++v) copies += c.computes.at(v).op == "forward";
        CHECK(batch_error(m, c.image, 6) <= 1e-4);
      }
  CHECK(copies > 20);
}

TEST_CASE("throughput as the objective chooses the number of stages") {
  const auto m = load_network("squeezenet1.1", 64);
  auto options = chip(144, 64, 128);
  options.effort = 0, options.goal = tools::objective::throughput;
  const auto c = compile(m, options);
  auto single = chip(144, 64, 128);
  single.effort = 0;
  const auto latency = compile(m, single);
  CHECK(c.worth < latency.schedule.predicted);
  CHECK(batch_error(m, c.image, 3) <= 1e-4);
}

TEST_CASE("a stream is at least as fast as one input at a time would be in the same program") {
  const auto m = load_network("resnet18", 64);
  for (const std::int64_t cores : {40, 144}) {  // few crossbars beside the weights, and many
    CAPTURE(cores);
    auto options = chip(cores, 64, 128);
    options.effort = 0;
    const auto latency = compile(m, options);
    options.goal = tools::objective::throughput, options.pipeline = 1;
    const auto c = compile(m, options);
    CHECK(c.worth <= schedule::predicted_interval{cores}(latency.schedule));
    CHECK(c.stages.stages() == 1);
    CHECK(batch_error(m, c.image, 3) <= 1e-4);
  }
}

TEST_CASE("every fault in the events of a compiled pipeline is found") {
  const auto m = load_network("lenet5", 0);
  for (const auto restart : {sync::restart_scope::all_cores, sync::restart_scope::input_readers}) {
    auto options = chip(16, 16, 32);
    options.effort = 0, options.pipeline = 3, options.channels = tools::channel_choice::memory, options.restart = restart;
    const auto c = compile(m, options);
    REQUIRE(!test::refused(c.realized));
    const auto mutants = test::mutants_of(c.realized);
    CHECK(mutants.size() > 20);
    for (std::size_t k = 0; k < mutants.size(); k += 1 + mutants.size() / 100) {
      CAPTURE(mutants[k].core);
      if (mutants[k].what != "a wait moved behind the access") CHECK_MESSAGE(test::refused(mutants[k].of(c.realized)), mutants[k].what);
    }
  }
}

TEST_CASE("trials of schedules at the same time say what trials one after another say") {
  const auto m = load_network("lenet5", 0);
  auto options = chip(16, 16, 32);
  options.effort = 0, options.pipeline = 3, options.channels = tools::channel_choice::memory;
  auto program = tools::load_image(compile(m, options).image);
  std::vector<std::vector<std::byte>> inputs(3), wanted;
  for (std::uint32_t n = 0; n < inputs.size(); ++n) {
    const auto elements = numbers(element_count(m.imported.at(m.imported.inputs[0]).sizes), 17 + n);
    inputs[n].resize(elements.size() * sizeof(float));
    std::memcpy(inputs[n].data(), elements.data(), inputs[n].size());
  }
  const auto expected = tools::execute_batch(program, inputs).outputs;
  for (const auto& outputs : expected) wanted.push_back(sim::bytes_of(outputs));
  sim::trial_options few;
  few.random_schedules = 4, few.most_of_a_kind = 6;
  const auto same = [&] {
    const auto one = sim::try_schedules(program, inputs, wanted, few);
    const auto together = tools::try_schedules(program, inputs, expected, few.random_schedules, few.most_of_a_kind);
    CHECK(together.trials == one.trials);
    CHECK(together.possible == one.possible);
    CHECK(together.held_reads == one.held_reads);
    CHECK(together.failures == one.failures);
    return together;
  };
  const auto right = same();
  CHECK(right.trials == 1 + 4 + 4 * 6);
  CHECK(right.possible > right.trials);
  CHECK(right.held_reads > 0);
  CHECK(right.failures.empty());
  // Without the waits of one stage's core its loads do not wait for the stores.
  const auto last = std::find_if(program.cores.rbegin(), program.cores.rend(), [](const auto& core) { return !core.stream.empty(); });
  REQUIRE(last != program.cores.rend());
  for (auto& i : last->stream)
    if (i.op == isa::opcode::wait) i = {};
  CHECK_FALSE(same().failures.empty());
}
