// Throughput mode: a batch of inputs through streams that restart by themselves.

#include "raptor/sim/executor.hpp"

#include <doctest/doctest.h>

#include "batch.hpp"

using namespace raptor::sim::test;
using raptor::sim::execute;
using raptor::sim::execute_batch;
using raptor::isa::opcode;
using floats = std::vector<float>;

TEST_CASE("a batch of one gives what one input gives") {
  const auto program = one_core({b::vvadd(2, 1, 1, 2)}, 2, 2);
  const auto single = execute(program, to_bytes({3, 4}));
  const auto batched = execute_batch(program, batch{to_bytes({3, 4})});
  CHECK(first_outputs(batched) == std::vector<floats>{{6, 8}});
  CHECK(batched.global_memory == single.global_memory);
  CHECK(raptor::sim::total_instructions(batched.cores) == single.instructions());
  CHECK(batched.cores[0].local_memory == single.cores[0].local_memory);
}

TEST_CASE("one core runs its stream once for every input") {
  auto program = one_core({b::mvmul(2, 1, 0)}, 2, 2);
  program.cores[0].groups = {raptor::sim::make_group(2, 2, {1, 2, 3, 4})};
  const auto result = execute_batch(program, batch{to_bytes({1, 0}), to_bytes({0, 1}), to_bytes({1, 1})});
  CHECK(first_outputs(result) == std::vector<floats>{{1, 2}, {3, 4}, {4, 6}});
  CHECK(to_floats(result.global_memory) == floats{1, 1, 4, 6});
  CHECK(result.cores[0].instructions == 3 * program.cores[0].stream.size());
  CHECK(result.cores[0].multiply_accumulates == 12);
  CHECK(result.cores[0].counts[static_cast<std::size_t>(opcode::mvmul)] == 3);
}

TEST_CASE("registers and local memory keep their values over a restart") {
  // r5 counts bodies: each fills one more word, the sum of which is stored.
  const stream body{b::saddi(5, 5, 4), b::lldi(5, 0, 4), b::sldi(6, 4), b::sldi(7, 100), b::lmv(7, 1, 4), b::sldi(8, 1000), b::lldi(8, 0, 4, {1, 0}), b::lmv(2, 7, 4)};
  auto program = one_core(body, 1, 1);
  const auto result = execute_batch(program, numbered_inputs(3, 1));
  CHECK(first_outputs(result) == std::vector<floats>{{1}, {101}, {201}});
  // The fourth word was written by the third body only: reading it there is no error, reading it in the first one is.
  program = one_core({b::saddi(5, 5, 4), b::lldi(5, 0, 4), b::sldi(6, 12), b::lmv(2, 6, 4)}, 1, 1);
  CHECK(has(batch_failure(program, numbered_inputs(3, 1)), "core 0, iteration 0, instruction 7: lmv"));
  // An accumulator over all inputs.
  program = one_core({b::sldi(6, 512), b::vvadd(6, 6, 1, 1), b::lmv(2, 6, 4)}, 1, 1);
  auto& s = program.cores[0].stream;
  CHECK(has(batch_failure(program, numbered_inputs(3, 1)), "nothing has written byte 512"));
  s = {b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::sldi(3, 64), b::lmv(3, 9, 4), b::vvadd(9, 3, 1, 1), b::sldi(10, 4), b::st(10, 9, 4), b::sldi(9, 32)};
  CHECK(batch_failure(program, batch{to_bytes({1})}).empty());  // the first body reads local byte 0: the input
  CHECK(has(batch_failure(program, numbered_inputs(2, 1)), "core 0, iteration 1, instruction 4: lmv"));
}

TEST_CASE("stages overlap: every output belongs to its own input") {
  for (const std::int32_t stages : {1, 2, 3, 5, 8}) {
    const chain c{stages, 12};
    const auto inputs = numbered_inputs(7, 3);
    CHECK(first_outputs(execute_batch(c.program(), inputs)) == c.expected(inputs));
  }
}

TEST_CASE("stages that are joined by rendezvous need no event") {
  const stream first{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::send(1, 1, 4)};
  const stream second{b::setbw(32, 32), b::sldi(1, 0), b::recv(1, 0, 4), b::vvadd(1, 1, 1, 1), b::sldi(2, 4), b::st(2, 1, 4)};
  CHECK(first_outputs(execute_batch(make_program({first, second}, 1, 1), numbered_inputs(4, 1))) == std::vector<floats>{{2}, {202}, {402}, {602}});
}

