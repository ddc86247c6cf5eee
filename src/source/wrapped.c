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
        char kind[24];
        char mark[24];          /* the beginning of apiVersion (with "/"), a key of the root, or, without list,
                                 * the type of a Terraform resource (aws_…) */
        char list[24];          /* the key of the root with a list of them; "": the root is one */
        char template[20], data[26], type[14], name[20];        /* paths; the first and last of an item */
        bool base64;
        WrapKeys keys;
} Shape;

static const Shape shapes[] = {
        { "EC2NodeClass", "karpenter.k8s.aws/", "", "spec", "userData", "-", "metadata.name", false,
          WRAP_OTHER },
        { "eksctl node group", "eksctl.io/", "managedNodeGroups", "", "overrideBootstrapCommand",
          "instanceType", "name", false, WRAP_OTHER },
        { "eksctl node group", "eksctl.io/", "nodeGroups", "", "overrideBootstrapCommand", "instanceType",
          "name", false, WRAP_OTHER },
        { "launch template version", "LaunchTemplateVersions", "LaunchTemplateVersions",
          "LaunchTemplateData", "UserData", "InstanceType", "VersionNumber", true, WRAP_EC2 },
        { "launch template", "LaunchTemplateData", "", "LaunchTemplateData", "UserData", "InstanceType", "-",
          true, WRAP_EC2 },
        { "launch template", "UserData", "", "", "UserData", "InstanceType", "-", true, WRAP_EC2 },
        { "launch template", "ImageId", "", "", "UserData", "InstanceType", "-", true, WRAP_EC2 },
        { "launch template", "InstanceType", "", "", "UserData", "InstanceType", "-", true, WRAP_EC2 },
        { "aws_launch_template", "aws_launch_template", "", "values", "user_data", "instance_type", "address",
          true, WRAP_TERRAFORM },
        { "aws_instance", "aws_instance", "", "values", "user_data_base64", "instance_type", "address", true,
          WRAP_TERRAFORM },
        { "aws_instance", "aws_instance", "", "values", "user_data", "instance_type", "address", false,
          WRAP_TERRAFORM },
};

typedef struct Reader {
        const Blob *file;
        WrappedFile *to;
        const Node *changes;            /* resource_changes of Terraform, or NULL */
        const Node **groups; size_t n_groups;   /* the values of its aws_eks_node_group */
        const Node **pools; size_t n_pools;     /* NodePools of Karpenter */
} Reader;

static const Node *walk(const Node *n, const char *path) {
        while (n && *path) {
                _free_ char *key = str_cut(&path, ".");
                n = node_get(n, key);
        }
        return n;
}

static const char *text_at(const Node *n, const char *path) {
        n = walk(n, path);
        return n && n->type == NODE_SCALAR && n->n > 0 && !node_is_null(n) ? n->text : NULL;
}

static const Node *item_of(const Node *list, size_t i) {
        return list && list->type == NODE_LIST && i < list->n ? list->items[i] : NULL;
}

static void add_types(char ***types, const Node *list) {
        for (size_t i = 0; item_of(list, i); i++)
                if (text_at(list->items[i], "") && !strv_contains(*types, list->items[i]->text))
                        strv_add(types, list->items[i]->text);
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
        RENEW(w->why, xstrdup(why));
}

static void read_text(Reader *r, Wrapped *w, const Node *data, bool base64) {
        Blob *b = &w->blob;
        _free_ char *name = xasprintf("%s#%s", r->file->at.source, w->place);
        if (base64 && base64_decode(data->text, data->n, true, &b->data, &b->size) < 0)
                return fail(w, CAUSE_SYNTAX,
                            "this is not base64, and EC2 takes nothing else here; encode the user data once: "
                            "base64 -w0 FILE");
        if (!base64) {
                b->data = xmemdup(data->text, data->n);
                b->size = data->n;
        }
        b->at = !base64 && data->block == '|' ? block_position(r->file, data)
                                              : (Position){ .source = source_keep_name(name), .line = 1 };
}

/* Does Terraform know the value only after it has applied the plan? A launch template without user data has
 * null; an instance has this for each key that it could have. */
static bool is_unknown(const Reader *r, const char *address, const char *key) {
        const Node *change;
        for (size_t i = 0; (change = item_of(r->changes, i)); i++)
                if (streq(text_at(change, "address") ?: "", address))
                        return streq(text_at(walk(change, "change.after_unknown"), key) ?: "", "true");
        return false;
}

