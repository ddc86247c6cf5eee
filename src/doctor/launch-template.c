/* SPDX-License-Identifier: Apache-2.0
 * A launch template beside its NodeConfig, without EC2: what EC2 or EKS refuses, and what a boot lacks.
 * Sources, read in November 2026:
 *   keys and words: RequestLaunchTemplateData in botocore 1.43.11, data/ec2/2016-11-15/service-2.json
 *   interfaces: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html (DeviceIndex of
 *   EFA on other cards: 0, and 1 in older ones); public addresses: aws/karpenter-provider-aws#5437
 *   capacity blocks: awsdocs/amazon-eks-user-guide latest/ug/ml/capacity-blocks-mng.adoc, and without a
 *   placement group: aws/aws-parallelcluster#6311; their types:
 *   https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
 *   placement groups: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
 *   tags in the metadata: kubernetes/cloud-provider-aws#762; tokens:
 *   https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html
 *   managed node groups: awsdocs/amazon-eks-user-guide latest/ug/nodes/launch-templates.adoc
 * A hop limit of 1 is right for nodestrap, and AWS recommends 1 as well as 2. ImageId tells neither the
 * processor nor the size of the root volume. */
#include "doctor/checks.h"

#include <ctype.h>
#include <errno.h>

#define USER_DATA_MAX (16u << 10)
/* No instance has so many; hostile files must not take minutes. */
#define ITEMS_MAX     200u
#define FINDINGS_MAX  100u
#define NO_MANAGE     "node.k8s.amazonaws.com/no_manage"

/* The keys that count here, and what some take. EC2 gets new keys each month: only a near match for one of
 * these is a mistake. tests/oracles/launch_template.py tries all keys of the model. */
static const char known_keys[] =
        "ImageId/InstanceType/UserData/IamInstanceProfile/SecurityGroupIds/SecurityGroups/NetworkInterfaces/"
        "NetworkCardIndex/DeviceIndex/InterfaceType=interface|efa|efa-only/NetworkInterfaceId/SubnetId/"
        "AssociatePublicIpAddress/Groups/GroupId/GroupName/Placement/InstanceMarketOptions/"
        "MarketType=spot|capacity-block|interruptible-capacity-reservation/CapacityReservationSpecification/"
        "CapacityReservationTarget/CapacityReservationId/MetadataOptions/HttpTokens=required|optional/"
        "HttpEndpoint=enabled|disabled/HttpPutResponseHopLimit=1-64/InstanceMetadataTags=enabled|disabled/"
        "BlockDeviceMappings/DeviceName/VolumeSize/TagSpecifications/ResourceType";

/* When a key is a finding: always, or in such a template. */
typedef enum When { ALWAYS, WITHOUT_PROFILE, WITH_INTERFACES, WITH_SEVERAL } When;
#define MANAGED "a managed node group refuses it, and a self-managed node needs IamInstanceProfile: remove " \
                "the one, or add the other"
#define MOVE    "EC2 refuses it with NetworkInterfaces; move it to Groups of each interface"
static const struct KeyRule {
        char key[34], value[9];         /* value "": any */
        uint8_t when, cause;
        const char *text;
} key_rules[] = {
        { "HttpEndpoint", "disabled", ALWAYS, CAUSE_IMDS,
          "nodestrap reads user data from the metadata service, without which the boot ends with EIMDS; "
          "write enabled" },
        { "HttpTokens", "optional", ALWAYS, CAUSE_NONE,
          "IMDSv1 gives the credentials of the node without a token, and nodestrap needs no IMDSv1; write "
          "required" },
        { "InstanceMetadataTags", "enabled", ALWAYS, CAUSE_NONE,
          "EC2 then refuses an instance with a slash in a tag key, such as kubernetes.io/cluster/NAME; "
          "write disabled" },
        { "AssociatePublicIpAddress", "true", WITH_SEVERAL, CAUSE_INVALID,
          "EC2 gives no public address to an instance with several interfaces; remove it" },
        { "SecurityGroupIds", "", WITH_INTERFACES, CAUSE_INVALID, MOVE },
        { "SecurityGroups", "", WITH_INTERFACES, CAUSE_INVALID, MOVE },
        { "VpcSecurityGroupIds", "", WITH_INTERFACES, CAUSE_INVALID, MOVE },    /* of Terraform */
        { "SubnetId", "", WITHOUT_PROFILE, CAUSE_NONE, MANAGED },
        { "InstanceInitiatedShutdownBehavior", "", WITHOUT_PROFILE, CAUSE_NONE, MANAGED },
        { "HibernationOptions", "", WITHOUT_PROFILE, CAUSE_NONE, MANAGED },
};

