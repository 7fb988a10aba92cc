# On the fresh machine, booted, without a network: the package as the README installs it, by CGI, then by FastCGI.
set -euo pipefail
export CARGO_NET_OFFLINE=true
cd /home/teacher/comedor
. lab/machines/guide.sh
blocks README.md docs/install.md

# The folder with what a reader downloads.
downloads=/tmp/downloads
mkdir $downloads
cp "$(runuser -u teacher -- env HOME=/home/teacher cgi-bin/package | tail -n 1)" $downloads/
(cd $downloads && sha256sum -- * > SHA256SUMS)

as=(runuser -u teacher -- env --chdir=$downloads HOME=/home/teacher)
application /var/www/html/entreaulas entreaulas /DATA/entreaulas www-data
is_php
run 'Install.1'
run 'Install.2'
log_in
curl -s -b "PHPSESSID=$id" http://localhost/entreaulas/api/comedor-setup.php > /tmp/page
values /tmp/page > /tmp/values
paste 'Install.3' /tmp/values
succeeds
run 'Install.4'
inline 'sudo a2disconf comedor && sudo systemctl restart apache2'
is_php
run 'Apache with FastCGI.1'
succeeds
curl -sf -b "PHPSESSID=$id" 'http://localhost/entreaulas/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
