# On the fresh machine, with a network and the Rust of the machine that made it: tests/run, as root in root's folder.
set -euo pipefail
cd /root/comedor
export PATH=/opt/rust/bin:/root/.cargo/bin:$PATH
time tests/run