/* The Terraform provider for AWS shows the SHA-1 of user_data up to version 5. */
static bool is_hash(const Wrapped *w) {
        return w->keys == WRAP_TERRAFORM && w->blob.size == 40 && strspn(w->blob.data, "0123456789abcdef") == 40;
}

static void add_item(Reader *r, const Shape *s, const Node *item, const char *where) {
        const Node *template = walk(item, s->template), *data = node_get(template, s->data);
        const char *name = text_at(item, s->name), *dot = *where ? "." : "";
        const Node *seen = data ?: template ?: item;
        Wrapped *w = APPEND(r->to->items, r->to->n);
        *w = (Wrapped){ .kind = s->kind, .keys = s->keys, .template = template,
                        .at = { r->file->at.source, 0, seen->at.line, seen->at.column } };
        w->place = xasprintf("%s%s%s%s%s", where, dot, s->keys == WRAP_TERRAFORM ? "" : s->template,
                             *s->template && s->keys != WRAP_TERRAFORM ? "." : "", s->data);
        w->name = xstrdup(name ?: w->place);
        if (text_at(template, s->type))
                strv_add(&w->types, text_at(template, s->type));
        add_types(&w->types, node_get(template, "instanceTypes"));
        add_types(&w->types, walk(template, "instancesDistribution.instanceTypes"));
        if (text_at(data, ""))
                read_text(r, w, data, s->base64);
        else if (streq(s->kind, "aws_launch_template") && is_unknown(r, w->name, s->data))
                fail(w, CAUSE_NO_CONFIG,
                     "Terraform knows this only after apply; then check its state: terraform show -json");
        if (is_hash(w)) {
                RENEW(w->blob.data, NULL);
                fail(w, CAUSE_NO_CONFIG,
                     "this is a hash, which the AWS provider shows up to version 5; set user_data_base64");
        }
}

static void read_module(Reader *r, const Node *module) {
        const Node *item, *list = node_get(module, "resources");
        for (size_t i = 0; (item = item_of(list, i)); i++) {
                const char *type = text_at(item, "type") ?: "";
                for (const Shape *s = shapes; s < shapes + ARRAY_SIZE(shapes); s++)
                        if (streq(s->mark, type))
                                add_item(r, s, item, text_at(item, "address") ?: "");
                if (streq(type, "aws_eks_node_group"))
                        *APPEND(r->groups, r->n_groups) = node_get(item, "values");
        }
        list = node_get(module, "child_modules");
        for (size_t i = 0; (item = item_of(list, i)); i++)
                read_module(r, item);
}

/* The root of a document, or an item of a List. */
static void read_root(Reader *r, const Node *root) {
        const char *version = text_at(root, "apiVersion"), *kind = text_at(root, "kind") ?: "";
        const Node *item, *module = walk(root, "planned_values.root_module") ?: walk(root, "values.root_module"),
                          *items = streq(kind, "List") ? node_get(root, "items") : NULL;
        r->changes = node_get(root, "resource_changes");
        if (module)
                read_module(r, module);
        if (streq(kind, "NodePool"))
                *APPEND(r->pools, r->n_pools) = root;
        if (streq(kind, "ClusterConfig"))
                r->to->cluster = text_at(root, "metadata.name");
        for (size_t i = 0; (item = item_of(items, i)); i++)
                read_root(r, item);
        for (const Shape *s = shapes; s < shapes + ARRAY_SIZE(shapes); s++) {
                const Node *list = node_get(root, *s->list ? s->list : "");
                if (endswith(s->mark, "/") ? !version || !startswith(version, s->mark)
                                           : version || !node_get(root, s->mark))
                        continue;
                if (!*s->list)
                        add_item(r, s, root, "");
                for (size_t i = 0; (item = item_of(list, i)); i++) {
                        _free_ char *where = xasprintf("%s[%zu]", s->list, i);
                        add_item(r, s, item, where);
                }
                if (!version)
                        return;
        }
}

/* AMI families, and the alias that replaces one: "al2023@latest" (aws/karpenter-provider-aws,
 * pkg/apis/v1/ec2nodeclass.go). */
static const char *family_of(const Node *spec) {
        const char *family = text_at(spec, "amiFamily");
        const Node *terms = node_get(spec, "amiSelectorTerms");
        for (size_t i = 0; item_of(terms, i) && !family; i++)
                family = text_at(item_of(terms, i), "alias");
        return family ?: "Custom";
}

