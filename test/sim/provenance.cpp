#include "raptor/sim/provenance.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "batch.hpp"

using namespace raptor::sim::test;
using nlohmann::json;
using raptor::sim::execute_batch;
using raptor::sim::execution_options;
using raptor::sim::make_group;

namespace {

struct traced_run {
  std::vector<json> events;
  raptor::sim::diagnosis_summary summary;

  [[nodiscard]] std::vector<json> of(const std::string& event) const {
    std::vector<json> found;
    for (const auto& e : events)
      if (e["event"] == event) found.push_back(e);
    return found;
  }
  /// The last event of an operation.
  [[nodiscard]] json last(const std::string& operation) const {
    json found;
    for (const auto& e : of("local_compute"))
      if (e["operation"] == operation) found = e;
    return found;
  }
};
traced_run trace(const raptor::sim::loaded_program& program, const batch& inputs, execution_options options = {}) {
  traced_run run;
  options.provenance_trace = [&](std::string_view line) { run.events.push_back(json::parse(line)); };
  run.summary = execute_batch(program, inputs, options).diagnosis;
  return run;
}

/// What the two floats at local address 256 depend on after `body`, as text: samples, "-" for none, "u" for unknown, and whether a single byte depends on
/// several. Before the body r1 is 0, with a float of sample 0, r3 is 4, with one of sample 1, r4 is 8, with a constant, and r2 is 256.
std::string tags_after(const stream& body, std::vector<raptor::sim::array_group> groups = {}) {
  stream s{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 256), b::sldi(3, 4), b::sldi(4, 8), b::lldi(4, 0, 4), b::lldi(2, 0, 8), b::recv(1, 1, 4), b::recv(3, 1, 4)};
  s.insert(s.end(), body.begin(), body.end());
  s.insert(s.end(), {b::sldi(5, 4), b::st(5, 2, 8), b::recv(1, 1, 4)});
  auto program = make_program({s, {b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::send(1, 0, 4)}}, 1, 2);
  program.cores[0].groups = std::move(groups);
  // Core 0 takes the messages of two bodies of core 1 and waits for a third: what it has stored until then is what counts.
  std::vector<json> events;
  execution_options options;
  options.provenance_trace = [&](std::string_view line) { events.push_back(json::parse(line)); };
  const auto text = batch_failure(program, numbered_inputs(2, 1), options);
  REQUIRE_MESSAGE(text.rfind("deadlock", 0) == 0, text);
  std::string result;
  for (const auto& e : events) {
    if (e["event"] != "global_store") continue;
    for (const auto& sample : e["provenance"]) result += std::to_string(sample.get<int>());
    if (e["provenance_state"] == "unknown") result += "u";
    if (e["provenance"].empty() && e["provenance_state"] == "known") result += "-";
    result += e["mixed"].get<bool>() ? " mixed" : "";
  }
  return result;
}

}  // namespace

TEST_CASE("what each instruction makes of the tags of its operands") {
  using raptor::isa::opcode;
  // r1: sample 0, r3: sample 1, r4: a constant, one float each; r2: the result, two floats, constants so far.
  CHECK(tags_after({b::nop()}) == "-");
  CHECK(tags_after({b::lmv(2, 1, 4)}) == "0");
  CHECK(tags_after({b::lmv(2, 1, 8)}) == "01");  // two samples, no byte of both
  CHECK(tags_after({b::lmv(2, 1, 8), b::lldi(2, 0, 4)}) == "1");
  CHECK(tags_after({b::vrelu(2, 3, 1)}) == "1");
  CHECK(tags_after({b::vtanh(2, 1, 2)}) == "01");
  CHECK(tags_after({b::vsigm(2, 1, 1)}) == "0");
  CHECK(tags_after({b::sldi(9, 0), b::vrsu(2, 1, 9, 1)}) == "0");
  CHECK(tags_after({b::sldi(9, 0), b::vrsl(2, 3, 9, 1)}) == "1");
  for (const auto op : {opcode::vvadd, opcode::vvsub, opcode::vvmul, opcode::vvmax}) {
    CHECK(tags_after({b::vector(op, 2, 1, 1, 1)}) == "0");
    CHECK(tags_after({b::vector(op, 2, 1, 3, 1)}) == "01 mixed");
    CHECK(tags_after({b::vector(op, 2, 1, 4, 1)}) == "0");
    CHECK(tags_after({b::vector(op, 2, 1, 3, 2)}) == "01 mixed");  // 0 + 1, 1 + constant
    CHECK(tags_after({b::vector(op, 2, 1, 1, 2)}) == "01");
  }
  CHECK(tags_after({b::vvdmul(2, 1, 1, 1)}) == "0");
  CHECK(tags_after({b::vvdmul(2, 1, 1, 2)}) == "01 mixed");
  CHECK(tags_after({b::sldi(9, 1), b::vavg(2, 1, 9, 2)}) == "01 mixed");
  CHECK(tags_after({b::sldi(9, 2), b::vavg(2, 1, 9, 2)}) == "0");  // sample 0 and the constant
  CHECK(tags_after({b::vsoftmax(2, 1, 2)}) == "01 mixed");
  CHECK(tags_after({b::vsoftmax(2, 3, 2)}) == "1");
  CHECK(tags_after({b::sldi(9, 2), b::vmv(2, 1, 9, 2)}) == "0");
  CHECK(tags_after({b::sldi(9, -1), b::vmv(2, 3, 9, 2)}) == "01");
  CHECK(tags_after({b::sldi(9, 0), b::vmv(2, 3, 9, 2)}) == "1");
}

