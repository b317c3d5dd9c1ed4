// The function of "rmqctl topic scale", for the table of the topic verbs.
#pragma once

#include "ctl/context.h"

namespace rmq::ctl {

Outcome<void> scale_topic(Context& c);

}  // namespace rmq::ctl
