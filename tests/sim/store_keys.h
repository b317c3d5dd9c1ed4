// The index against the log: after a store has opened, a message that the log has is found by its keys,
// whatever the crash left of the index files. A sample of the messages, other ones each time: over many
// lives, all.
#pragma once

#include "sim/store_model.h"

namespace rmq::sim {

// `dump` is what the store shows, with its log. Looks up the unique key and the own key of some messages.
Task<void> check_keys(store::MessageStore& s, const Dump& dump, Errors& errors);

}  // namespace rmq::sim
