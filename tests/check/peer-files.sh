#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every file of the nodes in tests/peer-files is byte for byte as nodeadm left it, by either name. The manual has the same table of
# differences (tests/oracles/peer_files.py).
here=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$here/oracles/peer_files.py" --nodestrap "${NODESTRAP:-build/nodestrap}" --manual "$here/../debian/nodestrap-nodeadm.7"