typedef struct Interface { const Node *node; unsigned card, device; bool efa, alone; } Interface;
typedef struct Lint {
        const Template *t;
        const InstanceType *type;       /* of the only type, or NULL */
        char **keys;                    /* known_keys */
        Interface *nics; size_t n;
        unsigned efa;
        Diag diag;
} Lint;

/* Terraform writes HttpTokens as http_tokens. */
static bool same_key(const char *a, const char *b) {
        for (;; a++, b++) {
                a += *a == '_';
                b += *b == '_';
                if (!*a || !*b || (*a ^ *b) & ~0x20)
                        return *a == *b;
        }
}

/* NULL: not there, null, or an empty list. */
static const Node *get(const Node *map, const char *key) {
        const Member *m = map && map->type == NODE_MAP
                                  ? FIND(member, map->members, map->n, same_key(member->key, key))
                                  : NULL;
        bool empty = !m || node_is_null(m->value) || (m->value->type == NODE_LIST && m->value->n == 0);
        return empty ? NULL : m->value;
}

/* In a block, which is a list of one for Terraform. */
static const Node *get_in(const Node *map, const char *block, const char *key) {
        const Node *n = get(map, block);
        return get(n && n->type == NODE_LIST ? n->items[0] : n, key);
}

/* "": not there */
static const char *text_of(const Node *scalar) {
        return scalar && scalar->type == NODE_SCALAR ? scalar->text : "";
}

static unsigned number_of(const Node *scalar) {
        return (unsigned)strtoul(text_of(scalar), NULL, 10);
}

/* The items of a list; another value is one item. */
static size_t items_of(const Node *const *list, Node *const **ret) {
        bool many = *list && (*list)->type == NODE_LIST;
        *ret = many ? (*list)->items : (Node *const *)list;
        return many ? MIN((*list)->n, ITEMS_MAX) : *list != NULL;
}

/* Adds the path of a node, and sets where it is: for a member, its key. */
static bool find(const Node *in, const Node *wanted, Text *path, Mark *at) {
        bool found = in == wanted;
        for (size_t i = 0; in->type != NODE_SCALAR && !found && i < in->n; i++) {
                size_t size = path->size;
                *at = in->type == NODE_MAP ? in->members[i].at : in->items[i]->at;
                if (in->type == NODE_MAP)
                        text_add(path, "%s%s", size > 0 ? "." : "", in->members[i].key);
                else
                        text_add(path, "[%zu]", i);
                found = find(in->type == NODE_MAP ? in->members[i].value : in->items[i], wanted, path, at);
                path->size = found ? path->size : size;
        }
        return found;
}

/* A warning; with a cause, a certain failure. */
_printf_(4, 5) static void say(Lint *l, Cause cause, const Node *at, const char *format, ...) {
        _cleanup_(text_done) Text path = {};
        _free_ char *text = FORMATTED(format);
        Mark mark = l->t->data->at;
        text_add(&path, "%s", l->t->path);
        (void)find(l->t->data, at, &path, &mark);
        Position position = { l->t->source, 0, mark.line, mark.column };
        diag_warn_at(&l->diag, "launch-template", &position, path.data, "%s", text);
        l->diag.items[l->diag.n - 1].cause = cause;
}

/* ---- keys and words ---- */

/* "a=1|2/b" → "a\0001|2=", "b\0" */
static char **split(const char *text, const char *by) {
        char **words = NULL;
        while (*text) {
                _free_ char *word = str_cut(&text, by);
                char *both = xasprintf("%s=", word);
                *strchr(both, '=') = '\0';
                strv_push(&words, both);
        }
        return words;
}

