/* SPDX-License-Identifier: Apache-2.0
 * template_check(): a launch template beside a Config, without files. tests/check/launch-template.sh has the rest. */
#include "base/str.h"
#include "doctor/checks.h"
#include "test.h"

#include <errno.h>

/* All findings, one a line: "3: NetworkInterfaces[1]: error EINVALID: text". */
static char *findings(const char *text, Template t, int *ret) {
        Blob blob = { .at = { "lt.json", 0, 1 }, .data = xstrdup(text), .size = strlen(text) };
        _cleanup_(documents_done) Documents d = {};
        _cleanup_(diag_done) Diag diag = {};
        Text out = {};
        ASSERT_OK(yaml_parse(&blob, &d, &diag));
        t.data = d.items[0].root;
        t.source = "lt.json";
        t.path = t.path ?: "";
        *ret = template_check(&t, &diag);
        diag_sort(&diag);
        for (size_t i = 0; i < diag.n; i++) {
                const Diagnostic *f = &diag.items[i];
                text_add(&out, "%u:%u %s: %s: %s\n", f->line, f->column, f->path,
                         f->warning ? "warning" : cause_word(f->cause), f->text);
        }
        free(blob.data);
        return text_take(&out);
}

#define ASSERT_FOUND(text, template, r, wanted) ({                                             \
        int _r = 0;                                                                            \
        _free_ char *_got = findings(text, template, &_r);                                     \
        ASSERT_STREQ(_got, wanted);                                                            \
        ASSERT_EQ(_r, r); })

static char *const p5[] = { (char *)"p5.48xlarge", NULL }, *const gb200[] = { (char *)"p6e-gb200.36xlarge", NULL },
             *const g5[] = { (char *)"g5.xlarge", NULL };

TEST(an_empty_template_is_accepted) {
        ASSERT_FOUND("{}", ((Template){ .types = p5 }), 0, "");
        ASSERT_FOUND("[1, {a: b}]", ((Template){}), 0, "");
        ASSERT_FOUND("{NetworkInterfaces: 3, BlockDeviceMappings: [7, {}], MetadataOptions: [], TagSpecifications: x}",
                     ((Template){}), 0,
                     "1:2 NetworkInterfaces: warning: gets the default security group of the VPC; set Groups. EFA needs a group "
                     "that allows all traffic within it\n");
        ASSERT_FOUND("BlockDeviceMappings:\n- {}\n- {}\n- DeviceName: /dev/sdf\n- DeviceName: xvdf\n", ((Template){}), -EINVAL,
                     "5:3 BlockDeviceMappings[3]: EINVALID: an earlier mapping has this DeviceName, or one that Linux takes for the same; "
                     "rename one\n");
}

TEST(a_finding_has_the_position_of_its_key) {
        ASSERT_FOUND("MetadataOptions:\n  HttpTokens: required\n  HttpEndpoint: disabled\n", ((Template){ .path = "a.b" }),
                     -EINVAL, "3:3 a.b.MetadataOptions.HttpEndpoint: EIMDS: nodestrap reads user data from the "
                     "metadata service, without which the boot ends with EIMDS; write enabled\n");
        ASSERT_FOUND("\nMetadataOptions: {HttpPutResponseHopLimit: 65, httpTokens: required, HttpTokenz: optional}",
                     ((Template){}), 0,
                     "2:19 MetadataOptions.HttpPutResponseHopLimit: warning: EC2 does not accept this value; use one of "
                     "1-64\n"
                     "2:48 MetadataOptions.httpTokens: warning: is not a key that EC2 knows; did you mean HttpTokens?\n"
                     "2:70 MetadataOptions.HttpTokenz: warning: is not a key that EC2 knows; did you mean HttpTokens?\n");
}

TEST(names_and_blocks_of_terraform_are_understood) {
        const Template t = { .types = p5, .terraform = true, .path = "aws_launch_template.a" };
        ASSERT_FOUND("{\"metadata_options\": [{\"http_tokens\": \"optional\"}], \"vpc_security_group_ids\": [\"sg-1\"],\n"
                     "\"network_interfaces\": [{\"network_card_index\": 32, \"device_index\": 1, \"interface_type\": \"efa\"}],\n"
                     "\"iam_instance_profile\": [{}], \"placement\": [{}], \"instance_initiated_shutdown_behavior\": null}",
                     t, -EINVAL,
                     "1:24 aws_launch_template.a.metadata_options[0].http_tokens: warning: IMDSv1 gives the credentials of "
                     "the node without a token, and nodestrap needs no IMDSv1; write required\n"
                     "1:53 aws_launch_template.a.vpc_security_group_ids: EINVALID: EC2 refuses it with NetworkInterfaces; "
                     "move it to Groups of each interface\n"
                     "2:1 aws_launch_template.a.network_interfaces: EINVALID: EC2 needs a primary interface; give an "
                     "interface NetworkCardIndex 0 and DeviceIndex 0\n"
                     "2:24 aws_launch_template.a.network_interfaces[0]: EINVALID: p5.48xlarge has no network card 32; the last "
                     "one is 31\n");
        ASSERT_FOUND("{\"instance_market_options\": [{\"market_type\": \"capacity-block\"}],\n"
                     "\"capacity_reservation_specification\": [{\"capacity_reservation_target\": [{}]}]}", t, 0, "");
}

