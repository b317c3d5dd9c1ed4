// The functions of "rmqctl topic load" and "group load": topics and groups from a JSON list.
#pragma once

#include "ctl/context.h"

namespace rmq::ctl {

Outcome<void> load_topics(Context& c);
Outcome<void> load_groups(Context& c);

}  // namespace rmq::ctl