static void check_word(Lint *l, const Node *value, const char *words) {
        _strv_ char **all = split(words, "|=");
        uint64_t n = 0;
        if (!all || (is_digit(*words) ? parse_u64(value->text, &n) >= 0 && n >= 1 && n <= 64
                                      : strv_contains(all, value->text)))
                return;
        _free_ char *list = strv_join(all, ", ");
        say(l, CAUSE_NONE, value, "EC2 does not accept this value; use one of %s", list);
        diag_suggest_name(&l->diag, "", nearest_name(value->text, (const char *const *)all));
}

static bool applies(const Lint *l, const struct KeyRule *rule, const Node *in, const Member *m) {
        return same_key(rule->key, m->key) && (!*rule->value || streq(rule->value, text_of(m->value))) &&
               (rule->when != WITHOUT_PROFILE || !get(l->t->data, "IamInstanceProfile")) &&
               (rule->when != WITH_INTERFACES || (l->n > 0 && in == l->t->data)) &&
               (rule->when != WITH_SEVERAL || l->n > 1);
}

/* Terraform (lower-case keys) checks its own keys. Text of a tag is a value. */
static void check_key(Lint *l, const Node *in, const Member *m) {
        Nearest near = { .text = m->key };
        const struct KeyRule *rule = FIND(k, key_rules, ARRAY_SIZE(key_rules), applies(l, k, in, m));
        STRV_FOREACH(key, l->keys) {
                nearest_try(&near, *key);
                if (same_key(*key, m->key) && m->value->type == NODE_SCALAR)
                        check_word(l, m->value, *key + strlen(*key) + 1);
        }
        if (!l->t->terraform && near.best && near.least <= 2 && !streq(near.best, m->key)) {
                say(l, CAUSE_NONE, m->value, "is not a key that EC2 knows");
                diag_suggest_name(&l->diag, "", near.best);
        }
        if (rule)
                say(l, rule->cause, m->value, "%s", rule->text);
}

static void check_keys(Lint *l, const Node *in) {
        for (size_t i = 0; in->type != NODE_SCALAR && i < in->n && l->diag.n < FINDINGS_MAX; i++) {
                const Node *value = in->type == NODE_MAP ? in->members[i].value : in->items[i];
                if (in->type == NODE_MAP && get(in, in->members[i].key))
                        check_key(l, in, &in->members[i]);
                check_keys(l, value);
        }
}

/* ---- network ---- */

/* Against conf/instance-types.csv and conf/network-cards.csv. */
static void check_card(Lint *l, const Interface *nic) {
        const InstanceType *t = l->type;
        size_t n = 0;
        const NetworkCards *rows = network_cards_of(t->name, &n),
                           *row = FIND(c, rows, n, nic->card >= c->first && nic->card <= c->last &&
                                                           (nic->card - c->first) % c->step == 0);
        bool no_efa = row && nic->efa && !row->efa, no_ena = row && !nic->alone && !row->ena;
        unsigned cards = network_cards_find(t->name);
        if (cards > 0 && nic->card >= cards)
                say(l, CAUSE_INVALID, nic->node, "%s has no network card %u; the last one is %u", t->name,
                    nic->card, cards - 1);
        if (nic->efa && t->max_efa >= 0 && (int)l->efa > t->max_efa)
                say(l, CAUSE_INVALID, nic->node,
                    "is EFA device number %u, but %s takes at most %d; remove it, or set InterfaceType to "
                    "interface", l->efa, t->name, t->max_efa);
        if (no_efa || no_ena)
                say(l, CAUSE_INVALID, nic->node, "network card %u of %s takes no %s; set InterfaceType to %s",
                    nic->card, t->name, no_efa ? "EFA" : "addresses", no_efa ? "interface" : "efa-only");
}

