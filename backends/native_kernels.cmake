# GGL_CPU_NATIVE: leaves out the kernels that this processor never runs. Those of quantized weights take 10 s for each instruction set.

# By the suffix of a file: the flag in /proc/cpuinfo without which the kernel is left out.
set(flag_of_avxvnni avx_vnni)
set(flag_of_avx512 avx512bw)
set(flag_of_avx512vnni avx512_vnni)
set(flag_of_avx512bf16 avx512_bf16)
set(flag_of_amx amx_int8)
set(replace_each_other avx2 avxvnni avx512 avx512vnni) # as init.c fills the table; what has bf16 or tiles adds to it

# Puts stubs, which leave the table as it is, in place of such files of the list.
function(leave_out_kernels files)
    if(NOT EXISTS /proc/cpuinfo)
        return()
    endif()
    file(STRINGS /proc/cpuinfo has REGEX "^flags" LIMIT_COUNT 1)
    set(has "${has} ")
    set(built_for "")
    foreach(isa amx avx512bf16 avx512vnni avx512 avxvnni) # in the order of their flags, as ./run sorts them
        if(has MATCHES " ${flag_of_${isa}} ")
            string(APPEND built_for "${flag_of_${isa}} ")
        endif()
    endforeach()
    string(STRIP "${built_for}" built_for)
    set(GGL_CPU_BUILT_FOR "${built_for}" CACHE INTERNAL "The flags by which kernels were left out")
    set(kept)
    foreach(file ${${files}})
        string(REGEX MATCH "/([a-z0-9_]+)_([a-z0-9]+)\\.c$" match ${file})
        set(kernel ${CMAKE_MATCH_1})
        set(isa ${CMAKE_MATCH_2})
        set(is_used TRUE)
        if(DEFINED flag_of_${isa} AND NOT has MATCHES " ${flag_of_${isa}} ")
            set(is_used FALSE)
        else() # the same kernel for a later set of the list takes its place
            list(FIND replace_each_other "${isa}" at)
            foreach(better IN LISTS replace_each_other)
                list(FIND replace_each_other ${better} at_better)
                if(at GREATER_EQUAL 0 AND at_better GREATER at AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/cpu/x86/${kernel}_${better}.c
                   AND has MATCHES " ${flag_of_${better}} ")
                    set(is_used FALSE)
                endif()
            endforeach()
        endif()
        if(NOT is_used)
            set(file ${CMAKE_CURRENT_BINARY_DIR}/left_out/${kernel}_${isa}.c)
            file(CONFIGURE OUTPUT ${file} CONTENT
                "#include \"${CMAKE_CURRENT_SOURCE_DIR}/cpu/x86/x86.h\"\n\nvoid ggl_cpu_kernels_@kernel@_@isa@(cpu_kernels *k) {\n    (void)k;\n}\n" @ONLY)
        endif()
        list(APPEND kept ${file})
    endforeach()
    set(${files} ${kept} PARENT_SCOPE)
endfunction()
