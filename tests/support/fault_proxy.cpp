#include "fault_proxy.hpp"

#include "proxy_pump.hpp"

namespace lockstep::test {

using faults = proxy_pump::faults;

fault_proxy::fault_proxy(endpoint const& server) : pump_{std::make_unique<proxy_pump>(server)} {}

fault_proxy::~fault_proxy() = default;

endpoint fault_proxy::address() const { return pump_->address(); }

std::string fault_proxy::url() const {
    auto const here = address();
    if (!here.unix_path.empty()) return "unix://" + here.unix_path;
    return (here.tls ? "rediss://" : "redis://") + here.address();
}

proxy_counters fault_proxy::counters() const { return pump_->counters(); }

void fault_proxy::delay(std::chrono::milliseconds time, direction way) {
    pump_->run([&] { pump_->change(way, [time](faults& fate) { fate.delay = time; }); });
}

void fault_proxy::throttle(std::size_t bytes_per_second, direction way) {
    pump_->run([&] { pump_->change(way, [=](faults& fate) { fate.bytes_per_second = bytes_per_second; }); });
}

void fault_proxy::hold(direction way) {
    pump_->run([&] { pump_->change(way, [](faults& fate) { fate.hold = true; }); });
}

void fault_proxy::half_open(direction way) {
    pump_->run([&] { pump_->change(way, [](faults& fate) { fate.swallow = true; }); });
}

void fault_proxy::corrupt(direction way) {
    pump_->run([&] { pump_->change(way, [](faults& fate) { fate.corrupt_next = true; }); });
}

void fault_proxy::cut_after(std::size_t bytes, direction way) {
    pump_->run([&] { pump_->change(way, [bytes](faults& fate) { fate.cut_after = bytes; }); });
}

void fault_proxy::drop_replies(int count) {
    pump_->run([&] { pump_->change(direction::to_client, [count](faults& fate) { fate.drop_next = count; }); });
}

void fault_proxy::cut() {
    pump_->run([this] { pump_->cut(); });
}

void fault_proxy::strand() {
    pump_->run([this] { pump_->strand(); });
}

void fault_proxy::deliver_stranded() {
    pump_->run([this] { pump_->deliver_stranded(); });
}

std::size_t fault_proxy::held_back() const {
    std::size_t bytes = 0;
    pump_->run([&] { bytes = pump_->held_back(); });
    return bytes;
}

void fault_proxy::refuse() {
    pump_->run([this] { pump_->refuse(); });
}

void fault_proxy::heal() {
    pump_->run([this] { pump_->heal(); });
}

}  // namespace lockstep::test