static void check_interface(Lint *l, const Interface *nic) {
        size_t before = (size_t)(nic - l->nics);
        const Interface *same = FIND(o, l->nics, before,
                                     o->card == nic->card &&
                                             (o->device == nic->device || (o->efa && nic->efa)));
        l->efa += nic->efa;
        if (same)
                say(l, CAUSE_INVALID, nic->node,
                    "uses network card %u like NetworkInterfaces[%zu], %s; choose another",
                    nic->card, (size_t)(same - l->nics),
                    same->device == nic->device ? "with the same DeviceIndex"
                                                : "but only one EFA device fits on a card");
        if (nic->alone && nic->card == 0 && nic->device == 0)
                say(l, CAUSE_INVALID, nic->node,
                    "the primary interface needs an address, and efa-only has none; write InterfaceType "
                    "interface, or choose DeviceIndex 1");
        for (size_t i = 0; nic->alone && i < nic->node->n; i++) {
                const Member *m = &nic->node->members[i];
                const Node *value = get(nic->node, m->key);
                if (value && (strcasestr(m->key, "address") || strcasestr(m->key, "prefix")) &&
                    !ONE_OF(text_of(value), "0", "false"))
                        say(l, CAUSE_INVALID, value, "an EFA-only interface takes no address; remove it");
        }
        if (l->type)
                check_card(l, nic);
        if (!l->t->terraform && !get(nic->node, "Groups") && !get(nic->node, "NetworkInterfaceId"))
                say(l, CAUSE_NONE, nic->node,
                    "gets the default security group of the VPC; set Groups. EFA needs a group that allows "
                    "all traffic within it");
}

static void check_network(Lint *l) {
        const Node *list = get(l->t->data, "NetworkInterfaces");
        const Config *c = l->t->config;
        unsigned want = c && c->instance.efa == EFA_REQUIRE ? 1 : 0;
        if (c && c->instance.efa != EFA_OFF)
                want = MAX(want, c->instance.expected_efa);
        for (size_t i = 0; i < l->n; i++)
                check_interface(l, &l->nics[i]);
        if (list && !ANY(nic, l->nics, l->n, nic->card == 0 && nic->device == 0))
                say(l, CAUSE_INVALID, list,
                    "EC2 needs a primary interface; give an interface NetworkCardIndex 0 and DeviceIndex 0");
        if (l->efa < want)
                say(l, c->failure_policy == FAILURE_JOIN_TAINTED ? CAUSE_NONE : CAUSE_EFA, list ?: l->t->data,
                    "has too few EFA devices (%u), and spec.instance.network.efa wants %u: the boot reports "
                    "EEFA; add interfaces, or change mode or expectedDevices", l->efa, want);
}

/* ---- capacity, storage, tags ---- */

static void check_capacity(Lint *l) {
        static const char sold[][5] = { "p4d", "p5", "p6", "trn1", "trn2" };
        const Node *data = l->t->data, *market = get_in(data, "InstanceMarketOptions", "MarketType"),
                   *place = get(data, "Placement"),
                   *group = get_in(data, "Placement", "GroupName") ?: get_in(data, "Placement", "GroupId"),
                   *target = get_in(data, "CapacityReservationSpecification", "CapacityReservationTarget");
        bool block = streq(text_of(market), "capacity-block");
        if (target && target->type == NODE_MAP && !get(target, "CapacityReservationId") &&
            !get(target, "CapacityReservationResourceGroupArn"))
                target = NULL;
        if (block && (!target || !l->t->types))
                say(l, CAUSE_INVALID, market, "capacity-block needs %s; add it",
                    target ? "InstanceType" : "CapacityReservationSpecification.CapacityReservationTarget."
                                              "CapacityReservationId");
        STRV_FOREACH(type, block ? l->t->types : NULL)
                if (!ANY(family, sold, ARRAY_SIZE(sold), startswith(*type, *family)))
                        say(l, CAUSE_NONE, market,
                            "AWS listed no capacity blocks for %s in November 2026; choose another instance "
                            "type, or remove MarketType", *type);
        if (block && group)
                say(l, CAUSE_NONE, group,
                    "EC2 places a capacity block itself, and another group can keep instances from starting; "
                    "remove it");
        if (l->efa > 0 && !block && !target && !group && !(l->t->terraform && place))
                say(l, CAUSE_NONE, get(data, "NetworkInterfaces"),
                    "EFA is fastest within a cluster placement group; name one in Placement.GroupName");
}

