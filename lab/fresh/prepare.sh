# On the fresh machine, with a network: what a newcomer does with Debian's Rust, and how long it takes; then a school's web server.
set -euo pipefail
cd /home/teacher/comedor
. lab/machines/guide.sh

chown -R teacher: /home/teacher/.cargo
apt-get update -q
as=(runuser -u teacher -- env HOME=/home/teacher)
inline 'sudo apt-get install cargo-web gcc libc6-dev'
time "${as[@]}" cgi-bin/demo < /dev/null
time inline 'cargo test'
inline 'cargo install cargo-deb'
apt-get install -q apache2 libapache2-mod-php curl
