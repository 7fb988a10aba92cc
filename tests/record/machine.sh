#!/bin/bash
# Runs the commands of README.md's section "Install" in a throw-away copy of this machine with the application, and writes
# what their terminal shows to /downloads/shown. Run by tests/record/run.
set -euo pipefail
# What only this machine's apt would say.
rm -f /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/70debconf
echo 'Dpkg::Progress-Fancy "0";' > /etc/apt/apt.conf.d/record

. tests/deploy/guide.sh
blocks README.md
application /entreaulas entreaulas
hostname school
echo '127.0.0.1 school school.example' >> /etc/hosts
sed -i 's/^<VirtualHost .*/&\n\tServerName school.example/' /etc/apache2/sites-available/000-default.conf
systemctl start apache2
repository=$PWD
cd /downloads
sha256sum -- *.deb > SHA256SUMS
cat /tmp/blocks/Install.* > /tmp/commands
mapfile -t commands < /tmp/commands
"$repository/tests/record/run" show "${commands[@]}" > shown