TEST_CASE("two readers of an input that do not wait for one another read what lies there") {
  // Each copies the input to its own half of the output.
  const auto reader = [](std::int32_t half) {
    return stream{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::sldi(2, 4 + 4 * half), b::st(2, 1, 4)};
  };
  const auto inputs = numbered_inputs(3, 1);
  // Core 0 runs on at once and finds input 0 three times; only then core 1 reads, and makes room for each next input.
  CHECK(first_outputs(execute_batch(make_program({reader(0), reader(1)}, 1, 2), inputs)) == std::vector<floats>{{1, 1}, {1, 101}, {1, 201}});
  // With a barrier at the end of the bodies.
  stream first = reader(0), second = reader(1);
  first.insert(first.end(), {b::sync(0, 1), b::wait(0, 1)});
  second.insert(second.end(), {b::sync(0, 0), b::wait(0, 1)});
  CHECK(first_outputs(execute_batch(make_program({first, second}, 1, 2), inputs)) == std::vector<floats>{{1, 1}, {101, 101}, {201, 201}});
  // The host does not wait for the end of the bodies: the last load makes room.
  first = reader(0), second = reader(1);
  for (auto* s : {&first, &second}) {
    const int other = s == &first ? 1 : 0;
    s->insert(s->begin() + 3, {b::sync(0, other), b::wait(0, 1)});
  }
  CHECK(first_outputs(execute_batch(make_program({first, second}, 1, 2), inputs)) == std::vector<floats>{{1, 1}, {101, 101}, {201, 201}});
}

TEST_CASE("programs without inputs, and inputs that nobody reads") {
  auto program = make_program({{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0x40, 4), b::st(1, 1, 4)}}, 0, 1);
  CHECK(first_outputs(execute_batch(program, batch(3))).size() == 3);
  program = make_program({{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 4), b::sldi(2, 4), b::st(2, 1, 4)}}, 1, 1);
  const auto result = execute_batch(program, numbered_inputs(3, 1));
  CHECK(first_outputs(result) == std::vector<floats>{{0}, {0}, {0}});
  CHECK(to_floats(result.global_memory) == floats{201, 0});
}

TEST_CASE("outputs that nobody stores keep what memory holds") {
  // Output 0 is the input itself, output 1 a constant, output 2 is stored.
  auto program = one_core({b::vvadd(2, 1, 1, 1)}, 1, 1);
  program.global_memory = to_bytes({0, 0, 7, 8});
  program.outputs.insert(program.outputs.begin(), {{"x", 0, 4, {}}, {"constant", 8, 8, {}}});
  auto result = execute_batch(program, numbered_inputs(2, 1));
  CHECK(result.outputs[0][0].values() == floats{1});
  CHECK(result.outputs[1][0].values() == floats{101});
  CHECK(result.outputs[1][1].values() == floats{7, 8});
  CHECK(result.outputs[1][2].values() == floats{202});
  // Nothing runs at all.
  program.cores[0].stream.clear();
  program.outputs.pop_back();
  result = execute_batch(program, numbered_inputs(3, 1));
  CHECK(result.outputs[2][0].values() == floats{201});
  CHECK(to_floats(result.global_memory)[0] == 201);
}

TEST_CASE("an output that is stored in part, or not for every input") {
  auto program = one_core({b::lmv(2, 1, 8)}, 2, 2);
  program.outputs[0].size = 12;
  program.global_memory.resize(20);
  auto text = batch_failure(program, numbered_inputs(2, 2));
  CHECK_MESSAGE(has(text, "execution error: byte 8 of output 'y' was not stored for input 0"), text);
  program.outputs[0] = {"y", 4, 8, {}};  // its first half is the input's second
  CHECK(first_outputs(execute_batch(one_core({b::lmv(2, 1, 8)}, 2, 2), numbered_inputs(2, 2))) == std::vector<floats>{{1, 2}, {101, 102}});
  CHECK(first_outputs(execute_batch(program, numbered_inputs(2, 2))) == std::vector<floats>{{2, 1}, {102, 101}});
  program.constant_bytes = 20;
  program.outputs[0] = {"y", 8, 12, {}};  // its end is a constant
  CHECK(first_outputs(execute_batch(program, numbered_inputs(2, 2))) == std::vector<floats>{{1, 2, 0}, {101, 102, 0}});
  // The address moves on with every body: input 1 stores elsewhere.
  program = make_program({{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 4), b::saddi(2, 2, 4), b::st(2, 1, 4)}}, 1, 1);
  program.global_memory.resize(16);
  text = batch_failure(program, numbered_inputs(3, 1));
  CHECK_MESSAGE(has(text, "byte 0 of output 'y' was not stored for input 1"), text);
}

TEST_CASE("of two stores in one body the later one counts") {
  auto program = one_core({b::lmv(2, 1, 4), b::sldi(3, 4), b::st(3, 2, 4), b::vvadd(2, 1, 1, 1)}, 1, 1);
  CHECK(first_outputs(execute_batch(program, numbered_inputs(2, 1))) == std::vector<floats>{{2}, {202}});
}

TEST_CASE("an overshoot names the event, the iteration and who signalled") {
  // Core 1 does not wait for core 0 between its bodies.
  const auto program = make_program({{b::setbw(32, 32), b::wait(3, 1), b::wait(3, 1)}, {b::setbw(32, 32), b::sync(3, 0)}}, 0, 0);
  CHECK(batch_failure(program, batch(3)) ==
        "execution error: overshoot: event 3 is at 2, above the awaited 1\n"
        "  at: core 0, iteration 0, instruction 2: wait event=3, value=1\n"
        "  - signalled by core 1, iteration 1, instruction 1: sync core=0, event=3\n"
        "  - signalled by core 1, iteration 2, instruction 1: sync core=0, event=3\n"
        "  hint: a wait needs exactly its count of signals since the wait before it");
  CHECK(batch_failure(program, batch(2)).find("deadlock") == 0);
  CHECK(has(batch_failure(program, batch(40)), "and by 23 more after these"));
}

