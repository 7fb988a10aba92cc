# On the fresh machine, booted again: the service answers, has the saved menu, and can be removed.
set -euo pipefail
cd /home/teacher/comedor
. lab/machines/guide.sh
blocks docs/install.md

as=(runuser -u teacher -- env HOME=/home/teacher)
soon curl -sfo /dev/null http://localhost/entreaulas/login.php
log_in
succeeds
curl -sf -b "PHPSESSID=$id" 'http://localhost/entreaulas/api/comedor.php?action=get_menu&aulario=aula1&date=2026-11-20&menu=basal' |
    grep Lentejas
inline 'sudo journalctl -u comedor' | grep Started
inline 'sudo a2disconf comedor-fastcgi && sudo apache2ctl configtest && sudo systemctl restart apache2'
inline 'sudo systemctl disable --now comedor.socket comedor.service'
run 'Undo.1'
is_php
