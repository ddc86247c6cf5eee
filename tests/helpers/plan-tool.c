/* SPDX-License-Identifier: Apache-2.0
 * usage: plan-tool KUBELET CONTAINERD DIRECTORY OPTION... <TOML
 * Plans an ordinary node with these versions and writes every planned file below DIRECTORY. Options:
 * nvidia, soci. nodeadm plans under its name. toml reads the containerd configuration of the user from
 * standard input. environment=SERVICE:FILE reads the values of A0, A1, … for a service, and kubelet
 * flags, each ended by a NUL. text prints the plan. So checks need no metadata service and no instance. */
#include "base/root.h"
#include "sample.h"

static char *read_all(FILE *file, size_t *ret_size) {
        Text t = {};
        char buffer[4096];
        for (size_t n; (n = fread(buffer, 1, sizeof(buffer), file)) > 0;)
                text_add_bytes(&t, buffer, n);
        *ret_size = t.size;
        return text_take(&t);
}

/* "kubelet:FILE": values up to an empty one, then flags. */
static void read_values(Config *config, ServiceEnvironment *e, const char *what) {
        bool flags = false;
        size_t size = 0, n = strcspn(what, ":");
        FILE *file = fopen(what + n + 1, "re");
        if (!file)
                FAIL("%s cannot be read", what);
        _free_ char *text = read_all(file, &size);
        fclose(file);
        *e = (ServiceEnvironment) { .service = xstrndup(what, n) };
        for (char *p = text; p < text + size; p += strlen(p) + 1)
                if (!*p)
                        flags = true;
                else if (flags)
                        strv_add(&config->kubelet.flags, p);
                else {
                        e->variables = xrealloc(e->variables, e->n + 1, sizeof(Variable));
                        e->variables[e->n] = (Variable) { xasprintf("A%zu", e->n), xstrdup(p) };
                        e->n++;
                }
}

static int write_files(const Plan *plan, const char *directory) {
        _cleanup_(root_freep) Root *root = NULL;
        int r = root_new(directory, &root);
        for (size_t i = 0; r >= 0 && i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->type == ACTION_WRITE_FILE)
                        r = root_replace(root, a->target, a->file.content, a->file.size, a->file.mode);
        }
        return r;
}

int main(int argc, char **argv) {
        if (argc < 4)
                return 2;
        test_name = argv[0];
        static Sample s;                /* static: what it holds lives as long as the process */
        static ServiceEnvironment environment[4];
        const char *why = "";
        unsigned line = 0;
        size_t size = 0;
        s = sample_new();
        s.host.kubelet_version = argv[1];
        s.host.containerd_version = argv[2];
        for (int i = 4; i < argc; i++)
                if (streq(argv[i], "nvidia"))
                        s.host.nvidia_runtime = true;
                else if (streq(argv[i], "soci"))
                        s.host.soci_snapshotter = s.config.gates.fast_image_pull = true;
                else if (streq(argv[i], "nodeadm"))
                        s.options.as_nodeadm = true;
                else if (startswith(argv[i], "environment=") && s.config.instance.n_environment < ARRAY_SIZE(environment)) {
                        s.config.instance.environment = environment;
                        read_values(&s.config, &environment[s.config.instance.n_environment++], argv[i] + strlen("environment="));
                } else if (streq(argv[i], "toml")) {
                        _free_ char *text = read_all(stdin, &size);
                        if (toml_parse(text, size, &s.config.containerd.config, &line, &why) < 0) {
                                fprintf(stderr, "line %u: %s\n", line, why);
                                return 1;
                        }
                }
        sample_plan(&s);
        if (streq(argv[argc - 1], "text")) {
                _free_ char *text = plan_to_text(s.plan);
                fputs(text, stdout);
        }
        int r = write_files(s.plan, argv[3]);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", argv[3], strerror(-r));
        return r < 0;
}