TEST_CASE("events keep their values over a restart") {
  // Two signals in one body are for the waits of the same body and of the next: an overshoot in the first.
  CHECK(has(batch_failure(make_program({{b::setbw(32, 32), b::sync(0, 0), b::sync(0, 0), b::wait(0, 1)}}, 0, 0), batch(2)), "event 0 is at 2"));
  // One signal too few a body is short in the first, one that nobody waits for stays: the second body starts with it.
  CHECK(has(batch_failure(make_program({{b::setbw(32, 32), b::wait(0, 0), b::sync(0, 0)}}, 0, 0), batch(2)), "core 0, iteration 1, instruction 1: wait"));
  CHECK(batch_failure(make_program({{b::setbw(32, 32), b::wait(0, 0), b::sync(0, 0)}}, 0, 0), batch(1)).empty());
}

TEST_CASE("a deadlock names iterations") {
  const stream start{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 4)};
  stream twice = start, once = start;
  twice.insert(twice.end(), {b::recv(1, 1, 4), b::recv(1, 1, 4)});
  once.push_back(b::send(1, 0, 4));
  auto text = batch_failure(make_program({twice, once}, 0, 0), batch(3));
  CHECK_MESSAGE(has(text, "deadlock: core 0 waits for ever\n  at: core 0, iteration 1, instruction 4: recv"), text);
  CHECK(has(text, "waits for a send of core 1, which has finished"));
  stream first = start, second = start;
  first.insert(first.end(), {b::recv(1, 1, 4), b::send(1, 1, 4)});
  second.insert(second.end(), {b::recv(1, 0, 4), b::send(1, 0, 4)});
  text = batch_failure(make_program({first, second}, 0, 0), batch(2));
  CHECK_MESSAGE(has(text, "cycle core 0 @3 (iteration 0) -> core 1 @3 (iteration 0) -> core 0\n"), text);
  CHECK(has(text, "waits for a send of core 1, which is at instruction 3 of iteration 0"));
  // FREE is missing at the entry of the reader's body: the writer's second store can never come.
  const chain c{2, 4};
  auto program = c.program();
  program.cores[1].stream[1] = b::nop();
  text = batch_failure(program, numbered_inputs(3, 1));
  CHECK_MESSAGE(has(text, "core 0 waits for ever"), text);
  CHECK(has(text, "waits for event 2 to reach 1, it is at 0 and only 0 more signals exist in the program"));
  CHECK(has(text, "- core 1, iteration 0, instruction 5: wait"));
  CHECK(has(text, "waits for event 1 to reach 1, it is at 0; core 0, which is at instruction 6 of iteration 0, would signal"));
}

TEST_CASE("signals of later bodies count as signals to come") {
  // Core 0 needs both signals of core 1 in one body; core 1 waits for core 0 in between.
  const auto text = batch_failure(make_program({{b::setbw(32, 32), b::wait(0, 2), b::sync(1, 1)}, {b::setbw(32, 32), b::sync(0, 0), b::wait(1, 1)}}, 0, 0), batch(2));
  CHECK_MESSAGE(has(text, "deadlock: cycle core 0 @1 (iteration 0) -> core 1 @2 (iteration 0) -> core 0"), text);
}

TEST_CASE("batches of nothing, and inputs of another size") {
  const auto program = one_core({b::lmv(2, 1, 4)}, 1, 1);
  CHECK(has(batch_failure(program, {}), "mismatch error: the batch has no input"));
  const auto text = batch_failure(program, {to_bytes({1}), to_bytes({1, 2})});
  CHECK_MESSAGE(has(text, "the input has 8 bytes, the program expects 4\n  at: input 1 of the batch"), text);
  raptor::sim::execution_options options;
  options.total_memory_limit = 4096 + 3;
  CHECK(batch_failure(program, batch(4, to_bytes({1})), options).empty());
  options.total_memory_limit = 15;
  CHECK(has(batch_failure(program, batch(4, to_bytes({1})), options), "capacity error: the outputs of 4 inputs, 4 bytes each, exceed 15 bytes"));
}

TEST_CASE("a trace of a batch has the instructions of all inputs") {
  raptor::sim::execution_options options;
  std::size_t lines = 0;
  options.trace = [&](std::string_view) { ++lines; };
  const auto inputs = numbered_inputs(3, 1);
  const chain c{3, 4};
  const auto traced = execute_batch(c.program(), inputs, options);
  CHECK(first_outputs(traced) == c.expected(inputs));
  CHECK(lines == raptor::sim::total_instructions(traced.cores));
}
