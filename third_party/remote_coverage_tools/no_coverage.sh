#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "Coverage is not supported offline." >&2
exit 1
