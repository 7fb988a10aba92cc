# On the fresh machine, booted, without a network: the package as the README installs it, by CGI, then by FastCGI.
set -euo pipefail
export CARGO_NET_OFFLINE=true
cd /home/teacher/comedor
. tests/machines/guide.sh
blocks README.md docs/install.md

# The folder with what a reader downloads.
downloads=/tmp/downloads
mkdir $downloads
cp "$(runuser -u teacher -- env HOME=/home/teacher cgi-bin/package | tail -n 1)" $downloads/
(cd $downloads && sha256sum -- * > SHA256SUMS)

as=(runuser -u teacher -- env --chdir=$downloads HOME=/home/teacher)
application /var/www/html service /DATA/service www-data
answers /api/comedor.php 'OLD PHP SCRIPT'
log_in ''
run 'Install.1'
run_and_agree 'Install.2'
answers /api/comedor.php '"success":true'
run 'Undo.1'
answers /api/comedor.php 'OLD PHP SCRIPT'
enable_fastcgi
curl -sf -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=save_menu&aulario=aula1' \
    -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
