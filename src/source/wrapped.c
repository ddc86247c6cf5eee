/* SPDX-License-Identifier: Apache-2.0
 * Files of other tools → the user data in them. A row of shapes for each place where one can be. */
#include "source/wrapped.h"

#include "base/json.h"
#include "config/config.h"
#include "source/source.h"

#include <errno.h>

/* A Terraform plan has thousands of resources. */
#define MAX_NODES (1u << 19)
#define MISSING   "is missing; put the NodeConfig there"

typedef struct Shape {
        char mark[23];          /* the key of the item or of its list; its kind, or its type (Terraform) */
        char data[28];          /* the path of the user data in it */
        bool base64;
        uint8_t keys;
} Shape;

static const Shape shapes[] = {
        { "EC2NodeClass", "spec.userData", false, WRAP_KARPENTER },
        { "managedNodeGroups", "overrideBootstrapCommand", false, WRAP_EKSCTL },
        { "nodeGroups", "overrideBootstrapCommand", false, WRAP_EKSCTL },
        { "LaunchTemplateVersions", "LaunchTemplateData.UserData", true, WRAP_EC2 },
        { "LaunchTemplateData", "UserData", true, WRAP_EC2 },
        { "aws_launch_template", "values.user_data", true, WRAP_TERRAFORM },
        { "aws_instance", "values.user_data_base64", true, WRAP_TERRAFORM_INSTANCE },
        { "aws_instance", "values.user_data", false, WRAP_TERRAFORM_INSTANCE },
};

typedef struct Reader {
        const Blob *file;
        WrappedFile *to;
        const Node *root;               /* of the document */
        bool empty;                     /* without user data: the only item so far */
        char **group_types;             /* of all aws_eks_node_group */
        const Node **pools; size_t n_pools;     /* NodePools of Karpenter */
} Reader;

static const Node *walk(const Node *n, const char *path) {
        while (n && *path) {
                _free_ char *key = str_cut(&path, ".");
                n = node_get(n, key);
        }
        return n;
}

/* "": no text there */
static const char *text_at(const Node *n, const char *path) {
        n = walk(n, path);
        return n && n->type == NODE_SCALAR && !node_is_null(n) ? n->text : "";
}

static bool is(const Node *n, const char *path, const char *text) {
        return streq(text_at(n, path), text);
}

static const Node *item_of(const Node *list, size_t i) {
        return list && list->type == NODE_LIST && i < list->n ? list->items[i] : NULL;
}

/* A list of types, or one. */
static void add_types(char ***types, const Node *list) {
        const Node *item;
        if (*text_at(list, "") && !strv_contains(*types, list->text))
                strv_add(types, list->text);
        for (size_t i = 0; (item = item_of(list, i)); i++)
                add_types(types, item);
}

static const char *next_line(const char *s) {
        s += strcspn(s, "\n");
        return s + (*s != 0);
}

/* The text of a literal block begins on the line below its key, after the same indent on each line. */
static Position block_position(const Blob *file, const Node *block) {
        const char *line = file->data, *text = block->text;
        for (unsigned n = block->at.line; n > 0; n--)
                line = next_line(line);
        for (; *text == '\n'; text++)
                line = next_line(line);
        size_t deep = strspn(line, " "), own = strspn(text, " ");
        return (Position){ file->at.source, 0, block->at.line + 1, deep > own ? (unsigned)(deep - own) : 0 };
}

static void fail(Wrapped *w, Cause cause, const char *why) {
        w->cause = cause;
        w->why = why;
}

static void read_text(const Blob *file, Wrapped *w, const Node *data, bool base64) {
        Blob *b = &w->blob;
        _free_ char *name = xasprintf("%s#%s", file->at.source, w->place);
        if (base64 && base64_decode(data->text, data->n, true, &b->data, &b->size) < 0)
                return fail(w, CAUSE_SYNTAX,
                            "is not base64, which EC2 requires; encode it once: base64 -w0 FILE");
        if (!base64) {
                b->data = xmemdup(data->text, data->n);
                b->size = data->n;
        }
        b->at = !base64 && data->block == '|' ? block_position(file, data)
                                              : (Position){ .source = source_keep_name(name), .line = 1 };
}

/* Does Terraform know the user data only after it has applied the plan? Without user data this is null. */
static bool is_unknown(const Node *root, const char *address) {
        const Node *change, *changes = node_get(root, "resource_changes");
        for (size_t i = 0; (change = item_of(changes, i)); i++)
                if (is(change, "address", address) && is(change, "change.after_unknown.user_data", "true"))
                        return true;
        return false;
}

static void forget_items(WrappedFile *f) {
        for (Wrapped *w = f->items; w < f->items + f->n; w++) {
                FREE_ALL(w->name, w->place, w->blob.data, w->added);
                strv_free(w->types);
        }
        f->n = 0;
}

void wrapped_done(WrappedFile *f) {
        forget_items(f);
        free(f->items);
        documents_done(&f->documents);
        *f = (WrappedFile){};
}

