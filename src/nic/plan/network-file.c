/* SPDX-License-Identifier: Apache-2.0
 * An interface → its .network file (systemd.network(5)). The primary file has the bytes of nodeadm, so that
 * either program can follow the other on a node. A secondary file does more than that of nodeadm: all
 * addresses and prefixes have a rule, and the subnet is on-link in its own table. */
#include "nic/plan/interface.h"

#include "base/str.h"
#include "plan/planner.h"

#define EC2_NET_UTILS "https://github.com/amazonlinux/amazon-ec2-net-utils/blob/" \
                      "3261b3b4c8824343706ee54d4a6f5d05cd8a5979/"

#define MATCH "PermanentMACAddress="

/* These comments are part of the nodeadm bytes
 * (awslabs/amazon-eks-ami:nodeadm/cmd/nodeadm-internal/udev/eks-managed.network.tpl). */
#define PRIMARY_HEAD                                                                \
        "# this is derived from the ec2-net-util network config defaults.\n"        \
        "#\n"                                                                       \
        "# see: " EC2_NET_UTILS "systemd/network/80-ec2.network\n\n"
#define PRIMARY_ROUTES                                                              \
        "# additional route optimization to promote the primary interface being more\n"     \
        "# likely to carry traffic from the instance on boot.\n"                    \
        "#\n"                                                                       \
        "# see: " EC2_NET_UTILS "lib/lib.sh#L354-L366\n\n"

/* By the hardware address: an interface may be renamed, and a VLAN on it has the same MAC. */
static void add_common(Text *t, const char *mac) {
        text_add(t, "[Match]\n" MATCH "%s\n\n", mac);
        text_add(t, "[Link]\nMTUBytes=9001\n\n");
        text_add(t, "[Network]\nDHCP=yes\nIPv6DuplicateAddressDetection=0\n"
                    "LLMNR=no\nDNSDefaultRoute=yes\n\n");
        text_add(t, "[DHCPv4]\nUseHostname=no\nUseDNS=yes\nUseNTP=yes\nUseDomains=yes\n\n");
        text_add(t, "[DHCPv6]\nUseHostname=no\nUseDNS=yes\nUseNTP=yes\nWithoutRA=solicit\n\n");
}

static char *primary_file(const char *mac) {
        Text t = {};
        unsigned metric = INTERFACE_METRIC(0, 0);
        text_add(&t, PRIMARY_HEAD);
        add_common(&t, mac);
        text_add(&t, PRIMARY_ROUTES);
        text_add(&t, "[DHCPv4]\nRouteMetric=%u\nUseRoutes=true\nUseGateway=true\n\n", metric);
        text_add(&t, "[IPv6AcceptRA]\nRouteMetric=%u\nUseGateway=true\n\n", metric);
        return text_take(&t);
}

/* networkd puts all routes of DHCP and router advertisements into one table: that of the interface, where its
 * subnet is on-link anyway. The main table gets a default route after the primary one. */
static void add_routes(Text *t, int card, int device) {
        unsigned metric = (unsigned)INTERFACE_METRIC(card, device),
                 table = (unsigned)INTERFACE_TABLE(card, device);
        text_add(t, "# network card %d, device %d\n", card, device);
        text_add(t, "[DHCPv4]\nRouteMetric=%u\nRouteTable=%u\nUseRoutes=yes\nUseGateway=no\n\n", metric,
                 table);
        text_add(t, "[IPv6AcceptRA]\nRouteMetric=%u\nRouteTable=%u\nUseGateway=yes\n\n", metric, table);
        /* The gateway counts as on-link, because its subnet is not in the main table. In the other table, a
         * networkd (257) that restarts and keeps foreign routes would wait forever for the subnet route. */
        text_add(t, "[Route]\nTable=%u\nGateway=_dhcp4\nGatewayOnLink=yes\nMetric=%u\n\n", table, metric);
        text_add(t, "[Route]\nTable=main\nGateway=_dhcp4\nGatewayOnLink=yes\nMetric=%u\n\n", metric);
        text_add(t, "[Route]\nTable=main\nGateway=_ipv6ra\nMetric=%u\n\n", metric);
}

/* Just before the rule for the main table, where the CNI has its own
 * (aws/amazon-vpc-cni-k8s:pkg/networkutils/network.go). */
static void add_rules(Text *t, char *const *froms, int card, int device) {
        for (char *const *from = froms; from && *from; from++)
                text_add(t, "[RoutingPolicyRule]\nFrom=%s\nTable=%d\nPriority=32765\n\n", *from,
                         INTERFACE_TABLE(card, device));
}

char *network_file(const Eni *eni, bool primary) {
        Text t = {};
        int card = MAX(eni->card, 0), device = MAX(eni->device, 0);
        if (primary)
                return primary_file(eni->mac);
        text_add(&t, "# Made by nodestrap udev-net-manager. Drop-ins for this interface go to\n"
                     "# /etc/systemd/network/70-NAME.network.d/, as for amazon-ec2-net-utils.\n\n");
        add_common(&t, eni->mac);
        add_routes(&t, card, device);
        add_rules(&t, eni->ipv4s, card, device);
        add_rules(&t, eni->ipv4_prefixes, card, device);
        add_rules(&t, eni->ipv6s, card, device);
        add_rules(&t, eni->ipv6_prefixes, card, device);
        return text_take(&t);
}

char *network_file_mac(const char *text) {
        const char *found = strstr(text, "\n" MATCH);
        _free_ char *mac = found ? xstrndup(found + strlen("\n" MATCH), 17) : NULL;
        return mac && strlen(mac) == 17 && mac_is_valid(mac) ? TAKE_PTR(mac) : NULL;
}
