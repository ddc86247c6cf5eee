/* SPDX-License-Identifier: Apache-2.0
 * The private DNS name of the instance, which EC2 defines, is its Node name. EC2 may not answer for minutes
 * if many nodes boot at once. local-hostname of IMDS has the domain of the VPC DHCP options; in the domain of
 * the region both are equal (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html).
 * Then the node takes that, and asks EC2 again before kubelet starts. */
#include "host/detect.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>

#define AGAIN_USEC (3 * USEC_PER_SEC)   /* with credentials */

bool name_is_strict(const Config *config, const HostOptions *options) {
        return options->strict_node_name || config->instance.strict_node_name;
}

/* "ip-10-0-2-15" of this address, or of any if it is unknown (IPv6 clusters). */
static bool label_is_address(const char *label, const char *ipv4) {
        _free_ char *address = xstrdup(startswith(label, "ip-") ? label + 3 : "");
        struct in_addr any;
        for (char *p = address; *p; p++)
                if (*p == '-')
                        *p = '.';
        return ipv4 ? streq(address, ipv4) : inet_pton(AF_INET, address, &any) == 1;
}

/* Regions of China have no domain of their own (https://github.com/kubernetes-sigs/kubespray/issues/4345); in
 * a partition with one, instances wait for EC2. */
bool name_is_regional(const Instance *instance, const char *name) {
        bool first = streq(instance->region, "us-east-1");
        _free_ char *domain = first ? xstrdup(".ec2.internal")
                                    : xasprintf(".%s.compute.internal", instance->region);
        _free_ char *label = xstrndup(name, strcspn(name, "."));
        return streq(name + strlen(label), domain) && *label &&
               (label_is_address(label, instance->ipv4) || streq(label, instance->id));
}

/* Query.settle; runs in the thread that asks EC2. */
static bool settle_name(void *user, const char *why, bool more) {
        NameQuestion *q = user;
        _cleanup_(diag_done) Diag unknown = {};
        _free_ char *name = NULL;
        bool known = metadata_line(q->ec2.imds, "meta-data/local-hostname", &name, &unknown) >= 0;
        if (!known || !name_is_regional(q->instance, name)) {
                if (more)
                        log_info("EC2 does not answer; waiting for it. EC2 may have another name for this "
                                 "node: local-hostname in the metadata service is not in the domain of %s.",
                                 q->instance->region);
                return false;
        }
        q->assumed = TAKE_PTR(name);
        q->why = xstrdup(why);
        q->again = q->again && more;
        return true;
}

static bool keep_name(void *user, const char *why, _unused_ bool more) {
        NameQuestion *q = user;
        free(q->why);
        q->why = xstrdup(why);
        return true;
}

/* Without an answer nothing changes; a refusal is an answer. */
static int ask_again(NameQuestion *q) {
        _cleanup_(diag_done) Diag found = {};
        q->ec2.wish = (NameWish){ .again = true, .settle = keep_name, .user = q };
        q->ec2.deadline_usec = now_usec() + AGAIN_USEC;
        int r = ec2_private_dns_name(&q->ec2, q->instance->id, &q->name, &found);
        if (r == -ECANCELED)
                return 0;
        /* no credentials, or no name (yet) */
        bool none = r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -EKEYREJECTED;
        if (none)
                keep_name(q, diag_first_error(&found)->text, false);
        else
                diag_move(&q->diag, &found);
        return none ? 0 : r;
}

static void *ask_name(void *userdata) {
        NameQuestion *q = userdata;
        if (q->assumed)
                q->result = ask_again(q);
        else
                q->result = ec2_private_dns_name(&q->ec2, q->instance->id, &q->name, &q->diag);
        if (q->result == -ECANCELED)
                q->result = q->again ? ask_again(q) : 0;
        return NULL;
}

static bool ask_aside(NameQuestion *q) {
        sigset_t held, before;

        stop_signals(&held);    /* the main thread gets them as it waits for disks */
        if (pthread_sigmask(SIG_BLOCK, &held, &before) != 0)
                return false;
        bool running = pthread_create(&q->thread, NULL, ask_name, q) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return running;
}

static bool asks_name(const Config *config, const HostOptions *options, const Host *h) {
        bool open = !h->instance.private_dns_name || (h->name_assumed && options->name_again);
        return options->imds && open && !config->gates.instance_id_node_name;
}

Ec2 ec2_of(const HostOptions *options, const Host *h) {
        return (Ec2){ .region = h->instance.region, .domain = h->instance.domain, .imds = options->imds,
                      .turns = options->turns };
}

int name_check(const Config *config, const HostOptions *options, const Host *h, Diag *diag) {
        Ec2 ec2 = ec2_of(options, h);
        return options->imds ? ec2_check_endpoints(&ec2, asks_name(config, options, h), diag) : 0;
}

void name_ask(const Config *config, const HostOptions *options, const Host *h, bool aside, NameQuestion *q) {
        *q = (NameQuestion){ .ec2 = ec2_of(options, h), .instance = &h->instance,
                             .again = options->name_again && options->storage };
        if (!asks_name(config, options, h))
                return;
        if (!name_is_strict(config, options))
                q->ec2.wish = (NameWish){ .settle = settle_name, .user = q };
        if (h->name_assumed)
                q->assumed = xstrdup(h->instance.private_dns_name);
        q->running = aside && ask_aside(q);
        if (!q->running)
                ask_name(q);
}

int name_take(NameQuestion *q, Host *h, Diag *diag) {
        if (q->running)
                pthread_join(q->thread, NULL);
        if (q->name) {
                if (h->name_assumed)
                        h->name_before = TAKE_PTR(h->instance.private_dns_name);
                h->instance.private_dns_name = TAKE_PTR(q->name);
                h->name_assumed = false;
        } else if (q->assumed && q->result >= 0) {
                diag_warn(diag, "node-name-assumed",
                          "EC2 has not given the node name (%s); using %s from the metadata service, a "
                          "name in the domain of the region. To wait for EC2, set --strict-node-name or "
                          "spec.instance.strictNodeName: true",
                          q->why, q->assumed);
                free(h->instance.private_dns_name);
                h->instance.private_dns_name = TAKE_PTR(q->assumed);
                h->name_assumed = true;
        }
        FREE_ALL(q->assumed, q->why);
        move_facts(diag, &q->diag);
        return q->result;
}
