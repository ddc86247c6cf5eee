#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: imds.sh DIR TYPE : makes the metadata in DIR those of an instance of this type
printf %s "$2" >"$1/latest/meta-data/instance-type"
sed -i "s/\"instanceType\": \"[^\"]*\"/\"instanceType\": \"$2\"/" "$1/latest/dynamic/instance-identity/document"
