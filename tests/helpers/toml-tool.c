/* SPDX-License-Identifier: Apache-2.0
 * usage: toml-tool [-w] <FRAMES
 * A frame is a length in decimal, a line end, and so many bytes. Each frame of TOML becomes one line: its
 * value as JSON, or "error LINE WHY". With -w each frame of JSON becomes a frame of TOML, or the line
 * "error". */
#include "base/str.h"
#include "doc/doc.h"

#include <stdio.h>

static void parse(const char *data, size_t size) {
        json_auto_t *value = NULL;
        const char *why = "";
        unsigned line = 0;
        if (toml_parse(data, size, &value, &line, &why) < 0)
                printf("error %u %s\n", line, why);
        else {
                json_dumpf(value, stdout, JSON_COMPACT);
                putchar('\n');
        }
}

static void format(const char *data, size_t size) {
        json_auto_t *value = json_loadb(data, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
        _free_ char *text = NULL;
        if (!value || toml_format(value, &text) < 0)
                puts("error");
        else
                printf("%zu\n%s", strlen(text), text);
}

int main(int argc, char **argv) {
        bool writes = argc > 1 && streq(argv[1], "-w");
        _free_ char *line = NULL;
        size_t room = 0;
        while (getline(&line, &room, stdin) > 0) {
                uint64_t size;
                line[strcspn(line, "\n")] = '\0';
                if (parse_u64(line, &size) < 0)
                        return 1;
                /* exact, so that a read past the end is seen */
                _free_ char *data = malloc(size ?: 1);
                if (!data || fread(data, 1, size, stdin) != size)
                        return 1;
                if (writes)
                        format(data, size);
                else
                        parse(data, size);
        }
        return 0;
}
