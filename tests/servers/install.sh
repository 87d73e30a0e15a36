#!/usr/bin/env bash
# Installs what a bare Debian lacks of the servers for tests: Debian's redis-server, Node.js, dynalite.
# The other servers come inside Python wheels. Doing it again costs a second and changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

wanted=()
# By its path: a Python wheel may have put an older one on the PATH.
[ -x /usr/bin/redis-server ] || wanted+=(redis-server)
command -v node >/dev/null || wanted+=(nodejs)
command -v npm >/dev/null || wanted+=(npm)
if [ ${#wanted[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${wanted[@]}" >/dev/null
fi

# npm ci begins by removing what is there, which servers that run now would miss.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
  npm ci --silent
  cp package-lock.json node_modules/.installed-lock.json
fi
