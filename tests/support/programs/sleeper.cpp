// Says "ready", then repeats what it is told until its input ends; then sleeps for good. Something to start and kill.
#include <unistd.h>

#include <iostream>
#include <string>

int main() {
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) std::cout << line << std::endl;
    while (true) ::pause();
}
