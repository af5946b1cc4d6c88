// A stock that all shops share: each changes fields of its own, one waits for a field, and one reads fields without asking the server each time.
#include <lockstep/lockstep.hpp>
#include <lockstep/near_map.hpp>
#include <lockstep/shared_map.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <optional>

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::shared_map<int> stock{client, "stock"};
    lockstep::near_map<int> near{client, "stock"};

    stock.set_all({{"apples", 12}, {"pears", 3}, {"plums", 7}});  // in one step
    auto const before = near.get("apples");
    std::cout << before->value << " apples\n";
    for (int i = 0; i != 1000; ++i) static_cast<void>(near.get("apples"));
    std::cout << near.statistics().hits << " reads asked nobody\n";

    auto next = std::async(std::launch::async, [&] { return stock.wait_newer("apples", before->version, 10s); });
    stock.update("apples", [](std::optional<int> const& now) { return now.value_or(0) - 1; });  // again if somebody was faster
    auto const sold = next.get();
    if (!sold) return 1;
    std::cout << "told: " << sold->value << " apples\n";
    if (stock.compare_and_set("apples", before->version, 100)) return 1;  // it is not that version any more

    near.forget("apples");  // it would hear of it a moment later
    std::cout << near.get("apples")->value << " apples\n";
    stock.erase("plums");
    for (auto const& [name, count] : stock.all()) std::cout << name << ": " << count.value << '\n';  // at one moment
    return near.get("apples")->value == 11 && stock.size() == 2 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "shared_map: " << problem.what() << '\n';
    return 1;
}