static const Node *mapping_of(Node *const *items, size_t n, const char *device) {
        _free_ char *wanted = volume_canonical(device);
        for (size_t i = 0; *wanted && i < n; i++) {
                _free_ char *name = volume_canonical(text_of(get(items[i], "DeviceName")));
                if (streq(name, wanted) && !get(items[i], "NoDevice"))
                        return items[i];
        }
        return NULL;
}

static void check_storage(Lint *l) {
        const Node *list = get(l->t->data, "BlockDeviceMappings");
        const Config *c = l->t->config;
        Node *const *items;
        size_t n = items_of(&list, &items);
        for (size_t i = 1; i < n; i++)
                if (mapping_of(items, i, text_of(get(items[i], "DeviceName"))))
                        say(l, CAUSE_INVALID, items[i],
                            "an earlier mapping has this DeviceName, or one that Linux takes for "
                            "the same; rename one");
        for (size_t i = 0; c && i < c->instance.n_volumes; i++) {
                const Volume *v = &c->instance.volumes[i];
                const Node *item = mapping_of(items, n, v->device);
                if (startswith(v->key, "vol-") || startswith(v->key, "nvme"))
                        continue;
                if (!item)
                        say(l, CAUSE_NONE, list ?: l->t->data,
                            "spec.instance.storage.volumes[%zu] waits for %s: unless the image maps it, the "
                            "boot ends with EVOLUME; add a mapping", i, v->device);
                else if (!get_in(item, "Ebs", "VolumeSize") && !get_in(item, "Ebs", "SnapshotId") &&
                         !l->t->terraform)
                        say(l, CAUSE_NONE, item,
                            "has no Ebs.VolumeSize for spec.instance.storage.volumes[%zu]; add it", i);
        }
}

static void check_tags(Lint *l) {
        const Node *list = get(l->t->data, "TagSpecifications");
        Node *const *items, *const *tags;
        for (size_t i = 0, n = items_of(&list, &items); i < n; i++) {
                const Node *all = get(items[i], "Tags");
                size_t k = items_of(&all, &tags);
                if (streq(text_of(get(items[i], "ResourceType")), "network-interface") &&
                    (get(all, NO_MANAGE) || ANY(tag, tags, k, streq(text_of(get(*tag, "Key")), NO_MANAGE))))
                        say(l, CAUSE_NONE, all,
                            "nothing configures interfaces with the tag " NO_MANAGE "; set "
                            "spec.featureGates.OSManagedNoManageENIs: true");
        }
}

int template_check(const Template *t, Diag *diag) {
        const Node *list = get(t->data, "NetworkInterfaces");
        Node *const *items;
        Lint l = { .t = t, .keys = split(known_keys, "/") };
        if (t->types && !t->types[1])
                l.type = instance_type_find(t->types[0]);
        for (size_t i = 0, n = items_of(&list, &items); i < n; i++) {
                const char *type = text_of(get(items[i], "InterfaceType"));
                *APPEND(l.nics, l.n) = (Interface){ items[i], number_of(get(items[i], "NetworkCardIndex")),
                                                    number_of(get(items[i], "DeviceIndex")),
                                                    startswith(type, "efa"), streq(type, "efa-only") };
        }
        check_keys(&l, t->data);
        check_network(&l);
        check_capacity(&l);
        check_storage(&l);
        if (t->config && !t->config->gates.no_manage_enis)
                check_tags(&l);
        if (t->user_data > USER_DATA_MAX)
                say(&l, CAUSE_INVALID, get(t->data, "UserData") ?: t->data,
                    "has %zu bytes before base64, and EC2 takes %u; compress them: gzip -9 <FILE | base64 "
                    "-w 0", t->user_data, USER_DATA_MAX);
        int r = diag_judge(&l.diag);
        diag_move(diag, &l.diag);
        strv_free(l.keys);
        free(l.nics);
        return r;
}
