# npm_packages(FROM INTO): a build step that installs what FROM/package-lock.json names in INTO/node_modules; its output is
# INTO/node_modules/.installed. Where that can't be done the build goes on, and INTO/missing.txt says why (npm_ci.cmake).
find_program(LOCKSTEP_NODE NAMES node nodejs)
find_program(LOCKSTEP_NPM npm)
set(LOCKSTEP_NPM_CI "${CMAKE_CURRENT_LIST_DIR}/npm_ci.cmake")

function(npm_packages from into)
  add_custom_command(OUTPUT "${into}/node_modules/.installed"
    COMMAND "${CMAKE_COMMAND}" "-DNODE=${LOCKSTEP_NODE}" "-DNPM=${LOCKSTEP_NPM}" "-DFROM=${from}" "-DINTO=${into}" -P "${LOCKSTEP_NPM_CI}"
    DEPENDS "${from}/package.json" "${from}/package-lock.json" "${LOCKSTEP_NPM_CI}"
    COMMENT "Installing the npm packages of ${from}"
    VERBATIM)
endfunction()