TEST(the_template_must_have_what_the_boot_expects) {
        Config c = { .instance.efa = EFA_AUTO, .instance.expected_efa = 2 };
        Template t = { .types = p5, .config = &c };
        static const char text[] = "NetworkInterfaces:\n"
                                   "- {InterfaceType: efa, Groups: [a]}\n"
                                   "- {InterfaceType: efa-only, Groups: [a], NetworkCardIndex: 1, DeviceIndex: 1}\n"
                                   "Placement: {GroupName: a}\n";
        ASSERT_FOUND(text, t, 0, "");
        c.instance.expected_efa = 3;
        ASSERT_FOUND(text, t, -EINVAL,
                     "1:1 NetworkInterfaces: EEFA: has too few EFA devices (2), and spec.instance.network.efa wants 3: the boot reports "
                     "EEFA; add interfaces, or change mode or expectedDevices\n");
        c.failure_policy = FAILURE_JOIN_TAINTED;
        ASSERT_FOUND(text, t, 0,
                     "1:1 NetworkInterfaces: warning: has too few EFA devices (2), and spec.instance.network.efa wants 3: the boot reports "
                     "EEFA; add interfaces, or change mode or expectedDevices\n");
        c.instance.efa = EFA_OFF;
        ASSERT_FOUND(text, t, 0, "");
        Volume v[] = { { .device = (char *)"/dev/xvdb", .key = (char *)"xvdb" },
                       { .device = (char *)"vol-0123", .key = (char *)"vol-0123" } };
        c.instance.volumes = v;
        c.instance.n_volumes = 2;
        ASSERT_FOUND("BlockDeviceMappings: [{DeviceName: /dev/sdb, Ebs: {VolumeSize: 9}}]", t, 0, "");
        ASSERT_FOUND("BlockDeviceMappings: [{DeviceName: /dev/sdb, NoDevice: ''}]", t, 0,
                     "1:1 BlockDeviceMappings: warning: spec.instance.storage.volumes[0] waits for /dev/xvdb: unless the image "
                     "maps it, the boot ends with EVOLUME; add a mapping\n");
}

TEST(efa_interfaces_must_fit_the_cards_of_the_type) {
        Template t = { .types = gb200 };
        ASSERT_FOUND("Placement: {GroupId: a}\n"
                     "NetworkInterfaces:\n"
                     "- {InterfaceType: efa, Groups: [a]}\n"
                     "- {InterfaceType: efa, Groups: [a], NetworkCardIndex: 1}\n"
                     "- {InterfaceType: efa, Groups: [a], NetworkCardIndex: 2}\n", t, -EINVAL,
                     "3:3 NetworkInterfaces[0]: EINVALID: network card 0 of p6e-gb200.36xlarge takes no EFA; set "
                     "InterfaceType to interface\n"
                     "4:3 NetworkInterfaces[1]: EINVALID: network card 1 of p6e-gb200.36xlarge takes no addresses; set "
                     "InterfaceType to efa-only\n");
        t.types = g5;
        ASSERT_FOUND("Placement: {GroupId: a}\nNetworkInterfaces: [{InterfaceType: efa, Groups: [a]}]\n", t, -EINVAL,
                     "2:21 NetworkInterfaces[0]: EINVALID: is EFA device number 1, but g5.xlarge takes at most 0; remove it, or "
                     "set InterfaceType to interface\n");
        t.types = NULL;
        ASSERT_FOUND("Placement: {GroupId: a}\nNetworkInterfaces: [{InterfaceType: efa, Groups: [a]}]\n", t, 0, "");
}

TEST(user_data_of_more_than_16_kib_is_an_error) {
        ASSERT_FOUND("UserData: x", ((Template){ .user_data = 16384 }), 0, "");
        ASSERT_FOUND("UserData: x", ((Template){ .user_data = 16385 }), -EINVAL,
                     "1:1 UserData: EINVALID: has 16385 bytes before base64, and EC2 takes 16384; compress them: gzip -9 "
                     "<FILE | base64 -w 0\n");
}

TEST_MAIN
