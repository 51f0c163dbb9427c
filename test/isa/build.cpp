#include "raptor/isa/build.hpp"

#include <doctest/doctest.h>

#include "raptor/isa/check.hpp"
#include "raptor/isa/text.hpp"

namespace {

using namespace raptor::isa;
using namespace raptor::isa::build;

// Each builder is compared with the text form of what it should build.
constexpr bool builds(const instruction& i, std::string_view text) { return to_text(i) == text && is_canonical(i) && !find_fault(i); }

static_assert(builds(nop(), "nop"));
static_assert(builds(sldi(1, -2), "sldi r1, imm=-2"));
static_assert(builds(sld(1, 2), "sld r1, r2"));
static_assert(builds(sld(1, 2, 8), "sld r1, r2, offset_value=8"));
static_assert(builds(sadd(1, 2, 3), "sadd r1, r2, r3"));
static_assert(builds(ssub(1, 2, 3), "ssub r1, r2, r3"));
static_assert(builds(smul(1, 2, 3), "smul r1, r2, r3"));
static_assert(builds(saddi(1, 2, 3), "saddi r1, r2, imm=3"));
static_assert(builds(smuli(1, 2, 3), "smuli r1, r2, imm=3"));
static_assert(builds(setbw(32, 16), "setbw ibiw=32, obiw=16"));
static_assert(builds(mvmul(1, 2, 7), "mvmul r1, r2, mbiw=32, relu=0, group=7"));
static_assert(builds(mvmul(1, 2, 7, 8, 1), "mvmul r1, r2, mbiw=8, relu=1, group=7"));
static_assert(builds(vvadd(1, 2, 3, 4), "vvadd r1, r2, r3, len=4"));
static_assert(builds(vvsub(1, 2, 3, 4), "vvsub r1, r2, r3, len=4"));
static_assert(builds(vvmul(1, 2, 3, 4), "vvmul r1, r2, r3, len=4"));
static_assert(builds(vvdmul(1, 2, 3, 4), "vvdmul r1, r2, r3, len=4"));
static_assert(builds(vvmax(1, 2, 3, 4), "vvmax r1, r2, r3, len=4"));
static_assert(builds(vvsll(1, 2, 3, 4), "vvsll r1, r2, r3, len=4"));
static_assert(builds(vvsra(1, 2, 3, 4), "vvsra r1, r2, r3, len=4"));
static_assert(builds(vavg(1, 2, 3, 4), "vavg r1, r2, r3, len=4"));
static_assert(builds(vmv(1, 2, 3, 4), "vmv r1, r2, r3, len=4"));
static_assert(builds(vrsu(1, 2, 3, 4), "vrsu r1, r2, r3, len=4"));
static_assert(builds(vrsl(1, 2, 3, 4), "vrsl r1, r2, r3, len=4"));
static_assert(builds(vrelu(1, 2, 4), "vrelu r1, r2, len=4"));
static_assert(builds(vtanh(1, 2, 4), "vtanh r1, r2, len=4"));
static_assert(builds(vsigm(1, 2, 4), "vsigm r1, r2, len=4"));
static_assert(builds(vsoftmax(1, 2, 4), "vsoftmax r1, r2, len=4"));
static_assert(builds(vector(opcode::vvadd, 1, 2, 3, 4, {1, 5}), "vvadd r1, r2, r3, offset_select=1, offset_value=5, len=4"));
static_assert(builds(ld(1, 2, 4), "ld r1, r2, size=4"));
static_assert(builds(st(1, 2, 4, {2, 5}), "st r1, r2, offset_select=2, offset_value=5, size=4"));
static_assert(builds(lldi(1, 255, 4), "lldi r1, imm=255, len=4"));
static_assert(builds(lmv(1, 2, 4), "lmv r1, r2, len=4"));
static_assert(builds(send(1, 2, 4), "send r1, core=2, size=4"));
static_assert(builds(recv(1, 2, 4), "recv r1, core=2, size=4"));
static_assert(builds(wait(1, 2), "wait event=1, value=2"));
static_assert(builds(sync(1, 2), "sync core=2, event=1"));

TEST_CASE("send has its address register in both fields") {
  const auto i = send(9, 2, 64);
  CHECK(i.rd == 9);
  CHECK(i.r1 == 9);
}

}  // namespace
