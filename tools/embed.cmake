# Writes a C source with the bytes of files; see rt_embed in CMakeLists.txt.
#   cmake -DOUT=FILE.c -DNAME=FUNCTION -DFILES=A;B -P tools/embed.cmake
set(text "#include \"base/embed.h\"\n\n")
set(lines "")
set(count 0)
foreach(file ${FILES})
  get_filename_component(base ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," body "${hex}")
  string(APPEND text "static const unsigned char bytes_${count}[] = {${body}0};\n")
  string(APPEND lines "    {\"${base}\", (const char *)bytes_${count}, ${bytes}},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND text "\nstatic const rt_embedded files[] = {\n${lines}    {0, 0, 0}};\n\n"
  "const rt_embedded *${NAME}(int *count);\n"
  "const rt_embedded *${NAME}(int *count) {\n    *count = ${count};\n    return files;\n}\n")
file(WRITE ${OUT} "${text}")