TEST_CASE("an element depends on all bytes of its operands' elements") {
  // The upper half of the float at 300 is of sample 1, the lower of sample 0.
  const stream torn{b::sldi(9, 300), b::sldi(10, 302), b::lmv(9, 1, 2), b::lmv(10, 3, 2)};
  stream copied = torn, computed = torn;
  copied.push_back(b::lmv(2, 9, 4));
  computed.push_back(b::vrelu(2, 9, 1));
  CHECK(tags_after(copied) == "01");
  CHECK(tags_after(computed) == "01 mixed");
}

TEST_CASE("mvmul depends on the rows that have weights") {
  const auto product = [](const std::vector<float>& weights) { return tags_after({b::mvmul(2, 1, 0)}, {make_group(3, 2, weights)}); };
  CHECK(product({1, 0, 0, 0, 0, 1}) == "0");
  CHECK(product({0, 0, 2, 0, 0, 0}) == "1");
  CHECK(product({0, 1, 1, 0, 0, 0}) == "01 mixed");
  CHECK(product({0, 0, 0, 0, 1, 1}) == "-");
  CHECK(product({0, 0, 0, 0, 0, 0}) == "-");
}

TEST_CASE("the events of a pipeline, field by field") {
  const chain c{2, 4};
  const auto run = trace(c.program(), numbered_inputs(2, 1));
  REQUIRE(run.events.size() > 3);
  CHECK(run.events[0] == json::parse(R"({"event":"provenance_trace_start","schema":1,"core_count":2})"));
  CHECK(run.events[1] == json::parse(R"({"event":"scheduler_config","schedule_policy":"greedy","schedule_seed":0,"target_dependency":null,
    "deferral_budget":10000,"fixed_stall":null,"fixed_target_stall":null,"global_barrier":false})"));
  CHECK(run.events[2] == json::parse(R"({"event":"batch_start","batch_size":2})"));
  CHECK(run.events[3] == json::parse(R"({"event":"external_input_store","cycle":0,"core":-1,"address":0,"size":4,"sample":0,"version":1,
    "overwritten_versions":[0],"provenance":[0],"provenance_state":"known","mixed":false})"));
  const auto inputs = run.of("external_input_store");
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[1]["overwritten_versions"] == json::array({1}));

  const auto stores = run.of("global_store");
  REQUIRE(stores.size() == 4);
  // Core 0 stores input 0, core 1 its output, then again: version 1 and 2 are the inputs.
  CHECK(stores[0]["core"] == 0);
  CHECK(stores[0]["pc"] == 7);
  CHECK(stores[0]["core_iteration"] == 0);
  CHECK(stores[0]["address"] == 8);
  CHECK(stores[0]["local_address"] == 0);
  CHECK(stores[0]["size"] == 4);
  CHECK(stores[0]["version"] == 3);
  CHECK(stores[0]["overwritten_versions"] == json::array({0}));
  CHECK(stores[0]["overwritten_writers"].empty());
  CHECK(stores[0]["provenance"] == json::array({0}));
  json again;
  for (const auto& s : stores)
    if (s["core"] == 0 && s["core_iteration"] == 1) again = s;
  REQUIRE(again["overwritten_writers"].size() == 1);
  const auto& writer = again["overwritten_writers"][0];
  CHECK(writer["version"] == 3);
  CHECK(writer["core"] == 0);
  CHECK(writer["pc"] == 7);
  CHECK(writer["core_iteration"] == 0);
  CHECK(writer["cycle"] == stores[0]["cycle"]);
  CHECK(writer["provenance"] == json::array({0}));
  CHECK(again["provenance"] == json::array({1}));

  const auto loads = run.of("global_load");
  REQUIRE(loads.size() == 4);
  CHECK(loads[0]["last_writers"][0]["core"] == -1);
  CHECK(loads[0]["versions"] == json::array({1}));
  for (const auto& load : loads) {
    CHECK(load["provenance"] == json::array({load["core_iteration"]}));
    CHECK(load["versions"].size() == 1);
  }
  const auto sum = run.last("vvadd");
  CHECK(sum["destination_address"] == 0);
  CHECK(sum["size"] == 4);
  CHECK(sum["operand_provenance"].size() == 2);
  CHECK(sum["operand_provenance"][1] == json::parse(R"({"operand":1,"provenance":[1],"provenance_state":"known"})"));
  CHECK(run.summary.mixes == 0);
  CHECK(run.summary.foreign_output_stores == 0);
  std::uint64_t before = 0;
  for (const auto& e : run.events) {
    if (!e.contains("cycle")) continue;
    CHECK(e["cycle"].get<std::uint64_t>() >= before);
    before = e["cycle"].get<std::uint64_t>();
  }
}

