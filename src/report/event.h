/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verdicts → files for `nodestrap send-events`, which makes Events of them. units/nodestrap-event.path
 * starts it; init does not wait for it. {reason, warning, message, key, time, access, given, environment}:
 * key distinguishes Events of one reason. access is for kube_access_take(), if known. given: access replaces
 * the kubeconfig, which is from an earlier boot. environment is from event_environment(). */
#include "base/paths.h"
#include "report/join.h"
#include "report/report.h"

#define EVENTS_DIR RUN_DIR "/events"
/* The proxy variables of this process: {NAME: value}, null if not set. */
json_t *event_environment(void);

/* {machine, bootId} of the last condition that the cluster has. */
#define CONDITION_FILE "/var/lib/nodestrap/condition.json"
#define CONDITION_ENDING ".condition"   /* of a notice, which a later one replaces */
#define EVENTS_MAX 16           /* files; then the oldest is removed */

/* Of init: each verdict that is not ok, and the first ok of a run phase after it. well: the boot is ok. */
_nonnull_ void event_of_run(const Root *root, const Report *report, const Verdict *v, bool well);
/* For a wait by a unit: on a terminal you see the result. */
_nonnull_ void event_of_join(const Root *root, const Verdict *v);

/* The condition NodestrapReady, also by a notice: {condition, status, reason, message, machine, bootId, time,
 * environment}, with repairReason and repairMessage if KUBE_REPAIR must be False, too. A new boot of a Node
 * that has the condition makes it Unknown; */
_nonnull_ void condition_of_start(const Root *root);
/* the verdict of this boot sets it, if the Node has it, or if you typed an init that lets kubelet start; */
_nonnull_ void condition_of_run(const Root *root, const Status *status);
/* and so does `nodestrap wait` as root, once the Node is registered. With expectDevices, a boot that is ok
 * stays Unknown until a wait for devices has ended. */
_nonnull_ void condition_of_node(const Root *root);