/* For a node that gets its cluster from the tool. */
static char *sample_of(const Node *root) {
        const char *name = text_at(root, "metadata.name");
        _cleanup_(json_decrefp) json_t *sample = config_sample(*name ? name : "stand-in");
        return json_text(sample, 0, false);
}

static void add_item(Reader *r, const Shape *s, const Node *item, const char *path) {
        const char *types = "instanceType|instanceTypes|InstanceType|instance_type|instancesDistribution."
                            "instanceTypes",
                   *names = "address|VersionNumber|name|metadata.name", *dot = strrchr(s->data, '.');
        _free_ char *parent = xstrndup(s->data, dot ? (size_t)(dot - s->data) : 0);
        const Node *template = walk(item, parent), *data = walk(item, s->data), *seen = data ?: item;
        bool unknown = s->keys == WRAP_TERRAFORM && is_unknown(r->root, text_at(item, "address")),
             empty = !*text_at(data, "") && !unknown && s->keys != WRAP_KARPENTER;
        if (empty && r->to->n > 0)
                return;
        if (r->empty) /* that was the first one */
                forget_items(r->to);
        r->empty = empty;
        Wrapped *w = APPEND(r->to->items, r->to->n);
        *w = (Wrapped){ .keys = s->keys,
                        .template = template,
                        .at = { r->file->at.source, 0, seen->at.line, seen->at.column },
                        .place = xasprintf("%s%s%s", path, *path ? "." : "", s->data) };
        while (*types) {
                _free_ char *key = str_cut(&types, "|");
                add_types(&w->types, walk(template, key));
        }
        while (*names && !w->name) {
                _free_ char *key = str_cut(&names, "|");
                w->name = *text_at(item, key) ? xstrdup(text_at(item, key)) : NULL;
        }
        w->name = w->name ?: xstrdup(w->place);
        if (s->keys == WRAP_EKSCTL)
                w->added = sample_of(r->root);
        if (unknown)
                fail(w, CAUSE_NO_CONFIG,
                     "is known only after terraform apply; check the state then: terraform show -json");
        else if (empty)
                fail(w, CAUSE_NO_CONFIG, MISSING);
        else if (data && *text_at(data, ""))
                read_text(r->file, w, data, s->base64);
}

static void look(Reader *r, const Node *n, const char *key, const char *path) {
        bool found = false, whole = node_get(n, "spec") || node_get(n, "values");
        for (size_t i = 0; item_of(n, i); i++) {
                _free_ char *deeper = xasprintf("%s[%zu]", path, i);
                look(r, item_of(n, i), key, deeper);
        }
        if (n->type != NODE_MAP || strlen(key) > 64 || streq(key, "prior_state"))
                return;
        for (const Shape *s = shapes; s < shapes + ARRAY_SIZE(shapes); s++)
                if (streq(key, s->mark) || (whole && (is(n, "kind", s->mark) || is(n, "type", s->mark)))) {
                        add_item(r, s, n, path);
                        found = true;
                }
        if (is(n, "kind", "NodePool"))
                *APPEND(r->pools, r->n_pools) = n;
        if (is(n, "type", "aws_eks_node_group"))
                add_types(&r->group_types, walk(n, "values.instance_types"));
        for (const Member *m = n->members; !found && m < n->members + n->n; m++) {
                _free_ char *deeper = xasprintf("%s%s%s", path, *path ? "." : "", m->key);
                look(r, m->value, m->key, deeper);
        }
}

static char *flow_text(const Node *n) {
        _cleanup_(json_decrefp) json_t *json = NULL;
        return n && yaml_to_json(n, &json) >= 0 ? json_text(json, 0, false) : NULL;
}

#define KUBELET_LINE 8u /* of the text below */
/* Karpenter appends a NodeConfig of its own, whose lists replace the user's: kubelet, taints, labels, RAID0
 * (aws/karpenter-provider-aws, pkg/providers/amifamily/bootstrap/nodeadm.go). */
static char *karpenter_adds(const Node *spec, const Node *pool) {
        const Node *template = walk(pool, "spec.template"), *labels = walk(template, "metadata.labels");
        _free_ char *sample = sample_of(NULL), *kubelet = flow_text(node_get(spec, "kubelet")),
                    *taints = flow_text(walk(template, "spec.taints"));
        const char *raid = text_at(spec, "instanceStorePolicy");
        Text t = {};
        text_add(
                &t,
                "%s\n---\napiVersion: " CONFIG_API_VERSION "\nkind: " CONFIG_KIND "\nspec:\n"
                " instance: {localStorage: {strategy: %s}}\n kubelet:\n  config: {<<: %s, registerWithTaints:"
                " [{key: karpenter.sh/unregistered, effect: NoExecute}, %s}\n  flags:\n"
                "  - --node-labels=karpenter.sh/nodepool=%s",
                sample, *raid ? raid : "~", kubelet ?: "{}", taints ? taints + 1 : "]",
                text_at(pool, "metadata.name"));
        for (size_t i = 0; labels && labels->type == NODE_MAP && i < labels->n; i++)
                text_add(&t, ",%s=%s", labels->members[i].key, text_at(labels->members[i].value, ""));
        return text_take(&t);
}

