# On the fresh machine, with a network and the Rust of the machine that made it: tests/run and the servers of schools, as
# root in root's folder.
set -euo pipefail
cd /root/comedor
export PATH=/opt/rust/bin:/root/.cargo/bin:$PATH
# The tests have applications of their own, and the set-up page looks for their data there.
rm -r /var/www/html/entreaulas /DATA
time tests/run
apt-get install -q openssl
cargo test --locked --test machines -- the_guide_leads two_schools upgrade_from
