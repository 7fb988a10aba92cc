# On the fresh machine, with a network and the Rust of the machine that made it: tests/run and the servers of schools, as
# root in root's folder.
set -euo pipefail
cd /root/comedor
export PATH=/opt/rust/bin:/root/.cargo/bin:$PATH
time tests/run
apt-get install -q openssl
# Those servers have an application of their own.
rm -r /var/www/html/entreaulas /DATA
cargo test --locked --test machines -- the_guide_leads two_schools upgrade_from
