#!/bin/sh
# install.sh: installs Bawn in a development container, from the Debian package beside it,
# whose signature you have verified.
set -eu
dpkg -i "$(dirname "$0")"/bawn_*.deb