static void finish_karpenter(const Reader *r, Wrapped *w) {
        const Node *item, *own = NULL, *terms = node_get(w->template, "amiSelectorTerms");
        /* an alias replaces the family: "al2023@latest" (pkg/apis/v1/ec2nodeclass.go there) */
        const char *family = text_at(w->template, "amiFamily");
        for (size_t i = 0; (item = item_of(terms, i)) && !*family; i++)
                family = text_at(item, "alias");
        for (size_t p = 0; p < r->n_pools; p++) {
                const Node *pod = walk(r->pools[p], "spec.template.spec"),
                           *list = node_get(pod, "requirements");
                if (!is(pod, "nodeClassRef.name", w->name))
                        continue;
                own = own ?: r->pools[p];
                for (size_t i = 0; (item = item_of(list, i)); i++)
                        if (is(item, "key", "node.kubernetes.io/instance-type") && is(item, "operator", "In"))
                                add_types(&w->types, node_get(item, "values"));
        }
        if (strncasecmp(family, "al2023", 6) == 0)
                w->added = karpenter_adds(w->template, own);
        else if (!w->blob.data)
                fail(w, CAUSE_NO_CONFIG, MISSING);
        else if (*family && strcasecmp(family, "custom") != 0)
                fail(w, CAUSE_NO_CONFIG,
                     "no NodeConfig fits this amiFamily; set AL2023, or Custom, to which Karpenter adds "
                     "nothing");
}

/* Is a text that does not parse meant as one of these files? */
static bool has_mark(const Blob *file) {
        static const char marks[][20] = { "karpenter.k8s.aws/", "eksctl.io/", "\"LaunchTemplate",
                                          "\"planned_values\"" };
        return file->size > 0 && ANY(m, marks, ARRAY_SIZE(marks), strstr(file->data, *m));
}

int wrapped_read(const Blob *file, WrappedFile *ret, Diag *diag) {
        _cleanup_(diag_done) Diag found = {};
        Reader r = { .file = file, .to = ret };
        Blob whole = *file;
        whole.max_nodes = MAX_NODES;
        int k = yaml_parse(&whole, &ret->documents, &found);
        if (k < 0 && !has_mark(file))
                return 0;
        for (size_t i = 0; k < 0 && *file->data == '{' && i < found.n; i++)
                RENEW(found.items[i].text,
                      xasprintf("this JSON is damaged or incomplete: %s; generate it again",
                                found.items[i].text));
        if (k < 0) {
                diag_move(diag, &found);
                return k;
        }
        for (size_t i = 0; i < ret->documents.n; i++) {
                const Node *root = r.root = ret->documents.items[i].root;
                bool bare = node_get(root, "UserData") || node_get(root, "ImageId");
                look(&r, root, bare ? "LaunchTemplateData" : "", "");
        }
        for (Wrapped *w = ret->items; w < ret->items + ret->n; w++)
                if (w->keys == WRAP_KARPENTER)
                        finish_karpenter(&r, w);
                else if (!w->types && w->keys == WRAP_TERRAFORM)
                        strv_extend(&w->types, r.group_types);
        strv_free(r.group_types);
        free(r.pools);
        return 0;
}

int wrapped_choose(WrappedFile *f, const char *choice, size_t turn, const char *source, Wrapped **ret,
                   Diag *diag) {
        _cleanup_(text_done) Text names = {};
        for (Wrapped *w = f->items; w < f->items + f->n; w++) {
                text_add(&names, "%s%s", w > f->items ? ", " : "", w->name);
                if (choice ? streq(w->name, choice) : f->n == 1 || w + 1 == f->items + turn) {
                        *ret = w;
                        return w->why ? diag_error_at(diag, -ENODATA, w->cause, &w->at, w->place, "%s",
                                                      w->why)
                                      : 0;
                }
        }
        return diag_error_in(diag, -EINVAL, CAUSE_USAGE, source,
                             "this file has %zu NodeConfigs, each for a different node (%s); choose one: -c "
                             "'%s#%s'",
                             f->n, names.data, source, f->items->name);
}

int wrapped_complete(const Wrapped *w, Documents *documents, Diag *diag) {
        const Node *kubelet = node_get(w->template, "kubelet");
        Blob b = { .at = { .source = w->at.source }, .data = w->added };
        Documents added = {};
        if (kubelet) /* an error there must have its line */
                b.at.line = MAX(kubelet->at.line, KUBELET_LINE) - KUBELET_LINE + 1;
        b.size = strlen(b.data);
        int r = yaml_parse(&b, &added, diag);
        if (w->keys == WRAP_KARPENTER ||
            ANY(d, documents->items, documents->n, is(d->root, "kind", CONFIG_KIND)))
                documents_move(documents, &added);
        documents_done(&added);
        return r;
}
