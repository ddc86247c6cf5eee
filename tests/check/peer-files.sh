#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodestrap, called as nodestrap and as nodeadm, writes every file of the nodes in tests/peer-files byte for byte as nodeadm did. The manual
# has the same table of differences (tests/oracles/peer_files.py).
here=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$here/oracles/peer_files.py" --nodestrap "${NODESTRAP:-build/nodestrap}" --manual "$here/../debian/nodestrap-nodeadm.7"
