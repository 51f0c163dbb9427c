# Runs the programs of the consumer project that was built in FOLDER.
cmake_minimum_required(VERSION 3.25)
foreach(program consumer consumer_onnx)
  find_program(found_${program} ${program} PATHS ${FOLDER} ${FOLDER}/bin NO_DEFAULT_PATH REQUIRED)
  execute_process(COMMAND ${found_${program}} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
