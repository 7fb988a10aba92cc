# On the fresh machine, booted, without a network: the package as the README installs it, by CGI, then by FastCGI.
set -euo pipefail
export CARGO_NET_OFFLINE=true
cd /home/teacher/comedor
. lab/machines/guide.sh
blocks README.md docs/install.md
# Each line of the commands in README.md is a step; the others are comments.
grep -v '^#' /tmp/blocks/comedor.1 | split -l 1 -a 1 --numeric-suffixes=1 - /tmp/blocks/README.

# The folder with what a reader downloads.
downloads=/tmp/downloads
mkdir $downloads
cp "$(runuser -u teacher -- env HOME=/home/teacher cgi-bin/package | tail -n 1)" $downloads/
(cd $downloads && sha256sum -- * > SHA256SUMS)

as=(runuser -u teacher -- env --chdir=$downloads HOME=/home/teacher)
application /var/www/html/entreaulas entreaulas /DATA/entreaulas www-data
is_php
run 'README.1'
run 'README.2'
log_in
curl -s -b "PHPSESSID=$id" http://localhost/entreaulas/api/comedor-setup.php > /tmp/page
values /tmp/page > /tmp/values
paste 'README.3' /tmp/values
# The warning is that of the page.
! run 'README.4' > /tmp/checked || exit 1
cat /tmp/checked
tail -n 1 /tmp/checked | grep -qx '1 warning'
run 'README.5'
succeeds
run 'README.6'
inline 'sudo a2disconf comedor && sudo apache2ctl configtest && sudo systemctl restart apache2'
is_php
run 'Apache with FastCGI.1'
succeeds
curl -sf -b "PHPSESSID=$id" 'http://localhost/entreaulas/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