static void add_json(json_t *list, const Node *items) {
        json_t *value;
        for (size_t i = 0; item_of(items, i); i++)
                if (yaml_to_json(items->items[i], &value) >= 0)
                        json_array_append_new(list, value);
}

/* Karpenter appends a NodeConfig of its own: cluster, kubelet, taints, labels, RAID0 (the same repository,
 * pkg/providers/amifamily/bootstrap/nodeadm.go). Lists such as registerWithTaints replace the user's. */
static json_t *karpenter_adds(const Node *spec, const Node *pool) {
        const Node *template = walk(pool, "spec.template"), *labels = walk(template, "metadata.labels");
        json_t *kubelet = NULL,
               *taints = json_pack("[{ss ss}]", "key", "karpenter.sh/unregistered", "effect", "NoExecute");
        Text flag = {};
        text_add(&flag, "--node-labels=karpenter.sh/nodepool=%s", text_at(pool, "metadata.name") ?: "NAME");
        for (size_t i = 0; labels && labels->type == NODE_MAP && i < labels->n; i++)
                text_add(&flag, ",%s=%s", labels->members[i].key, text_at(labels->members[i].value, "") ?: "");
        add_json(taints, walk(template, "spec.taints"));
        add_json(taints, walk(template, "spec.startupTaints"));
        if (!node_get(spec, "kubelet") || yaml_to_json(node_get(spec, "kubelet"), &kubelet) < 0)
                kubelet = json_object();
        json_object_set_new(kubelet, "registerWithTaints", taints);
        json_t *added = json_pack("{ss ss s{s{so s[s]}}}", "apiVersion", CONFIG_API_VERSION, "kind",
                                  CONFIG_KIND, "spec", "kubelet", "config", kubelet, "flags", flag.data);
        if (streq(text_at(spec, "instanceStorePolicy") ?: "", "RAID0"))
                json_put(added, "spec/instance/localStorage/strategy", json_string("RAID0"));
        text_done(&flag);
        return added;
}

static void finish_karpenter(const Reader *r, Wrapped *w) {
        const Node *item, *own = NULL;
        const char *family = family_of(w->template);
        for (size_t p = 0; p < r->n_pools; p++) {
                const Node *pod = walk(r->pools[p], "spec.template.spec"), *list = node_get(pod, "requirements");
                if (!streq(text_at(pod, "nodeClassRef.name") ?: "", w->name))
                        continue;
                own = own ?: r->pools[p];
                for (size_t i = 0; (item = item_of(list, i)); i++)
                        if (streq(text_at(item, "key") ?: "", "node.kubernetes.io/instance-type") &&
                            streq(text_at(item, "operator") ?: "", "In"))
                                add_types(&w->types, node_get(item, "values"));
        }
        if (strncasecmp(family, "al2023", 6) == 0) {
                w->adds = WRAP_ADDS_KARPENTER;
                w->added = karpenter_adds(w->template, own);
        } else if (strcasecmp(family, "custom") != 0)
                fail(w, CAUSE_NO_CONFIG,
                     "Karpenter takes no NodeConfig for this amiFamily; use AL2023, or Custom, to which it "
                     "adds nothing");
}

static const Node *first_group(const Reader *r, const Wrapped *w, bool only) {
        const char *name = text_at(w->template, "name");
        for (size_t i = 0; i < r->n_groups; i++) {
                const char *wanted = text_at(item_of(node_get(r->groups[i], "launch_template"), 0), "name");
                if (only || (name && wanted && streq(name, wanted)))
                        return r->groups[i];
        }
        return NULL;
}

/* EKS adds its own image and the cluster then (docs.aws.amazon.com/eks, Customize managed nodes with launch
 * templates). Terraform leaves out a value that it does not know yet. */
static bool is_without_image(const Wrapped *w) {
        const Node *image = node_get(w->template, w->keys == WRAP_EC2 ? "ImageId" : "image_id");
        return streq(w->kind, "aws_instance") ? false
               : w->keys == WRAP_EC2          ? !image
                                              : image && node_is_null(image);
}

static bool has_data(const Wrapped *w) {
        return w->blob.data || w->why || w->adds == WRAP_ADDS_KARPENTER;
}

