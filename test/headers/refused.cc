// This file must not compile: see CMakeLists.txt.
#include "raptor/policies.hpp"

auto refused() { return raptor::default_policies() | raptor::with<raptor::order_slot>(7); }
