/* SPDX-License-Identifier: Apache-2.0
 * Files of other tools → the user data in them. A row of shapes for each place where one can be. */
#include "source/wrapped.h"

#include "base/json.h"
#include "config/config.h"
#include "source/source.h"

#include <errno.h>

/* A plan of Terraform has thousands of resources. */
#define MAX_NODES (1u << 19)

typedef struct Shape {
        char mark[23];          /* the key of the item or of its list; its kind (Kubernetes), or its type
                                 * (Terraform) */
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

/* The text of a literal block begins on the line below its key, behind the same blanks on each line. */
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
                            "is not base64, and EC2 takes nothing else; encode it once: base64 -w0 FILE");
        /* The Terraform provider shows a hash up to version 5. */
        if (w->keys == WRAP_TERRAFORM_INSTANCE && data->n == 40 && strspn(data->text, "0123456789abcdef") == 40)
                return fail(w, CAUSE_NO_CONFIG, "is only a hash of it; set user_data_base64");
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

static void add_item(Reader *r, const Shape *s, const Node *item, const char *path) {
        const char *types = "instanceType|instanceTypes|InstanceType|instance_type|instancesDistribution."
                            "instanceTypes",
                   *names = "address|VersionNumber|name|metadata.name", *dot = strrchr(s->data, '.');
        _free_ char *parent = xstrndup(s->data, dot ? (size_t)(dot - s->data) : 0);
        const Node *template = walk(item, parent), *data = walk(item, s->data), *seen = data ?: item;
        Wrapped *w = APPEND(r->to->items, r->to->n);
        *w = (Wrapped){ .keys = s->keys, .template = template,
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
        if (*text_at(data, ""))
                read_text(r->file, w, data, s->base64);
        else if (s->keys == WRAP_TERRAFORM && is_unknown(r->root, w->name))
                fail(w, CAUSE_NO_CONFIG,
                     "is known only after apply; then check the state: terraform show -json");
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

static void add_list(Text *t, const Node *list) {
        for (size_t i = 0; item_of(list, i); i++) {
                _cleanup_(json_decrefp) json_t *item = NULL;
                _free_ char *text = yaml_to_json(list->items[i], &item) < 0 ? NULL : json_text(item, 0, false);
                text_add(t, "   - %s\n", text ?: "{}");
        }
}

/* Karpenter appends a NodeConfig of its own, whose lists replace the user's: kubelet, taints, labels, RAID0
 * (aws/karpenter-provider-aws, pkg/providers/amifamily/bootstrap/nodeadm.go). */
static char *karpenter_adds(const Node *spec, const Node *pool) {
        const Node *template = walk(pool, "spec.template"), *labels = walk(template, "metadata.labels"),
                   *kubelet = node_get(spec, "kubelet");
        _cleanup_(json_decrefp) json_t *config = NULL;
        _free_ char *text = kubelet && yaml_to_json(kubelet, &config) >= 0 ? json_text(config, 0, false) : NULL;
        const char *raid = text_at(spec, "instanceStorePolicy");
        Text t = {};
        text_add(&t, "apiVersion: " CONFIG_API_VERSION "\nkind: " CONFIG_KIND "\nspec:\n"
                     " instance: {localStorage: {strategy: %s}}\n kubelet:\n  config:\n   <<: %s\n"
                     "   registerWithTaints:\n   - {key: karpenter.sh/unregistered, effect: NoExecute}\n",
                 *raid ? raid : "~", text ?: "{}");
        add_list(&t, walk(template, "spec.taints"));
        add_list(&t, walk(template, "spec.startupTaints"));
        text_add(&t, "  flags:\n  - --node-labels=karpenter.sh/nodepool=%s", text_at(pool, "metadata.name"));
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
                const Node *pod = walk(r->pools[p], "spec.template.spec"), *list = node_get(pod, "requirements");
                if (!is(pod, "nodeClassRef.name", w->name))
                        continue;
                own = own ?: r->pools[p];
                for (size_t i = 0; (item = item_of(list, i)); i++)
                        if (is(item, "key", "node.kubernetes.io/instance-type") && is(item, "operator", "In"))
                                add_types(&w->types, node_get(item, "values"));
        }
        if (strncasecmp(family, "al2023", 6) == 0) {
                w->adds = true;
                w->added = karpenter_adds(w->template, own);
        } else if (*family && strcasecmp(family, "custom") != 0)
                fail(w, CAUSE_NO_CONFIG,
                     "no NodeConfig fits this amiFamily; set AL2023, or Custom, to which Karpenter adds nothing");
}

/* Without an image, EKS adds its own and the cluster (docs.aws.amazon.com/eks, Customize managed nodes with
 * launch templates). Terraform leaves out what it does not know yet. */
static bool adds_cluster(const Wrapped *w) {
        const Node *image = node_get(w->template, w->keys == WRAP_EC2 ? "ImageId" : "image_id");
        return w->keys == WRAP_EKSCTL || (w->keys == WRAP_EC2 && !image) ||
               (w->keys == WRAP_TERRAFORM && image && node_is_null(image));
}

static bool has_data(const Wrapped *w) {
        return w->blob.data || w->why || w->added;
}

static void item_done(Wrapped *w) {
        FREE_ALL(w->name, w->place, w->blob.data, w->added);
        strv_free(w->types);
}

void wrapped_done(WrappedFile *f) {
        for (size_t i = 0; i < f->n; i++)
                item_done(&f->items[i]);
        free(f->items);
        documents_done(&f->documents);
        *f = (WrappedFile){};
}

static void finish(Reader *r) {
        WrappedFile *f = r->to;
        size_t n = 0;
        for (Wrapped *w = f->items; w < f->items + f->n; w++) {
                w->adds = adds_cluster(w);
                if (w->keys == WRAP_KARPENTER)
                        finish_karpenter(r, w);
                if (!w->types && w->keys == WRAP_TERRAFORM)
                        strv_extend(&w->types, r->group_types);
        }
        bool any = ANY(w, f->items, f->n, has_data(w));
        for (size_t i = 0; i < f->n; i++)
                if (any ? has_data(&f->items[i]) : i == 0)
                        f->items[n++] = f->items[i];
                else
                        item_done(&f->items[i]);
        f->n = n;
        if (n > 0 && !any)
                fail(f->items, CAUSE_NO_CONFIG, "is missing, and there the NodeConfig belongs");
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
        if (k < 0 && startswith(file->data, "{"))
                diag_suggest(&found, "this JSON is not whole; print the file again");
        if (k < 0) {
                diag_move(diag, &found);
                return k;
        }
        for (size_t i = 0; i < ret->documents.n; i++) {
                const Node *root = r.root = ret->documents.items[i].root;
                bool bare = node_get(root, "UserData") || node_get(root, "ImageId");
                look(&r, root, bare ? "LaunchTemplateData" : "", "");
                if (is(root, "kind", "ClusterConfig"))
                        ret->cluster = text_at(root, "metadata.name");
        }
        finish(&r);
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
                        return w->why ? diag_error_at(diag, -ENODATA, w->cause, &w->at, w->place, "%s", w->why)
                                      : 0;
                }
        }
        return diag_error_in(diag, -EINVAL, CAUSE_USAGE, source,
                             "%zu NodeConfigs are in this file, each for a node of its own (%s); choose one: "
                             "-c '%s#%s'", f->n, names.data, source, f->items->name);
}

static int add_document(Documents *to, const char *source, char *text, Diag *diag) {
        Documents one = {};
        Blob b = { .at = { .source = source, .line = 1 }, .data = text, .size = strlen(text) };
        int r = yaml_parse(&b, &one, diag);
        documents_move(to, &one);
        return r;
}

int wrapped_complete(const WrappedFile *f, const Wrapped *w, Documents *documents, Diag *diag) {
        _cleanup_(json_decrefp) json_t *sample = config_sample(f->cluster ?: "stand-in");
        _free_ char *name = xasprintf("%s#spec.kubelet", w->at.source), *text = json_text(sample, 0, false);
        Documents all = { .origin = documents->origin, .unread = documents->unread };
        if (!w->adds || (!w->added && !ANY(d, documents->items, documents->n, is(d->root, "kind", CONFIG_KIND))))
                return 0;
        documents->origin = documents->unread = NULL;
        int r = add_document(&all, w->at.source, text, diag);
        documents_move(&all, documents);
        if (r >= 0 && w->added)
                r = add_document(&all, source_keep_name(name), w->added, diag);
        *documents = all;
        return r;
}
