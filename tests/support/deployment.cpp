#include "deployment.hpp"

#include "key_slot.hpp"

namespace lockstep::test {

namespace {
constexpr std::chrono::minutes never_down{10};
}

deployment::deployment(topology which) : which_{which} {
    switch (which) {
        case topology::standalone: alone_.emplace(); break;
        case topology::sentinel: group_.emplace(sentinel_options{.replicas = 1, .down_after = never_down}); break;
        case topology::cluster:
            nodes_.emplace(cluster_options{.replicas_per_master = 0, .node_timeout = never_down});
            break;
    }
}

std::string deployment::url() const { return alone_ ? alone_->url() : group_ ? group_->sentinel_url() : nodes_->url(); }

redis_server& deployment::server_of(std::string const& name) {
    if (alone_) return *alone_;
    return group_ ? group_->server(0) : nodes_->node(nodes_->owner_of(slot_of("{" + name + "}")));
}

std::vector<redis_server*> deployment::all_masters() {
    if (!nodes_) return {&server_of("")};
    std::vector<redis_server*> all;
    for (std::size_t i = 0; i < nodes_->shards(); ++i) all.push_back(&nodes_->node(i));
    return all;
}

void deployment::empty() {
    for (auto* const server : all_masters()) {
        if (server->stopped()) server->cont();  // a test that failed left it so
        server->must({"FLUSHALL"});
        server->must({"SCRIPT", "FLUSH"});
        server->must({"CONFIG", "RESETSTAT"});
    }
}

}  // namespace lockstep::test
