// rmqctl: looks after RocketMQ servers, sends and reads messages.

#include "ctl/program.h"

int main(int argc, char** argv) {
  return static_cast<int>(rmq::ctl::run_program(std::vector<std::string>(argv + 1, argv + argc)));
}
