# Install rules, the CMake package, and CPack: an archive and a .deb of the tools, and of the headers.
# Included once, after all targets are known.

option(RAPTOR_INSTALL "Generate install rules and packages" ${PROJECT_IS_TOP_LEVEL})
if(NOT RAPTOR_INSTALL)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# --- component dev: headers and the CMake package ---------------------------------------------------
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/raptor")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/raptor" "${PROJECT_SOURCE_DIR}/sim/raptor"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev FILES_MATCHING PATTERN "*.hpp")
install(TARGETS raptor raptor_sim EXPORT raptorTargets COMPONENT dev)
install(EXPORT raptorTargets NAMESPACE raptor:: DESTINATION "${package_dir}" COMPONENT dev)
install(TARGETS raptor_onnx EXPORT raptorOnnxTargets COMPONENT dev)
install(EXPORT raptorOnnxTargets NAMESPACE raptor:: DESTINATION "${package_dir}" COMPONENT dev)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/raptorConfig.cmake.in" "${PROJECT_BINARY_DIR}/raptorConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/raptorConfigVersion.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/raptorConfig.cmake" "${PROJECT_BINARY_DIR}/raptorConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT dev)

# --- component tools: the programs --------------------------------------------------------------------
set(components dev)
set(raptor_tool_targets raptor-compile raptor-sim raptor-validate raptor-zoo)
foreach(tool IN LISTS raptor_tool_targets)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
    list(APPEND components tools)
  endif()
endforeach()
list(REMOVE_DUPLICATES components)
foreach(component IN LISTS components)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/raptor-${component}" COMPONENT ${component}
    RENAME copyright)
endforeach()

# --- packages: cpack -G TGZ, cpack -G DEB ----------------------------------------------------------------
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME raptor)
set(CPACK_PACKAGE_CONTACT "The Raptor authors <raptor@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_FILE_NAME "raptor-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME raptor-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME raptor-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libboost-dev, libboost-graph-dev, librange-v3-dev, libfmt-dev, nlohmann-json3-dev, libeigen3-dev, libonnx-dev, libprotobuf-dev, protobuf-compiler")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Compiler, simulator, validator and network builder")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and CMake package of the toolkit")
include(CPack)
