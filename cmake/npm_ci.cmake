# cmake -DNPM=npm -DFROM=dir -DINTO=dir -P npm_ci.cmake: installs what FROM/package-lock.json names, in INTO/node_modules. Scripts of
# packages are not run.
foreach(file IN ITEMS package.json package-lock.json .npmrc)
  configure_file("${FROM}/${file}" "${INTO}/${file}" COPYONLY)
endforeach()
execute_process(COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --loglevel=error
  WORKING_DIRECTORY "${INTO}" RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "${said}\n"
    "npm could not install the packages that the dashboard needs. Without a way to a registry, build without it:\n"
    "  cmake --preset release -DLOCKSTEP_DASHBOARD=OFF")
endif()
file(TOUCH "${INTO}/node_modules/.installed")