TEST_CASE("a rendezvous") {
  const stream sender{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::send(1, 1, 4)};
  const stream receiver{b::setbw(32, 32), b::sldi(1, 8), b::recv(1, 0, 4), b::sldi(2, 4), b::st(2, 1, 4)};
  const auto transfers = trace(make_program({sender, receiver}, 1, 1), numbered_inputs(2, 1)).of("send_recv_transfer");
  REQUIRE(transfers.size() == 2);
  const auto& t = transfers[1];
  CHECK(t["sender_core"] == 0);
  CHECK(t["receiver_core"] == 1);
  CHECK(t["core"] == 1);
  CHECK(t["pc"] == 2);
  CHECK(t["core_iteration"] == 1);
  CHECK(t["source_address"] == 0);
  CHECK(t["destination_address"] == 8);
  CHECK(t["size"] == 4);
  CHECK(t["provenance"] == json::array({1}));
}

TEST_CASE("a missing wait shows as a mix, with who overwrote what") {
  // Core 0 stores the input in two buffers, the second one without waiting for FREE; core 1 adds both. A schedule that holds back the load of that one
  // mixes two inputs.
  const stream writer{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::sldi(2, 12), b::st(2, 1, 4), b::wait(2, 1), b::sldi(2, 8), b::st(2, 1, 4), b::sync(1, 1)};
  const stream reader{b::setbw(32, 32), b::sync(2, 0), b::sldi(1, 0), b::sldi(2, 4), b::sldi(3, 8), b::sldi(4, 12), b::wait(1, 1), b::ld(1, 3, 4), b::ld(2, 4, 4),
                      b::vvadd(1, 1, 2, 1), b::st(2, 1, 4)};
  auto program = make_program({writer, reader}, 1, 1);
  program.global_memory.resize(16);
  execution_options options;
  options.schedule.stalled_core = {0, 30};
  CHECK(trace(program, numbered_inputs(2, 1), options).summary.mixes == 0);
  options.schedule.policy = raptor::sim::schedule_policy::adversarial;
  options.schedule.target = raptor::sim::dependency_target{0, 4, 1, 8, 12, 16, {}, {}};
  const auto run = trace(program, numbered_inputs(2, 1), options);
  CHECK(run.summary.mixes == 1);
  CHECK_MESSAGE(has(run.summary.first_mix, "core 1, iteration 0, instruction 9: vvadd"), run.summary.first_mix);
  CHECK(run.summary.foreign_output_stores == 1);
  const auto mixes = run.of("cross_sample_data_mix");
  REQUIRE(mixes.size() == 1);
  CHECK(mixes[0]["provenance"] == json::array({0, 1}));
  CHECK(mixes[0]["mixed"] == true);
  CHECK(mixes[0]["operation"] == "vvadd");
  CHECK(mixes[0]["pc"] == 9);
  json computed = run.last("vvadd");
  for (const auto& e : run.of("local_compute"))
    if (e["mixed"] == true) computed = e;
  computed["event"] = "cross_sample_data_mix";
  CHECK(computed == mixes[0]);
  const auto config = run.of("scheduler_config")[0];
  CHECK(config["schedule_policy"] == "adversarial");
  CHECK(config["target_dependency"]["reader_pc"] == 8);
  CHECK(config["target_dependency"]["reader_iteration"].is_null());
  std::set<std::string> reasons;
  for (const auto& e : run.of("scheduler_decision")) reasons.insert(e["reason"].get<std::string>());
  CHECK(reasons == std::set<std::string>{"the reader is held", "the writer runs while the reader is held", "the writer has written again"});
}