static void item_done(Wrapped *w) {
        FREE_ALL(w->name, w->place, w->blob.data, w->why);
        strv_free(w->types);
        json_decref(w->added);
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
                const Node *group = first_group(r, w, f->n == 1);
                if (streq(w->kind, "EC2NodeClass"))
                        finish_karpenter(r, w);
                else if (w->keys == WRAP_OTHER || is_without_image(w))
                        w->adds = WRAP_ADDS_CLUSTER;
                if (!w->types && group)
                        add_types(&w->types, node_get(group, "instance_types"));
        }
        bool any = ANY(w, f->items, f->n, has_data(w));
        for (size_t i = 0; i < f->n; i++)
                if (any ? has_data(&f->items[i]) : i == 0)
                        f->items[n++] = f->items[i];
                else
                        item_done(&f->items[i]);
        f->n = n;
        if (n > 0 && !any)
                fail(f->items, CAUSE_NO_CONFIG, "no user data is here; put the NodeConfig here");
}

/* Is a text that does not parse meant as one of these files? */
static bool has_mark(const Blob *file) {
        static const char marks[][24] = { "karpenter.k8s.aws/", "eksctl.io/", "\"LaunchTemplate",
                                          "\"planned_values\"", "\"root_module\"" };
        return file->size > 0 && ANY(m, marks, ARRAY_SIZE(marks), strstr(file->data, *m));
}

/* Warnings about the file are not about a NodeConfig. */
static int fail_syntax(const Blob *file, const Diag *found, Diag *diag) {
        const Diagnostic *e = diag_first_error(found);
        const char *text = file->data + strspn(file->data, " \r\n\t");
        const Position at = { file->at.source, 0, e->line, e->column };
        return diag_error_at(diag, -EBADMSG, e->cause, &at, NULL, "%s%s", e->text,
                             *text == '{' ? "; this JSON is damaged or not whole: print the file again" : "");
}

int wrapped_read(const Blob *file, WrappedFile *ret, Diag *diag) {
        _cleanup_(diag_done) Diag found = {};
        Reader r = { .file = file, .to = ret };
        Blob whole = *file;
        whole.max_nodes = MAX_NODES;
        if (yaml_parse(&whole, &ret->documents, &found) < 0)
                return has_mark(file) ? fail_syntax(file, &found, diag) : 0;
        for (size_t i = 0; i < ret->documents.n; i++)
                read_root(&r, ret->documents.items[i].root);
        finish(&r);
        FREE_ALL(r.groups, r.pools);
        return 0;
}

int wrapped_choose(WrappedFile *f, const char *choice, size_t turn, const char *source, Wrapped **ret,
                   Diag *diag) {
        _strv_ char **names = NULL;
        Wrapped *w = choice ? FIND(one, f->items, f->n, streq(one->name, choice) || streq(one->place, choice))
                            : FIND(one, f->items, f->n, f->n == 1 || (size_t)(one - f->items) + 1 == turn);
        for (size_t i = 0; !w && i < f->n; i++)
                strv_add(&names, f->items[i].name);
        _free_ char *list = names ? strv_join(names, ", ") : NULL;
        if (!w)
                return diag_error_in(diag, -EINVAL, CAUSE_USAGE, source,
                                     "%zu NodeConfigs are in this file, each for a node of its own (%s); choose "
                                     "one: -c '%s#%s'", f->n, list, source, *names);
        if (w->why)
                return diag_error_at(diag, -ENODATA, w->cause, &w->at, w->place, "%s", w->why);
        *ret = w;
        return 0;
}

static void add_document(Documents *to, const char *source, const json_t *json, Diag *diag) {
        Documents one = {};
        Blob b = { .at = { .source = source, .line = 1 } };
        b.data = json_text(json, 0, false);
        b.size = strlen(b.data);
        if (yaml_parse(&b, &one, diag) >= 0)
                documents_move(to, &one);
        free(b.data);
}

void wrapped_complete(const WrappedFile *f, const Wrapped *w, Documents *documents, Diag *diag) {
        const char *kind = documents->n > 0 ? text_at(documents->items[0].root, "kind") : NULL;
        _cleanup_(json_decrefp) json_t *sample = config_sample(f->cluster ?: "stand-in");
        _free_ char *name = xasprintf("%s#spec.kubelet", w->at.source);
        Documents all = {};
        if (w->adds == WRAP_ADDS_NOTHING || (w->adds == WRAP_ADDS_CLUSTER && !kind))
                return;
        add_document(&all, w->at.source, sample, diag);
        all.origin = TAKE_PTR(documents->origin);
        all.unread = TAKE_PTR(documents->unread);
        documents_move(&all, documents);
        if (w->added)
                add_document(&all, source_keep_name(name), w->added, diag);
        *documents = all;
}
