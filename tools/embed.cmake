# Writes a C source that carries files, taken in by the assembler; see rt_embed in CMakeLists.txt.
#   cmake -DOUT=FILE.c -DNAME=FUNCTION -DFILES=A;B -P tools/embed.cmake
set(text "#include \"base/embed.h\"\n\n")
set(lines "")
set(count 0)
foreach(file ${FILES})
  get_filename_component(base ${file} NAME)
  file(SIZE ${file} bytes)
  set(symbol "${NAME}_${count}")
  string(APPEND text "__asm__(\".section .rodata\\n.hidden ${symbol}\\n.globl ${symbol}\\n${symbol}:\\n"
    ".incbin \\\"${file}\\\"\\n.byte 0\\n.previous\\n\");\nextern const char ${symbol}[];\n")
  string(APPEND lines "    {\"${base}\", ${symbol}, ${bytes}},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND text "\nstatic const rt_embedded files[] = {\n${lines}    {0, 0, 0}};\n\n"
  "const rt_embedded *${NAME}(int *count);\n"
  "const rt_embedded *${NAME}(int *count) {\n    *count = ${count};\n    return files;\n}\n")
file(WRITE ${OUT} "${text}")