TEST_CASE("stalls are events") {
  const chain c{2, 4};
  execution_options options;
  options.schedule.stalled_core = {1, 20};
  options.schedule.stalled_instruction = {0, 4, 1, 7};
  const auto run = trace(c.program(), numbered_inputs(3, 1), options);
  const auto cores = run.of("diagnostic_core_stall"), targets = run.of("diagnostic_target_stall");
  REQUIRE(cores.size() == 3);  // at the start of each body
  CHECK(cores[2]["core"] == 1);
  CHECK(cores[2]["core_iteration"] == 2);
  CHECK(cores[2]["remaining_cycles"] == 20);
  REQUIRE(targets.size() == 1);
  CHECK(targets[0]["core"] == 0);
  CHECK(targets[0]["pc"] == 4);
  CHECK(targets[0]["core_iteration"] == 1);
  CHECK(targets[0]["remaining_cycles"] == 7);
  CHECK(run.of("scheduler_config")[0]["fixed_stall"]["cycles"] == 20);
  CHECK(run.of("scheduler_config")[0]["fixed_target_stall"]["iteration"] == 1);
}

TEST_CASE("samples beyond the mask are unknown, and unknown is no mix") {
  const auto program = one_core({b::vvadd(2, 1, 1, 1)}, 1, 1);
  const auto run = trace(program, numbered_inputs(66, 1));
  const auto stores = run.of("global_store");
  REQUIRE(stores.size() == 66);
  CHECK(stores[63]["provenance"] == json::array({63}));
  CHECK(stores[64]["provenance"].empty());
  CHECK(stores[64]["provenance_state"] == "unknown");
  CHECK(run.summary.mixes == 0);
  CHECK(run.summary.foreign_output_stores == 0);
}

TEST_CASE("an accumulator that nobody resets is a mix, stale data in an output is foreign") {
  // The sum lies in global memory, a constant at first.
  stream sums{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 4), b::sldi(3, 8), b::ld(1, 1, 4), b::ld(3, 3, 4), b::vvadd(1, 1, 3, 1), b::st(2, 1, 4), b::st(3, 1, 4)};
  auto program = make_program({sums}, 1, 1);
  program.global_memory.resize(12);
  auto run = trace(program, numbered_inputs(3, 1));
  CHECK(run.summary.mixes == 2);
  CHECK(run.of("cross_sample_data_mix")[1]["provenance"] == json::array({0, 1, 2}));
  CHECK(run.summary.foreign_output_stores == 2);
  program.cores[0].stream.pop_back();
  CHECK(trace(program, numbered_inputs(3, 1)).summary.mixes == 0);
  // Two readers without a barrier: the one ahead finds input 0 in its later bodies.
  const auto reader = [](std::int32_t half) { return stream{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::sldi(2, 4 + 4 * half), b::st(2, 1, 4)}; };
  run = trace(make_program({reader(0), reader(1)}, 1, 2), numbered_inputs(3, 1));
  CHECK(run.summary.mixes == 0);
  CHECK(run.summary.foreign_output_stores == 2);
}

TEST_CASE("memory before the run: constants where they are recorded, else all but the outputs") {
  auto program = make_program({{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 8), b::ld(1, 2, 8), b::sldi(3, 4), b::st(3, 1, 4), b::sld(4, 2)}}, 1, 1);
  program.global_memory.resize(16);
  const auto load = [&] { return trace(program, numbered_inputs(1, 1)).of("global_load"); };
  CHECK(load()[0]["provenance_state"] == "known");
  REQUIRE(load().size() == 2);
  CHECK_FALSE(load()[1].contains("local_address"));
  CHECK(load()[1]["size"] == 4);
  program.constant_bytes = 8;
  CHECK(load()[0]["provenance_state"] == "uninitialized");
  program.constant_bytes = 12;
  CHECK(load()[0]["provenance_state"] == "known");
  CHECK(load()[0]["provenance"].empty());
}

TEST_CASE("following provenance changes no result, with and without a receiver") {
  const chain c{3, 8};
  const auto inputs = numbered_inputs(4, 2);
  execution_options options;
  options.provenance = true;
  const auto plain = execute_batch(c.program(), inputs), followed = execute_batch(c.program(), inputs, options);
  CHECK(first_outputs(plain) == first_outputs(followed));
  CHECK(plain.global_memory == followed.global_memory);
  options.provenance_trace = [](std::string_view) {};
  CHECK(execute_batch(c.program(), inputs, options).global_memory == plain.global_memory);
}
