#include "raptor/compiler.hpp"
#include "raptor/emit/artifact.hpp"
#include "raptor/emit/bound.hpp"
#include "raptor/sim/artifact.hpp"
#include "raptor/sim/executor.hpp"

std::size_t computes_in_two();

std::size_t computes_in_two() { return raptor::lowering::compute_graph{}.size(); }
